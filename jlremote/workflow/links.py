"""A command's way to a host: its link, with what an earlier link held brought back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from jlremote.errors import JlrError, Unreachable
from jlremote.host.sudo import by_hand
from jlremote.link.client import Link
from jlremote.link.status import LinkStatus
from jlremote.storage import sessions
from jlremote.storage.mounts import MountRecord
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.context import Context
from jlremote.workflow.ways import known_way


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
        # 22 ms that only a new link shall cost.
        from jlremote.workflow import mounted
        from jlremote.workflow.restoring import bring_back

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
        on_command=lambda script: context.progress.command(by_hand(script)),
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
    return link_to(host, known_way(host, context), without=without)


def link_to_mount(record: MountRecord, context: Context) -> Link:
    """Return the link that a mount goes over."""
    from jlremote.workflow import mounted

    return link_to(record.host, replace(context, ssh_config=mounted.config(record)))


def _config(record: SessionRecord) -> Path | None:
    return None if record.ssh_config is None else Path(record.ssh_config)
