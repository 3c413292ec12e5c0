"""`jlr shell`: a terminal, or plain stdin and stdout, in a session, any container, or the host.

A session that this laptop knows, and whose container the link has proved, is not looked for again.
Most imports happen where they are needed: that way needs few of them, and all would double the time
of a short command.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace

from jlremote.errors import NotFound
from jlremote.hosts import attached_process as attached
from jlremote.hosts.context import Context
from jlremote.link.client.link import KeptShell, Link, ShellCommand
from jlremote.link.wire.protocol import Unproved
from jlremote.place.runtimes.place import Place
from jlremote.selection.session_selection import known_place, place_of

HUNG_UP = 255  # as ssh
# How docker and podman exit where a container does not run; a command may exit so, too.
_OF_ENGINES = (1, 125, 126, 255)
# How shells exit that could not read or find a command.
_NOT_RUN = (2, 126, 127)
_NO_TMUX = "echo 'no tmux there keeps the shell; `sudo apt install tmux` installs it'\n"
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


def shell(request: ShellRequest, screen: attached.Screen, context: Context) -> int:
    """Run a shell or a command where a session's server runs, and return its exit status.

    Raise `NotFound` if there is no such place, or it does not run, `LinkLost` after a loss.
    """
    if (known := known_place(request.where, context)) is not None:
        with suppress(Unproved):
            return _run(*known, request, screen, context, checked=False)
    host, place = place_of(request.where, context, as_shared=request.as_shared)
    return _run(host, place, request, screen, context, checked=True)


def _run(
    host: Link,
    place: Place,
    request: ShellRequest,
    screen: attached.Screen,
    context: Context,
    *,
    checked: bool,
) -> int:
    kept = _kept(host, place, request, typed=screen.kind is not None)
    what = ShellCommand(request.command, request.user, request.workdir, request.detach_keys, kept)
    opened = host.shell(place, what, attached.terminal_of(screen), checked=checked)
    lasting = _lasting(host, place, what, screen)
    try:
        status = attached.run_attached(opened, screen, lasting)
    except attached.TerminalClosed as closed:
        if lasting is None or True not in closed.args:
            context.progress.note(f"closed the terminal in `{place.selector}`")
            return HUNG_UP
        context.progress.note(f"left the shell there; {lasting.hint}")
        return HUNG_UP if lasting.over_loss_only else 0
    if not checked and status in _OF_ENGINES:  # the container may have stopped a moment ago
        place_of(request.where, context, as_shared=request.as_shared)
    if screen.kind and status in _NOT_RUN:
        _note_forced(host, context)
    return status


def _kept(host: Link, place: Place, request: ShellRequest, *, typed: bool) -> KeptShell | None:
    """Return how to keep the shell: as it is asked for or set, else over a loss only."""
    keep: object = request.keep
    if keep is None and typed and not request.command:
        from jlremote.laptop.settings import settings

        keep = settings.load().chosen(host.name, {}).get("keep")
    elif not keep:
        return None
    if keep is False:
        return None
    mark, label, without = os.urandom(8).hex(), request.label, _NO_TMUX
    if keep is None:
        label, without = f"lost-{mark[:6]}", ""
    elif request.keep:
        without += f"exit {NotFound.exit_code}\n"
    else:
        label = _free_label(host, place)
    again = f"{place.selector} --keep{f' --name {label}' if label else ''}"
    return KeptShell(place.kept(label), mark, again, without, keep is None)


def _lasting(
    host: Link, place: Place, what: ShellCommand, screen: attached.Screen
) -> attached.Lasting | None:
    if (kept := what.kept) is None:
        return None
    joins = replace(what, kept=replace(kept, begun=True))

    def again(link: Link, _: int) -> attached.Opened:
        return link.shell(place, joins, attached.terminal_of(screen), checked=True)

    hint = f"`jlr shell {kept.again}` attaches again"
    return attached.Lasting(host.unasked(hint), again, hint, kept.mark.encode(), kept.unasked)


def _note_forced(host: Link, context: Context) -> None:
    from jlremote.place.host.contract import run_script

    if run_script(host, _IS_FORCED).status == 0:
        forced = f"the SSH server of `{host.name}` runs its own command (`ForceCommand`)"
        context.progress.note(f"{forced}, which may block a terminal; `</dev/null` asks for none")


def _free_label(host: Link, place: Place) -> str:
    """Return the first label whose shell no terminal shows: none is taken from it unasked."""
    from jlremote.place.runtimes.scripts.shell_scripts import SHOWN

    shown = host.run({"shown": SHOWN})["shown"].stdout.splitlines()
    labels = ("", *map(str, range(2, len(shown) + 3)))
    return next(label for label in labels if place.kept(label) not in shown)
