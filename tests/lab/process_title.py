"""What /proc says of a process that was forked and not started: its arguments and environment."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

# <linux/prctl.h>, from which comes the structure, too: where parts of a process's memory lie.
PR_SET_NAME, PR_SET_MM, PR_SET_MM_MAP = 15, 35, 14
NO_FILE = 0xFFFFFFFF

# The kernel reads them in the process's memory for as long as it lives.
_kept: list[ctypes.Array[ctypes.c_char]] = []


def show(argv: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Let /proc show arguments and an environment of this process as if it had been started so.

    Return whether the kernel allows it.
    """
    words = "".join(f"{word}\0" for word in argv)
    variables = "".join(f"{name}={value}\0" for name, value in environment.items())
    return _set(*_place(words), *_place(variables))


def rename(name: str) -> None:
    """Give this process the name that its program has."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()), 0, 0, 0)


def _place(text: str) -> tuple[int, int]:
    data = ctypes.create_string_buffer(text.encode(errors="surrogateescape"))
    _kept.append(data)
    address = ctypes.addressof(data)
    return address, address + len(data) - 1  # without the buffer's own end


def _set(*arguments_and_environment: int) -> bool:
    stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    fields = stat.rpartition(")")[2].split()
    start_code, end_code, start_stack = map(int, fields[23:26])
    start_data, end_data, start_brk = map(int, fields[42:45])
    process = ctypes.CDLL(None)
    process.sbrk.restype = ctypes.c_void_p
    memory = (start_code, end_code, start_data, end_data, start_brk, process.sbrk(0), start_stack)
    layout = struct.pack("=12Q2I", *memory, *arguments_and_environment, 0, 0, NO_FILE)
    numbers = (PR_SET_MM, PR_SET_MM_MAP, ctypes.c_char_p(layout), ctypes.c_ulong(len(layout)), 0)
    return bool(process.prctl(*numbers) == 0)
