"""The kernel that `jlr exec` runs code in: a notebook's, or one of each kind that a session keeps.

Jupyter knows the latter by a path, as it knows that of a notebook, so the next command and other
laptops find it, and `jlr list` and `jlr output` name it.
"""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.kernels.remote_kernel import DEATHS
from jlremote.text import listed, one_line

PATH = "jlr-exec"


def path_of(kind: str | None) -> str:
    """Return the path by which Jupyter knows the kernel of `jlr exec`, `None` for the default."""
    return PATH if kind is None else f"{PATH}-{kind}"


def of_exec(api: JupyterApi, context: Context, kind: str | None = None) -> Kernel:
    """Return the kernel of `jlr exec`, which is started if there is none.

    Raises:
        NotFound: Jupyter has no kernel of that kind.
    """
    path = path_of(kind)
    known = _first(api, path)
    if known is not None and known.state not in DEATHS:
        return known
    if kind is not None and kind not in (kinds := api.kernel_specs()):
        there = listed([f"`{one_line(each)}`" for each in kinds], 8) or "none"
        raise NotFound(f"there is no kernel `{one_line(kind)}`", hint=f"Jupyter has {there}")
    with context.progress.step("Start a kernel"):
        if known is not None and known.state == "dead":
            api.end_kernel(known.id)
        started = api.start_kernel(kind, path=path)
    known = _first(api, path)
    if known is None:
        raise JlrError("the kernel ended when it had begun", hint="`jlr logs` may say why")
    if known.id != started:  # another command was first
        with suppress(JlrError):
            api.end_kernel(started)
    return known


def _first(api: JupyterApi, path: str) -> Kernel | None:
    return next((each for each in api.kernels_with_paths() if each.notebook == path), None)


def of_notebook(typed: str, api: JupyterApi) -> Kernel:
    """Return the kernel of a notebook that was typed in full, or by its end.

    Raises:
        NotFound, Usage: no kernel runs for such a notebook, or kernels for several.
    """
    from jlremote.output.reading import chosen  # it loads much that no other kernel needs

    known = {each.notebook: each for each in reversed(api.kernels_with_paths())}
    starts = "its page starts one, which `jlr open` opens"
    return known[chosen(typed, known, "no kernel runs for", starts)]
