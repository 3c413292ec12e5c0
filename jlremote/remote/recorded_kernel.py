"""A Jupyter server by its process and its REST API, and its kernels whose messages are recorded."""
# ruff: noqa: T201 - it is a program; what it prints is its log

import hmac
import http.client
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import quote

from jlremote.remote.orphans import facts
from jlremote.remote.record_store import Store

START_SECONDS = 120
ASK_SECONDS = 10  # between questions for the notebooks' paths
ANY = "0.0.0.0"  # noqa: S104 - it is compared with
TEXT_BYTES = 1 << 16  # of streams that become one record
BATCH = 5000  # messages of one kernel at a time
WAITING = 100000  # messages of a kernel that may wait
UNNAMED, NAME_SECONDS = 3, 2
NOTES = 10000  # ids of cells that are kept

CAUGHT = ("stream", "display_data", "execute_result", "error", "clear_output")
RECORDED = (*CAUGHT, "update_display_data")

# The address of a kernel's iopub, the key of its messages, and its CurveZMQ keys, if it has some.
Connection = Tuple[str, ...]


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
        return process_start(self.pid) == self.start != ""

    def await_start(self) -> bool:
        """Wait until the server has written its runtime file."""
        until = time.monotonic() + START_SECONDS
        while self.runs and time.monotonic() < until:
            for kind in ("jpserver", "nbserver"):
                path = f"{self.runtime}/{kind}-{self.pid}.json"
                with suppress(OSError, ValueError, RecursionError):
                    self.facts = read_json(path)
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
            named = [(own["kernel"]["id"], own["path"]) for own in sessions if own.get("kernel")]
            self.notebooks.update({str(ident): str(path) for ident, path in named})
            self.kernels = [own["id"] for own in self.get("api/kernels")]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self.refuses = True
        except (OSError, http.client.HTTPException):
            pass  # it ends

    def get(self, path: str) -> Any:
        """Return the answer of the server, without counting as activity."""
        connection = self.connection()
        token = self.facts.get("token")
        headers = {"Host": f"localhost:{self.facts['port']}"}
        if token:
            headers["Authorization"] = "token " + token
        url = quote(self.facts["base_url"]) + path + "?no_track_activity=1"
        try:
            if connection.sock is None:
                connection.connect()
            if not self.runs:  # another program may have its port by now, and gets no token
                raise OSError("the server has ended")
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
        named, port = self.facts.get("hostname", ""), self.facts["port"]
        host = named if re.fullmatch(r"[0-9.]+|::1", named) and named != ANY else "127.0.0.1"
        if self.facts.get("secure"):
            context = ssl.create_default_context()
            # On this machine its port is its own for as long as it runs, and no wire is between.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return http.client.HTTPSConnection(host, port, timeout=10, context=context)
        return http.client.HTTPConnection(host, port, timeout=10)


