"""A leashed `jlr` does what is listed, in its session, and refuses all else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import pytest

from jlremote.cli import leash
from jlremote.errors import JlrError
from jlremote.jobs import known_jobs
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.job import Job
from jlremote.selection.session_selection import chosen
from tests.cli.conftest import REPORT, Jlr, Outcome, Workflows, remember, settle
from tests.cli.tree import COMMANDS, command
from tests.stories.parts import FakeHost, context


@pytest.fixture(autouse=True)
def leashed(laptop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leash the process to `dgx/cont1`, in a folder of a project."""
    remember(("dgx", "other"), ("dgx", "cont1"), ("lab", "cont2"))
    settle(laptop, '[pools.lab]\nhosts = ["lab", "dgx"]\n')
    monkeypatch.setenv("JLR_LEASH", "dgx/cont1")
    project = laptop / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


def refused(outcome: Outcome, *words: str) -> None:
    assert (outcome.code, outcome.stdout) == (1, ""), outcome
    for word in ("leashed to `dgx/cont1`", "ask the person", *words):
        assert word in outcome.stderr


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_is_refused_unless_it_is_listed(path: str) -> None:
    if path in leash.ALLOWED:
        known = {each.name for each in command(path).params}
        assert set(" ".join(leash.ALLOWED[path]).split()) <= known
        return
    with pytest.raises(JlrError, match=f"leashed to `dgx/cont1`: `jlr {path}` is not for agents"):
        leash.hold(click.Context(command(path)))


@pytest.mark.parametrize(
    "words",
    [
        ("stop", "--yes"),
        ("config",),
        ("output", "--save", "a.ipynb", "--force"),
        ("list", "dgx/cont1", "--all"),
        ("run", "dgx/cont1", "-v", "/:/host", "--", "ls"),
        ("run", "dgx/cont1", "--user", "root", "--", "ls"),
        ("--ssh-config", "/dev/null", "exec", "-c", "1"),
    ],
)
def test_what_could_reach_further_is_refused_also_with_a_yes(
    words: tuple[str, ...], jlr: Jlr, workflows: Workflows
) -> None:
    refused(jlr(*words), "is not for agents")


@pytest.mark.parametrize("place", ["dgx/other", "cont2", "dgx", "dgx/", "nowhere", "@lab/cont2"])
@pytest.mark.parametrize(
    "line",
    [
        "exec {} -c 1",
        "output {}",
        "logs {}",
        "list {}",
        "cp {}:x .",
        "sync . {}",
        "run {} -- ls",
        "run --in {} -- ls",
        "run dgx --in cont1 -- ls",
        "wait {}",
        "wait {} --for idle",
        "wait {}/run-3f2a91c04b7e",
    ],
)
def test_another_session_and_its_host_are_refused(
    line: str, place: str, jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kernels.execution.execute", "output.reading.recorded", "sessions.logs.log"):
        workflows.will(name, lambda *given, **_: chosen(_selector(given[0]), context()))
    outcome = jlr(*line.format(place).split())
    assert (outcome.code, "leashed to `dgx/cont1`" in outcome.stderr) == (1, True), outcome


def _selector(given: Any) -> Any:
    return getattr(given, "selector", given)


def test_its_session_is_the_default_and_its_hosts_gpus_show(jlr: Jlr, workflows: Workflows) -> None:
    assert chosen(None, context()).selector == "dgx/cont1"
    workflows.will("listing.listing.report", REPORT)
    assert jlr("list", "--json").code == 0
    assert workflows.arguments("listing.listing.report")[0] == "dgx/cont1"
    for place in ((), ("dgx",), ("cont1",)):
        workflows.will("gpus.host_gpus.inventory", click.Abort())
        jlr("gpus", *place)
        assert workflows.calls.pop()[1][0] == "dgx"
    refused(jlr("gpus", "lab"))
    for line in ("-- ls", "cont1 -- ls", "train.ipynb", "--in cont1 a.ipynb"):
        workflows.will("jobs.begin.run", click.Abort())
        jlr("run", *line.split())
        request = workflows.calls.pop()[1][0]
        assert (request.wanted.host, request.inside) == ("dgx", "cont1")


@pytest.mark.parametrize("job", [Job("x", "running", "ls", container="other"), Job("x", "", "")])
def test_a_job_elsewhere_is_refused(job: Job) -> None:
    def found(job: Job) -> object:
        handle = known_jobs.JobHandle(FakeHost("dgx", {}), known_jobs.SCHEDULED, job)  # type: ignore[arg-type]
        return known_jobs._one_of([handle], "x")

    with pytest.raises(JlrError, match="the job `dgx/x` does not run in that session"):
        found(job)
    assert found(Job("x", "running", "ls", container="cont1"))


def test_files_of_this_machine_are_those_below_the_current_folder(
    jlr: Jlr, workflows: Workflows, leashed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = []
    monkeypatch.setattr("jlremote.copies.cp.copy", lambda *given, **_: copied.append(given[:2]))
    (leashed / "out").symlink_to(leashed.parent)
    for path in ("~/.ssh/id_rsa", "../x", "/etc/passwd", "out/x"):
        refused(jlr("cp", path, "cont1:/data"), f"`{path}` is not below")
        refused(jlr("cp", "cont1:x", path))
    for line in (
        "exec /etc/passwd",
        "exec cont1 ../x.py",
        "exec cont1 -c 1 --out /tmp",
        "exec --sync=/etc -c 1",
    ):
        refused(jlr(*line.split()), "is not below")
    for line in ("sync .. cont1", "run cont1 --sync=/etc -- ls", "output cont1 --save /x.ipynb"):
        refused(jlr(*line.split()), "is not below")
    assert jlr("cp", "a/b.csv", "cont1:/data").code == 0
    assert copied == [(["a/b.csv"], "cont1:/data")]
    monkeypatch.chdir(leashed.parent)  # the home folder
    refused(jlr("cp", "x", "cont1:/data"), "is not that of a project")
    refused(jlr("exec", "cont1", "x.py"), "is not that of a project")
    refused(jlr("sync", "cont1"), "is not that of a project")


@pytest.mark.parametrize(
    ("leash", "why"),
    [
        ("", "the leash `` is no session"),
        ("dgx", "the leash `dgx` is no session"),
        ("@lab/cont9", "the leash `@lab/cont9` is no session"),
        ("dgx/joined", "the leash `dgx/joined` is no session of yours"),
    ],
)
def test_a_leash_that_names_no_session_of_ones_own_refuses_everything(
    leash: str, why: str, jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.save(SessionRecord("dgx", "joined", "docker", 9000, shared=True))
    monkeypatch.setenv("JLR_LEASH", leash)
    outcome = jlr("gpus", "dgx")
    assert (outcome.code, why in outcome.stderr) == (1, True), outcome


def test_an_option_leashes_and_changes_no_leash(
    jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(jlr("--leash", "lab/cont2", "gpus"), "`--leash lab/cont2` is another one")
    os.environ["JLR_LEASH"] = "dgx/cont1"
    refused(jlr("stop", "--leash", "cont1", "--yes"), "`jlr stop` is not for agents")
    del os.environ["JLR_LEASH"]
    refused(jlr("rm", "--leash", "cont1", "--yes", "--", "cont1"), "`jlr rm` is not for agents")
