"""The search for a host's link, and its start."""

from __future__ import annotations

import json
import socket as plain_sockets
import struct
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jlremote.errors import Bug, JlrError, from_json
from jlremote.link.wire import protocol
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import Message

if TYPE_CHECKING:
    import subprocess

    from jlremote.link.wire.protocol import Socket

ANSWER_SECONDS = 10.0
# A new link loads libraries first: a scanner of Windows, or a slow disk, may take long over them.
LOADING_SECONDS = 60.0
# How long a link may say nothing before it is asked whether it still runs.
SILENCE_SECONDS = 2.0
# ERROR_SEM_TIMEOUT and ERROR_PIPE_BUSY: a link that still loads has room for one caller.
_PIPE_BUSY = (121, 231)
TURN_SECONDS = 0.01


class NoLink(JlrError):
    """No link runs for this host."""


class LinkStuck(JlrError):
    """A link runs for this host, but does not answer."""


def dial(files: LinkFiles) -> Socket:
    """Connect to the link.

    Raises:
        NoLink: no link runs.
        LinkStuck: a link runs, but does not answer.
    """
    try:
        secret = files.key.read_bytes()
        socket = _connected(files.address(secret))
    except OSError as missing:
        raise NoLink(f"no link to `{files.host}` runs") from missing
    try:
        _wait_for_challenge(socket, files)
        protocol.authenticate_link(socket, secret)
    except (OSError, EOFError, protocol.NotProved) as leaving:
        socket.close()
        raise NoLink(f"the link to `{files.host}` is ending") from leaving
    except BaseException:
        socket.close()
        raise
    return socket


def _connected(address: str) -> Socket:
    if sys.platform == "win32":
        import multiprocessing.connection as sockets

        limit = time.monotonic() + LOADING_SECONDS
        while True:
            try:
                return sockets.Client(address)  # type: ignore[return-value]  # has the same methods
            except OSError as busy:
                if busy.winerror not in _PIPE_BUSY or time.monotonic() > limit:
                    raise
    socket = plain_sockets.socket(plain_sockets.AF_UNIX)
    try:
        socket.connect(address)
    except BaseException:
        socket.close()
        raise
    return socket


def next_message(
    socket: Socket, files: LinkFiles, on_silence: Callable[[], None] = lambda: None
) -> Message:
    """Return the link's next message, and check while it waits that the link answers others.

    `on_silence` is called each time that the link has been found to run and still said nothing; an
    exception from it is passed on.

    Raises:
        LinkStuck: the link does not answer; its process may be suspended.
        OSError, EOFError, ValueError: see `receive`.
    """
    while not protocol.is_there(socket, SILENCE_SECONDS):
        with suppress(NoLink):  # it is ending, and its last message may be under way
            dial(files).close()
        on_silence()
    return protocol.receive(socket)


def _wait_for_challenge(socket: Socket, files: LinkFiles) -> None:
    """Wait for the link's first message; a suspended process accepts and says nothing."""
    is_new = files.restoring.exists()  # no command has been served yet
    if protocol.is_there(socket, LOADING_SECONDS if is_new else ANSWER_SECONDS):
        return
    text, pid = f"the link to `{files.host}` does not answer", 0
    if sys.platform == "linux":
        assert isinstance(socket, plain_sockets.socket)
        pid, _user, _group = struct.unpack(
            "3i", socket.getsockopt(plain_sockets.SOL_SOCKET, plain_sockets.SO_PEERCRED, 12)
        )
    if not pid:  # it is in another namespace
        raise LinkStuck(text)
    raise LinkStuck(
        f"{text}; its process is {pid}",
        hint=f"`kill -CONT {pid}` resumes it if it is suspended; else `kill -KILL {pid}`, and"
        " the next command brings its forwards back",
    )


def start_link(files: LinkFiles, begun: Callable[[], None] = lambda: None) -> None:
    """Start the link, unless another command just did, and wait until it listens.

    `begun` is called once its process has begun, before that has loaded.
    """
    with turn(files):
        try:
            dial(files).close()
        except NoLink:
            files.restoring.touch(mode=0o600)
            files.write_destination()
            files.disconnected.unlink(missing_ok=True)
            config = () if files.config is None else (files.config,)
            process = begin("jlremote.link", files.host, *config, log=files.log, pipe=True)
            begun()
            assert process.stdout is not None
            with process.stdout as pipe:
                said = pipe.readline()
            if said.startswith(b"{"):
                process.wait()
                raise from_json(json.loads(said)) from None
            if said != protocol.READY:
                text = f"the link to `{files.host}` did not start (exit status {process.wait()})"
                raise Bug(text, hint=f"its log is {files.log}") from None
            process.returncode = 0  # no need to wait for it: it outlives the command


def turn(files: LinkFiles) -> AbstractContextManager[object]:
    """Return a lock that one thread of one command can hold at a time."""
    from filelock import FileLock  # as `subprocess`

    return FileLock(files.starting, mode=0o600, poll_interval=TURN_SECONDS)


def begin(*words: str, log: Path, pipe: bool = False, **how: Any) -> subprocess.Popen[bytes]:
    """Begin a module, with its arguments, as a process that outlives the terminal."""
    import subprocess  # not needed while a link lives

    # -P: modules in the current folder must not be imported in place of ours.
    # gil: the link's threads, and paramiko's, need the lock that a free-threaded Python leaves out;
    # Python before 3.13 has always one, and ignores the option.
    command = (sys.executable, "-P", "-X", "gil=1", "-m", *words)
    with log.open("ab") as said:
        how |= {"stdout": subprocess.PIPE if pipe else said, "stderr": said, **detached()}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **how)


def detached() -> dict[str, Any]:
    """Return how `Popen` starts a process that outlives the terminal."""
    if sys.platform == "win32":
        import subprocess

        # Its programs share its console, which has no window; without one each would open a window.
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        return {"creationflags": flags}
    return {"start_new_session": True}
