"""Tables are aligned, fit the terminal, and pass on no control characters."""

import datetime

import pytest

from jlremote.cli.screen import reports, tables
from jlremote.jupyter.api import Kernel
from jlremote.link.wire.states import State
from jlremote.listing.session_report import SessionReport
from tests.cli.terminal import printed


def since(**age: float) -> str:
    now = datetime.datetime.now(datetime.UTC)
    return (now - datetime.timedelta(**age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def kernel(state: str, **age: float) -> Kernel:
    return Kernel("a.ipynb", state, since(**age))


@pytest.mark.parametrize(
    ("kernels", "words"),
    [
        (None, "?"),
        ((), "none"),
        ((kernel("busy", hours=1), kernel("idle"), kernel("starting")), "2 busy"),
        (
            (Kernel("work/a.ipynb", "busy", "", running=725), kernel("busy"), kernel("idle")),
            "busy 12m a.ipynb, 1 more busy",
        ),
        # Not in minutes: the ages are of the time when the tests were collected.
        ((kernel("idle", hours=5), kernel("idle", hours=2, minutes=30)), "idle 2h"),
    ],
)
def test_kernels_are_summarized_in_few_words(
    kernels: tuple[Kernel, ...] | None, words: str
) -> None:
    assert reports.kernels_in_short(kernels) == words


@pytest.mark.parametrize("state", [*State, "exited", "created"])
def test_kernels_are_unknown_only_where_a_server_may_run(state: str) -> None:
    report = SessionReport("c", "h", "c", "docker", state)
    may_run = state in (
        *(State.CONNECTING, State.UP, State.RECONNECTING, State.NEEDS_AUTH, State.DOWN),
        *(State.PAUSED, State.RUNNING, State.CLOSED, State.TAKEN),
    )
    assert reports.SESSIONS["KERNELS"](report) == ("?" if may_run else "-")
    told = [line for line in reports.session_lines(report) if line.startswith("kernels:")]
    assert told == (["kernels:   ?"] if may_run else [])


TABLE = """
from jlremote.cli.screen import tables
tables.show_table(
    ("SESSION", "HOST", "STATE", "IMAGE"),
    [("cont1", "dgx", "up", "nvcr.io/nvidia/pytorch:24.05-py3 [bold]"), ("c", "h", "down", "x")],
)
"""


ADDRESSES = """
from jlremote.cli.screen import tables
tables.show_table(("PORT", "HERE"), [("6006", "http://6006-cont1-dgx.localhost:6006/")])
"""


def test_a_terminal_gets_colours_and_no_line_is_too_wide() -> None:
    text = printed(TABLE, COLUMNS="44")
    assert "\x1b[32mup" in text
    assert "\x1b[31mdown" in text
    lines = printed(TABLE, COLUMNS="44", NO_COLOR="1").splitlines()
    assert "\x1b[3" not in "".join(lines)
    assert all(len(line) <= 44 for line in lines)
    assert "…" in lines[1]
    assert "cont1" in lines[1]


def test_addresses_are_whole_on_a_narrow_terminal() -> None:
    table = printed(ADDRESSES, COLUMNS="30", NO_COLOR="1").splitlines()
    assert "".join(line[6:] for line in table[1:]) == "http://6006-cont1-dgx.localhost:6006/"


def test_a_pipe_gets_every_cell_whole_and_without_colours(
    capfd: pytest.CaptureFixture[str],
) -> None:
    tables.show_table(("A", "STATE"), [("long\x1b[2J name\n", "up"), ("x", "down")])
    assert capfd.readouterr().out == "A          STATE\nlong name  up\nx          down\n"


def test_only_what_has_failed_is_red() -> None:
    red = {state for state in State if tables.state_style(state) == "red"}
    assert red == {
        *(State.DOWN, State.JUPYTER_DEAD, State.CONTAINER_GONE, State.CONTAINER_STOPPED),
        *(State.RESTARTED, State.JOB_ENDED, State.TAKEN),
    }
    assert tables.state_style("exit 1") == "red"
