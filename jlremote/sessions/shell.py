"""`jlr shell`: a terminal, or plain stdin and stdout, in a session, any container, or the host.

A session that this laptop knows, and whose container the link has proved, is not looked for again.
Most imports happen where they are needed: that way needs few of them, and all would double the time
of a short command.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from jlremote.errors import LinkLost, NotBegun, NotFound
from jlremote.hosts.attached_process import (
    Screen,
    TerminalClosed,
    run_attached,
    run_lasting,
    terminal_of,
)
from jlremote.hosts.context import Context
from jlremote.link.client.link import Link, ShellCommand
from jlremote.link.wire.protocol import Unproved
from jlremote.place.runtimes.place import Place
from jlremote.selection.session_selection import known_place, place_of

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
    host, place = place_of(request.where, context, as_shared=request.as_shared)
    if _is_kept(host, request, screen):
        return _kept(host, place, request, screen, context)
    return _run(host, place, request, screen, context, checked=True)


def _is_kept(host: Link, request: ShellRequest, screen: Screen) -> bool:
    if request.keep is not None or request.command or screen.kind is None:
        return bool(request.keep)
    from jlremote.laptop.settings import settings

    return settings.load().chosen(host.name, {}).get("keep") is True


def _run(
    host: Link,
    place: Place,
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


def _kept(host: Link, place: Place, request: ShellRequest, screen: Screen, context: Context) -> int:
    import secrets  # which loads more than a short command has time for

    from jlremote.place.host.contract import run_script
    from jlremote.place.runtimes.runtime import Attachment
    from jlremote.place.runtimes.scripts import shell_scripts

    attached = Attachment(screen.size, request.user, request.workdir, request.detach_keys)
    own = None if place.is_host else place.name
    label = request.label if request.keep else _free_label(host, place, own)
    name = shell_scripts.session(place.runtime, own, label)
    words = f"--keep{f' --name {label}' if label else ''}"
    again = f"`jlr shell {place.selector} {words}` attaches again"

    looked = run_script(host, shell_scripts.look(name)).status
    if looked == shell_scripts.NO_TMUX and request.keep is None:
        context.progress.note(f"`{host.name}` has no tmux, so this ends with the connection")
        return _run(host, place, request, screen, context, checked=True)
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


def _free_label(host: Link, place: Place, own: str | None) -> str:
    """Return the first label whose shell no terminal shows: none is taken from it unasked."""
    from jlremote.place.runtimes.scripts.shell_scripts import SHOWN, session

    shown = host.run({"shown": SHOWN})["shown"].stdout.splitlines()
    labels = ("", *map(str, range(2, len(shown) + 3)))
    return next(label for label in labels if session(place.runtime, own, label) not in shown)
