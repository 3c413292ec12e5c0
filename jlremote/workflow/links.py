"""A command's way to a host: its link, with what an earlier link held brought back."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jlremote.errors import Busy, JlrError, Unreachable
from jlremote.jupyter.api import NoAnswer
from jlremote.jupyter.discovery import endpoint, place_of
from jlremote.jupyter.locate import ContainerGone, gone, survey
from jlremote.jupyter.server import Place
from jlremote.link.client import Link
from jlremote.link.status import ForwardStatus, LinkStatus
from jlremote.ports.endpoint import PortEndpoint
from jlremote.runtimes.table import runtime_named
from jlremote.storage import sessions
from jlremote.storage.mounts import MountRecord
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow import mounted, ports
from jlremote.workflow.answering import refuse_open
from jlremote.workflow.context import Context


def link_to(host: str, context: Context, *, without: str | None = None) -> Link:
    """Return the link to `host`, started when it is first used.

    A link that starts anew brings the host's sessions back on their ports: the last one may have
    been killed, or was replaced by a newer version.

    Args:
        host: what was typed after `ssh`.
        context: the laptop's side.
        without: a session that the caller is about to look after itself.
    """
    config = None if context.ssh_config is None else context.ssh_config.resolve()

    def restore(link: Link) -> None:
        for record in sessions.load_all():
            here = (record.host, _config(record)) == (host, config)
            if here and record.forwarded and record.name != without:
                try:
                    bring_back(link, record)
                except Unreachable:
                    raise
                except JlrError as error:
                    context.progress.note(f"`{record.name}` is not forwarded: {error.message}")
        mounted.bring_back(link, config)

    return Link(
        host,
        config,
        context.asker,
        agent_socket=os.environ.get("SSH_AUTH_SOCK"),
        on_command=context.progress.command,
        on_start=restore,
    )


def connect(link: Link, context: Context) -> LinkStatus:
    """Bring the link's connection up, if it is not, and return how the link is then.

    Raises:
        Authentication: the host does not let us in.
        Unreachable: there is no way to the host.
    """
    with context.progress.step(f"Connect to {link.name}"):
        status = link.status(connect=True)
    for note in status.notes:
        context.progress.detail(note)
    return status


def link_of(record: SessionRecord, context: Context) -> Link:
    """Return the link to a session's host, by the ssh configuration that it was started with."""
    return link_to(record.host, replace(context, ssh_config=_config(record)))


def link_on(host: str, context: Context, *, without: str | None = None) -> Link:
    """Return the link to a host, by the ssh configuration that its sessions were started with."""
    known = (r.ssh_config for r in sessions.load_all() if r.host == host and r.ssh_config)
    config = context.ssh_config or next(map(Path, known), None)
    return link_to(host, replace(context, ssh_config=config), without=without)


def link_to_mount(record: MountRecord, context: Context) -> Link:
    """Return the link that a mount goes over."""
    return link_to(record.host, replace(context, ssh_config=mounted.config(record)))


def _config(record: SessionRecord) -> Path | None:
    return None if record.ssh_config is None else Path(record.ssh_config)


def bring_back(link: Link, record: SessionRecord) -> ForwardStatus:
    """Forward a session again on its port.

    Raises:
        ContainerGone: its container is not there, or does not run.
        JupyterDead: no Jupyter server runs in it.
        JupyterStopped: it was stopped.
        IdleStopped: it has ended for want of work.
        Busy: somebody else holds the port now.
        OpenToAll: the server that runs there now lets everybody in.
    """
    runtime = runtime_named(record.runtime)
    found = survey(link, runtime, record.name)
    if found.container is None or not found.container.running:
        raise ContainerGone(f"the container `{record.name}` is gone or does not run")
    _bring_ports_back(link, record, place_of(runtime, found.container))
    if found.findings is None or not found.findings.servers:
        raise gone(record.name, found.findings)
    to = endpoint(runtime, found.container, found.findings.servers[0])
    try:
        forward = link.forward(record.name, record.local_port, to)
    except Busy as busy:
        raise ports.taken(record.local_port, record.host, record.name) from busy
    if not to.server.token:  # it may be another one than the last time
        with suppress(NoAnswer):
            refuse_open(link, forward, allowed=record.open_allowed)
    return forward


def _bring_ports_back(link: Link, record: SessionRecord, place: Place) -> None:
    """Forward a session's further ports again; Jupyter may be dead, and they are not."""
    for port in record.ports:
        with suppress(Busy):  # `jlr forward` tells that it is not forwarded
            link.forward_port(port.local_port, PortEndpoint(place, port.port))
