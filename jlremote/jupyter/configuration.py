"""Configuration files for a server that jlr launches, of any version.

JupyterLab 3 and 4 and Notebook 7 are extensions of jupyter_server (`ServerApp`); Notebook 6 is a
server itself (`NotebookApp`), and JupyterLab 2 an extension of that one.
"""

from __future__ import annotations

import importlib.resources
import json
import textwrap

from jlremote.output import recorder

# The first port that Jupyter tries on a host without containers: beyond the local ports of jlr, as
# both ends may be one machine, and not 8888, which every Jupyter tries.
HOST_PORT = 8988
JUPYTER_PORT = 8888  # its default, which alone may stand beside a socket
LOOK_SECONDS = 60  # Jupyter checks as often that its server is idle

# See `launch`: what exists by now stays, so collections can leave it out.
_COLLECT = """\
import gc
gc.freeze()
gc.enable()
"""

_SERVER = f"""\
{_COLLECT}import secrets
import jupyter_server
settings = get_config()
application = settings.ServerApp
identity = settings.IdentityProvider if jupyter_server.version_info[0] >= 2 else application
"""

_RESUMPTION = (importlib.resources.files(__package__) / "in_server/resumption.py").read_text(
    "utf-8"
)
_RESUMPTION_FILE = "jlr_resumption.py"
_USE = (importlib.resources.files(__package__) / "in_server/use.py").read_text("utf-8")
_USE_FILE = "jlr_use.py"
_KEEP = f"""\
if jupyter_server.version_info[0] >= 2:
    import pathlib
    part = {{"__name__": "jlr_use"}}
    try:
        exec(pathlib.Path(__file__).with_name("{_USE_FILE}").read_text("utf-8"), part)
        part["keep"](SECONDS)
    except (ImportError, AttributeError):
        pass
"""
_BUFFERS = (importlib.resources.files(__package__) / "in_server/buffers.py").read_text("utf-8")
_BUFFERS_FILE = "jlr_buffers.py"
_PAGE_REQUESTS = (importlib.resources.files(__package__) / "in_server/page_requests.py").read_text(
    "utf-8"
)
_PAGE_REQUESTS_FILE = "jlr_page_requests.py"
_OUTSIDE = (importlib.resources.files(__package__) / "in_server/outside.py").read_text("utf-8")
_OUTSIDE_FILE = "jlr_outside.py"
_PARTS_OF_EACH = f"""\
import pathlib
for file, act in (
    ("{_BUFFERS_FILE}", "keep"),
    ("{_RESUMPTION_FILE}", "resume"),
    ("{_PAGE_REQUESTS_FILE}", "ask_again"),
    ("{_OUTSIDE_FILE}", "say_nothing_outside"),
):
    part = {{"__name__": file.partition(".")[0]}}
    try:
        exec(pathlib.Path(__file__).with_name(file).read_text("utf-8"), part)
        part[act]("PACKAGE")
    except (ImportError, AttributeError):
        pass
"""
_RESUME = f"""\
if jupyter_server.version_info[0] >= 2:
    import pathlib
    part = {{"__name__": "jlr_resumption"}}
    try:
        exec(pathlib.Path(__file__).with_name("{_RESUMPTION_FILE}").read_text("utf-8"), part)
        connection = application.kernel_websocket_connection_class = part["ResumableConnection"]
    except ImportError:
        pass
"""
_NOTE_CELLS = """\
    else:
        connection.cells = os.path.dirname(os.environ["JUPYTER_RUNTIME_DIR"]) + "/output/cells"
"""

# Jupyter's own are 30 s and 90 s: for so long it would write into a connection that is dead. On a
# line with 2 s of latency and losses, the answers come more than 10 s apart.
_PING = "application.tornado_settings.update(dict(ws_ping_interval=5000, ws_ping_timeout=15000))"

# What the image or the person has set for another way to the server. The link encrypts, and a
# browser would warn of a certificate that is not of the forward's name.
_REACHED_BY_US = (
    "application.certfile = application.keyfile = application.client_ca = application.sock = ''\n"
    "application.ssl_options = {}"
)

# Notebook 7 and nbclassic read this file, too, and must not apply it.
_NOTEBOOK = f"""\
{_COLLECT}import secrets
from jupyter_core.application import JupyterApp
settings = get_config()
application = identity = settings.NotebookApp
if JupyterApp.instance().name == "jupyter-notebook":
"""


