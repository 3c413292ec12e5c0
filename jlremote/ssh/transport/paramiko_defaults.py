"""paramiko's own defaults that cannot be changed by subclassing."""

from __future__ import annotations

import time
from types import SimpleNamespace

import paramiko
from paramiko import common

_WAITING = (paramiko.transport, paramiko.packet, paramiko.channel, paramiko.buffered_pipe)


def set_defaults() -> None:
    """Let paramiko wait by the monotonic clock, and survive messages that it does not know.

    Its waits take the wall clock: set back meanwhile, it would let them last for hours. And it ends
    a connection when it has no name for a message.
    """
    for module in _WAITING:
        module.time = SimpleNamespace(time=time.monotonic, sleep=time.sleep)
    for kind in range(256):
        common.MSG_NAMES.setdefault(kind, f"message {kind}")
