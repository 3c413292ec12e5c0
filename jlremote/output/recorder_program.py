"""The program that records what the kernels of a Jupyter server publish.

Its text runs beside the server, with the server's Python and the pyzmq that every Jupyter brings.
It imports nothing of ours and uses no syntax newer than Python 3.6. The room's docstring describes
the files that it writes.

Its arguments are PID RUNTIME SESSION [BYTES]: the server's process, the folder with that server's
runtime file and connection files, the session's folder, and how much is kept. It ends with the
server.

Messages wait in pyzmq's own thread while the program pauses, so it reads many at a time: that is
cheap, and a kernel is never held up by it.
"""
# ruff: noqa: UP006, UP035, UP045 - Python 3.6 has no newer form of these
# ruff: noqa: T201 - it is a program; what it prints is its log

import ctypes
import hashlib
import hmac
import http.client
import json
import os
import re
import select
import signal
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote

MOST_BYTES = 200 << 20  # of a session
PIECES = 20  # that many make the whole; the oldest go first
SMALL_BYTES = 4096  # a kernel that says little keeps its only piece
TEXT_BYTES = 1 << 16  # of streams that become one record
BATCH = 5000  # messages of one kernel at a time
PAUSE_SECONDS = 0.1  # in which messages gather
WAITING = 100000  # messages of a kernel that may wait
TURN_SECONDS, QUIET_SECONDS = 2, 30  # a look at the server, without and with the system's help
LONG_SECONDS = 1  # a cell that runs longer is named in `running`
ASK_SECONDS = 10  # between questions for the notebooks' paths
LEAVING_SECONDS = 2
TRIES = 30
UNNAMED, NAME_SECONDS = 3, 2
ANY = "0.0.0.0"  # noqa: S104 - it is compared with
START_SECONDS = 120
NOTES = 10000  # ids of cells that are kept

RECORDED = (
    *("stream", "display_data", "update_display_data", "execute_result", "error"),
    "clear_output",
)
CONNECTION = re.compile(r"kernel-(.+)\.json")
PIECE = re.compile(r"(.+?)(?:\.(\d+))?\.jsonl")
# inotify(7): IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE
CHANGES = 0x8 | 0x80 | 0x200

# The address of a kernel's iopub, the key of its messages, and its CurveZMQ keys, if it has some.
Connection = Tuple[str, ...]


