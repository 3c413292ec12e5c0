"""Steps on stderr: a spinner, or `TITLE …`, for a slow one, and a line with the time at its end."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from jlremote.cli.screen.terminal import announce, takes, tell, watched
from jlremote.text import one_line, printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

# Most steps end earlier; for them rich (60 ms) is not imported and nothing flickers.
_WAIT_SECONDS = 0.3
_PIPE_SECONDS = 2.0  # a host that is a little slow leaves no word in a log

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class _Step(NamedTuple):
    title: str
    since: float  # on the monotonic clock
    waits_in: int | None = None  # the thread that only waits: no line is left of it


class Steps:
    """The `Progress` of the command line.

    `silent` shows neither steps nor notes (`--json`, `--quiet`), `verbose` the commands on the
    host, even so. A step leaves a line if it is `lasting`; `jlr doctor` prints lines of its own.
    """

    def __init__(
        self, *, silent: bool = False, verbose: bool = False, lasting: bool = True
    ) -> None:
        self._silent, self._verbose, self._lasting = silent, verbose, lasting
        drawn = not silent and watched(sys.stderr) and takes(sys.stderr, _FRAMES)
        self._late = None if silent else Spinner() if drawn else LateLines()
        self._open: list[_Step] = []

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # several hosts are asked at once, in one step of the main thread
            return
        with self._shown(_Step(one_line(title), time.monotonic())):
            yield

    @contextlib.contextmanager
    def waiting(self, title: str, *, long: bool) -> Iterator[None]:
        thread = threading.get_ident()
        wait = _WAIT_SECONDS if isinstance(self._late, Spinner) else _PIPE_SECONDS
        wait = 0.0 if long else wait
        if any(step.waits_in in (None, thread) for step in self._open):
            if long:
                self._spin(wait)
            yield
            return
        with self._shown(_Step(one_line(title), time.monotonic(), thread), wait):
            yield

    @contextlib.contextmanager
    def _shown(self, step: _Step, wait: float = _WAIT_SECONDS) -> Iterator[None]:
        self._open.append(step)
        self.advance("")
        self._spin(wait)
        well = False
        try:
            yield
            well = True
        finally:
            self._open.remove(step)
            self.advance("")
            with self.paused():
                if self._lasting and not (self._silent or step.waits_in):
                    took = duration(time.monotonic() - step.since)
                    if isinstance(self._late, Spinner):
                        mark = click.style("✓", fg="green") if well else click.style("✗", fg="red")
                        tell(f"{mark} {step.title}  {click.style(took, dim=True)}")
                    else:
                        tell(f"{step.title}: {'done' if well else 'failed'} ({took})")

    def advance(self, text: str) -> None:
        if self._late:
            self._late.so_far = one_line(text)

    def note(self, text: str) -> None:
        if not self._silent:
            with self.paused():
                tell(printable(text))

    def announce(self, title: str, text: str) -> None:
        announce(title, text)

    def detail(self, text: str) -> None:
        self._tell_more(f"# {one_line(text)}")

    def command(self, text: str) -> None:
        self._tell_more(f"+ {printable(text)}")

    def _tell_more(self, text: str) -> None:
        if self._verbose:
            with self.paused():
                tell(click.style(text, dim=True))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        if self._late:
            self._late.hide()
        try:
            yield
        finally:
            self._spin()

    def _spin(self, wait: float = _WAIT_SECONDS) -> None:
        for step in self._open[-1:]:
            if self._late:
                self._late.show(step.title, step.since, wait)


class LateLines:
    """A line `TITLE …` for each step that is slow, once, where no spinner can turn."""

    def __init__(self) -> None:
        self.so_far = ""  # the progress behind the title; it may change at any time
        self._lock = threading.RLock()  # Ctrl-C may ask within any line
        self._timer: threading.Timer | None = None
        self._told: set[tuple[str, float]] = set()

    def show(self, title: str, since: float, wait: float) -> None:
        """Show `title`, `wait` seconds after `since` on the monotonic clock."""
        self.hide()
        left = max(0.0, since + wait - time.monotonic())
        timer = threading.Timer(left, lambda: self._appear(timer, title, since))
        timer.daemon = True
        self._timer = timer
        timer.start()

    def hide(self) -> None:
        with self._lock:
            timer, self._timer = self._timer, None
        if timer:
            timer.cancel()

    def _appear(self, timer: threading.Timer, title: str, since: float) -> None:
        with self._lock:
            if self._timer is timer and (title, since) not in self._told:
                self._told.add((title, since))
                tell(f"{title} {'…' if takes(sys.stderr, '…') else '...'}")


class Spinner(LateLines):
    """A spinner on the terminal's last line, which appears after a short wait."""

    _live: Live | None = None

    def hide(self) -> None:
        super().hide()
        with self._lock:
            live, self._live = self._live, None
        if live:
            live.stop()

    def _appear(self, timer: threading.Timer, title: str, since: float) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, highlight=False)
        live = Live(
            console=console,
            get_renderable=lambda: _frame(title, self.so_far, since, console.width),
            refresh_per_second=10,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with self._lock:
            if self._timer is timer:  # else the step ended while rich was imported
                self._live = live
                live.start()


def _frame(title: str, so_far: str, since: float, width: int) -> Text:
    from rich.text import Text

    elapsed = time.monotonic() - since
    took = f"{so_far and f'  {so_far}'}  {duration(elapsed)}"
    text = Text(title)
    text.truncate(max(1, width - len(took) - 3), overflow="ellipsis")
    turning = _FRAMES[int(elapsed * 10) % len(_FRAMES)]
    return Text.assemble((turning, "cyan"), " ", text, (took, "dim"))


def duration(seconds: float) -> str:
    """Return a short time in words: `0.4s`, `12s`, `3m 05s`."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"
