"""Jupyter's own configuration of a server that jlr launches, whatever its age.

What each age understands on its command line differs, and to find out which one is there would
cost a start of Python. So all that differs goes into files: every age reads the one of its name,
and the command line has only what all have. The token, too, is made in there; one that is given
through the configuration is not repeated in the log.

JupyterLab 3 and 4 and Notebook 7 are extensions of jupyter_server (`ServerApp`); Notebook 6 is a
server itself (`NotebookApp`), and JupyterLab 2 an extension of that one.
"""

from __future__ import annotations

import json
import textwrap

LOOK_SECONDS = 60  # as often as Jupyter looks whether its server is idle

# See `launch`: what is there by now stays, and need not be looked through again.
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

# Notebook 7 and nbclassic read this file as well, and would take what is in it for their own.
_NOTEBOOK = f"""\
{_COLLECT}import secrets
from jupyter_core.application import JupyterApp
settings = get_config()
application = identity = settings.NotebookApp
if JupyterApp.instance().name == "jupyter-notebook":
"""


def files(base_url: str, idle_stop: int = 0) -> dict[str, str]:
    """Return what the configuration files hold, by name.

    Args:
        base_url: path below which the server serves, with both slashes.
        idle_stop: seconds without work after which kernels and then the server end, 0 for never.
    """
    common = "".join(f"{line}\n" for line in (*_common(base_url), *_idle_stop(idle_stop)))
    return {
        "jupyter_server_config.py": _SERVER + common,
        "jupyter_notebook_config.py": _NOTEBOOK + textwrap.indent(common, "    "),
    }


def _common(base_url: str) -> tuple[str, ...]:
    return (
        "identity.token = secrets.token_hex(24)",
        f"application.base_url = {json.dumps(base_url)}",
        # Bound to all addresses, Jupyter would accept any Host header: DNS rebinding.
        "application.allow_remote_access = False",
    )


def _idle_stop(seconds: int) -> tuple[str, ...]:
    """Return Jupyter's own culling: it knows best what works.

    A page that is open does not keep an idle kernel: it is left open overnight, and the GPU is
    what others wait for. A busy kernel is never ended, and neither is a terminal.
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