def process_start(pid: int) -> str:
    """Return the start time of a process, empty if it has ended; see proc(5)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def parted(lines: List[bytes], size: int) -> List[bytes]:
    """Return lines joined to parts of at most a size, or of one line that is longer."""
    parts: List[bytes] = []
    part: List[bytes] = []
    length = 0
    for line in lines:
        if part and length + len(line) > size:
            parts.append(b"".join(part))
            part, length = [], 0
        part.append(line)
        length += len(line)
    return [*parts, b"".join(part)]


def changed_at(path: str) -> float:
    """Return when a file was written last, 0 if it is gone."""
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0


class Store:
    """The files of a session's records, bounded in all."""

    def __init__(self, folder: str, most: int) -> None:
        self.folder = folder
        self.most = most
        self.waiting: Dict[str, List[bytes]] = {}
        self.failing: Dict[str, float] = {}  # kernels whose records cannot be written, since when
        self.sizes = {path: os.path.getsize(path) for path in self.pieces()}

    def pieces(self) -> List[str]:
        """Return the paths of all files, the oldest first."""
        found = (PIECE.fullmatch(name) for name in os.listdir(self.folder))
        # A kernel's file that is still written to has no number.
        number = {each[0]: float(each[2] or "inf") for each in found if each}
        paths = [os.path.join(self.folder, name) for name in number]
        return sorted(paths, key=lambda path: (changed_at(path), number[os.path.basename(path)]))

    def path(self, kernel: str) -> str:
        """Return the file that a kernel's records go to."""
        return os.path.join(self.folder, kernel + ".jsonl")

    def add(self, record: Dict[str, Any]) -> None:
        """Add a record to those that are written next."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        if len(data) > self.most // 4:
            now = record["time"]
            why = f"an output of {len(data)} bytes is too large"
            self.lose(record["kernel"], now, now, why, record)
        else:
            self.waiting.setdefault(record["kernel"], []).append(data)

    def lose(
        self,
        kernel: str,
        since: Optional[float],
        until: float,
        why: str,
        like: Optional[Dict[str, Any]] = None,
    ) -> None:
        """Add the record that says that others are missing."""
        place = {"notebook": None, "cell": None, "request": None}
        place.update({key: (like or place).get(key) for key in place})
        content = {"from": since, "until": until, "why": why}
        about = {"time": time.time(), "kernel": kernel, "kind": "lost", "content": content}
        self.add(dict(place, **about))

    def write(self) -> None:
        """Write what was added."""
        waiting, self.waiting = self.waiting, {}
        for kernel, lines in waiting.items():
            for data in parted(lines, self.most // PIECES):
                try:
                    self.append(kernel, data)
                except OSError as failure:
                    self.failing.setdefault(kernel, time.time())
                    print("cannot write records:", failure, file=sys.stderr, flush=True)
                    break
                while sum(self.sizes.values()) > self.most and self.drop_oldest():
                    pass
            else:
                if kernel in self.failing:
                    why = "they could not be written"
                    self.lose(kernel, self.failing.pop(kernel), time.time(), why)
        if self.waiting:  # what was lost
            self.write()

    def append(self, kernel: str, data: bytes) -> None:
        """Append whole lines to a kernel's file; begin another piece where it is full."""
        path = self.path(kernel)
        size = self.sizes.get(path, 0)
        if size and size + len(data) > self.most // PIECES:
            numbers = [PIECE.fullmatch(os.path.basename(own)) for own in self.sizes]
            own = [int(each[2] or 0) for each in numbers if each and each[1] == kernel]
            older = os.path.join(self.folder, f"{kernel}.{max(own) + 1}.jsonl")
            os.rename(path, older)
            self.sizes[older], size = self.sizes.pop(path), 0
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            written = 0
            while written < len(data):
                written += os.write(file, data[written:])
        except OSError:
            os.ftruncate(file, size)
            raise
        finally:
            os.close(file)
        self.sizes[path] = size + len(data)

    def drop_oldest(self) -> bool:
        """Delete the oldest piece of some size, with its kernel's small ones before it; say so."""
        pieces = self.pieces()
        large = [path for path in pieces if self.sizes.get(path, 0) > SMALL_BYTES]
        if len(large) < 2:
            return False
        kernel = kernel_of(large[0])
        older = [path for path in pieces[: pieces.index(large[0]) + 1] if kernel_of(path) == kernel]
        first, last = ends(older[0]), ends(large[0]).get("last", time.time())
        for path in older:
            with suppress(OSError):
                os.unlink(path)
            self.sizes.pop(path, None)
        why = f"more than {self.most >> 20} MB of the session were recorded"
        self.lose(kernel, first.get("time"), last, why, first)
        return True


def kernel_of(path: str) -> str:
    """Return the kernel that a file's records are of."""
    named = PIECE.fullmatch(os.path.basename(path))
    return named[1] if named else ""


def ends(path: str) -> Dict[str, Any]:
    """Return the first record of a file, and as `last` the time of the last one."""
    try:
        with open(path, "rb") as file:
            first = json.loads(file.readline().decode("utf-8"))
            if first["kind"] == "lost":
                first["time"] = first["content"]["from"]
            first["last"] = max(first["time"], os.path.getmtime(path))  # whose clock is coarse
            return dict(first)
    except (OSError, ValueError, KeyError, TypeError):
        return {}


