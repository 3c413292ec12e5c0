"""A process that has loaded `jlr` and forks for each call: a real start takes 0.3 s of CPU.

What a fork runs is `jlr` with arguments, environment, folder and pipes of its own, up to the
functions for the end. Freeing its modules one by one would take as long as all else, so that is
left to the kernel. The name and the environment of a call in /proc are the server's.

A command in a terminal or in the background (`forked`) begins a session of its own, has no
descriptor but its own, and shows in /proc the name, arguments and environment that it would have
been started with. So does a link that a fork starts. What may be stopped before it has loaded must
be started: `Laptop.spawn(…, forked=False)`.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, cached_property, partial
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.lab.place import LabError

LANGUAGE = "C.UTF-8"
PIPE_BYTES = 1 << 16  # fit into a pipe before its other end reads
MOST_BYTES = 1 << 17  # of a message between the processes
MOST_DESCRIPTORS = 1 << 20
# What commands and links load: all modules of these rooms, and these modules.
ROOMS = (
    *("cli", "copies", "doctor", "editors", "forwards", "images", "jobs", "laptop", "link"),
    *("listing", "mounts", "output", "sessions", "ssh"),
)
LOADED = tuple(f"jlremote.{room}" for room in ROOMS)
LOADED_TOO = (
    *("difflib", "platformdirs.unix", "tomllib", "rich.live", "rich.progress"),
    *("importlib_metadata", "jlremote.gpus.host_gpus", "more_itertools", "secretstorage"),
)
LINK = "jlremote.link"  # among the words with which it is started
# <linux/prctl.h>, from which comes the structure, too: where parts of a process's memory lie.
PR_SET_NAME, PR_SET_MM, PR_SET_MM_MAP = 15, 35, 14
NO_FILE = 0xFFFFFFFF

# The kernel reads them in the process's memory for as long as it lives.
_kept: list[ctypes.Array[ctypes.c_char]] = []


def serve(door: socket.socket) -> int:
    """Fork for each request until the tests have ended."""
    ending: dict[int, tuple[int, socket.socket]] = {}
    forks_door, asking = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    doors = {each.fileno(): each for each in (door, forks_door)}
    with selectors.DefaultSelector() as selector:
        for each in doors:
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in ending:
                    selector.unregister(key.fd)
                    pid, answer = ending.pop(key.fd)
                    os.close(key.fd)
                    with answer, suppress(OSError):  # likewise
                        answer.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                    continue
                request, descriptors, *_ = socket.recv_fds(doors[key.fd], MOST_BYTES, 4)
                if not request:
                    return 0
                if (pid := os.fork()) == 0:
                    try:
                        called(json.loads(request), descriptors, asking)
                    except KeyboardInterrupt:  # before the command itself answers it
                        os._exit(130)
                answer = socket.socket(fileno=descriptors.pop())
                with suppress(OSError):  # the test may have been interrupted
                    answer.send(b"%d" % pid)
                descriptor = os.pidfd_open(pid)
                selector.register(descriptor, selectors.EVENT_READ)
                ending[descriptor] = pid, answer
                for each in descriptors:
                    os.close(each)


def called(
    request: Mapping[str, Any], descriptors: Sequence[int], asking: socket.socket
) -> NoReturn:
    """Run `jlr` or a link in this process as its caller wants it, and end with its exit code."""
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    time.tzset()
    sys.argv = argv = request["argv"]
    if request["alone"]:
        stand_alone(argv, request["environment"], asking)
    if LINK in argv:
        sys.argv = argv[argv.index(LINK) :]
        status = link_status()
    else:
        if can_show():
            vars(subprocess)["Popen"] = partial(begun, asking, subprocess.Popen)
        status = int(import_module("jlremote.__main__").main())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def stand_alone(argv: Sequence[str], environment: Mapping[str, str], asking: socket.socket) -> None:
    """Begin a session, and have in /proc what a process has that a shell has started."""
    os.setsid()
    os.closerange(3, asking.fileno())
    os.closerange(asking.fileno() + 1, MOST_DESCRIPTORS)
    if LINK in argv:
        os.close(asking.detach())
        show_in_proc(argv, environment)
        return
    interpreter = Path(argv[0]).read_text(encoding="utf-8").splitlines()[0].removeprefix("#!")
    show_in_proc((interpreter, *argv), environment)
    rename(Path(argv[0]).name)
    terminals = [number for number in range(3) if os.isatty(number)]
    if terminals:
        fcntl.ioctl(terminals[0], termios.TIOCSCTTY, 0)
    if sys.stdout.isatty():
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def show_in_proc(argv: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Let /proc show these as if it had been started so; return whether the kernel allows it."""
    words = "".join(f"{word}\0" for word in argv)
    variables = "".join(f"{name}={value}\0" for name, value in environment.items())
    return _set_memory(*_place(words), *_place(variables))


def rename(name: str) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()), 0, 0, 0)


def _place(text: str) -> tuple[int, int]:
    data = ctypes.create_string_buffer(text.encode(errors="surrogateescape"))
    _kept.append(data)
    address = ctypes.addressof(data)
    return address, address + len(data) - 1  # without the buffer's own end


def _set_memory(*arguments_and_environment: int) -> bool:
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


@cache
def can_show() -> bool:
    """Return whether the kernel lets a fork show what a link needs; else links are started."""
    return show_in_proc(sys.orig_argv, os.environ)


