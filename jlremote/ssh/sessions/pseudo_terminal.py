"""A terminal on the host: the requests for it, and the command line that runs a script in it.

stdin is the person's there, so the script is on the command line, which the login shell reads. It
stands between single quotes, in octal but for the characters that all shells read alike.
"""

from __future__ import annotations

import os
import struct
from string import ascii_letters, digits

from jlremote.ssh.wire_format import string

# RFC 4254, section 8, and RFC 8160: the erase key erases a letter, not a byte.
_IUTF8, _INPUT_SPEED, _OUTPUT_SPEED = 42, 128, 129
_MODES = {_IUTF8: 1, _INPUT_SPEED: 38400, _OUTPUT_SPEED: 38400}
_MODES_END = b"\0"
_PLAIN = frozenset((ascii_letters + digits + " _-./:,=+@").encode())
# A server may refuse a terminal and run the command; engines say no more than "not a TTY" of it.
_TELL = b"""\
[ -t 0 ] || printf '%s\\n' \
  'the SSH server gives no terminal (`PermitTTY no`); with `</dev/null` none is asked for' >&2
"""
# `printf %b` reads `\0ooo` in every POSIX shell.
_COMMAND = """exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '{}'"""


def pty_request(kind: str, size: os.terminal_size) -> bytes:
    """Return the details of a `pty-req`."""
    modes = b"".join(bytes((mode,)) + value.to_bytes(4, "big") for mode, value in _MODES.items())
    return string(kind.encode()) + window_change(size) + string(modes + _MODES_END)


def window_change(size: os.terminal_size) -> bytes:
    """Return the details of a `window-change`; the size in pixels is not known."""
    return struct.pack(">IIII", size.columns, size.lines, 0, 0)


def command(script: bytes) -> str:
    """Return the command line that runs `script` with the terminal as its stdin."""
    return _COMMAND.format(
        "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in _TELL + script)
    )
