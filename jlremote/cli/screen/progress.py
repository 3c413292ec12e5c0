"""Steps on stderr: a spinner on a terminal, and a line with the time when a step ends."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from jlremote.cli.screen.terminal import announce, takes, tell, watched
from jlremote.text import one_line, printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

# Most steps end earlier; for them rich (60 ms) is not imported and nothing flickers.
_WAIT_SECONDS = 0.3

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Steps:
    """The `Progress` of the command line.

    Args:
        silent: show neither steps nor notes (`--json`, `--quiet`).
        verbose: show the commands on the host (`--verbose`), even when silent.
        lasting: whether a step leaves a line; `jlr doctor` prints lines of its own.
    """

    def __init__(
        self, *, silent: bool = False, verbose: bool = False, lasting: bool = True
    ) -> None:
        self._silent = silent
        self._lasting = lasting
        self._verbose = verbose
        drawn = not silent and watched(sys.stderr) and takes(sys.stderr, _FRAMES)
        self._spinner = Spinner() if drawn else None
        self._open: list[tuple[str, float]] = []

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # several hosts are asked at once, in one step of the main thread
            return
        step = (one_line(title), time.monotonic())
        self._open.append(step)
        self.advance("")
        self._spin()
        try:
            yield
        except BaseException:
            self._finish(step, well=False)
            raise
        self._finish(step, well=True)

    def advance(self, text: str) -> None:
        if self._spinner:
            self._spinner.so_far = one_line(text)

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
        if self._spinner:
            self._spinner.hide()
        try:
            yield
        finally:
            self._spin()

    def _spin(self) -> None:
        if self._spinner and self._open:
            self._spinner.show(*self._open[-1])

    def _finish(self, step: tuple[str, float], *, well: bool) -> None:
        self._open.remove(step)
        self.advance("")
        with self.paused():
            if self._lasting and not self._silent:
                tell(_line(*step, well=well, drawn=self._spinner is not None))


class Spinner:
    """A spinner on the terminal's last line, which appears after a short wait."""

    def __init__(self) -> None:
        self.so_far = ""  # the progress behind the title; it may change at any time
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._live: Live | None = None

    def show(self, title: str, since: float) -> None:
        """Show `title` and the seconds since `since` on the monotonic clock, after a short wait."""
        self.hide()
        wait = max(0.0, since + _WAIT_SECONDS - time.monotonic())
        timer = threading.Timer(wait, lambda: self._appear(timer, title, since))
        timer.daemon = True
        self._timer = timer
        timer.start()

    def hide(self) -> None:
        with self._lock:
            timer, live = self._timer, self._live
            self._timer = self._live = None
        if timer:
            timer.cancel()
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


def _line(title: str, since: float, *, well: bool, drawn: bool) -> str:
    took = duration(time.monotonic() - since)
    if not drawn:
        return f"{title}: {'done' if well else 'failed'} ({took})"
    mark = click.style("✓", fg="green") if well else click.style("✗", fg="red")
    return f"{mark} {title}  {click.style(took, dim=True)}"


def duration(seconds: float) -> str:
    """Return a short time in words: `0.4s`, `12s`, `3m 05s`."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"
