"""Jupyter's REST API, through the local end of the forward.

The token goes into an `Authorization` header, which also skips XSRF and origin checks.
Source: jupyter_server's REST API, https://jupyter-server.readthedocs.io/en/latest/developers/rest-api.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote

from jlremote.errors import JlrError, Unreachable
from jlremote.jupyter.server import Server

ANSWER_SECONDS = 30.0
LOCALHOST = "127.0.0.1"


class NoAnswer(Unreachable):
    """The server did not answer through the forward."""


class AccessRefused(JlrError):
    """The server wants a password, which the user types in the browser."""


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


@dataclass(frozen=True)
class JupyterApi:
    """A client of the server behind a local port, which it calls `hostname` in its requests."""

    local_port: int
    server: Server
    timeout: float = ANSWER_SECONDS
    hostname: str = LOCALHOST

    def status(self) -> dict[str, Any]:
        """Return `/api/status`; it needs the token, so an answer proves which server answers."""
        answer: dict[str, Any] = self._request("GET", "api/status")
        return answer

    def accepted_name(self, hostname: str) -> str:
        """Return the name under which the server answers: `hostname`, or else 127.0.0.1.

        A server of another configuration refuses names that it does not know (DNS rebinding).
        """
        named = replace(self, hostname=hostname)
        try:
            named.status()
        except NoAnswer:
            raise
        except AccessRefused:  # it asks for a password under any name, but tells its version
            return hostname if named._tells_version() else self.hostname
        except JlrError:
            self.status()
            return self.hostname
        return hostname

    def _tells_version(self) -> bool:
        try:
            self._request("GET", "api")
        except (JlrError, ValueError):
            return False
        return True

    def access(self) -> Access:
        """Return what the server asks for; its own file does not know every kind of password."""
        if self.server.token:
            return Access.TOKEN
        try:
            self.status()
        except AccessRefused:
            return Access.PASSWORD
        return Access.OPEN

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the server's kernels."""
        # Without this `jlr status --watch` would keep an idle server alive.
        kernels = self._request("GET", "api/kernels?no_track_activity=1")
        sessions = self._request("GET", "api/sessions?no_track_activity=1")
        paths = {session["kernel"]["id"]: session["path"] for session in sessions}
        return tuple(
            Kernel(
                paths.get(kernel["id"], kernel["name"]),
                kernel["execution_state"],
                kernel["last_activity"],
            )
            for kernel in kernels
        )

    def start_kernel(self) -> str:
        """Start a kernel of the default kind, without a notebook, and return its id."""
        return str(self._request("POST", "api/kernels", {})["id"])

    def end_kernel(self, kernel: str) -> None:
        """End a kernel."""
        self._request("DELETE", f"api/kernels/{kernel}")

    def shut_down(self) -> None:
        """Ask the server to end, with its kernels and terminals."""
        self._request("POST", "api/shutdown")

    @property
    def headers(self) -> dict[str, str]:
        """The headers that authenticate a request."""
        return {"Authorization": f"token {self.server.token}"} if self.server.token else {}

    def _request(self, method: str, path: str, content: Any = None) -> Any:
        connection = HTTPConnection(LOCALHOST, self.local_port, timeout=self.timeout)
        text = None if content is None else json.dumps(content)
        headers = {"Host": f"{self.hostname}:{self.local_port}", **self.headers}
        try:
            connection.request(method, quote(self.server.base_url) + path, text, headers=headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            raise NoAnswer(
                f"no answer from Jupyter through 127.0.0.1:{self.local_port}: "
                f"{error or type(error).__name__}"
            ) from error
        finally:
            connection.close()
        # Its file says `password: false` even if an identity provider asks for one.
        if response.status in (302, 401, 403) and not self.server.token:
            raise AccessRefused("Jupyter wants its password")
        if response.status >= 300:
            raise JlrError(f"Jupyter answers {response.status} {response.reason} to `{path}`")
        return json.loads(body) if body else None
