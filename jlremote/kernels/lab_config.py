"""Configuration of the JupyterLab that `jlr local lab` runs, for Jupyter: no more than it needs.

What a session's kernels send may be a program in that page, which can do what the server can. So
the server answers the paths that are listed here, and no others: terminals, converters, language
servers, Git, builds and the installation of extensions each run programs.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

OLDEST = 4
# Of a kernel. Tornado's own limit is 10 MiB: a longer one would end the WebSocket, and come again.
MOST_BYTES = 1 << 28

try:
    from jupyter_core.paths import is_hidden
    from jupyter_server.serverapp import ServerWebApplication
    from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints
    from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
    from jupyterlab import __version__  # type: ignore[import-untyped]
    from tornado import httpclient, httputil, web, websocket
except ImportError as failure:  # without these lines it would have terminals
    sys.exit(f"`jlr local lab` needs JupyterLab {OLDEST}: {failure}")

# The variable that names the descriptor of a pipe, or its handle, with the session's token.
PIPE = "JLR_LAB_PIPE"
_PAGE = {
    "buildCheck": False,
    "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True},
}
_ANSWERED = re.compile(
    r"(?:(?:api/(?:contents|events|kernels|kernelspecs|me|security|sessions|shutdown|status)"
    r"|files|kernelspecs|lab|login|logout|static)(?:/.*)?|api/?|favicon\.ico)?",
    re.DOTALL,
)
_REFUSED = re.compile(r"lab/+api/+(?!settings|themes|translations|workspaces)")


class Outside(web.HTTPError, OSError):
    """A link leads out of the folder; a listing skips it, as an `OSError`."""

    def __init__(self) -> None:
        super().__init__(404, "it is not in the folder")
        self.errno = errno.EACCES


class FolderContents(AsyncLargeFileManager):
    """The files of one folder; links to hidden files and out of the folder are refused."""

    def _get_os_path(self, path: str) -> str:
        real: str = super()._get_os_path(path)  # type: ignore[no-untyped-call]
        if is_hidden(_within(self.root_dir, real), os.path.realpath(self.root_dir)):
            raise Outside
        return real


class FolderCheckpoints(AsyncFileCheckpoints):
    """Copies of files in a hidden folder beside them; a link out of the folder is refused."""

    def checkpoint_path(self, checkpoint_id: str, path: str) -> str:
        real: str = super().checkpoint_path(checkpoint_id, path)  # type: ignore[no-untyped-call]
        _within(self.root_dir, real)
        return real


def _within(root: str, path: str) -> str:
    real = os.path.realpath(path)
    if not Path(real).is_relative_to(os.path.realpath(root)):
        raise Outside
    return real


def is_answered(path: str, base_url: str) -> bool:
    """Return whether the server answers requests for a path."""
    below = path.removeprefix(base_url)
    return bool(_ANSWERED.fullmatch(below)) and not _REFUSED.match(below)


_find_handler = ServerWebApplication.find_handler


def find_needed_handler(
    application: web.Application, request: httputil.HTTPServerRequest, **kwargs: Any
) -> Any:
    """Find the handler of a request, which is an error for paths that are not listed."""
    if is_answered(request.path, application.settings["base_url"]):
        return _find_handler(application, request, **kwargs)
    return application.get_handler_delegate(request, web.ErrorHandler, {"status_code": 404})


def configure(settings: Any) -> None:
    """Configure the server, its page and its client of the session; Jupyter calls this twice."""
    ServerWebApplication.find_handler = find_needed_handler  # type: ignore[method-assign,assignment]
    settings.ServerApp.terminals_enabled = False
    settings.ServerApp.contents_manager_class = FolderContents
    settings.ContentsManager.checkpoints_class = FolderCheckpoints
    settings.ServerApp.tornado_settings = {
        "page_config_data": _PAGE,
        "websocket_max_message_size": MOST_BYTES,
    }
    opened = partial(websocket.websocket_connect, max_message_size=MOST_BYTES)
    websocket.websocket_connect = opened
    settings.LabApp.extension_manager = "readonly"
    # The session must not lead it to other addresses, nor a proxy of the environment see it.
    client = "tornado.simple_httpclient.SimpleAsyncHTTPClient"
    httpclient.AsyncHTTPClient.configure(client, defaults={"follow_redirects": False})
    if pipe := os.environ.pop(PIPE, None):
        number = int(pipe)
        if sys.platform == "win32":  # a handle
            import msvcrt

            number = msvcrt.open_osfhandle(number, os.O_RDONLY)
        with os.fdopen(number) as read:
            settings.GatewayClient.auth_token = read.read()


def main(settings: Any) -> None:
    """Configure the server, or end it: Jupyter would go on without a configuration that fails."""
    if int(__version__.partition(".")[0]) < OLDEST:
        sys.exit(f"`jlr local lab` needs JupyterLab {OLDEST}, and this is {__version__}")
    try:
        configure(settings)
    except Exception as failure:  # noqa: BLE001  # Jupyter would only warn of it
        sys.exit(f"`jlr local lab` cannot configure JupyterLab: {failure!r}")


if "get_config" in globals():
    main(globals()["get_config"]())
