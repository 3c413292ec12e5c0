"""The restored forwards of a session, after its link was killed or has ended."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import Busy
from jlremote.jupyter.api import NoAnswer
from jlremote.jupyter.survey import ContainerGone, gone, survey
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus
from jlremote.ports.endpoint import Endpoint, Place
from jlremote.ports.routes import place_of, server_endpoint
from jlremote.runtimes.table import runtime_named
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.forward import local_ports
from jlremote.workflow.forward.jupyter_check import refuse_open
from jlremote.workflow.host.rollback import undone_on_failure


def bring_back(link: Link, record: SessionRecord) -> ForwardStatus:
    """Forward a session and its further ports again on their local ports.

    Raises:
        ContainerGone: its container is not there, or does not run.
        JupyterDead: no Jupyter server runs in it.
        JupyterStopped: it was stopped.
        IdleStopped: it has ended because it was idle.
        Busy: the local port is taken.
        OpenToAll: the server that runs there now has neither token nor password.
    """
    runtime = runtime_named(record.runtime)
    found = survey(link, runtime, record.name)
    if found.container is None or not found.container.running:
        raise ContainerGone(f"the container `{record.name}` is gone or does not run")
    _bring_ports_back(link, record, place_of(runtime, found.container))
    if found.server is None:
        raise gone(record.name, found.findings)
    to = server_endpoint(runtime, found.container, found.server)
    with undone_on_failure() as undo:
        undo.callback(link.unforward, record.name)
        try:
            forward = link.forward(record.name, record.local_port, to)
        except Busy as busy:
            taken = local_ports.taken(record.local_port, record.host, record.name)
            another = f"`jlr start {record.host} {record.name}` takes another port"
            raise Busy(
                taken.message, hint=f"{another}; or end the program that holds this one"
            ) from busy
        if not forward.server.token:  # it may be another server than before
            with suppress(NoAnswer):
                refuse_open(link, forward, allowed=record.open_allowed)
    return forward


def _bring_ports_back(link: Link, record: SessionRecord, place: Place) -> None:
    """Forward a session's further ports again, also if Jupyter is dead."""
    for port in record.ports:
        with suppress(Busy):  # `jlr forward` tells that it is not forwarded
            link.forward(record.name, port.local_port, Endpoint(place, port.port))