class Cells:
    """The ids of cells by request, as the server's process notes them; see `resumption`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.known: Dict[str, str] = {}
        self.file: Any = None

    def of(self, request: Optional[str]) -> Optional[str]:
        """Return the cell of a request, `None` where it was not told."""
        if request is not None and request not in self.known:
            self.read()
        return self.known.get(request or "")

    def read(self) -> None:
        """Read the notes that are new; the server begins another file when one is full."""
        while True:
            try:
                if self.file is None:
                    self.file = open(self.path, encoding="utf-8")  # noqa: SIM115
                for line in self.file:
                    request, _, cell = line.strip().partition(" ")
                    self.known[request] = cell
                if os.fstat(self.file.fileno()).st_ino == os.stat(self.path).st_ino:
                    break
                self.file.close()
                self.file = None
            except (OSError, ValueError):
                break
        while len(self.known) > NOTES:
            del self.known[next(iter(self.known))]


class RecordedServer:
    """The Jupyter server: its process, and what its REST API says."""

    def __init__(self, pid: int, runtime: str) -> None:
        self.pid = pid
        self.runtime = runtime
        self.start = process_start(pid)
        self.facts: Dict[str, Any] = {}
        self.since = 0.0  # when it wrote its runtime file
        self.refuses = False  # whether it tells nothing, as with a password
        self.notebooks: Dict[str, str] = {}
        self.kernels: Optional[List[str]] = None  # `None` where it does not tell
        self.asked = 0.0
        self.asking: Optional[threading.Thread] = None

    @property
    def runs(self) -> bool:
        return bool(self.start) and process_start(self.pid) == self.start

    def await_start(self) -> bool:
        """Wait until the server has written its runtime file."""
        kinds = ("jpserver", "nbserver")
        files = [f"{self.runtime}/{kind}-{self.pid}.json" for kind in kinds]
        until = time.monotonic() + START_SECONDS
        while self.runs and time.monotonic() < until:
            for path in files:
                with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                    self.facts = json.load(file)
                    self.since = os.path.getmtime(path)
                    return True
            time.sleep(0.1)
        return False

    def ask(self, again: bool = False) -> None:
        """Ask for the kernels and their notebooks, in a thread of its own."""
        age = time.monotonic() - self.asked
        if (again or age > ASK_SECONDS) and not (self.asking and self.asking.is_alive()):
            self.asked = time.monotonic()
            self.asking = threading.Thread(target=self.learn, daemon=True)
            self.asking.start()

    def learn(self) -> None:
        """Read the kernels' ids and the paths of their notebooks."""
        try:
            sessions = self.get("api/sessions")
            paths = {own["kernel"]["id"]: own["path"] for own in sessions if own.get("kernel")}
            self.notebooks.update(paths)
            self.kernels = [own["id"] for own in self.get("api/kernels")]
        except (ValueError, LookupError, TypeError):
            self.refuses = True
        except (OSError, http.client.HTTPException):
            pass  # it ends

    def get(self, path: str) -> Any:
        """Return what the server answers; a question of ours is no use of it."""
        connection = self.connection()
        token = self.facts.get("token")
        headers = {"Host": f"localhost:{self.facts['port']}"}
        if token:
            headers["Authorization"] = "token " + token
        url = quote(self.facts["base_url"]) + path + "?no_track_activity=1"
        try:
            connection.request("GET", url, headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise ValueError(answer.status)
            return json.loads(answer.read().decode("utf-8"))
        finally:
            connection.close()

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection to the server, which may listen on a unix socket."""
        if self.facts.get("sock"):
            connection = http.client.HTTPConnection("localhost", timeout=10)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(10)
            connection.sock.connect(self.facts["sock"])
            return connection
        named = self.facts.get("hostname", "")
        host = named if re.fullmatch(r"[0-9.]+", named) and named != ANY else "127.0.0.1"
        if named == "::1":
            host = named
        if self.facts.get("secure"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is this machine
            return http.client.HTTPSConnection(
                host, self.facts["port"], timeout=10, context=context
            )
        return http.client.HTTPConnection(host, self.facts["port"], timeout=10)


class RecordedKernel:
    """A kernel's published messages."""

    def __init__(self, ident: str, recorder: "Recorder", connection: Connection) -> None:
        self.id = ident
        self.recorder = recorder
        self.connection = connection
        self.begun = False  # whether a process of this kernel was seen to start
        self.unnamed = 0  # executions without a notebook, as those of a console
        self.ending = ""
        self.gone: Optional[float] = None  # when its connection file was deleted
        self.alive = True
        self.busy: Optional[Tuple[str, float]] = None  # the request that runs, since when
        self.seen: Dict[str, str] = {}  # requests that run, with their status so far
        self.stream: Optional[Dict[str, Any]] = None  # a record that may grow
        self.parent: Tuple[bytes, Dict[str, Any]] = (b"", {})
        self.open()

    def open(self) -> None:
        """Subscribe to all that the kernel publishes."""
        import zmq

        address, key, public, secret = self.connection
        self.mac = hmac.new(key.encode(), digestmod=hashlib.sha256) if key else None
        self.socket: Any = self.recorder.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, WAITING)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        if public:
            self.socket.curve_publickey = self.socket.curve_serverkey = public.encode()
            self.socket.curve_secretkey = secret.encode()
        self.monitor: Any = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.socket.connect(address)
        for each in (self.socket, self.monitor):
            self.recorder.poller.register(each, zmq.POLLIN)

    def close(self) -> None:
        """End the subscription."""
        for each in (self.socket, self.monitor):
            self.recorder.poller.unregister(each)
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)

    def read(self) -> int:
        """Record the messages that have come, and return how many."""
        import zmq

        count = 0
        try:
            while count < BATCH:
                self.take(self.socket.recv_multipart(zmq.NOBLOCK))
                count += 1
        except zmq.Again:
            pass
        try:
            while count < BATCH:  # the end of the connection comes after its last message
                self.monitor.recv_multipart(zmq.NOBLOCK)
                self.leave()
        except zmq.Again:
            pass
        self.grown()
        return count

    def take(self, frames: List[bytes]) -> None:
        """Record one message."""
        try:
            at = frames.index(b"<IDS|MSG>")
            signature, parts = frames[at + 1], frames[at + 2 : at + 6]
            if self.mac is not None:
                mac = self.mac.copy()
                for part in parts:
                    mac.update(part)
                if not hmac.compare_digest(mac.hexdigest().encode(), signature):
                    return
            header = json.loads(parts[0].decode("utf-8"))
            if self.parent[0] != parts[1]:
                self.parent = parts[1], json.loads(parts[1].decode("utf-8"))
            kind, parent = header["msg_type"], self.parent[1]
            if kind in RECORDED or kind in ("status", "execute_input", "shutdown_reply"):
                content = json.loads(parts[3].decode("utf-8", "replace"))
                self.record(kind, content, parent.get("msg_id"), parent.get("msg_type"))
        except (ValueError, LookupError, TypeError, AttributeError) as failure:
            print("no message of Jupyter's:", failure, file=sys.stderr, flush=True)

    def record(
        self, kind: str, content: Dict[str, Any], request: Optional[str], asked: Optional[str]
    ) -> None:
        if kind == "status":
            self.status(content["execution_state"], request, asked)
        elif kind == "shutdown_reply":
            self.ending = "restarting" if content.get("restart") else "ended"
        elif kind == "execute_input":
            self.seen[request or ""] = "ok"
            self.name()
            self.add("code", content, request)
        else:
            if kind == "error":
                self.seen[request or ""] = "error"
            elif asked == "execute_request":
                self.seen.setdefault(request or "", "ok")
            self.add(kind, content, request)

    def name(self) -> None:
        """Learn the notebook's path; wait for the first one, which the server has soon."""
        server = self.recorder.server
        unknown = self.id not in server.notebooks and self.unnamed < UNNAMED
        server.ask(again=unknown)
        if unknown and server.asking:
            self.unnamed += 1
            server.asking.join(NAME_SECONDS)

    def status(self, state: str, request: Optional[str], asked: Optional[str]) -> None:
        """Record the beginning of a process, and the end of an execution."""
        if state == "starting" or not self.alive:  # which may have come before the connection
            self.add("kernel", {"state": "restarted" if self.begun else "started"}, None)
            self.begun, self.alive, self.ending, self.busy = True, True, "", None
            self.seen.clear()
            self.recorder.server.ask(again=True)
        if asked == "execute_request" and request:
            if state == "busy":
                self.begun = True
                self.busy = request, time.time()
            elif state == "idle":
                self.busy = None
                if request in self.seen:
                    self.add("end", {"status": self.seen.pop(request)}, request)

    def leave(self) -> None:
        """Record that the kernel's process is gone."""
        if self.alive:
            self.alive, self.busy = False, None
            if self.ending != "restarting":
                self.add("kernel", {"state": self.ending or "died"}, None)

    def add(self, kind: str, content: Dict[str, Any], request: Optional[str]) -> None:
        """Add a record; a stream grows by what follows it."""
        grows = self.stream
        if grows is not None and kind == "stream" and request == grows["request"]:
            now = grows["content"]
            if now["name"] == content["name"] and len(now["text"]) < TEXT_BYTES:
                now["text"] += content["text"]
                return
        self.grown()
        record = {
            "time": time.time(),
            "kernel": self.id,
            "notebook": self.recorder.server.notebooks.get(self.id),
            "cell": self.recorder.cells.of(request),
            "request": request,
            "kind": kind,
            "content": content,
        }
        if kind == "stream":
            self.stream = record
        else:
            self.recorder.store.add(record)

    def grown(self) -> None:
        """Let the record of a stream grow no more."""
        if self.stream is not None:
            self.recorder.store.add(self.stream)
            self.stream = None


