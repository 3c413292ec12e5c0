"""Configuration files for a server that jlr launches, of any version.

JupyterLab 3 and 4 and Notebook 7 are extensions of jupyter_server (`ServerApp`); Notebook 6 is a
server itself (`NotebookApp`), and JupyterLab 2 an extension of that one.
"""

from __future__ import annotations

import importlib.resources
import json
import textwrap

from jlremote.jupyter import recorder
from jlremote.remote import sending

# The first port that Jupyter tries on a host without containers: beyond the local ports of jlr, as
# both ends may be one machine, and not 8888, which every Jupyter tries.
HOST_PORT = 8988

_SERVER = """\
import secrets
import jupyter_server
settings = get_config()
application = settings.ServerApp
identity = application
if jupyter_server.version_info[0] >= 2:
    identity = settings.IdentityProvider
    # One of the image may not take the token, but a header of a proxy that is not there.
    application.identity_provider_class = "jupyter_server.auth.identity.PasswordIdentityProvider"
"""

# What each server gets, as the modules of `in_server` and the functions that they begin with.
_OF_EACH = (
    ("resumption", "resume"),
    *(("pages", act) for act in ("limit_pages", "ask_again", "say_nothing_outside")),
)
_PARTS = """\
import os
import pathlib
import sys
begun = vars(sys).setdefault("jlr_begun", set())  # Jupyter may read its configuration twice
for file, act, argument in (
PARTS):
    if (file, act) in begun:
        continue
    begun.add((file, act))
    part = {"__name__": file[:-3]}
    try:
        exec(pathlib.Path(__file__).with_name(file).read_text("utf-8"), part)
        part[act](argument)
    except (ImportError, AttributeError):
        pass
"""
_RECORDS = 'os.path.dirname(os.environ["JUPYTER_RUNTIME_DIR"]) + "/output'
# The script of `reloads` finds notebooks by the application.
_EXPOSED = """\
for name in ("LabApp", "JupyterNotebookApp"):
    settings[name].expose_app_in_browser = True
"""

# In milliseconds. Jupyter looks with each ping whether the last answer is older than the limit. So
# a page that stands still for less is never thrown out, as on a laptop that is short of memory. (A
# warning of tornado's, that the limit cannot be longer than the interval, is of its own pings: it
# takes these for seconds, and has sent none.)
PING_INTERVAL, PING_LIMIT = 10_000, 40_000
# Tornado's limit is 10 MiB: a longer message, as an answer to `input()`, ends the WebSocket.
_WEBSOCKETS = (
    f"application.tornado_settings.update(dict(ws_ping_interval={PING_INTERVAL}, "
    f"ws_ping_timeout={PING_LIMIT}, websocket_max_message_size={1 << 28}))"
)

# What the image or the person has set for another way to the server. The link encrypts, and a
# browser would warn of a certificate that is not of the forward's name.
_REACHED_BY_US = (
    "application.certfile = application.keyfile = application.client_ca = application.sock = ''\n"
    "application.ssl_options = {}"
)

# Jupyter's own culling knows best what is idle. An open page does not keep an idle kernel: pages
# stay open overnight while others wait for the GPU. Busy kernels and terminals are never ended, and
# `in_server/newer.py` adds what else counts.
_IDLE_STOP = """\
settings.MappingKernelManager.cull_idle_timeout = {0}
settings.MappingKernelManager.cull_interval = {1}
settings.MappingKernelManager.cull_connected = True
settings.MappingKernelManager.cull_busy = False
application.shutdown_no_activity_timeout = {0}
"""

# Notebook 7 and nbclassic read this file, too, and must not apply it.
_NOTEBOOK = """\
import secrets
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
        application.port = 8888  # its default, which alone may stand beside a socket
    elif not OR_PORT:
        raise SystemExit("this Jupyter cannot listen on a unix socket: jlr needs jupyter_server "
                         "1.0 or Notebook 6.1, or `--reach tcp`")
except OSError as failure:
    if not OR_PORT:
        raise SystemExit(f"cannot make the unix socket {{path}}: {{failure}}; "
                         "`--reach tcp` needs none")
"""


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

    `name` is the session's, `hostname` the one that browsers have for it, and `idle_stop` the
    seconds without work after which kernels and then the server end, 0 for never. The server
    listens on the unix `socket` of that name where that is possible, else on a port (`or_port`).
    With `record` it starts the recorder of its kernels.
    """
    settings = (
        "identity.token = secrets.token_hex(24)",
        # A page of another session must not guess it: it could have cookies for that path sent.
        f"application.base_url = {json.dumps(f'/{name}-')} + secrets.token_hex(8) + '/'",
        # Jupyter that listens on all addresses would accept any Host header: DNS rebinding.
        "application.allow_remote_access = False",
        f"application.local_hostnames = ['localhost', {json.dumps(hostname)}]",
        _REACHED_BY_US,
        _WEBSOCKETS,
    )
    common = "".join(f"{line}\n" for line in settings)
    if idle_stop:
        common += _IDLE_STOP.format(idle_stop, min(idle_stop, 60))  # it looks at itself as often
    if socket is not None:
        # On a cluster's node all users of the cluster could connect to a port.
        common += _SOCKET.replace("SOCKET", socket).replace("OR_PORT", str(or_port))
    ours = [(module, act, '"PACKAGE"') for module, act in _OF_EACH]
    own, newer = {}, []
    if record:
        common += recorder.BEGIN + _EXPOSED
        own[recorder.PROGRAM_FILE] = sending.program(recorder.PROGRAM)
        newer = [("newer", "note_cells", f'{_RECORDS}/cells"'), ("reloads", "show", f'{_RECORDS}"')]
    if idle_stop:
        newer.append(("newer", "keep", str(idle_stop)))
    for module, *_ in (*ours, *newer):
        file = importlib.resources.files(__package__) / f"in_server/{module}.py"
        own[f"jlr_{module}.py"] = file.read_text("utf-8")
    old = textwrap.indent(common + _run(ours).replace("PACKAGE", "notebook"), "    ")
    new = _SERVER + common + _run(ours).replace("PACKAGE", "jupyter_server")
    if newer:
        new += "if jupyter_server.version_info[0] >= 2:\n" + textwrap.indent(_run(newer), "    ")
    return own | {"jupyter_server_config.py": new, "jupyter_notebook_config.py": _NOTEBOOK + old}


def _run(parts: list[tuple[str, str, str]]) -> str:
    lines = (f'    ("jlr_{module}.py", "{act}", {argument}),\n' for module, act, argument in parts)
    return _PARTS.replace("PARTS", "".join(lines))
