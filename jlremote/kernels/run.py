"""The process of one kernel, which a client of Jupyter's starts by its kernel spec."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jlremote.errors import JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.jupyter.api import JupyterApi
from jlremote.kernels.bridge import Bridge
from jlremote.kernels.local_ports import LocalPorts
from jlremote.kernels.remote_kernel import RemoteKernel
from jlremote.sessions.open import answering
from jlremote.text import listed, one_line

# A client kills a kernel that has not ended by then, after five seconds.
_END_SECONDS = 4.0
# How long the second process tries to reach a host that is away.
_AWAY_SECONDS = 600.0
_PAUSE_SECONDS = 5.0


def run(
    selector: str, kind: str, connection_file: Path, ender: tuple[str, ...], context: Context
) -> None:
    """Start a kernel of a session, and serve it at the ports of a connection file.

    `ender` is the command that ends the kernel whose id follows it, once its stdin has ended.

    Raises:
        NotFound: there is no such session, or the kernel has ended by itself.
        JlrError: the kernel cannot be started.
    """
    ports = LocalPorts(connection_file)

    def reach() -> JupyterApi:
        _, forward, _ = answering(selector, context)
        return JupyterApi(forward.local_port, forward.server)

    kernel = RemoteKernel(_started(reach(), kind, selector), reach, ports.wake)
    bridge = Bridge(ports, kernel)
    bridge.heed_signals()
    with _ended_by((*ender, kernel.id)):
        try:
            bridge.serve()
        finally:
            ports.close()


def _started(api: JupyterApi, kind: str, selector: str) -> str:
    """Start a kernel and return its id; say which kinds there are, if there is none of that one."""
    try:
        return api.start_kernel(kind)
    except JlrError:
        known = api.kernel_specs()
        if kind in known:
            raise
    there = listed([f"`{one_line(name)}`" for name in known], 8) or "none"
    raise NotFound(
        f"`{selector}` has no kernel `{one_line(kind)}` any more; there is {there}",
        hint=f"`jlr kernels install {selector}` installs those that it has",
    )


@contextmanager
def _ended_by(ender: tuple[str, ...]) -> Iterator[None]:
    """Have another process end the kernel when this one ends, whatever ends it."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        ender, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


def end(selector: str, kernel: str, context: Context, wait: Callable[[], object]) -> None:
    """End a kernel of a session after `wait`; try for a while if the host is away."""
    wait()
    deadline = time.monotonic() + _AWAY_SECONDS
    while time.monotonic() < deadline:
        try:
            _, forward, _ = answering(selector, context)
            JupyterApi(forward.local_port, forward.server).end_kernel(kernel)
        except NotFound:
            return
        except JlrError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return
