"""Tables fit the terminal, steps are lines with times, and a terminal shows a spinner meanwhile."""

from __future__ import annotations

import datetime
import re
import threading

import pytest

from jlremote.cli.screen import reports
from jlremote.cli.screen.progress import Steps, duration
from jlremote.jupyter.api import Kernel
from jlremote.link.wire.states import State
from jlremote.listing.session_report import SessionReport
from tests.cli.terminal import printed
from tests.lab.programs import wait_until


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
def test_kernels_are_told_in_few_words(kernels: tuple[Kernel, ...] | None, words: str) -> None:
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
from jlremote.cli.screen import reports
reports.show_table(
    ("SESSION", "HOST", "STATE", "IMAGE"),
    [("cont1", "dgx", "up", "nvcr.io/nvidia/pytorch:24.05-py3 [bold]"), ("c", "h", "down", "x")],
)
"""


ADDRESSES = """
from jlremote.cli.screen import reports
reports.show_table(("PORT", "HERE"), [("6006", "http://6006-cont1-dgx.localhost:6006/")])
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


def test_a_pipe_gets_each_cell_whole_and_without_colours(capfd: pytest.CaptureFixture[str]) -> None:
    reports.show_table(("A", "STATE"), [("long\x1b[2J name\n", "up"), ("x", "down")])
    assert capfd.readouterr().out == "A          STATE\nlong name  up\nx          down\n"


def test_only_what_has_failed_is_red() -> None:
    red = {state for state in State if reports.state_style(state) == "red"}
    assert red == {
        *(State.DOWN, State.JUPYTER_DEAD, State.CONTAINER_GONE, State.CONTAINER_STOPPED),
        *(State.RESTARTED, State.JOB_ENDED, State.TAKEN),
    }
    assert reports.state_style("exit 1") == "red"


STEPS = """
import sys, time
from jlremote.cli.screen.progress import Steps
if "loaded" in sys.argv:  # on a busy machine rich takes longer to load than the steps last
    import rich.console, rich.live
steps = Steps()
with steps.step("Connect to dgx"):
    time.sleep(0.05)
try:
    with steps.step("Pull " + "a-very-long-image-name" * 4):
        time.sleep(0.6)
        steps.note("port 8888 is taken\\x1b[2J")
        steps.command("docker run 'x y'")
        with steps.paused():
            print("QUESTION", file=sys.stderr)
            time.sleep(0.5)
            print("ANSWERED", file=sys.stderr)
        with steps.step("Inner"):
            pass
        1 / 0
except ZeroDivisionError:
    pass
print("rich" in sys.modules)
"""


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


@pytest.mark.lab  # it takes a second
def test_a_terminal_shows_a_spinner_and_then_a_line_with_the_time() -> None:
    raw = printed(STEPS, "loaded", COLUMNS="40", NO_COLOR="1")
    assert not re.search(r"\x1b\[(3|4|9)", raw), "no colours"
    assert raw.rfind("\x1b[?25h") > raw.rfind("\x1b[?25l") > 0, "the cursor is back"
    assert raw.partition("QUESTION\n")[2].partition("ANSWERED")[0] == "", "hidden meanwhile"
    shown = plain(raw)
    assert re.search(r"^✓ Connect to dgx  0\.\ds$", shown, re.MULTILINE)
    assert re.search(r"^✗ Pull (a-very-long-image-name){4}  1\.\ds$", shown, re.MULTILINE)
    frames = [line for line in shown.splitlines() if line[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" and line]
    assert frames
    assert all(len(frame) <= 40 for frame in frames)
    assert all(re.search(r"…  \d\.\ds$", frame) for frame in frames)


@pytest.mark.lab  # it takes seconds
@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_terminal_that_cannot_draw_gets_plain_lines(environment: dict[str, str]) -> None:
    shown = printed(STEPS, COLUMNS="80", **environment)
    assert "✓" not in shown
    assert "Connect to dgx: done (0." in shown
    assert re.search(r"^Pull (a-very-long-image-name){4} (…|\.\.\.)\nport", shown, re.MULTILINE)
    assert shown.count("Pull ") == 2, "once while it lasts, and at its end"
    assert ": failed (1." in shown
    assert shown.endswith("False\n"), "rich was imported for nothing"


def test_a_pipe_gets_plain_lines(capfd: pytest.CaptureFixture[str]) -> None:
    Steps().command("not shown")
    steps = Steps(verbose=True)
    with steps.step("Connect to\n dgx"):
        steps.note("a note\x1b[31m")
        steps.command("docker ps")
    out, err = capfd.readouterr()
    assert (out, err.partition("(")[0]) == ("", "a note\n+ docker ps\nConnect to dgx: done ")
    silent = Steps(silent=True, verbose=True)
    with silent.step("not shown"):
        silent.note("not shown")
        silent.command("docker ps")
    assert capfd.readouterr().err == "+ docker ps\n"


def test_a_wait_is_told_once_it_lasts_and_only_where_no_step_is_open(
    capfd: pytest.CaptureFixture[str],
) -> None:
    steps = Steps()
    with steps.waiting("quick", long=False):
        pass
    with steps.step("Look"), steps.waiting("hidden", long=True):
        told = told_so_far(capfd, "Look …\n")  # the open step's words come at once, too
    with steps.waiting("Connect to dgx", long=True), steps.waiting("hidden", long=True):
        told += told_so_far(capfd, "Connect to dgx …\n")
    with Steps(silent=True).waiting("not shown", long=True):
        told += told_so_far(capfd, "")
    assert re.sub(r"\(.*\)", "()", told) == "Look …\nLook: done ()\nConnect to dgx …\n"


def told_so_far(capfd: pytest.CaptureFixture[str], end: str) -> str:
    """Return what was told since the last call, once that ends so."""
    told: list[str] = []

    def has_come() -> bool:
        told.append(capfd.readouterr().err)
        return "".join(told).endswith(end)

    wait_until(has_come, "the words")
    return "".join(told)


def test_a_quick_command_never_imports_rich() -> None:
    script = (
        "import sys; from jlremote.cli.screen.progress import Steps\n"
        "with Steps().step('quick'): pass\n"
        "sys.exit('rich' in sys.modules)"
    )
    assert "quick" in printed(script)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9.94, "9.9s"), (9.96, "10s"), (59.4, "59s"), (59.6, "1m 00s"), (185, "3m 05s")],
)
def test_durations_are_written_in_their_largest_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_step_of_another_thread_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """As those of several hosts that are asked at once."""
    steps = Steps()

    def ask() -> None:
        with steps.step("hidden"):
            steps.note("told")

    with steps.step("shown"):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert re.fullmatch(r"told\nshown: done \(.*\)\n", capsys.readouterr().err)