def link_status() -> int:
    """Run a link to its end and return its exit code, as the interpreter would."""
    try:
        return int(import_module("jlremote.link.service.link_process").main())
    except Exception:  # noqa: BLE001  # whatever it is, the link's log gets it
        traceback.print_exc()
        return 1


def begun(asking: socket.socket, start: Callable[..., Any], args: Sequence[str], **how: Any) -> Any:
    """Take the place of `subprocess.Popen`, for links alone."""
    return ForkedLink(asking, args, how["stderr"]) if LINK in args else start(args, **how)


class Fork:
    """A process whose parent is the server, which tells how it ends.

    It has a session of its own, and three descriptors as stdin, stdout and stderr.
    """

    def __init__(
        self,
        asking: socket.socket,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        descriptors: Sequence[int],
    ) -> None:
        where = {"environment": dict(environment), "folder": str(folder)}
        request = {"argv": argv, **where, "alone": True}
        self._answer, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answering:
            numbers = (*descriptors, answering.fileno())
            socket.send_fds(asking, [json.dumps(request).encode()], numbers)
        self.pid = int(self._answer.recv(PIPE_BYTES))

    def __del__(self) -> None:
        self._answer.close()

    def wait(self) -> int:
        return int(self._answer.recv(PIPE_BYTES))


class ForkedLink(Fork):
    """What `subprocess.Popen` returns, as far as the start of a link uses it."""

    def __init__(self, asking: socket.socket, argv: Sequence[str], log: IO[bytes]) -> None:
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading, "rb")
        self.returncode: int | None = None
        with Path(os.devnull).open("rb") as nothing, os.fdopen(writing, "wb") as out:
            numbers = (nothing.fileno(), out.fileno(), log.fileno())
            super().__init__(asking, argv, os.environ, Path.cwd(), numbers)


class ForkServer:
    """The server of one process of tests; `door` takes requests."""

    def __init__(self) -> None:
        self.door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-m", __name__, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                env={"PATH": os.environ["PATH"], "LANG": LANGUAGE},
                cwd=Path(__file__).parents[2],
                start_new_session=True,  # or `jlr` could ask on the terminal that the tests run in
                # Pipes like those of a call, which takes the objects for them over.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        atexit.register(self.end)

    @cached_property
    def can_show(self) -> bool:
        """Whether the kernel lets a fork be seen as a process that was started."""
        return self.door.recv(1) == b"1"

    def end(self) -> None:
        self.door.close()
        self._process.communicate()

    def call(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        timeout: float,
        stdin: bytes = b"",
    ) -> tuple[int, bytes, bytes]:
        """Run `jlr` to its end, as `programs.attempt` does; return its exit code and output."""
        request = {"argv": argv, "environment": environment, "folder": str(folder), "alone": False}
        deadline = time.monotonic() + timeout
        with ExitStack() as held:
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            answer, answering = map(held.enter_context, pair)
            (given, giving), (out, writing), (err, complaining) = (pipe(held) for _ in range(3))
            giving.write(stdin)
            theirs = (given, writing, complaining, answering)
            numbers = [each.fileno() for each in theirs]
            socket.send_fds(self.door, [json.dumps(request).encode()], numbers)
            for each in (*theirs, giving):
                each.close()
            pid = int(answer.recv(PIPE_BYTES))
            try:
                printed, complained = read_to_end((out, err), deadline)
                answer.settimeout(max(0.001, deadline - time.monotonic()))
                return int(answer.recv(PIPE_BYTES)), printed, complained
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                took = f"`{' '.join(argv)}` took more than {timeout:.0f} s"
                raise LabError(took) from None


def pipe(held: ExitStack) -> tuple[FileIO, FileIO]:
    """Return both ends of a new pipe, which are closed with `held`."""
    reading, writing = os.pipe()
    return held.enter_context(FileIO(reading)), held.enter_context(FileIO(writing, "w"))


def read_to_end(files: Sequence[FileIO], deadline: float) -> list[bytes]:
    """Return what comes from each pipe; raise TimeoutError at `deadline` (`time.monotonic`)."""
    found = [bytearray() for _ in files]
    with selectors.DefaultSelector() as selector:
        for file, text in zip(files, found, strict=True):
            selector.register(file, selectors.EVENT_READ, text)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, PIPE_BYTES)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fd)
    return [bytes(each) for each in found]


@cache
def fork_server() -> ForkServer:
    """Return this process's server, which starts at the first call."""
    return ForkServer()


def link_forker() -> Callable[..., Any]:
    """Return what forks links in place of `subprocess.Popen` in the tests' own process."""
    return partial(begun, fork_server().door, subprocess.Popen)


def can_fork(words: Sequence[str], environment: Mapping[str, str], stdin: str) -> bool:
    """Return whether a fork does as a start would: the interpreter's own settings are the same."""
    own = any(name.startswith(("PYTHON", "LC_")) for name in environment)
    size = sum(map(len, (*words, *environment.values())))
    short = max(6 * size, 4 * len(stdin)) < PIPE_BYTES and "\0" not in "".join(words)
    return not own and environment.get("LANG") == LANGUAGE and short


if __name__ == "__main__":
    for package in LOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith(("__main__", "windows_keyboard")):
                import_module(module.name)
    for name in LOADED_TOO:
        import_module(name)
    gc.freeze()  # what is never freed is not copied
    door = socket.socket(fileno=int(sys.argv[1]))
    door.send(b"%d" % can_show())
    sys.exit(serve(door))
