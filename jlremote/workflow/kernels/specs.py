"""`jlr kernels`: kernel specs on this laptop for the kinds of kernels of a session."""

from __future__ import annotations

import shlex
from importlib.util import find_spec

from jlremote.errors import JlrError, NotFound
from jlremote.host.installation import beside_jlr
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.server import Server
from jlremote.kernels import specs
from jlremote.kernels.specs import KernelSpec
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.host.context import Context
from jlremote.workflow.selection import destruction
from jlremote.workflow.session.open import answering


def install(selector: str | None, context: Context, program: str) -> list[KernelSpec]:
    """Write a kernel spec for each kind of kernel of a session; `program` runs as the kernel.

    Raises:
        NotFound: there is no such session, or it does not run.
        JlrError: ZeroMQ is not installed here, or a spec cannot be written.
    """
    if find_spec("zmq") is None:
        raise JlrError(
            "kernels on this machine need `pyzmq`, which is not installed here",
            hint=f"`{beside_jlr('pyzmq')}`",
        )
    record, forward, _ = answering(selector, context)
    tell_limits(record, forward.server, context)
    found = JupyterApi(forward.local_port, forward.server).kernel_specs()
    for former in _of(f"{record.host}/{record.name}"):
        specs.remove(former)
    return [
        specs.write(record.host, record.name, kind, there, program) for kind, there in found.items()
    ]


def tell_limits(record: SessionRecord, server: Server, context: Context) -> None:
    """Say what a Jupyter leaves out that jlr did not launch: its limits are meant for pages."""
    if not server.ours:
        place = f"{record.host}/{record.name}"
        context.progress.note(
            f"jlr did not launch the Jupyter of `{place}`: it leaves out what a cell prints above "
            f"1 MB a second, which `jlr output {place}` shows, and takes no input above 10 MB"
        )


def remove(selector: str | None) -> list[KernelSpec]:
    """Remove the kernel specs of a session, which may be gone; return them.

    Raises:
        NotFound: there are none.
        Usage: it must be named, as those of several sessions are installed.
    """
    found = listed(selector)
    owners = dict.fromkeys(f"{spec.host}/{spec.session}" for spec in found)
    if len(owners) > 1:
        commands = [f"jlr kernels remove {shlex.quote(owner)}" for owner in owners]
        raise destruction.unnamed("kernels remove", len(owners), commands)
    if not found:
        raise NotFound(
            f"no kernels are installed for `{selector}`"
            if selector
            else "no kernels are installed",
            hint="`jlr kernels list` shows the installed ones",
        )
    for spec in found:
        specs.remove(spec)
    return found


def listed(selector: str | None) -> list[KernelSpec]:
    """Return the installed kernel specs, of one session or of all."""
    return specs.installed() if selector is None else _of(selector)


def _of(selector: str) -> list[KernelSpec]:
    names = {spec: (spec.session, f"{spec.host}/{spec.session}") for spec in specs.installed()}
    return [spec for spec, known in names.items() if selector in known]
