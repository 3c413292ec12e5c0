"""What is seen of a terminal on the host, from the outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.terminal import Terminal
from tests.lab.containers import Container
from tests.lab.laptop import Laptop

LOST = "connection lost, waiting; Enter ~. ends it"


@contextmanager
def shell(laptop: Laptop, *words: str, kind: str = "xterm-256color") -> Iterator[Terminal]:
    """Run `jlr shell` in a terminal, and give it once the prompt of root or of a user is shown."""
    terminal = Terminal(("shell", *words), environment={"TERM": kind}, laptop=laptop)
    try:
        yield terminal
    finally:
        terminal.close()


def running(container: Container, pattern: str) -> bool:
    """Return whether a process of a container has a command line in which `pattern` is found."""
    lines = container.engine.docker("top", container.name, "-o", "pid,args").splitlines()[1:]
    return any(re.search(pattern, line) for line in lines)
