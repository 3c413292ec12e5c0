"""What a shell may complete: hosts, sessions, profiles. Never fails, never asks a host."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from jlremote.cli.invocation import Invocation
from jlremote.errors import JlrError

if TYPE_CHECKING:
    from jlremote.storage.sessions import SessionRecord


def hosts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a host: those of the ssh config and of the sessions; a user's name may precede."""
    from jlremote.cli.ssh_config import host_names

    user, at, begun = incomplete.rpartition("@")
    names = [*host_names(_ssh_config(context)), *(record.host for record in _sessions())]
    found = dict.fromkeys(name for name in names if name.startswith(begun if at else incomplete))
    return [f"{user}{at}{name}" for name in found if not (at and "@" in name)]


def sessions(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a session: its name, or `host/name` where the name is taken twice or begun so."""
    records = _sessions()
    times = Counter(record.name for record in records)
    short = [record.name for record in records if times[record.name] == 1]
    long = [f"{record.host}/{record.name}" for record in records]
    wanted = [*short, *long] if incomplete else [*short, *_ambiguous(records, times)]
    return [name for name in wanted if name.startswith(incomplete)]


def containers(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a container of the host that stands before it, as far as sessions know."""
    host = context.params.get("host")
    return [
        record.container
        for record in _sessions()
        if record.host == host and record.container and record.container.startswith(incomplete)
    ]


def profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a profile of `config.toml`."""
    from jlremote.storage import settings

    try:
        known = settings.load().profiles
    except JlrError:
        return []
    return [name for name in known if name.startswith(incomplete)]


def _ambiguous(records: list[SessionRecord], times: Counter[str]) -> list[str]:
    return [f"{record.host}/{record.name}" for record in records if times[record.name] > 1]


def _sessions() -> list[SessionRecord]:
    from jlremote.storage.sessions import load_all

    try:
        return list(load_all())
    except JlrError:
        return []


def _ssh_config(context: click.Context) -> str | None:
    invocation = context.find_object(Invocation)
    return invocation.ssh_config if invocation else None
