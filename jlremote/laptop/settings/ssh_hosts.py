"""The host names in the ssh config, for completion and guesses; ssh reads their settings."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

_USER = "~/.ssh/config"
_SYSTEM = "/etc/ssh/ssh_config"
_DEPTH = 16  # as in ssh's readconf.c: a deeper Include counts as a loop

_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')


def host_names(file: str | None = None) -> list[str]:
    """Return the names of `Host` lines without wildcards, in the order of the files.

    Those below `.jlr` are left out: they lead to this program itself. `file` is ssh's `-F`, `None`
    the user's own file and the system's.
    """
    files = [file] if file else [os.path.expanduser(_USER), _SYSTEM]  # noqa: PTH111 - pathlib costs 5 ms
    names = [name for path in files for name in _names(path, path == _SYSTEM, 0)]
    return list(dict.fromkeys(name for name in names if not name.endswith(".jlr")))


def _names(path: str, system: bool, depth: int) -> Iterator[str]:
    for keyword, words in _lines(path):
        if keyword == "host":
            yield from (word for word in words if not set(word) & set("*?!"))
        elif keyword == "include" and depth < _DEPTH:
            for pattern in words:
                for included in _included(pattern, system):
                    yield from _names(included, system, depth + 1)


def _included(pattern: str, system: bool) -> list[str]:
    folder = "/etc/ssh" if system else "~/.ssh"
    path = os.path.join(folder, os.path.expanduser(pattern))  # noqa: PTH111, PTH118
    return sorted(glob.glob(os.path.expanduser(path)))  # noqa: PTH111, PTH207


def _lines(path: str) -> Iterator[tuple[str, list[str]]]:
    """Return each line's keyword in lower case and its words; `#` begins a comment."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return
    for line in text.splitlines():
        keyword, _, rest = line.strip().replace("\t", " ").replace("=", " ", 1).partition(" ")
        words = [quoted or plain for quoted, plain in _WORD.findall(rest)]
        comment = next((i for i, word in enumerate(words) if word.startswith("#")), len(words))
        yield keyword.lower(), words[:comment]
