"""Keep a server with an idle stop while it is used by ssh, by a shell, by a job or by its GPUs.

Jupyter itself counts busy kernels and its terminals. A kernel that is idle by its own word may
still compute in a thread, and an editor that came by ssh has no kernel at all. What keeps the
server is written to `awake` in the session's folder, a reason a line.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

MARK = b"JLR_MARK="  # what jlr starts in a session for ssh clients, shells and jobs has it
LOAD_PERCENT = 5
CONTAINERS = ("/.dockerenv", "/run/.containerenv")


class Use:
    """What uses a session, looked at now and then."""

    def __init__(self, seconds: int, folder: Path) -> None:
        self.seconds = seconds
        self.last = float("-inf")
        self._file = folder / "awake"

    def begin(self) -> None:
        threading.Thread(target=self._keep_looking, daemon=True).start()

    @property
    def recent(self) -> bool:
        """Whether the session was used within the time of the idle stop, by programs also now."""
        return time.monotonic() - self.last < self.seconds or bool(programs())

    def _keep_looking(self) -> None:
        while True:
            with suppress(Exception):
                self.look()
            time.sleep(min(self.seconds, 30))

    def look(self) -> None:
        """Look once, and note what was found."""
        found = [*programs(), *load()]
        if found:
            self.last = time.monotonic()
        self._file.write_text("".join(f"{reason}\n" for reason in found), "utf-8")


def programs() -> list[str]:
    """Return that programs of ssh clients, shells or jobs run here."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"\0" + MARK in b"\0" + (process / "environ").read_bytes():
                return ["ssh, a shell or a job"]
    return []


def load() -> list[str]:
    """Return that the session's GPUs compute."""
    ours = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not ours and not any(map(os.path.exists, CONTAINERS)):
        return []  # the host's GPUs are everyone's
    which = [f"--id={ours}"] if ours else []
    argv = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", *which]
    with suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        words = told.stdout.split()
        loads = [int(word) for word in words if word.isdecimal() and len(word) < 4]
        if told.returncode == 0 and max(loads, default=0) >= LOAD_PERCENT:
            return [f"{max(loads)} % load of its GPUs"]
    return []


def keep(seconds: int) -> Use:
    """Let the server and its kernels stay while they are used."""
    use = Use(seconds, Path(os.environ["JUPYTER_RUNTIME_DIR"]).parent)
    kernels: Any = MappingKernelManager
    server: Any = ServerApp
    cull, end = kernels.cull_kernel_if_idle, server.shutdown_no_activity

    async def cull_unless_used(self: Any, kernel_id: str) -> None:
        if not use.recent:
            await cull(self, kernel_id)

    def end_unless_used(self: Any) -> None:
        if not use.recent:
            end(self)

    kernels.cull_kernel_if_idle = cull_unless_used
    server.shutdown_no_activity = end_unless_used
    use.begin()
    return use
