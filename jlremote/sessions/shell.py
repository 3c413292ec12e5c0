"""`jlr shell`: a terminal, or plain stdin and stdout, in a session, any container, or the host.

A session that this laptop knows, and whose container the link has proved, is not looked for again.
Most imports happen where they are needed: that way needs few of them, and all would double the time
of a short command.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jlremote.errors import LinkLost, NotBegun, NotFound
from jlremote.hosts.attached_process import (
    Screen,
    TerminalClosed,
    run_attached,
    run_lasting,
    terminal_of,
)
from jlremote.hosts.context import Context
from jlremote.hosts.links import connect, link_of, link_on
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.typed_place import host_word, resolved
from jlremote.link.client.link import Link, ShellCommand, SshPlace
from jlremote.link.wire.protocol import Unproved

if TYPE_CHECKING:
    from jlremote.place.runtimes.engine.kinds import Engine
    from jlremote.place.runtimes.runtime import Runtime

HUNG_UP = 255  # as ssh
# How docker and podman exit where a container does not run; a command may exit so, too.
_OF_ENGINES = (1, 125, 126, 255)
# How shells exit that could not read or find a command.
_NOT_RUN = (2, 126, 127)
_IS_FORCED = '[ "${SSH_ORIGINAL_COMMAND-}" ]'


@dataclass(frozen=True)
class ShellRequest:
    """`jlr shell [SESSION | HOST/CONTAINER | HOST] [-- COMMAND]`."""

    where: str | None = None  # a session, `HOST/CONTAINER` or `HOST`; the latest session by default
    command: tuple[str, ...] = ()  # the command; a shell if it is empty
    user: str | None = None  # `USER[:GROUP]` in the container
    workdir: str | None = None  # the folder to begin in
    detach_keys: str | None = None  # as the engine's own `--detach-keys`
    keep: bool | None = None  # whether tmux keeps it; `None` as the settings say
    label: str = ""  # the name by which tmux keeps it; empty for the place's first one
    as_shared: bool = False  # whether another user's session may be joined


@dataclass(frozen=True)
class ShellPlace:
    """Where a shell runs."""

    host: Link
    runtime: Runtime
    name: str  # of the session or container, or the host's
    selector: str  # what the command takes
    is_host: bool = False  # whether it is the host itself, and no session
    session: str | None = None  # the session's name, `None` for what is none
    container_id: str = ""  # the engine's full id of a session's container

    @property
    def served(self) -> SshPlace:
        """The place as the link knows it."""
        return SshPlace(
            self.selector, self.session, self.runtime.name, self.name, self.container_id
        )


def shell(request: ShellRequest, screen: Screen, context: Context) -> int:
    """Run a shell or a command where a session's server runs, and return its exit status.

    Raises:
        NotFound: there is no such session, container or host, or the container does not run.
        LinkLost: the connection broke.
    """
    known = None if request.keep else known_place(request.where, context)
    if known is not None and not _is_kept(known[0], request, screen):
        with suppress(Unproved):
            return _run(*known, request, screen, context, checked=False)
    place = place_of(request.where, context, as_shared=request.as_shared)
    if _is_kept(place.host, request, screen):
        return _kept(place, request, screen, context)
    return _run(place.host, place.served, request, screen, context, checked=True)


def _is_kept(host: Link, request: ShellRequest, screen: Screen) -> bool:
    if request.keep is not None or request.command or screen.kind is None:
        return bool(request.keep)
    from jlremote.laptop.settings import settings

    return settings.load().chosen(host.name, {}).get("keep") is True


def known_place(where: str | None, context: Context) -> tuple[Link, SshPlace] | None:
    """Return the link and place of a session that this laptop knows; the link may prove it."""
    record: SessionRecord | None
    if where is None:
        record = sessions.latest()
    else:
        record = resolved(where, context.ssh_config, context.progress.note).session
    if record is None:
        return None
    name = record.name
    place = SshPlace(record.selector, name, record.runtime, name, record.container_id)
    return link_of(record, context), place


def _run(
    host: Link,
    place: SshPlace,
    request: ShellRequest,
    screen: Screen,
    context: Context,
    *,
    checked: bool,
) -> int:
    what = ShellCommand(request.command, request.user, request.workdir, request.detach_keys)
    try:
        status = run_attached(host.shell(place, what, terminal_of(screen), checked=checked), screen)
    except TerminalClosed:
        screen.recover()
        context.progress.note(f"closed the terminal in `{place.selector}`")
        return HUNG_UP
    except NotBegun:
        raise
    except LinkLost as lost:
        screen.recover()
        raise LinkLost(
            f"{lost.message}; the programs in the terminal were ended",
            hint=f"`jlr shell {place.selector}` opens another one; with `--keep` it outlasts a "
            "loss, and `jlr run` is for long work",
        ) from lost
    if not checked and status in _OF_ENGINES:  # the container may have stopped a moment ago
        place_of(request.where, context, as_shared=request.as_shared)
    if screen.kind and status in _NOT_RUN:
        _note_forced(host, context)
    return status


def _note_forced(host: Link, context: Context) -> None:
    from jlremote.place.host.contract import run_script

    if run_script(host, _IS_FORCED).status == 0:
        context.progress.note(
            f"the SSH server of `{host.name}` runs its own command (`ForceCommand`), which may "
            "block a terminal; `</dev/null` asks for none"
        )


def _kept(place: ShellPlace, request: ShellRequest, screen: Screen, context: Context) -> int:
    import secrets  # which loads more than a short command has time for

    from jlremote.place.host.contract import run_script
    from jlremote.place.runtimes.runtime import Attachment
    from jlremote.place.runtimes.scripts import shell_scripts

    host = place.host
    attached = Attachment(screen.size, request.user, request.workdir, request.detach_keys)
    own = None if place.is_host else place.name
    label = request.label if request.keep else _free_label(place, own)
    name = shell_scripts.session(place.runtime, own, label)
    words = f"--keep{f' --name {label}' if label else ''}"
    again = f"`jlr shell {place.selector} {words}` attaches again"

    looked = run_script(host, shell_scripts.look(name)).status
    if looked == shell_scripts.NO_TMUX and request.keep is None:
        context.progress.note(f"`{host.name}` has no tmux, so this ends with the connection")
        return _run(host, place.served, request, screen, context, checked=True)
    if looked == shell_scripts.NO_TMUX:
        raise NotFound(
            f"`{host.name}` has no tmux, which would keep the shell",
            hint="`sudo apt install tmux` there installs it; "
            f"`jlr shell {place.selector}` opens one that ends with the connection",
        )
    if looked == 0:
        context.progress.note(f"attached again to the shell that was kept in `{place.selector}`")
    mark = secrets.token_hex(8)
    begin = shell_scripts.argv_of(place.runtime, place.name, attached, request.command, sized=False)
    script = shell_scripts.kept_script(begin, name, mark)
    back = shell_scripts.again_script(name, mark)
    try:
        status = run_lasting(host, script, screen, lambda *_: back, again)
    except TerminalClosed:
        screen.recover()
        context.progress.note(f"left the shell there; {again}")
        return 0
    if status == 0 and run_script(host, shell_scripts.look(name)).status == 0:
        context.progress.note(f"the shell keeps running; {again}")
    return status


def _free_label(place: ShellPlace, own: str | None) -> str:
    """Return the first label whose shell no terminal shows: none is taken from it unasked."""
    from jlremote.place.runtimes.scripts.shell_scripts import SHOWN, session

    shown = place.host.run({"shown": SHOWN})["shown"].stdout.splitlines()
    labels = ("", *map(str, range(2, len(shown) + 3)))
    return next(label for label in labels if session(place.runtime, own, label) not in shown)


def place_of(where: str | None, context: Context, *, as_shared: bool = False) -> ShellPlace:
    """Return the session's place, else that of a container or a host of that name.

    Raises:
        NotFound: there is no such session, container or host, or the container does not run.
    """
    from jlremote.place.runtimes.table import runtime_of
    from jlremote.selection import session_selection

    typed = None if where is None else resolved(where, context.ssh_config)
    if typed is not None and typed.host is not None and typed.name is None:
        return _host_itself(typed.host, context)
    try:
        record = session_selection.chosen(where, context, as_shared=as_shared)
    except NotFound as missing:
        if typed is None:
            raise
        if typed.host is None:  # a host that only ssh knows
            return _host_itself(str(where), context)
        name = str(typed.name)
        return _any_container(typed.host, name, context, missing, as_shared=as_shared)
    link, runtime, name = link_of(record, context), runtime_of(record), record.name
    _check_runs(link, runtime, record, as_shared=as_shared)
    selector, container_id = record.selector, record.container_id
    return ShellPlace(link, runtime, name, selector, session=name, container_id=container_id)


def _any_container(
    host: str, typed: str, context: Context, missing: NotFound, *, as_shared: bool
) -> ShellPlace:
    from jlremote.hosts.engines import engine_if_any, others
    from jlremote.laptop.record_files import hint_of_missing
    from jlremote.place.runtimes.engine.engine_errors import EngineUnusable

    link = link_on(host, context)
    engine = engine_if_any(link)
    if place := _container_of(engine, link, typed, as_shared=as_shared):
        return place
    for other in others(link, engine):
        with suppress(EngineUnusable):
            if place := _container_of(other, link, typed, as_shared=as_shared):
                return place
    there = f"`jlr shell {host_word(host)}` opens a shell on the host"
    shows = f"`jlr list {host} --all` shows all; {there}"
    raise NotFound(
        f"there is neither a session nor a container `{typed}` on `{host}`",
        hint=hint_of_missing(sessions.load_all(), f"{host}/{typed}", shows),
    ) from missing


def _container_of(engine: Engine, link: Link, typed: str, *, as_shared: bool) -> ShellPlace | None:
    from jlremote.place.runtimes.engine_containers import Containers
    from jlremote.selection import host_search, naming

    host, runtime = link.name, Containers(engine)
    for name, found in host_search.candidates(link, runtime, typed):
        if found.container is None:
            continue
        naming.refuse_other_owner(host, name, found.owner, agreed=as_shared)
        if not found.container.running:
            raise NotFound(
                f"the container `{name}` {found.container.stands}",
                hint=f"`{engine.shown('start', name)}` on `{host}` starts it",
            )
        return ShellPlace(link, runtime, name, f"{host}/{name}")
    return None


def _host_itself(host: str, context: Context) -> ShellPlace:
    link = link_on(host, context)
    connect(link, context)
    from jlremote.place.runtimes.bare import Bare

    return ShellPlace(link, Bare(), host, host_word(host), is_host=True)


# The engine's own message, for a container that does not run, would come unformatted.
def _check_runs(host: Link, runtime: Runtime, record: SessionRecord, *, as_shared: bool) -> None:
    from jlremote.hosts import halted
    from jlremote.place.runtimes.runtime import WHO
    from jlremote.selection import naming

    answers = host.run({**runtime.describe(record.name), **WHO})
    container = runtime.read(record.name, answers)
    if container is not None:
        owner, agreed = container.owner_beside(answers["user"].stdout.strip()), as_shared
        naming.refuse_other_owner(record.host, record.name, owner, agreed=agreed or record.shared)
    halted.refuse(record, container)
