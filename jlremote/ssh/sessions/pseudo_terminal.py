"""A terminal on the host: the requests for it, and the command line that runs a script in it.

stdin is the person's there, so the script is on the command line, which the login shell reads. It
stands between single quotes, in octal but for the characters that all shells read alike.
"""

from __future__ import annotations

import os
import string
from typing import Any

# RFC 4254, section 8, and RFC 8160: the erase key erases a letter, not a byte.
_IUTF8, _INPUT_SPEED, _OUTPUT_SPEED = 42, 128, 129
_MODES = {_IUTF8: 1, _INPUT_SPEED: 38400, _OUTPUT_SPEED: 38400}
_MODES_END = b"\0"
_PLAIN = frozenset((string.ascii_letters + string.digits + " _-./:,=+@").encode())
# `printf %b` reads `\0ooo` in every POSIX shell.
_COMMAND = """exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '{}'"""


def wanted(request: Any, kind: str, size: os.terminal_size) -> Any:
    """Fill in a `pty-req`."""
    request.add_string(kind)
    modes = b"".join(bytes((mode,)) + value.to_bytes(4, "big") for mode, value in _MODES.items())
    sized(request, size).add_string(modes + _MODES_END)
    return request


def sized(request: Any, size: os.terminal_size) -> Any:
    """Fill in a `window-change`; the size in pixels is not known."""
    for number in (size.columns, size.lines, 0, 0):
        request.add_int(number)
    return request


def command(script: bytes) -> str:
    """Return the command line that runs `script` with the terminal as its stdin."""
    return _COMMAND.format(
        "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in script)
    )
