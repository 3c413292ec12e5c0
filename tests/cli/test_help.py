"""The help of each command is grouped, fits the terminal, and has valid examples."""

import ast
import math
import re
import shlex
import sys
from collections.abc import Iterable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
import pytest

import jlremote
from jlremote.agents import mcp_server
from jlremote.cli.keyboard.local_terminal import LocalTerminal
from jlremote.cli.program import EXAMPLES
from jlremote.demo import demo
from jlremote.errors import JlrError
from jlremote.laptop import job_records
from jlremote.laptop.job_records import JobRecord
from tests.cli.conftest import Jlr, remember, settle
from tests.cli.tree import BELOW, COMMANDS, TOP, command, found
from tests.sources import nodes, parsed


def calls(examples: Iterable[str]) -> list[list[str]]:
    """Return the arguments of each call of jlr in example lines, without comments and pipes."""
    found = []
    for line in examples:
        inner = line.partition("$(")[2].partition(")")[0] or line
        words = shlex.split(inner, comments=True)
        called = words[words.index("jlr") + 1 :]
        end = next(
            (at for at, word in enumerate(called) if word in ("|", ">", "<", "&&")), len(called)
        )
        found.append(called[:end])
    return found


@pytest.mark.parametrize("name", ["", *TOP, *BELOW])
def test_help_has_examples_fits_the_terminal_and_breaks_at_words(
    name: str, jlr: Jlr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text, _, examples = jlr(*name.split(), "--help").stdout.partition("\nExamples:\n")
    assert text.startswith(f"Usage: jlr {name}".rstrip())
    assert max(map(len, text.splitlines())) <= 80
    assert not re.findall(r".*\w-$", text, re.MULTILINE), "broken in the middle of a name"
    if name in COMMANDS:
        assert examples.startswith(f"  {command(name).examples[0]}\n")
        monkeypatch.setenv("COLUMNS", "110")
        wide = jlr(*name.split(), "--help").stdout
        assert max(map(len, wide.splitlines())) <= 100
        assert not re.search("<=|>=", wide), "a number that is not in words"


@pytest.mark.parametrize("path", ["", *TOP, *BELOW])
def test_dash_h_is_a_page_and_names_the_rest(
    path: str, jlr: Jlr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = jlr(*path.split(), "-h").stdout
    lines = page.splitlines()
    wrapped = sum(max(1, math.ceil(len(line) / 80)) for line in lines)
    assert wrapped <= (30 if path else 40), page
    assert lines[0].startswith(f"Usage: jlr {path}".rstrip()), page
    if path in COMMANDS:
        more = rf"`jlr {path} --help` (shows all \d+ options|says more)"
        assert re.fullmatch(more, lines[-1]), page


def test_a_bare_call_is_the_page_of_the_group(jlr: Jlr) -> None:
    for path in ("", "image", "job", "local"):
        page = jlr(*path.split())
        assert (page.code, page.stdout, page.stderr) == (2, "", jlr(*path.split(), "-h").stdout)


@pytest.mark.parametrize("name", ["start", "run"])
def test_the_options_of_a_cluster_are_on_a_page_of_their_own(name: str, jlr: Jlr) -> None:
    short = jlr(name, "-h").stdout
    assert ("--slurm" in short, "--partition" in short) == (True, False)
    assert "\nCluster:\n" in jlr(name, "--help").stdout
    page = jlr(name, "--slurm", "-h").stdout
    assert all(words in page for words in ("\nCluster:\n", "--partition"))
    assert "\n  --image" not in page


@pytest.mark.parametrize("path", COMMANDS)
def test_a_wrong_call_prints_its_usage_line(path: str, jlr: Jlr) -> None:
    wrong = jlr(*path.split(), "--no-such-option")
    assert wrong.code == 2
    assert f"\nusage: jlr {path}" in wrong.stderr
    told = jlr(*path.split(), "--no-such-option", "--json").stderr.partition("hint")[0]
    assert "usage" not in told


EVERY_CALL = [call for name in COMMANDS for call in calls(list(command(name).examples))]
REPOSITORY = Path(jlremote.__file__).parent.parent
GUIDES = REPOSITORY / "docs/guides.md"
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").glob("*.md"))]
MODULES = sorted((REPOSITORY / "jlremote").rglob("*.py"))
LINES = [
    part
    for page in PAGES
    for line in page.read_text("utf-8").splitlines()
    if line.startswith("    jlr ")
    for part in line.partition("#")[0].split("; ")
]
DEMO = REPOSITORY / "jlremote/demo/own_files.py"
USAGE, BUG = 2, 3
NOT_HERE = {"--keep", "--renew"}  # they want a terminal, and a session on a cluster
SESSIONS = [("dgx", "cont1"), ("dgx", "me-tf"), ("lab", "proj"), ("hpc", "work"), ("gpu", "torch")]


def in_line(*texts: str) -> list[str]:
    """Return the calls in texts, without those that stand for several."""
    found = (one for text in texts for one in re.findall(r"`(jlr\s[a-z][^`]*)`", text))
    return [part for one in found for part in one.split("; ") if part.startswith("jlr")]


def strings(module: Path) -> list[str]:
    """Return the literals of a module with text or an argv, without values that vary."""
    found, inner = [], set()
    for node in nodes(parsed(module)):
        if isinstance(node, ast.JoinedStr):
            parts = [one.value for one in node.values if isinstance(one, ast.Constant)]
            inner |= set(map(id, node.values))
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Tuple):  # as for `shlex.join`
            words = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            found += [f"`{' '.join(map(str, words))}`"] if words[:1] == ["jlr"] else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [node.value] if id(node) not in inner else []
    return found


def texts(*pages: Path) -> list[str]:
    return [page.read_text("utf-8") for page in pages]


SHOWN = calls(
    [*EXAMPLES, *LINES, *(one for one in in_line(*texts(GUIDES, DEMO)) if "…" not in one)]
)


def mentioned() -> list[list[str]]:
    """Return the calls of prose and of hints, where a command may stand without its arguments."""
    literals = (text for module in MODULES for text in strings(module))
    found = in_line(*texts(*PAGES), *literals)
    return calls(re.sub(r"\b(PORT|N)\b", "1", one) for one in found)


def complaints(calls: list[list[str]], *but: type[Exception]) -> dict[str, str]:
    """Return what is wrong with calls, except for some errors, or what they leave over."""
    wrong = {}
    for call in calls:
        try:
            called, group, words = found(call)
            if isinstance(called, click.Group):
                continue  # a mention of the group
            context = called.make_context(" ".join(call), words, parent=group)
            wrong[" ".join(call)] = " ".join(context.args)
        except click.ClickException as failure:
            wrong[" ".join(call)] = "" if isinstance(failure, but) else failure.message
        except JlrError as failure:
            wrong[" ".join(call)] = failure.message
        except click.exceptions.Exit:  # of `--help`
            continue
    return {call: why for call, why in wrong.items() if why}


def test_the_examples_are_valid(desk: Path) -> None:
    assert complaints([*EVERY_CALL, *SHOWN]) == {}


@pytest.mark.lab
def test_what_is_mentioned_is_valid_as_far_as_it_goes() -> None:
    found = [
        [word for word in call if word not in ("…", "...")]
        for call in mentioned()
        if not {"COMMAND", "SHELL"} & set(call)
    ]
    assert len(found) > 300
    assert complaints(found, click.MissingParameter, click.BadOptionUsage) == {}


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
        (laptop / "here" / name).parent.mkdir(exist_ok=True, parents=True)
        (laptop / "here" / name).touch()
    (laptop / ".pip.conf").touch()
    (laptop / "here/plots").mkdir()
    monkeypatch.chdir(laptop / "here")
    monkeypatch.setenv("EDITOR", "true")

    def reached(*_: Any, **__: Any) -> None:
        raise Reached("reached")

    monkeypatch.setattr("jlremote.link.client.call.dial", reached)
    monkeypatch.setattr(demo, "demo", reached)
    monkeypatch.setattr(mcp_server, "serve", reached)
    return laptop


@pytest.mark.lab  # it takes seconds
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


def test_every_command_that_tells_something_has_json() -> None:
    without = {n for n in COMMANDS if not any("--json" in p.opts for p in command(n).params)}
    # Their output is that of a program, byte for byte, or is itself the input of one; the last
    # three only do as they are told.
    programs = {"logs", "job logs", "shell", "local lab", "proxy", "completion", "mcp"}
    assert without == programs | {"config set", "config notify", "agent install"}


def test_the_main_help_has_every_command_and_every_exit_code(jlr: Jlr) -> None:
    text = jlr("--help").stdout
    hidden = {"mcp", "proxy"}
    assert len(TOP) == 30, "28 and those that are hidden"
    for name, (_, line) in TOP.items():
        assert (f"  {name} " in text, line in text) == (name not in hidden,) * 2
    assert [code for code in (*range(8), 130) if f" {code}  " not in text] == []
    assert max(map(len, text.splitlines())) <= 100
    assert jlr("--version").stdout == f"jlr {jlremote.__version__}\n"
