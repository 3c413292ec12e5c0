"""Parts of servers with jupyter_server 2 and newer.

`note_cells` notes for the recorder which cell a request is of: JupyterLab says so in the request
alone. `keep` keeps a server with an idle stop while ssh, a shell, a job or the GPUs use it: an idle
kernel may still compute in a thread, and an editor that came by ssh has no kernel. What keeps it is
written to `awake` in the session's folder, a reason a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

MARK = b"JLR_MARK="  # what jlr starts in a session for ssh clients, shells and jobs has it
LOAD_PERCENT = 5
CONTAINERS = ("/.dockerenv", "/run/.containerenv")


class Use:
    """A watch on what uses a session, beside kernels and terminals."""

    def __init__(self, seconds: int, folder: Path) -> None:
        self.seconds = seconds
        self.last = float("-inf")
        self._file = folder / "awake"

    @property
    def recent(self) -> bool:
        """Whether the session was used within the time of the idle stop, by programs also now."""
        return time.monotonic() - self.last < self.seconds or bool(programs())

    def keep_looking(self) -> None:
        while True:
            with suppress(Exception):
                self.look()
            time.sleep(min(self.seconds, 30))

    def look(self) -> None:
        """Look once, and write the reasons to stay to `awake`."""
        reasons = [*programs(), *load()]
        if reasons:
            self.last = time.monotonic()
        self._file.write_text("".join(f"{reason}\n" for reason in reasons), "utf-8")


def programs() -> list[str]:
    """Return a reason to stay if programs of ssh clients, shells or jobs run here."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"\0" + MARK in b"\0" + (process / "environ").read_bytes():
                return ["ssh, a shell or a job"]
    return []


def load() -> list[str]:
    """Return a reason to stay if the session's GPUs compute."""
    ours = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not ours and not any(map(os.path.exists, CONTAINERS)):
        return []  # the host's GPUs are everyone's
    argv = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    argv += [f"--id={ours}"] if ours else []
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        words = done.stdout.split()
        loads = [int(word) for word in words if word.isdecimal() and len(word) < 4]
        if done.returncode == 0 and max(loads, default=0) >= LOAD_PERCENT:
            return [f"{max(loads)} % load of its GPUs"]
    return []


def keep(seconds: int) -> Use:
    """Keep the server and its kernels from their idle stop while they are used."""
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
    threading.Thread(target=use.keep_looking, daemon=True).start()
    return use


MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
_message: Any = deserialize_msg_from_ws_v1


def note_cells(file: str) -> None:
    """Note the cell of each request in a file before the kernel has it."""
    connection: Any = ZMQChannelsWebsocketConnection
    pass_on, notes = connection.handle_incoming_message, Path(file)

    def note_and_pass_on(self: Any, message: Any) -> None:
        with suppress(*MALFORMED):
            note(notes, message)
        pass_on(self, message)

    connection.handle_incoming_message = note_and_pass_on


def note(notes: Path, message: Any) -> None:
    """Note the cell of a request, if the page tells it."""
    if isinstance(message, str):
        content = json.loads(message) if '"cellId"' in message else {}
        header, metadata = content.get("header", {}), content.get("metadata", {})
    elif b'"cellId"' in message:
        _, (header, _, metadata, *_) = _message(message)
        header, metadata = json.loads(header), json.loads(metadata)
    else:
        return
    line = f"{header['msg_id']} {metadata['cellId']}"
    if len(line) > 1000 or line.count(" ") != 1 or not line.isprintable():
        return
    with open(notes, "a", opener=lambda path, how: os.open(path, how, 0o600)) as file:
        file.write(f"{line}\n")