class Recorder:
    """The kernels of a server, and where their records go."""

    def __init__(self, server: RecordedServer, session: str, most: int) -> None:
        import zmq

        folder = os.path.join(session, "output")
        self.server = server
        self.state = os.path.join(session, "recorder")
        self.running = os.path.join(folder, "running")
        self.store = Store(folder, most)
        self.cells = Cells(os.path.join(folder, "cells"))
        self.context: Any = zmq.Context()
        self.poller: Any = zmq.Poller()
        self.kernels: Dict[str, RecordedKernel] = {}
        self.told = ""
        self.ended = False
        self.tries = 0  # left to learn which kernels are the server's
        self.changes = self.watch(server.runtime)
        self.process = self.watch_process()

    def watch(self, folder: str) -> Optional[int]:
        """Return a descriptor that is readable once a file in a folder changes."""
        try:
            library = ctypes.CDLL(None, use_errno=True)
            found = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if found < 0 or library.inotify_add_watch(found, os.fsencode(folder), CHANGES) < 0:
                return None
        except (AttributeError, OSError):
            return None
        self.poller.register(found, select.POLLIN)
        return int(found)

    def watch_process(self) -> Optional[int]:
        """Return a descriptor that is readable once the server ends."""
        try:
            found = os.pidfd_open(self.server.pid)  # type: ignore[attr-defined,unused-ignore]
        except (AttributeError, OSError):  # older than Python 3.9 or Linux 5.3
            return None
        self.poller.register(found, select.POLLIN)
        return int(found)

    def run(self) -> None:
        """Record until the server ends."""
        self.missed()
        self.find(anew=True)
        while self.server.runs and not self.ended:
            self.poller.poll(self.patience() * 1000)
            self.turn()
            time.sleep(PAUSE_SECONDS)
        self.turn()
        for kernel in list(self.kernels.values()):
            kernel.ending = kernel.ending or "ended"
            kernel.leave()
            kernel.close()
        self.store.write()

    def patience(self) -> float:
        """Return for how many seconds there is nothing to do, if nothing comes."""
        own = self.kernels.values()
        if self.tries:
            return PAUSE_SECONDS
        if any(kernel.busy or kernel.gone for kernel in own) or self.told:
            return LONG_SECONDS
        return TURN_SECONDS if None in (self.changes, self.process) else QUIET_SECONDS

    def turn(self) -> None:
        """Record what has come, and follow the kernels that begin and end."""
        changed = False
        if self.changes is not None:
            with suppress(BlockingIOError):
                changed = bool(os.read(self.changes, 1 << 16))
        if changed or self.changes is None or self.tries:
            self.find(anew=changed)
        for kernel in list(self.kernels.values()):
            while kernel.read() == BATCH:
                self.store.write()
            if kernel.gone and time.monotonic() > kernel.gone:
                kernel.ending = kernel.ending or "ended"
                kernel.leave()
                kernel.close()
                del self.kernels[kernel.id]
        self.store.write()
        self.tell_running()
        try:
            os.utime(self.state)
        except OSError:  # the session's folder was removed
            self.ended = self.ended or not os.path.isdir(self.store.folder)

    def find(self, anew: bool) -> None:
        """Subscribe to kernels that are new, and leave those that are gone."""
        found = {}
        for name in os.listdir(self.server.runtime) if os.path.isdir(self.server.runtime) else ():
            named = CONNECTION.fullmatch(name)
            if named:
                connection = read_connection(os.path.join(self.server.runtime, name))
                if connection is not None:
                    found[named[1]] = connection
        for kernel in self.kernels.values():
            if kernel.id not in found and kernel.gone is None:
                kernel.gone = time.monotonic() + LEAVING_SECONDS
        strange = False
        for ident, connection in found.items():
            known = self.kernels.get(ident)
            if known is None and self.is_ours(ident):
                self.kernels[ident] = RecordedKernel(ident, self, connection)
                self.server.ask(again=True)
            elif known is None:
                strange = True
            elif known is not None and known.connection != connection:  # it has other ports by now
                known.read()
                known.close()
                known.connection, known.gone = connection, None
                known.open()

        self.tries = (TRIES if anew else max(0, self.tries - 1)) if strange else 0
        if self.tries:
            self.server.ask(again=True)

    def is_ours(self, ident: str) -> bool:
        """Return whether a connection file is one of the server's: folders may be shared."""
        if self.server.runtime == os.path.join(os.path.dirname(self.state), "runtime"):
            return True
        if self.server.refuses:  # then that of another server of the same user may be taken
            file = os.path.join(self.server.runtime, f"kernel-{ident}.json")
            return changed_at(file) >= self.server.since
        return ident in (self.server.kernels or ())

    def missed(self) -> None:
        """Say in the records of kernels that run since when this server was not listened to."""
        now = time.time()
        try:
            with open(self.state) as file:
                before = file.read().split()
            last = os.path.getmtime(self.state) if before[2:3] == [str(self.server.pid)] else None
        except OSError:
            last = None
        own = os.getpid()
        write_whole(self.state, f"{own} {process_start(own)} {self.server.pid}\n")
        if last is not None or now - self.server.since > START_SECONDS:
            why = "recording began" if last is None else "the recorder did not run"
            self.server.learn()
            for ident in self.server.kernels or ():
                self.store.lose(ident, last, now, why)

    def tell_running(self) -> None:
        """Write which cells have been running for a while, and since when."""
        now, told = time.time(), {}
        for kernel in self.kernels.values():
            if kernel.busy and now - kernel.busy[1] >= LONG_SECONDS:
                notebook = self.server.notebooks.get(kernel.id)
                told[kernel.id] = {"notebook": notebook, "since": kernel.busy[1]}
        text = json.dumps(told) if told else ""
        if text != self.told:
            self.told = text
            try:
                write_whole(self.running, text)
            except OSError as failure:
                print("cannot tell what runs:", failure, file=sys.stderr, flush=True)


