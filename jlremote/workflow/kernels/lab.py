"""`jlr lab`: the JupyterLab of this laptop, whose kernels are those of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from urllib.parse import quote

from jlremote.errors import JlrError
from jlremote.storage import sessions
from jlremote.workflow.host.context import Context
from jlremote.workflow.session.open import answering

# A page's kernels are to come back after any loss, and Jupyter gives up after five tries.
_RECONNECTS = {"JUPYTER_GATEWAY_RETRY_MAX": "100000", "JUPYTER_GATEWAY_RETRY_INTERVAL_MAX": "3"}


def lab(selector: str | None, words: Sequence[str], context: Context) -> int:
    """Become the JupyterLab of this laptop, with these arguments; return its exit code.

    The token is in the environment of that process alone.

    Raises:
        NotFound: there is no such session, or it does not run.
        JlrError: JupyterLab is not installed here, or the session's Jupyter wants a password.
    """
    command = (*_jupyterlab(), *words)
    record, forward, _ = answering(selector, context)
    server, place = forward.server, f"{record.host}/{record.name}"
    if server.password and not server.token:
        raise JlrError(
            f"the Jupyter of `{place}` asks for a password, which no other Jupyter can be told",
            hint=f"end it and run `jlr start {record.host} {record.name}`: jlr's own has a token",
        )
    sessions.save(record.used_now())
    context.progress.note(f"files are those of {os.getcwd()}, kernels those of `{place}`")  # noqa: PTH109
    environment = {
        **os.environ,
        **_RECONNECTS,
        "JUPYTER_GATEWAY_URL": f"http://127.0.0.1:{forward.local_port}{quote(server.base_url)}",
        "JUPYTER_GATEWAY_AUTH_TOKEN": server.token,
    }
    if sys.platform != "win32":  # there the shell would not wait for it
        os.execve(command[0], command, environment)  # noqa: S606  # with its terminal and signals
    return subprocess.call(command, env=environment)


def _jupyterlab() -> tuple[str, ...]:
    """Return the command of the JupyterLab on the PATH, or else of jlr's own environment."""
    if found := shutil.which("jupyter-lab"):
        return (found,)
    if find_spec("jupyterlab") is not None:
        return (sys.executable, "-m", "jupyterlab")
    raise JlrError(
        "there is no JupyterLab on this machine",
        hint="`pip install jupyterlab` in the environment that you work in",
    )
