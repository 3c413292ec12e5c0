"""Sessions whose container is gone, does not run, or has lost its GPUs.

Most imports happen where they are needed: `again` is loaded by commands that use a running session.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from jlremote.errors import JlrError, NotFound
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.wire.states import State

if TYPE_CHECKING:
    from jlremote.place.host.contract import Host
    from jlremote.place.runtimes.runtime import Container, Runtime


def again(record: SessionRecord, state: str = "", called: str = "") -> str:
    """Return the hint for a session in a state; `called` is the present name of its container."""
    if state == State.PAUSED:
        return f"`{record.runtime} unpause {called or record.name}` on the host resumes it"
    if state == State.RESTARTING:
        where = shlex.quote(f"{record.host}/{record.name}")
        return f"`jlr logs {where} --container` has what it wrote before it ended"
    if record.runtime.startswith("slurm"):  # `slurm apptainer` in an image, which its home defines
        return f"`jlr restart {record.host}/{record.name}` starts it again"
    more = " --runtime none" if record.runtime == "none" else ""
    if state == State.CONTAINER_GONE and record.image:
        more = f" --image {shlex.quote(record.image)}"
    return f"`jlr start {record.host} {record.name}{more}` starts it again"


def running(record: SessionRecord, runtime: Runtime, container: Container | None) -> Container:
    """Return a session's container, which must run; see `survey.refuse_halted`."""
    from jlremote.jupyter.survey import refuse_halted

    try:
        return refuse_halted(record.host, record.name, runtime, container)
    except NotFound as halted:
        if halted.state == State.CONTAINER_GONE:
            halted.hint = again(record, State.CONTAINER_GONE)
        raise


def check(host: Host, record: SessionRecord) -> None:
    """Ask the host for a session's container, which must run, if it has one."""
    from jlremote.place.runtimes.table import runtime_of

    runtime = runtime_of(record)
    if runtime.has_containers:
        running(record, runtime, container_of(host, runtime, record))


def container_of(host: Host, runtime: Runtime, record: SessionRecord) -> Container | None:
    """Return a session's container as it is right now, `None` if it was removed."""
    return runtime.read(record.name, host.run(runtime.describe(record.name)))


def gpu_fault(host: Host, record: SessionRecord) -> JlrError | None:
    """Return why a session's container has lost its GPUs while it ran, `None` if it has not."""
    from jlremote.place.host.contract import run_script
    from jlremote.place.runtimes.engine import engine_gpus
    from jlremote.place.runtimes.table import runtime_of

    if record.gpus is None or not (runtime := runtime_of(record)).has_containers:
        return None
    restart = runtime.shown("restart", record.name)
    with suppress(JlrError):
        checked = run_script(host, runtime.inside(record.name, engine_gpus.FAULT_CHECK))
        return engine_gpus.gpu_fault(checked.stdout, record.name, restart)
    return None
