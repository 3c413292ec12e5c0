"""Jupyter's REST API and the WebSockets of its kernels, through the local end of the forward.

The token goes into an `Authorization` header, which also skips XSRF and origin checks. Servers of
all versions speak JSON to a WebSocket that asks for no subprotocol.
Source: https://jupyter-server.readthedocs.io/en/latest/developers/rest-api.html and
https://jupyter-client.readthedocs.io/en/stable/messaging.html
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jlremote.errors import JlrError, NotFound, Unreachable
from jlremote.jupyter.endpoint import Server
from jlremote.place.host.addresses import LOCALHOST, has_own_addresses, own_address
from jlremote.place.host.contract import ODD, understood
from jlremote.text import listed, one_line
from jlremote.times import utc
from jlremote.untrusted import argument, document

if TYPE_CHECKING:
    from http.client import HTTPResponse

ANSWER_SECONDS = 30.0
MOST_BYTES = 8 << 20  # of an answer
MOST_MESSAGE_BYTES = 256 << 20  # of one message: a video is one, too
_KERNEL_ID = re.compile(r"[a-zA-Z0-9][\w-]{0,99}", re.ASCII)


class NoAnswer(Unreachable):
    """The server did not answer through the forward."""


class AccessRefused(JlrError):
    """The server wants a password, which the user types in the browser."""


class IdentityRefused(JlrError):
    """The server does not take the token that its file names."""


class Access(StrEnum):
    """The credential that a server asks for before it runs code."""

    TOKEN = "token"  # noqa: S105  # the word for it
    PASSWORD = "password"  # noqa: S105  # likewise
    OPEN = "open"  # nothing


@dataclass(frozen=True)
class Kernel:
    """The activity of a kernel."""

    notebook: str  # path of its notebook, or the kernel's name without one
    state: str  # `idle`, `busy`, `starting`, …
    last_activity: str  # ISO 8601, UTC
    id: str = ""
    running: int | None = None  # seconds of the cell that runs, if that is recorded

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"last_activity": utc(self.last_activity)}


@dataclass(frozen=True)
class JupyterApi:
    """A client of the server behind a local port."""

    local_port: int
    server: Server
    timeout: float = ANSWER_SECONDS
    hostname: str = LOCALHOST  # this machine's name in the requests
    address: str = LOCALHOST  # of the loopback, which is connected to

    def status(self) -> Any:
        """Return `/api/status`; it needs the token, so an answer proves which server answers."""
        return self._request("GET", "api/status")

    def accepted_name(self, hostname: str) -> str:
        """Return the name for a browser: `hostname`, else the port's own address, or 127.0.0.1.

        A server of another configuration refuses names that it does not know (DNS rebinding).
        """
        if replace(self, hostname=hostname)._accepts_its_name():
            return hostname
        own = own_address(self.local_port)
        with suppress(NoAnswer):
            if has_own_addresses() and replace(self, hostname=own, address=own)._accepts_its_name():
                return own
        with suppress(AccessRefused):
            self.status()
        return LOCALHOST

    def _accepts_its_name(self) -> bool:
        try:
            self.status()
        except NoAnswer:
            raise
        except AccessRefused:  # it asks for a password under any name, but tells its version
            with suppress(JlrError):
                self._request("GET", "api")
                return True
            return False
        except JlrError:
            return False
        return True

    def access(self) -> Access:
        """Return the credential that the server asks for; its file does not tell every password."""
        if self.server.token:
            return Access.TOKEN
        try:
            self.status()
        except AccessRefused:
            return Access.PASSWORD
        return Access.OPEN

    def lacks(self, path: str) -> bool:
        """Return whether the server says that there is no file or folder `path` below its root."""
        query = f"api/contents/{quote(path.strip('/'))}?content=0"
        return self._exchange("GET", query, None)[0].status == 404

    def kernels(self) -> tuple[Kernel, ...]:
        # Without this `jlr list --watch` would keep an idle server alive.
        kernels = self._request("GET", "api/kernels?no_track_activity=1")
        sessions = self._request("GET", "api/sessions?no_track_activity=1") if kernels else []
        with understood("Jupyter"):
            paths = {session["kernel"]["id"]: session["path"] for session in sessions}
            return tuple(_kernel(kernel, paths) for kernel in kernels)

    def terminals(self) -> int:
        """Return how many terminals are open; none where the server has no terminals."""
        with suppress(JlrError), understood("Jupyter"):
            return len(self._request("GET", "api/terminals?no_track_activity=1"))
        return 0

    def kernel_specs(self) -> dict[str, dict[str, Any]]:
        """Return the contents of each `kernel.json` of the server, by the name of the kind."""
        answer = self._request("GET", "api/kernelspecs")
        with understood("Jupyter"):
            kinds = answer["kernelspecs"].items()
            return {argument(str(name)): dict(content["spec"]) for name, content in kinds}

    def refuse_unknown(self, kind: str, hint: str) -> None:
        """Raise `NotFound` if the server has no kind of kernel of that name."""
        if kind not in (kinds := self.kernel_specs()):
            there = listed([f"`{one_line(each)}`" for each in kinds], 8) or "none"
            raise NotFound(f"Jupyter has no kernel `{one_line(kind)}`, but {there}", hint=hint)

    def kernels_with_paths(self) -> tuple[Kernel, ...]:
        """Return the kernels of notebooks, consoles and `jlr exec`, the first one first."""
        answer = self._request("GET", "api/sessions")
        with understood("Jupyter"):
            facts = [(session["kernel"], session["path"]) for session in answer]
            return tuple(_kernel(kernel, {_kernel_id(kernel): path}) for kernel, path in facts)

    def start_kernel(self, kind: str | None = None, path: str | None = None) -> str:
        """Start a kernel, by default of the default kind, and return its id.

        With `path` it is the kernel of that path, which is not started where there is one.
        """
        content: dict[str, Any] = {} if kind is None else {"name": kind}
        if path is None:
            answer = self._request("POST", "api/kernels", content)
        else:
            asked = {"path": path, "name": path, "type": "console", "kernel": content}
            answer = self._request("POST", "api/sessions", asked)
        with understood("Jupyter"):
            return _kernel_id(answer if path is None else answer["kernel"])

    def interrupt_kernel(self, kernel: str) -> None:
        self._request("POST", f"api/kernels/{kernel}/interrupt")

    def end_kernel(self, kernel: str) -> None:
        self._request("DELETE", f"api/kernels/{kernel}")

    def shut_down(self) -> None:
        """Ask the server to end, with its kernels and terminals."""
        self._request("POST", "api/shutdown")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.server.token}"} if self.server.token else {}

    def _request(self, method: str, path: str, content: Any = None) -> Any:
        response, body = self._exchange(method, path, content)
        # Its file says `password: false` even if an identity provider asks for one.
        if response.status in (302, 401, 403) and not self.server.token:
            raise AccessRefused("Jupyter asks for its password")
        if response.status >= 300:
            refused = IdentityRefused if response.status in (401, 403) else JlrError
            raise refused(f"Jupyter answers {response.status} {response.reason} to `{path}`")
        with understood("Jupyter"):
            return document(body) if body else None

    def _exchange(self, method: str, path: str, content: Any) -> tuple[HTTPResponse, bytes]:
        """Return the answer to a request, which must come whole within the timeout."""
        # It takes longer to load than all of ours, and most commands ask no server.
        from http.client import HTTPConnection, HTTPException

        silent = f"no answer from Jupyter through {self.address}:{self.local_port}"
        connection = HTTPConnection(self.address, self.local_port, timeout=self.timeout)
        text = None if content is None else json.dumps(content)
        headers = {"Host": f"{self.hostname}:{self.local_port}", **self.headers}
        try:
            connection.connect()
            with _limited(connection.sock, self.timeout) as late:
                url = quote(self.server.base_url) + path
                connection.request(method, url, text, headers=headers)
                response = connection.getresponse()
                body = response.read(MOST_BYTES + 1)
        except (OSError, HTTPException) as error:
            why = str(error) or type(error).__name__
            raise NoAnswer(f"{silent}: {why}") from error
        finally:
            connection.close()
        if late.is_set() or len(body) > MOST_BYTES:
            raise NoAnswer(f"{silent}: its answer does not end")
        return response, body


def _kernel_id(facts: dict[str, Any]) -> str:
    if not _KERNEL_ID.fullmatch(facts["id"]):  # it becomes part of paths, and an argument
        raise ValueError(f"`{facts['id']}` is not the id of a kernel")
    return str(facts["id"])


def _kernel(facts: dict[str, Any], paths: dict[str, Any]) -> Kernel:
    notebook = paths.get(facts["id"], facts["name"])
    state, last = str(facts["execution_state"]), str(facts["last_activity"])
    return Kernel(str(notebook), state, last, id=str(facts["id"]))


@contextmanager
def _limited(connected: socket.socket, seconds: float) -> Iterator[threading.Event]:
    """Shut a socket down after some seconds in all, as each byte begins its own timeout anew."""
    passed = threading.Event()

    def shut_down() -> None:
        passed.set()
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield passed
    finally:
        timer.cancel()


class NoWebSocket(Unreachable):
    """HTTP passes the forward, and WebSocket does not."""


class KernelSocket:
    """The WebSocket of one kernel."""

    def __init__(self, opened: Any) -> None:
        self._socket = opened

    def send(self, data: str | bytes) -> None:
        """Send a message; raise `NoWebSocket` if the connection is lost."""
        with _told_of_loss():
            self._socket.send(data, 0x2 if isinstance(data, bytes) else 0x1)

    def receive(self) -> str | bytes:
        """Return the next message; raise `NoWebSocket` if the connection is lost."""
        with _told_of_loss():
            self._socket.settimeout(None)
            data: str | bytes = self._socket.recv()
        if not data:
            raise NoWebSocket("Jupyter has closed the kernel's WebSocket")
        return data

    def close(self) -> None:
        with _told_of_loss(), suppress(OSError):
            self._socket.close(timeout=0)


@contextmanager
def _told_of_loss() -> Iterator[None]:
    from websocket import WebSocketException

    try:
        yield
    except (WebSocketException, OSError, *ODD) as error:
        reason = str(error) or type(error).__name__
        raise NoWebSocket(f"the kernel's WebSocket is lost: {reason}") from error


def open_socket(
    api: JupyterApi, kernel: str, session: str | None = None, received: int = 0
) -> KernelSocket:
    """Open a WebSocket, or raise `NoWebSocket`.

    Under the same `session` Jupyter sends what it kept since the last one, and a server that jlr
    launched goes on behind the messages that were `received` so far.
    """
    from websocket import WebSocket, WebSocketException, create_connection

    class Bounded(WebSocket):
        """Takes no more than `MOST_MESSAGE_BYTES` for one message: the library has no limit."""

        left = MOST_MESSAGE_BYTES

        def recv(self) -> Any:
            self.left = MOST_MESSAGE_BYTES
            return super().recv()

        def _recv(self, bufsize: int) -> bytes:
            data: bytes = super()._recv(bufsize)  # type: ignore[no-untyped-call]
            self.left -= len(data)
            if self.left < 0:
                raise WebSocketException(f"a message of over {MOST_MESSAGE_BYTES >> 20} MiB")
            return data

    query = "" if session is None else f"?session_id={session}&received={received}"
    base = f"{LOCALHOST}:{api.local_port}{quote(api.server.base_url)}"
    try:
        connected = socket.create_connection((LOCALHOST, api.local_port), api.timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened = create_connection(
            f"ws://{base}api/kernels/{kernel}/channels{query}",
            header=[f"{name}: {value}" for name, value in api.headers.items()],
            timeout=api.timeout,
            # Its own would go to a proxy of the environment: `http_no_proxy` counts only with one
            # that is given, https://github.com/websocket-client/websocket-client/issues/585
            socket=connected,
            suppress_origin=True,  # which limits the rate of output: see `in_server`
            skip_utf8_validation=True,  # it takes a second for 5 MB; decoding says the same
            redirect_limit=0,  # nor does the far side say where to connect
            class_=Bounded,
        )
    except (WebSocketException, OSError) as error:
        # The exception of a refused handshake quotes the whole answer.
        reason = str(error).partition("-+-+-")[0].strip() or type(error).__name__
        why = f"no WebSocket through {LOCALHOST}:{api.local_port}: {reason}"
        raise NoWebSocket(why, hint="`jlr logs` may say why") from error
    return KernelSocket(opened)
