"""Note which cell a request is of, for the recorder: JupyterLab says so in the request alone.

It is for jupyter_server 2 and newer.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

NOTES_BYTES = 1 << 20
MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
_message: Any = deserialize_msg_from_ws_v1


def note_cells(file: str) -> None:
    """Note the cell of each request in a file before the kernel has it."""
    connection: Any = ZMQChannelsWebsocketConnection
    if hasattr(connection, "notes_cells"):  # the configuration was read twice
        return
    connection.notes_cells, notes = True, Path(file)
    pass_on = connection.handle_incoming_message

    def note_and_pass_on(self: Any, message: Any) -> None:
        with suppress(*MALFORMED):
            note(notes, message)
        pass_on(self, message)

    connection.handle_incoming_message = note_and_pass_on


def note(notes: Path, message: Any) -> None:
    """Note the cell of a request, if the page tells it."""
    if isinstance(message, str):
        told = json.loads(message) if '"cellId"' in message else {}
        header, metadata = told.get("header", {}), told.get("metadata", {})
    elif b'"cellId"' in message:
        _, (header, _, metadata, *_) = _message(message)
        header, metadata = json.loads(header), json.loads(metadata)
    else:
        return
    line = f"{header['msg_id']} {metadata['cellId']}"
    if len(line) > 1000 or line.count(" ") != 1 or not line.isprintable():
        return
    if notes.exists() and notes.stat().st_size > NOTES_BYTES:
        notes.unlink()  # the recorder has it open
    with open(notes, "a", opener=lambda path, how: os.open(path, how, 0o600)) as file:
        file.write(f"{line}\n")
