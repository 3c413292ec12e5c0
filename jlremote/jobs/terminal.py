"""The terminal of a job that is a process of its host; `terminal_program` keeps it."""

from __future__ import annotations

import importlib.resources

from jlremote.host.shell_text import wait_while

NO_PYTHON = 72  # sysexits.h: EX_OSFILE
DETACH_KEYS = "ctrl-p,ctrl-q"
# Of the engine's client, which runs in that terminal: they end it, so they are never typed.
ENGINES_KEYS = "ctrl-@,ctrl-^,ctrl-@,ctrl-_,ctrl-@,ctrl-^"
_ENDED = 3  # the program's `ENDED`
FILE = "keeper"  # in the job's folder
PROGRAM = (importlib.resources.files(__package__) / "terminal_program.py").read_text("utf-8")

CHECK = f"command -v python3 >/dev/null || exit {NO_PYTHON}\n"
_RUN = f'python3 -I "$directory/{FILE}"'


def kept(marker: str) -> str:
    """Return the words that precede a command to run it in a terminal of its own."""
    return f"{_RUN} keep \"$directory\" '{marker}'"


def attach(keys: str | None, *, whole: bool) -> str:
    """Return the script that connects its terminal to a job, as of `terminal_program`.

    It needs `$directory` and `alive`, and waits until the end of the job is recorded.
    """
    typed = _code(keys or DETACH_KEYS)
    ending = wait_while("alive", 10)
    return (
        f'{_RUN} attach "$directory" {"whole" if whole else "missed"} {typed}\n'
        f"[ $? = {_ENDED} ] || exit 0\n{ending}"
    )


def _code(keys: str) -> str:
    """Return keys, as docker takes them, as the bytes that a terminal sends, in hexadecimal."""
    return bytes(ord(key[-1]) & (0x1F if key[:-1] else 0x7F) for key in keys.split(",")).hex()
