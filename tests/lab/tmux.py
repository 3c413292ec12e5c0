"""A real terminal, drawn by tmux, and pictures of it for README.md."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.lab.laptop import Laptop
from tests.lab.programs import attempt, run, wait_until

DOCS = Path(__file__).parents[2] / "docs"
WANTED = bool(os.environ.get("JLR_PICTURES"))
COLUMNS = 92
COMMAND_SECONDS = 180


@dataclass(frozen=True)
class TmuxTerminal:
    """A shell on a laptop, in a terminal that tmux draws."""

    socket: Path

    def tmux(self, *words: str) -> str:
        return run("tmux", "-S", str(self.socket), *words)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def type(self, line: str) -> None:
        self.press(line, "Enter")

    def run(self, line: str) -> None:
        self.type(line)
        wait_until(lambda: line in self.screen("-J"), "the command")
        self.wait_for_prompt()

    def clear(self) -> None:
        self.press("C-l")
        wait_until(lambda: self.screen() == "$", "an empty screen")

    def screen(self, *options: str) -> str:
        """Return what it shows; `-e` keeps the colours, as escape sequences."""
        return self.tmux("capture-pane", "-p", *options).rstrip()

    def wait_for_prompt(self) -> None:
        wait_until(lambda: self.screen().endswith("\n$"), "the prompt", COMMAND_SECONDS)

    def take_picture(self, name: str) -> None:
        """Write what it shows to `docs/NAME.svg`, without the last prompt and most of a token."""
        if not WANTED:
            return
        shown = Text.from_ansi(re.sub(r"(token=\w{8})\w+", r"\1…", self.screen("-e", "-J")))
        console = Console(record=True, width=COLUMNS, file=io.StringIO())
        console.print(*(line for line in shown.split() if line.plain.strip() != "$"), sep="\n")
        console.save_svg(str(DOCS / f"{name}.svg"), title="laptop")


@contextmanager
def tmux_terminal(laptop: Laptop, socket: Path) -> Iterator[TmuxTerminal]:
    """Give a terminal on a laptop, in which a shell waits; `socket` is a new one for each."""
    made = TmuxTerminal(socket)
    prompt = "\\[\\e[1;32m\\]$\\[\\e[0m\\] "
    environment = laptop.environment | {"PS1": prompt, "TERM": "xterm-256color"}
    words = [f"{name}={value}" for name, value in environment.items()]
    made.tmux(
        *("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", "60"),
        *("env", "-i", *words, "bash", "--norc", "--noprofile"),
    )
    wait_until(lambda: made.screen() == "$", "the prompt")
    try:
        yield made
    finally:
        attempt("tmux", "-S", str(socket), "kill-server")