class Cells:
    """The ids of cells by request, as the server's process notes them; see `cell_notes`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.known: Dict[str, str] = {}
        self.file: Any = None

    def of(self, request: Optional[str]) -> Optional[str]:
        """Return the cell of a request, `None` where it was not told."""
        if request is None or request in self.known:
            return self.known.get(request or "")
        with suppress(OSError, ValueError):
            if self.file is None:
                self.file = open(self.path, encoding="utf-8")  # noqa: SIM115
            for line in self.file:
                noted, _, cell = line.strip().partition(" ")
                self.known[noted] = cell
        while len(self.known) > NOTES:
            del self.known[next(iter(self.known))]
        return self.known.get(request)


class Surroundings(NamedTuple):
    """What the kernels of a server share."""

    context: Any  # zmq.Context
    poller: Any  # zmq.Poller
    server: RecordedServer
    cells: Cells
    store: Store


class RecordedKernel:
    """A kernel's published messages."""

    def __init__(self, ident: str, around: Surroundings, connection: Connection) -> None:
        self.id = ident
        self.around = around
        self.connection = connection
        self.begun = False  # whether a process of this kernel was seen to start
        self.unnamed = 0  # executions without a notebook, as those of a console
        self.ending = ""
        self.gone: Optional[float] = None  # when its connection file was deleted
        self.alive = True
        self.busy: Optional[Tuple[str, float]] = None  # the request that runs, since when
        self.seen: Dict[str, str] = {}  # requests that run, with their status so far
        self.stream: Optional[Dict[str, Any]] = None  # a record that may grow
        self.catching: Dict[str, str] = {}  # Output widgets, with the request whose output they get
        self.parent: Tuple[bytes, Dict[str, Any]] = (b"", {})
        self.open()

    def open(self) -> None:
        """Subscribe to all that the kernel publishes."""
        import zmq

        address, key, public, secret = self.connection
        self.mac = hmac.new(key.encode("utf-8", "replace"), digestmod="sha256") if key else None
        self.socket: Any = self.around.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, WAITING)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.monitor: Any = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            if public:
                self.socket.curve_publickey = self.socket.curve_serverkey = public.encode()
                self.socket.curve_secretkey = secret.encode()
            self.socket.connect(address)
        except (zmq.ZMQError, ValueError) as failure:  # any program may write such a file
            print("no kernel of Jupyter's:", failure, file=sys.stderr, flush=True)
        for each in (self.socket, self.monitor):
            self.around.poller.register(each, zmq.POLLIN)

    def close(self) -> None:
        for each in (self.socket, self.monitor):
            self.around.poller.unregister(each)
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)

    def read(self) -> int:
        """Record the messages that have come, and return how many."""
        import zmq

        count = 0
        with suppress(zmq.Again):
            while count < BATCH:
                self.take(self.socket.recv_multipart(zmq.NOBLOCK))
                count += 1
        with suppress(zmq.Again):
            while count < BATCH:  # the end of the connection comes after its last message
                self.monitor.recv_multipart(zmq.NOBLOCK)
                self.leave()
        self.grown()
        return count

    def take(self, frames: List[bytes]) -> None:
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
                if kind == "execute_input":  # a page knows by it what it runs itself
                    content["client"] = as_text(parent, "session")
                self.record(kind, content, as_text(parent, "msg_id"), as_text(parent, "msg_type"))
            elif kind == "comm_msg" and b'"msg_id"' in parts[3]:
                self.catch(json.loads(parts[3].decode("utf-8", "replace")))
        except Exception as failure:  # noqa: BLE001 - a kernel may publish what it likes
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

    def catch(self, content: Dict[str, Any]) -> None:
        """Note that an Output widget begins or ends to get what a cell publishes."""
        widget, data = content["comm_id"], content["data"]
        if data.get("method") == "update" and "msg_id" in data["state"]:
            self.grown()
            self.catching.pop(widget, None)
            if data["state"]["msg_id"]:
                self.catching[widget] = data["state"]["msg_id"]

    def name(self) -> None:
        """Ask for the notebook's path, and wait a moment for the first one."""
        server = self.around.server
        unknown = self.id not in server.notebooks and self.unnamed < UNNAMED
        server.ask(again=unknown)
        if unknown and server.asking:
            self.unnamed += 1
            server.asking.join(NAME_SECONDS)

    def status(self, state: str, request: Optional[str], asked: Optional[str]) -> None:
        if state == "starting" or not self.alive:  # which may have come before the connection
            self.add("kernel", {"state": "restarted" if self.begun else "started"}, None)
            self.begun, self.alive, self.ending, self.busy = True, True, "", None
            self.seen.clear()
            self.around.server.ask(again=True)
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

    def end(self) -> None:
        """End the recording of a kernel that is gone, or whose server is."""
        self.ending = self.ending or "ended"
        self.leave()
        self.close()

    def add(self, kind: str, content: Dict[str, Any], request: Optional[str]) -> None:
        """Add a record, or add a stream's text to the record before."""
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
            "notebook": self.around.server.notebooks.get(self.id),
            "cell": self.around.cells.of(request),
            "request": request,
            "kind": kind,
            "content": content,
        }
        widgets = [widget for widget, of in self.catching.items() if of == request]
        if widgets and kind in CAUGHT:
            record["widget"] = widgets[-1]  # of a `with` in another the inner one
        if kind == "stream":  # it is written later, so it must be one that can be
            text = {"name": str(content["name"]), "text": str(content["text"])}
            self.stream = dict(record, content=text)
        else:
            self.around.store.add(record)

    def grown(self) -> None:
        """Finish the record of a stream; a long one becomes several."""
        if self.stream is not None:
            store, content = self.around.store, self.stream["content"]
            text = content["text"]
            while len(text) > store.part:
                end = text.rfind("\n", 0, store.part) + 1 or store.part
                store.add(dict(self.stream, content={**content, "text": text[:end]}))
                text = text[end:]
            store.add(dict(self.stream, content={**content, "text": text}))
            self.stream = None


def read_connection(path: str) -> Optional[Connection]:
    """Return the address and the key of a connection file, `None` if it is no such file."""
    try:
        facts = read_json(path)
        between = "-" if facts["transport"] == "ipc" else ":"
        ip, port = facts["ip"], facts["iopub_port"]
        keys = (str(facts.get(name) or "") for name in ("curve_publickey", "curve_secretkey"))
        return (f"{facts['transport']}://{ip}{between}{port}", str(facts["key"]), *keys)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def as_text(header: Dict[str, Any], name: str) -> Optional[str]:
    """Return a part of a header, `None` where it is no text."""
    value = header.get(name)
    return value if isinstance(value, str) else None


def read_json(path: str) -> Any:
    """Return the document of a file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def process_start(pid: int) -> str:
    """Return the start time of a process, empty if it has ended; see proc(5)."""
    return "".join(facts(pid)[19:20])