# Other users can neither enter the socket's folder nor take its place. It stays a port where
# Jupyter is too old (before jupyter_server 1.0 and Notebook 6.1), the path is too long for a socket
# or the file system has none, and for a server that is started in a terminal of this one.
_SOCKET = f"""\
import os
import socket
from jupyter_core.application import JupyterApp
application.port = {HOST_PORT}
path = os.environ["JUPYTER_RUNTIME_DIR"] + "/SOCKET"
try:
    with socket.socket(socket.AF_UNIX) as trial:
        trial.bind(path)
    os.unlink(path)
    if hasattr(JupyterApp.instance(), "sock"):
        application.sock = path
        application.port = {JUPYTER_PORT}
    ELSE
except OSError as failure:
    FAILED
"""
_OR_PORT = {"ELSE\n": "pass\n", "FAILED\n": "pass\n"}
# On a cluster's node all users of the cluster could connect to a port.
_OR_NOTHING = {
    "ELSE\n": "else:\n        raise SystemExit('this Jupyter cannot listen on a unix socket: jlr "
    "needs jupyter_server 1.0 or Notebook 6.1, or `--reach tcp`')\n",
    "FAILED\n": "raise SystemExit(f'cannot make the unix socket {path}: {failure}; "
    "`--reach tcp` needs none')\n",
}


def files(
    name: str,
    hostname: str,
    idle_stop: int = 0,
    *,
    socket: str | None = None,
    or_port: bool = True,
    record: bool = True,
) -> dict[str, str]:
    """Return the contents of the configuration files, by name.

    `name` is the session's, which its `base_url` begins with, and `hostname` the one that browsers
    have for it. After `idle_stop` seconds without work kernels and then the server end, 0 for
    never. The server listens on the unix `socket` of that name where that is possible, else on a
    port, or not at all. With `record` it starts the recorder of its kernels.
    """
    settings = (
        "identity.token = secrets.token_hex(24)",
        # A page of another session must not guess it: it could have cookies for that path sent.
        f"application.base_url = {json.dumps(f'/{name}-')} + secrets.token_hex(8) + '/'",
        # Jupyter that listens on all addresses would accept any Host header: DNS rebinding.
        "application.allow_remote_access = False",
        f"application.local_hostnames = ['localhost', {json.dumps(hostname)}]",
        _REACHED_BY_US,
        _PING,
        *_idle_stop(idle_stop),
    )
    common = "".join(f"{line}\n" for line in settings)
    if socket is not None:
        common += _SOCKET.replace("SOCKET", socket)
        for part, text in (_OR_PORT if or_port else _OR_NOTHING).items():
            common = common.replace(part, text)
    keep = ""
    own = {
        _RESUMPTION_FILE: _RESUMPTION,
        _BUFFERS_FILE: _BUFFERS,
        _PAGE_REQUESTS_FILE: _PAGE_REQUESTS,
        _OUTSIDE_FILE: _OUTSIDE,
    }
    if idle_stop:
        own[_USE_FILE], keep = _USE, _KEEP.replace("SECONDS", str(idle_stop))
    if record:
        common += recorder.BEGIN
        own[recorder.PROGRAM_FILE] = recorder.program()
    return own | {
        "jupyter_server_config.py": _SERVER
        + common
        + _PARTS_OF_EACH.replace("PACKAGE", "jupyter_server")
        + _RESUME
        + (_NOTE_CELLS if record else "")
        + keep,
        "jupyter_notebook_config.py": _NOTEBOOK
        + textwrap.indent(common + _PARTS_OF_EACH.replace("PACKAGE", "notebook"), "    "),
    }


def _idle_stop(seconds: int) -> tuple[str, ...]:
    """Return the settings of Jupyter's own culling, which knows best what is idle.

    An open page does not keep an idle kernel: pages stay open overnight while others wait for the
    GPU. Busy kernels and terminals are never ended, and `in_server/use.py` adds what else counts.
    """
    if not seconds:
        return ()
    return (
        f"settings.MappingKernelManager.cull_idle_timeout = {seconds}",
        f"settings.MappingKernelManager.cull_interval = {min(seconds, LOOK_SECONDS)}",
        "settings.MappingKernelManager.cull_connected = True",
        "settings.MappingKernelManager.cull_busy = False",
        f"application.shutdown_no_activity_timeout = {seconds}",
    )
