"""Candidates for completion: hosts, sessions, profiles, paths. None makes a connection."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import click

from jlremote.cli.invocation import Invocation
from jlremote.errors import JlrError
from jlremote.laptop.session_names import job_names, session_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def hosts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a host of the ssh config or of a session, also after `user@`, or a pool."""
    from jlremote.laptop.settings.options import is_pool
    from jlremote.laptop.settings.ssh_hosts import host_names

    if is_pool(incomplete):
        return _pools(incomplete)
    user, at, begun = incomplete.rpartition("@")
    invocation = context.find_object(Invocation) or Invocation()
    names = [*host_names(invocation.ssh_config), *(host for host, _ in session_names())]
    found = dict.fromkeys(name for name in names if name.startswith(begun if at else incomplete))
    return [f"{user}{at}{name}" for name in found if not (at and "@" in name)]


def _pools(incomplete: str) -> list[str]:
    from jlremote.laptop.settings import options, settings

    try:
        names = [f"{options.POOL}{name}" for name in settings.load().pools]
    except JlrError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def sessions(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a session: its name, or `host/name` if that was begun or the name is not unique."""
    return _selectors(session_names(), incomplete)


def places(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a session, or a host."""
    found = _selectors(session_names(), incomplete) + hosts(context, parameter, incomplete)
    return list(dict.fromkeys(found))


def copied(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete `cont1:` and a path there, or a path of this machine."""
    if ":" not in incomplete:
        there = [f"{place}:" for place in places(context, parameter, incomplete)]
        return there + _local_paths(incomplete)
    from jlremote.copies.names import RemotePath, parsed, remote_paths

    begun = parsed(incomplete)
    if not isinstance(begun, RemotePath):
        return _local_paths(incomplete)
    where, _, path = incomplete.partition(":")
    invocation = context.find_object(Invocation) or Invocation()
    found = remote_paths(RemotePath(where, path), invocation.context(silent=True))
    return [f"{where}:{path}" for path in found]


def _local_paths(incomplete: str) -> list[str]:
    folder, slash, begun = incomplete.rpartition("/")
    try:
        with os.scandir(os.path.expanduser(f"{folder}{slash}") or ".") as entries:  # noqa: PTH111 - pathlib costs 5 ms
            found = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    except OSError:
        return []
    shown = (name for name in found if begun.startswith(".") or not name.startswith("."))
    return [f"{folder}{slash}{name}" for name in shown if name.startswith(begun)]


def ssh_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a session's name as ssh clients know it, below `.jlr`."""
    from jlremote.laptop.ssh_names import ssh_names as known

    return [name for name in known() if name.startswith(incomplete)]


def jobs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a job in the same way."""
    return _selectors(job_names(), incomplete)


def sessions_and_jobs(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete a session or a job."""
    return _selectors(session_names() + job_names(), incomplete)


def _selectors(known: list[tuple[str, str]], incomplete: str) -> list[str]:
    times = Counter(name for _, name in known)
    short = [name for _, name in known if times[name] == 1]
    long = [f"{host}/{name}" for host, name in known if incomplete or times[name] > 1]
    return [name for name in (*short, *long) if name.startswith(incomplete)]


def folders(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Let the shell complete a folder; click's own type would look into dead mounts."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def mounts(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the folder of a mount."""
    from jlremote.laptop.mounts import load_all

    try:
        return [record.local for record in load_all() if record.local.startswith(incomplete)]
    except JlrError:
        return []


def containers(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a container of the host before it, from the known sessions."""
    typed = context.params.get("host")
    return [name for host, name in session_names() if host == typed and name.startswith(incomplete)]


def settings(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a setting."""
    from jlremote.laptop.settings.options import KINDS

    return [name for name in KINDS if name.startswith(incomplete)]


def profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a profile of `config.toml`."""
    from jlremote.laptop.settings import settings

    try:
        known = settings.load().profiles
    except JlrError:
        return []
    return [name for name in known if name.startswith(incomplete)]
