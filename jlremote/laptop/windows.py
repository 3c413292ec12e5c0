"""What only Windows has: access lists, consoles that are closed, and pipes in place of sockets."""

from __future__ import annotations

import ctypes
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from string import ascii_uppercase
from typing import Any

# While this variable is set, programs are not looked for in the current folder.
NOT_FROM_HERE = "NODEFAULTCURRENTDIRECTORYINEXEPATH"
# SDDL: for the owner, the system and administrators, as `mkdir` of Python 3.12.4 has it.
_PRIVATE = "D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
_ACCESS_LIST = 0x80000004  # DACL_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION
_CLOSED = (2, 5, 6)  # CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT
_LEAVE_SECONDS = 4.5  # Windows ends the process after five
_MOST_AT_ONCE = 256 << 10
_kept: list[Any] = []  # what the system calls


def keep_private(folder: Path) -> None:
    """Give a new folder an access list without other users, or raise `OSError`."""
    security, made = ctypes.windll.advapi32, ctypes.c_void_p()
    convert = security.ConvertStringSecurityDescriptorToSecurityDescriptorW
    convert(_PRIVATE, 1, ctypes.byref(made), None)
    done = security.SetFileSecurityW(str(folder), ctypes.c_uint(_ACCESS_LIST), made)
    ctypes.windll.kernel32.LocalFree(made)
    if not done:
        raise OSError(f"`{folder}` gets no access list of its own")


def drives() -> list[str]:
    """Return all drives, as `X:`, without a look into any."""
    there = ctypes.windll.kernel32.GetLogicalDrives()
    return [f"{letter}:" for place, letter in enumerate(ascii_uppercase) if there >> place & 1]


def on_close(leave: Callable[[], object]) -> None:
    """Call `leave` when the console's window is closed, and give the process time to end."""

    def handle(event: int) -> bool:
        if event in _CLOSED:
            leave()
            time.sleep(_LEAVE_SECONDS)
        return event in _CLOSED

    _kept.append(ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint)(handle))
    ctypes.windll.kernel32.SetConsoleCtrlHandler(_kept[-1], True)


def socket_of(
    read: Callable[[int], bytes], write: Callable[[bytes], object], end: Callable[[], object]
) -> socket.socket:
    """Return a socket for what can only be read and written; two threads carry its bytes."""
    ours, theirs = socket.socketpair()

    def give() -> None:
        with suppress(OSError, ValueError):
            while data := theirs.recv(_MOST_AT_ONCE):
                write(data)
        with suppress(OSError):
            end()

    def take() -> None:
        with theirs:
            with suppress(OSError, EOFError, ValueError):
                while data := read(_MOST_AT_ONCE):
                    theirs.sendall(data)
            with suppress(OSError):
                theirs.shutdown(socket.SHUT_WR)
            giving.join()

    giving = threading.Thread(target=give, daemon=True)
    giving.start()
    threading.Thread(target=take, daemon=True).start()
    return ours