def read_connection(path: str) -> Optional[Connection]:
    """Return the address and the key of a connection file, `None` if it is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        between = "-" if facts["transport"] == "ipc" else ":"
        ip, port = facts["ip"], facts["iopub_port"]
        keys = (str(facts.get(name) or "") for name in ("curve_publickey", "curve_secretkey"))
        return (f"{facts['transport']}://{ip}{between}{port}", str(facts["key"]), *keys)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write_whole(path: str, text: str) -> None:
    """Write a small file as a whole."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)


def alone(folder: str, pid: int) -> bool:
    """Take the lock of a server's recorder, for life; return whether another one has it."""
    import fcntl  # Windows has none

    held = os.open(f"{folder}/lock-{pid}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def main(arguments: List[str]) -> int:
    """Record the kernels of the server that the arguments name."""
    pid, runtime, session = int(arguments[0]), arguments[1], arguments[2]
    most = int(arguments[3]) if arguments[3:] else MOST_BYTES
    os.umask(0o077)
    server = RecordedServer(pid, runtime)
    if not server.await_start():
        return 0
    folder = os.path.join(session, "output")
    if not os.path.isdir(folder):
        os.mkdir(folder)
    if not alone(folder, pid):
        return 0
    root = server.facts.get("root_dir") or server.facts.get("notebook_dir") or ""
    write_whole(os.path.join(folder, "root"), root)
    recorder = Recorder(server, session, most)

    def end(*_: Any) -> None:
        recorder.ended = True

    signal.signal(signal.SIGTERM, end)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    recorder.run()
    for left in (recorder.state, recorder.running, f"{folder}/lock-{pid}"):
        with suppress(OSError):
            os.unlink(left)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
