"""The kernel that `jlr exec` runs code in: a notebook's, or one that the session keeps for it.

Jupyter knows the latter by a path, as it knows that of a notebook, so the next command and other
laptops find it, and `jlr list` and `jlr output` name it.
"""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError
from jlremote.hosts.context import Context
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.kernels.remote_kernel import DEATHS

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


def of_notebook(typed: str, api: JupyterApi) -> Kernel:
    """Return the kernel of a notebook that was typed in full, or by its end.

    Raises:
        NotFound, Usage: no kernel runs for such a notebook, or kernels for several.
    """
    from jlremote.output.reading import chosen  # it loads much that no other kernel needs

    known = {each.notebook: each for each in reversed(api.kernels_with_paths())}
    starts = "its page starts one, which `jlr open` opens"
    return known[chosen(typed, known, "no kernel runs for", starts)]
