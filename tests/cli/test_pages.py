"""README.md and docs/: what they show leads somewhere, and each command runs as it is typed."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from jlremote.cli.keyboard.local_terminal import LocalTerminal
from jlremote.demo import demo
from jlremote.errors import JlrError
from jlremote.laptop import job_records
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.settings import settings
from jlremote.link.client import dial
from tests.cli.conftest import Jlr, remember, settle
from tests.cli.test_help import EVERY_CALL, SHOWN

REPOSITORY = Path(__file__).parents[2]
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
TEXTS = {page: page.read_text("utf-8") for page in PAGES}
# Lines that are indented as code, and the empty ones between them, from the first table on.
SETTINGS = re.compile(
    r"^    \[(?:defaults|hosts|profiles).*\n(?:    .*\n|\n(?=    ))*", re.MULTILINE
)
USAGE, BUG = 2, 3
NOT_HERE = {"--keep", "--renew"}  # they want a terminal, and a session on a cluster
SESSIONS = [("dgx", "cont1"), ("dgx", "me-tf"), ("lab", "proj"), ("hpc", "work"), ("gpu", "torch")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[page])
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_link_to_a_heading_leads_to_one() -> None:
    for page, text in TEXTS.items():
        for file, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
            target = page if not file else (page.parent / file).resolve()
            titles = re.findall(r"^#+ (.*)$", TEXTS[target], re.MULTILINE)
            plain = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in plain, f"{page.name}: {file}#{anchor}"


def test_the_settings_that_are_shown_are_valid() -> None:
    found = [(page, text) for page, text in TEXTS.items() for text in SETTINGS.findall(text)]
    assert len(found) > 4
    for page, text in found:
        settings.interpreted(page, tomllib.loads(text.replace("    ", "")))


def test_programs_and_extras_that_are_shown_exist() -> None:
    everything = "".join(TEXTS.values())
    modules = set(re.findall(r"python -m (tests[\w.]*)", everything))
    assert {"tests.bench.tunnel", "tests.lab"} <= modules
    assert [module for module in modules if find_spec(module) is None] == []
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    named = {
        each for group in re.findall(r"'\.\[([\w,]+)\]'", everything) for each in group.split(",")
    }
    assert {"demo", "kernels"} <= named <= set(extras["project"]["optional-dependencies"])


class Reached(JlrError):
    """A command is about to call its host."""


@pytest.fixture
def desk(laptop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A laptop with the sessions, hosts and files that the pages name, and no way to a host."""
    for host, name in SESSIONS:
        remember((host, name))
    job_records.save(JobRecord("dgx", "sweep", "docker", None))
    settle(laptop, '[pools.lab]\nhosts = ["dgx", "dgx2"]\n')
    for name in ("a.csv", ".pip.conf", "Dockerfile", "proj/Dockerfile"):
        (laptop / name).parent.mkdir(exist_ok=True)
        (laptop / name).touch()
    monkeypatch.chdir(laptop)
    monkeypatch.setenv("EDITOR", "true")

    def reached(*_: Any, **__: Any) -> None:
        raise Reached("reached")

    monkeypatch.setattr(dial, "dial", reached)
    monkeypatch.setattr(demo, "demo", reached)
    return laptop


def test_each_command_that_is_shown_runs_until_it_would_call_a_host(
    jlr: Jlr, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of README.md, of the pages and guides, and the examples of each command's help."""
    shown = dict.fromkeys(tuple(call) for call in [*SHOWN, *EVERY_CALL] if "…" not in call)
    assert len(shown) > 200
    wrong, reached = {}, 0
    for call in shown:
        if NOT_HERE & set(call):
            continue
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"key\n")))
        monkeypatch.setattr(LocalTerminal, "kind", "posix" if call[0] == "run" else None)
        done = jlr(*call)
        reached += "reached" in done.stdout + done.stderr
        if done.code in (BUG, USAGE):
            wrong[" ".join(call)] = done.stderr.partition("\nhint")[0]
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())
    assert reached > 150, "most call one"
