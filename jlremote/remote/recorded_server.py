"""The Jupyter server whose kernels are recorded: its process and its REST API."""

import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional
from urllib.parse import quote

from jlremote.remote.orphans import facts

START_SECONDS = 120
ASK_SECONDS = 10  # between questions for the notebooks' paths
ANY = "0.0.0.0"  # noqa: S104 - it is compared with


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
        named = self.facts.get("hostname", "")
        host = named if re.fullmatch(r"[0-9.]+", named) and named != ANY else "127.0.0.1"
        if named == "::1":
            host = named
        if self.facts.get("secure"):
            context = ssl.create_default_context()
            # On this machine its port is its own for as long as it runs, and no wire is between.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return http.client.HTTPSConnection(
                host, self.facts["port"], timeout=10, context=context
            )
        return http.client.HTTPConnection(host, self.facts["port"], timeout=10)


def read_json(path: str) -> Any:
    """Return the document of a file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def process_start(pid: int) -> str:
    """Return the start time of a process, empty if it has ended; see proc(5)."""
    return "".join(facts(pid)[19:20])
