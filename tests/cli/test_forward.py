"""How `jlr forward` reads its arguments, and what it prints."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.cli.screen import terminal
from jlremote.forwards.address import PortReport
from tests.cli.conftest import ADDRESS, PAGE, REPORT, URL, Jlr, Workflows, remember, settle

NAME = "6006-cont1-dgx.localhost"
TENSORBOARD = PortReport(6006, 6007, "up", "2026-01-02T03:04:05Z", None, NAME)
CLOSED = PortReport(7860, 7860, "closed", None, "nothing listens on port 7860 of `cont1`")


@pytest.mark.parametrize(
    ("line", "place", "options"),
    [
        ("6006", (None, 6006), {}),
        ("8080:6006", (None, 6006), {"exact": 8080}),
        ("cont1 6006", ("cont1", 6006), {}),
        ("cont1 8080:6006", ("cont1", 6006), {"exact": 8080}),
        ("6006 7860", ("6006", 7860), {}),
        ("5432 --host", (None, 5432), {"on_host": True}),
    ],
)
def test_a_number_alone_is_a_port_and_the_word_before_a_port_is_a_session(
    line: str, place: tuple[Any, int], options: dict[str, object], jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("sessions.further_ports.add", TENSORBOARD)
    outcome = jlr("forward", *line.split())
    assert (outcome.code, outcome.stdout) == (0, "http://127.0.0.1:6007/\n")
    [(_, arguments, told)] = workflows.calls
    assert arguments[:2] == place
    assert told == {"exact": None, "on_host": False, **options}


def test_a_terminal_shows_the_ports_own_name_and_the_address_for_other_cases(
    jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflows.will("sessions.further_ports.add", TENSORBOARD)
    command = "jlremote.cli.commands.ports_and_files"
    monkeypatch.setattr(f"{command}.shown", lambda address: address.page)
    outcome = jlr("forward", "6006")
    assert outcome.stdout == f"http://{NAME}:6007/\n"
    assert (
        "in Safari, or if the program refuses that name: http://127.0.0.1:6007/" in outcome.stderr
    )


@pytest.mark.parametrize(
    ("tty", "platform", "expected"),
    [(True, "linux", PAGE), (True, "darwin", URL), (False, "linux", URL)],
)
def test_a_page_is_shown_where_a_click_opens_it_in_a_browser_that_resolves_it(
    tty: bool, platform: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: tty)
    monkeypatch.setattr(sys, "platform", platform)
    assert terminal.shown(ADDRESS) == expected


def test_a_list_tells_below_it_why_a_port_is_taken(jlr: Jlr, workflows: Workflows) -> None:
    """A column of it would cut off the addresses on a narrow terminal."""
    why = "port 6007 is taken by `python3` (process 9)"
    workflows.will("sessions.further_ports.listed", [replace(CLOSED, state="taken", detail=why)])
    assert jlr("forward").stdout.splitlines()[2:] == [f"port 7860: {why}"]


@pytest.mark.parametrize(
    ("argv", "setting", "browsers"),
    [
        ("start dgx cont1 --browser none", "true", ["none"]),
        ("start dgx cont1 --no-browser --no-forward-auto", "true", []),
        ("start dgx cont1 --no-browser --forward-auto", "false", ["none"]),
        ("restart cont1", "true", [""]),
        ("open cont1 --no-browser", "true", ["none"]),
        ("url cont1", "true", []),
    ],
)
def test_a_session_is_followed_in_the_background_where_that_is_set(
    argv: str, setting: str, browsers: list[str], laptop: Path, jlr: Jlr, workflows: Workflows
) -> None:
    remember(("dgx", "cont1"))
    settle(laptop, f"[hosts.dgx]\nforward-auto = {setting}\n")
    answers = {"open.address": (REPORT, ADDRESS), "start.start": REPORT, "restart.restart": REPORT}
    for name, answer in answers.items():
        workflows.will(f"sessions.{name}", answer)
    workflows.will("link.client.call.begin", SimpleNamespace())
    assert jlr(*argv.split()).code == 0
    begun = [(words, how) for name, words, how in workflows.calls if name.endswith("call.begin")]
    words = ("jlremote", "forward", "--auto", "dgx/cont1", "--no-input")
    assert [how["env"]["JLR_BROWSER"] for to, how in begun if to == words] == browsers
