"""A container's name on its host: the typed name, or what the naming template makes of it.

Another user's session is joined only on request.
"""

from __future__ import annotations

import re
import shlex

from jlremote.errors import JlrError, Usage
from jlremote.hosts.requests import StartRequest
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.contract import Host, run_script
from jlremote.place.runtimes.runtime import TYPED_LABEL, Runtime
from jlremote.place.runtimes.table import AUTO, on_nodes, runtime_named

DEFAULT_NAME = "jupyter"
NAME, USER = "{name}", "{user}"


def session_of(request: StartRequest) -> tuple[str | None, Runtime]:
    """Return the session's name, `None` if only the host knows it, and its runtime (or `Usage`)."""
    record, name = remembered(request), _typed(request)
    runtime = _runtime_of(request, record)
    runtime.check_name(name)
    ruled = runtime.has_containers and request.name_rule != NAME
    return record.name if record else None if ruled else name, runtime


def _typed(request: StartRequest) -> str:
    return DEFAULT_NAME if request.container is None else request.container


def _runtime_of(request: StartRequest, record: SessionRecord | None) -> Runtime:
    known = runtime_named(record.runtime) if record else None
    if request.scheduled is not None:
        if known is not None and known.in_jobs and request.runtime == AUTO:
            return known
        return on_node(request.runtime, with_image=request.image is not None)
    if known is not None and request.runtime == AUTO and not known.on_host:
        return known
    return runtime_named(request.runtime, sudo=request.sudo)


def on_node(runtime: str, *, with_image: bool) -> Runtime:
    """Return the runtime on a cluster's nodes for `--runtime`; raise `Usage` if it has none."""
    chosen = ("apptainer" if with_image else "none") if runtime == AUTO else runtime
    if chosen not in on_nodes():
        hint = f"with `--slurm` it is one of: {', '.join(on_nodes())}"
        raise Usage(f"`--runtime {runtime}` does not run in a job of a cluster", hint=hint)
    return on_nodes()[chosen]


def remembered(request: StartRequest) -> SessionRecord | None:
    """Return the record of a session that this laptop knows, `None` for another one."""
    records = [record for record in sessions.load_all() if record.host == request.host]
    if request.container is None:
        return next(iter(records), None)
    exact = (record for record in records if record.name == request.container)
    short = (record for record in records if record.typed == request.container)
    return next(exact, None) or next(short, None)


def names(request: StartRequest, host: Host) -> tuple[str, ...]:
    """Return the names that the container may have, the name of a new one first.

    The template is for new containers: without an image to create one from, an existing container
    with the typed name may be meant.
    """
    name, rule = _typed(request), request.name_rule
    if USER in rule:
        rule = rule.replace(USER, login_name(host))
    begin, _, end = rule.partition(NAME)
    long = len(name) > len(begin) + len(end)
    is_full = long and name.startswith(begin) and name.endswith(end)
    made = name if is_full else f"{begin}{name}{end}"
    if made == name or request.container is None or request.image is not None:
        return (made,)
    return (made, name)


def label(typed: str | None, name: str) -> dict[str, str]:
    """Return the label with the typed name, by which other laptops find the container."""
    return {} if typed in (None, name) else {TYPED_LABEL: str(typed)}


def login_name(host: Host) -> str:
    """Return the user's name on a host, without what names of containers cannot have."""
    name = run_script(host, "id -un").stdout.strip()
    return re.sub(r"[^a-zA-Z0-9_.-]+", "-", name).lstrip("-_.")


def refuse_other_owner(host: str, name: str, owner: str | None, *, agreed: bool) -> None:
    """Raise `JlrError` if a session belongs to another user of the host, unless `agreed`."""
    if owner is not None and not agreed:
        where = shlex.quote(f"{host}/{name}")
        hint = f"`jlr start {shlex.quote(host)} ANOTHER-NAME` makes one of your own; "
        hint += f"`jlr open {where} --as-shared` joins it, if `{owner}` agrees"
        raise JlrError(f"`{host}/{name}` belongs to `{owner}`", hint=hint)
