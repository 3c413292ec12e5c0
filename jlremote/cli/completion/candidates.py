"""Candidates for completion: hosts, sessions, images, GPUs, paths. None makes a connection."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

import click

from jlremote.cli.command import Invocation
from jlremote.errors import JlrError
from jlremote.laptop import known_names
from jlremote.laptop.known_names import session_names
from jlremote.laptop.settings import options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from jlremote.hosts.context import Context
    from jlremote.laptop.settings.settings import Settings

# What click calls with a command's context, the parameter and the typed word.
_Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]
_SECONDS = 3.0  # for a host's answer; a shell waits for its candidates


def _completer(names: Callable[[click.Context, str], Iterable[str]]) -> _Completer:
    @wraps(names)
    def candidates(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
        try:
            return [name for name in dict.fromkeys(names(context, typed)) if name.startswith(typed)]
        except JlrError:
            return []

    return candidates


def _invocation(context: click.Context) -> Invocation:
    return context.find_object(Invocation) or Invocation()


def _loaded() -> Settings:
    from jlremote.laptop.settings.settings import load

    return load()


def _hosts(context: click.Context, typed: str) -> list[str]:
    if options.is_pool(typed):
        return [f"{options.POOL}{name}" for name in _loaded().pools]
    known = known_names.host_names(_invocation(context).ssh_config)
    names = [*known, *(host for host, _ in session_names())]
    user, at, _ = typed.rpartition("@")
    return [f"{user}@{name}" for name in names if "@" not in name] if at else names


def _selectors(known: list[tuple[str, str]], typed: str) -> list[str]:
    times = Counter(name for _, name in known)
    short = [name for _, name in known if times[name] == 1]
    return short + [f"{host}/{name}" for host, name in known if typed or times[name] > 1]


def _sessions(typed: str) -> list[str]:
    return _selectors(session_names(), typed)


hosts = _completer(_hosts)
sessions = _completer(lambda _, typed: _sessions(typed))
jobs = _completer(lambda _, typed: _selectors(session_names("jobs"), typed))
sessions_and_jobs = _completer(
    lambda _, typed: _selectors(session_names() + session_names("jobs"), typed)
)
sessions_and_files = _completer(lambda _, typed: _sessions(typed) + _local_paths(typed))
places = _completer(lambda context, typed: _sessions(typed) + _hosts(context, typed))
ssh_names = _completer(lambda *_: known_names.ssh_names())
settings = _completer(lambda *_: options.KINDS)
profiles = _completer(lambda *_: _loaded().profiles)


@_completer
def containers(context: click.Context, typed: str) -> list[str]:
    """Complete a session, of the typed host if there is one."""
    host = _typed_host(context)
    return [name for on, name in session_names() if on == host] if host else _sessions(typed)


@_completer
def images(context: click.Context, _typed: str) -> list[str]:
    """Complete an image of the typed host."""
    from jlremote.hosts.requests import EngineChoice
    from jlremote.images import save

    def names(host: str, asking: Context) -> Iterable[str]:
        wanted = EngineChoice(context.params.get("runtime") or "auto")
        for image in save.images(host, asking, engine=wanted):
            yield f"{image.repository}:{image.tag}" if image.tag else str(image.repository)

    return _told_by_host(context, names)


@_completer
def gpus(context: click.Context, _typed: str) -> list[str]:
    """Complete a choice of GPUs, and the free ones of the typed host."""
    from jlremote.gpus import host_gpus
    from jlremote.hosts.links import link_on

    def free(host: str, asking: Context) -> Iterable[str]:
        devices = host_gpus.ask(link_on(host, asking)).devices
        return (f"device={device.place}" for device in devices if device.free)

    return ["auto", "all", "none", *_told_by_host(context, free)]


def _typed_host(context: click.Context) -> str | None:
    from jlremote.laptop.typed_place import resolved

    arguments = [one for one in context.command.params if isinstance(one, click.Argument)]
    first = context.params.get(arguments[0].name or "")
    # click fills no argument if an option without its value ends the line.
    typed = first or next(iter(context.args), None)
    ssh_config = _invocation(context).context(silent=True).ssh_config
    place = resolved(str(typed), ssh_config, host_first=True) if typed else None
    return (place.host or place.name) if place else None


def _told_by_host(
    context: click.Context, names: Callable[[str, Context], Iterable[str]]
) -> list[str]:
    from jlremote.hosts import links

    host = _typed_host(context)
    asking = replace(_invocation(context).context(silent=True), asker=links.ASKS_NOTHING)
    told: list[str] = []

    def ask() -> None:
        with suppress(JlrError):
            if host and links.is_connected(links.link_on(host, asking)):
                told.extend(names(host, asking))

    asked = threading.Thread(target=ask, daemon=True)
    asked.start()
    asked.join(_SECONDS)
    return told


@_completer
def copied(context: click.Context, typed: str) -> list[str]:
    """Complete `cont1:` and a path there, or a path of this machine."""
    if ":" not in typed:
        known = _sessions(typed) + _hosts(context, typed)
        return [f"{place}:" for place in known] + _local_paths(typed)
    from jlremote.copies.names import RemotePath, remote_paths
    from jlremote.laptop.typed_place import with_path

    if (parts := with_path(typed)) is None:
        return _local_paths(typed)
    paths = remote_paths(RemotePath(*parts), _invocation(context).context(silent=True))
    return [f"{parts[0]}:{path}" for path in paths]


def _local_paths(typed: str) -> list[str]:
    folder, slash, begun = typed.rpartition("/")
    try:
        with os.scandir(os.path.expanduser(f"{folder}{slash}") or ".") as entries:  # noqa: PTH111 - pathlib costs 5 ms
            names = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    except OSError:
        return []
    shown = (name for name in names if begun.startswith(".") or not name.startswith("."))
    return [f"{folder}{slash}{name}" for name in shown]


def mount_folders(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem[str]]:
    """Complete a mount with `--unmount`, else have the shell complete a folder."""
    # Click's own type would look into dead mounts.
    from click.shell_completion import CompletionItem

    if not context.params.get("unmounts"):
        return [CompletionItem(typed, type="dir")]
    from jlremote.laptop.sessions import MOUNTS

    mounts = _completer(lambda *_: (record.local for record in MOUNTS.load_all()))
    return [CompletionItem(path) for path in mounts(context, parameter, typed)]
