"""A place is typed alike in all commands; what ends or deletes work wants its own name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import JlrError
from tests.cli.conftest import REPORT, Jlr, Workflows, remember, settle


@pytest.fixture(autouse=True)
def known(laptop: Path) -> None:
    remember(("lab", "work"), ("lab", "twin"), ("dgx", "twin"))
    (laptop / ".ssh").mkdir(exist_ok=True)
    (laptop / ".ssh" / "config").write_text("Host lab dgx box\n")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("lab", "new"), ("lab", "new")),
        (("lab/new",), ("lab", "new")),
        (("lab/work",), ("lab", "work")),
        (("work",), ("lab", "work")),
        (("dgx/twin", "twin"), ("dgx", "twin")),
        (("lab/",), ("lab", None)),
        (("me@box",), ("me@box", None)),
        (("10.0.0.5",), ("10.0.0.5", None)),
        ((), ("lab", "work")),
        (("twin",), "`twin` is the name of several sessions"),
        (("lab/work", "other"), "`lab/work` and `other` both name a session"),
    ],
)
def test_a_start_takes_one_word_or_two(
    words: tuple[str, ...], place: tuple[str, str | None] | str, jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("sessions.start.start", REPORT)
    outcome = jlr("start", *words, "--no-browser")
    if isinstance(place, str):
        assert (outcome.code, place in outcome.stderr) == (2, True)
        return
    assert outcome.code == 0, outcome
    request = workflows.arguments("sessions.start.start")[0]
    assert (request.host, request.container) == place


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("work",), ("lab", "work")),
        (("work", "a.ipynb"), ("lab", "work")),
        (("--in", "work", "a.ipynb"), ("lab", "work")),
        (("lab/work",), ("lab", "work")),
        (("lab/any",), ("lab", "any")),
        (("lab", "--in", "any"), ("lab", "any")),
        (("lab", "--in", "lab/work"), ("lab", "work")),
        (("--in", "work"), ("lab", "work")),
        (("--in", "dgx/twin"), ("dgx", "twin")),
        (("dgx", "--in", "work"), ("dgx", "work")),
        (("lab", "--runtime", "none"), ("lab", None)),
        (("--runtime", "none"), ("box", None)),
        (("--in", "any"), ("box", "any")),
        (("--in", "twin"), (2, "`twin` is the name of several sessions")),
        (("dgx", "--in", "lab/work"), (2, "`lab/work` is not on `dgx`")),
        (("lab/work", "--in", "twin"), (2, "`lab/work` and `--in twin` cannot be combined")),
        (("--in", "dgx"), (6, "`dgx` is a host and not a session")),
    ],
)
def test_a_run_takes_a_session_in_the_place_of_its_host(
    words: tuple[str, ...], place: tuple[Any, Any], jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    settle(laptop, '[defaults]\nhost = "box"\n')
    if words == ("--in", "dgx"):
        remember(("dgx", "other"))
    workflows.will("jobs.begin.run", RuntimeError("begun"))
    outcome = jlr("run", *words, *(() if "a.ipynb" in words else ("--", "ls")))
    if isinstance(place[0], int):
        assert (outcome.code, place[1] in outcome.stderr) == (place[0], True), outcome
        return
    request = workflows.arguments("jobs.begin.run")[0]
    assert (request.wanted.host, request.inside) == place


@pytest.mark.parametrize(
    ("words", "host", "note"),
    [
        (("gpus",), "box", ""),
        (("gpus", "dgx"), "dgx", ""),
        (("gpus", "work"), "lab", "`work` is on `lab`"),
        (("gpus", "dgx/any"), "dgx", "`dgx/any` is on `dgx`"),
        (("images",), "box", ""),
        (("images", "work"), "lab", "`work` is on `lab`"),
        (("runs", "work"), "lab", "`work` is on `lab`"),
    ],
)
def test_a_session_stands_for_its_host(
    words: tuple[str, ...], host: str, note: str, jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    settle(laptop, '[defaults]\nhost = "box"\n')
    stories = {"images": "images.save.images", "runs": "jobs.known_jobs.listed"}
    story = stories.get(words[0], "gpus.host_gpus.inventory")
    workflows.will(story, JlrError("asked"))
    outcome = jlr(*words)
    assert "asked" in outcome.stderr
    assert workflows.arguments(story)[0] == host
    assert note in outcome.stderr


def test_without_a_host_the_latest_sessions_is_taken_or_asked_for(
    jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    workflows.will("images.save.images", [])
    assert jlr("images").code == 0
    assert workflows.arguments("images.save.images")[0] == "lab"
    for file in (laptop / "state" / "jlr" / "sessions").iterdir():
        file.unlink()
    missing = jlr("gpus")
    assert (missing.code, "missing HOST; usage: jlr gpus HOST" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("disconnect", "work"),
        ("image", "rm", "lab/work", "x"),
        ("image", "prune", "work"),
        ("job", "list", "work", "--clean"),
    ],
)
def test_what_deletes_on_a_host_wants_the_hosts_own_name(
    words: tuple[str, ...], jlr: Jlr, workflows: Workflows
) -> None:
    outcome = jlr(*words, "--yes")
    assert (outcome.code, "name the host: `lab`" in outcome.stderr) == (2, True)
    assert not workflows.calls
