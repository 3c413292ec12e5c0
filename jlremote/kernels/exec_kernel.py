"""The kernel that `jlr exec` runs code in: a notebook's, or one that the session keeps for it.

Jupyter knows the latter by a path, as it knows that of a notebook, so the next command and other
laptops find it, and `jlr list` and `jlr output` name it.
"""

from __future__ import annotations

import shlex
from contextlib import suppress

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.kernels.remote_kernel import DEATHS
from jlremote.text import did_you_mean, listed, one_line

PATH = "jlr-exec"


def of_exec(api: JupyterApi, context: Context) -> Kernel:
    """Return the kernel of `jlr exec`, which is started if there is none."""
    known = _first(api)
    if known is not None and known.state not in DEATHS:
        return known
    with context.progress.step("Start a kernel"):
        if known is not None and known.state == "dead":
            api.end_kernel(known.id)
        started = api.start_kernel(path=PATH)
    known = _first(api)
    if known is None:
        raise JlrError("the kernel ended when it had begun", hint="`jlr logs` may say why")
    if known.id != started:  # another command was first
        with suppress(JlrError):
            api.end_kernel(started)
    return known


def _first(api: JupyterApi) -> Kernel | None:
    return next((each for each in api.kernels_with_paths() if each.notebook == PATH), None)


def of_notebook(typed: str, api: JupyterApi, place: str) -> Kernel:
    """Return the kernel of a notebook that was typed in full, or by its end.

    Raises:
        NotFound, Usage: no kernel runs for such a notebook, or kernels for several.
    """
    known = {each.notebook: each for each in reversed(api.kernels_with_paths())}
    matches = [path for path in known if path == typed]
    matches = matches or [path for path in known if f"/{path}".endswith(f"/{typed}")]
    if len(matches) == 1:
        return known[matches[0]]
    if matches:
        names = listed([f"`{one_line(path)}`" for path in matches], 4)
        raise Usage(f"several notebooks are called `{typed}`", hint=f"type more of {names}")
    opens = f"`jlr open {place} {shlex.quote(typed)}` opens it, and its page starts a kernel"
    raise NotFound(f"no kernel runs for `{typed}`", hint=did_you_mean(typed, known) or opens)
