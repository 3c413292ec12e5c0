"""The link's process: it leaves its shell, logs, listens, and only then loads the SSH library."""

from __future__ import annotations

import faulthandler
import json
import logging
import multiprocessing.connection as sockets
import os
import platform
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from jlremote import __version__
from jlremote.errors import JlrError
from jlremote.laptop import paths
from jlremote.link.connection.backoff import begin_loop
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import READY
from jlremote.text import printable

if TYPE_CHECKING:
    from jlremote.link.service.link_server import LinkServer

IDLE_SECONDS = 600.0
IDLE_VARIABLE = "JLR_LINK_IDLE"
LOG_VARIABLE = "JLR_LOG"
MOST_LOG_BYTES = 1 << 20  # of the file, and as much of the one before
OLD_LINK_SECONDS = 10.0
LOOK_SECONDS = 5.0
_BACKLOG = 128
_SHOW_LINKS = (
    'tasklist /fi "imagename eq python.exe"'
    if sys.platform == "win32"
    else "ps aux | grep jlremote.link"
)
# A shell sets them for its own programs, and the link serves others, for days.
_LIMITS = ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "RSS")

log = logging.getLogger(__name__)

Identity = tuple[int, int]


def main() -> int:
    """Run the link of one host until it is no longer needed."""
    host, *config = sys.argv[1:]
    files = LinkFiles(host, Path(config[0]) if config else None)
    folder = leave_shell()
    begin_log(files.log, host, os.environ)
    os.environ.pop("JLR_LEASH", None)  # it is for the command that begins the link, not for others
    # Ctrl-C in the terminal is meant for the command; the link goes on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with closing(LinkSocket(files)) as link_socket:
        try:
            link_socket.claim(OLD_LINK_SECONDS)  # an older link may just be ending
            listener = link_socket.open()
        except (JlrError, OSError) as trouble:  # of the folder or its disk
            if not isinstance(trouble, JlrError):
                trouble = JlrError(f"cannot listen: {trouble}")
            _say(json.dumps(trouble.to_json()).encode("ascii") + b"\n")
        else:
            _say(READY)
            # From here on commands can connect; they wait while the SSH library loads.
            from jlremote.link.service.link_server import assemble

            with assemble(files, folder, idle_seconds=idle_seconds(os.environ)) as server:
                link_socket.keep_open(server)
                server.serve(listener, link_socket.secret)
    return 0


def idle_seconds(environment: Mapping[str, str]) -> float:
    """Return how many seconds an idle link stays: `JLR_LINK_IDLE`, or 10 minutes."""
    try:
        return max(1.0, float(environment[IDLE_VARIABLE]))
    except (KeyError, ValueError):
        return IDLE_SECONDS


def _say(line: bytes) -> None:
    os.write(sys.stdout.fileno(), line)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def leave_shell() -> Path:
    """Leave the current folder, raise the limits, forbid core dumps; return the folder."""
    root = Path(sys.executable).anchor
    try:
        folder = Path.cwd()
    except OSError:  # it was removed
        folder = Path(root)
    os.chdir(root)  # a mount with a process's folder cannot be unmounted
    if sys.platform != "win32":
        import resource

        for limit in (getattr(resource, f"RLIMIT_{name}", None) for name in _LIMITS):
            if limit is not None:
                _, most = resource.getrlimit(limit)
                with suppress(OSError, ValueError):  # macOS names more than it allows
                    resource.setrlimit(limit, (most, most))
        # A dump would have passwords. Linux (fs/coredump.c) gives a program that collects dumps
        # none at a limit of 1, but does at 0; no file is written at either.
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        limit = 1 if most else 0
        resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
    return folder


def begin_log(path: Path, host: str, environment: Mapping[str, str]) -> None:
    """Log to `path`, in detail with `JLR_LOG=debug`; SIGUSR1 adds the stacks of all threads.

    The command that starts the link gives it this file as stderr, too: what Python itself reports
    is there, and the stacks.
    """
    handler = RotatingFileHandler(path, maxBytes=MOST_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.rotator = _set_aside
    handler.setFormatter(_Printable("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    detailed = environment.get(LOG_VARIABLE, "").lower() == "debug"
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if detailed else logging.INFO)
    path.chmod(0o600)
    if not detailed:
        # paramiko's INFO lines repeat those of the supervisor.
        logging.getLogger("paramiko").setLevel(logging.WARNING)
    python = f"Python {platform.python_version()}"
    # Not `platform.platform()`, which runs a program.
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    versions = f"jlr {__version__}, {python}, {system}, pid {os.getpid()}"
    log.info("link to %s: %s", host, versions)
    faulthandler.enable()  # where the interpreter crashes
    if sys.platform != "win32":
        # `faulthandler.register` reads the frames while threads run, and crashed links so.
        signal.signal(signal.SIGUSR1, lambda *_: faulthandler.dump_traceback())


def _set_aside(source: str, target: str) -> None:
    """Copy and empty a full log: stderr has the file open, and Windows renames no open file."""
    shutil.copy(source, target)
    os.truncate(source, 0)


class _Printable(logging.Formatter):
    """Formats a record without the control characters that a server's words may have."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class LinkSocket:
    """The lock, key and socket of a running link.

    The system cleans their folder: `/tmp` after some days, `/run/user` at the last logout. Without
    new ones the link would keep its ports, and no command could find it. Its `secret` authenticates
    commands and the link to each other.
    """

    def __init__(self, files: LinkFiles) -> None:
        self.secret = secrets.token_bytes(32)
        self._files = files
        self._locks: list[FileLock] = []
        self._claimed: Identity | None = None

    def claim(self, seconds: float) -> None:
        """Take the lock that makes this link the only one; raise `JlrError` if it is taken."""
        lock = FileLock(self._files.lock, mode=0o600)
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            raise JlrError(
                f"another link to `{self._files.host}` runs and does not answer; it may be an older"
                " jlr's",
                hint=f"`{_SHOW_LINKS}` shows its process: end it, and the next command "
                "brings its forwards back",
            ) from None
        self._locks.append(lock)
        self._claimed = _identity(self._files.lock)

    def open(self) -> sockets.Listener:
        """Return a new listener for commands; the lock must be ours."""
        paths.write_whole(self._files.key, self.secret)
        if os.name != "nt":
            self._files.socket.unlink(missing_ok=True)  # left by a link that was killed
        return sockets.Listener(self._files.address(self.secret), backlog=_BACKLOG)

    def keep_open(self, server: LinkServer) -> None:
        """Make lost files again; end the process if another link has taken over."""

        def look() -> None:
            files = self._files
            while True:
                time.sleep(LOOK_SECONDS)
                exist = files.key.exists() and (os.name == "nt" or files.socket.exists())
                is_ours = _identity(files.lock) == self._claimed
                if (exist and is_ours) or server.ended:
                    continue
                paths.private_directory(files.lock.parent)
                try:
                    if not is_ours:
                        self.claim(0)
                except JlrError:
                    log.warning("another link has taken over")
                    # An orderly end would remove the other link's socket.
                    os._exit(0)
                server.listen(self.open(), self.secret)
                log.warning("the files were gone; made them again")

        begin_loop("files of the link", look)

    def close(self) -> None:
        if self._locks:  # else the files are another link's
            self._files.key.unlink(missing_ok=True)
        for lock in self._locks:
            lock.release()


def _identity(path: Path) -> Identity | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
