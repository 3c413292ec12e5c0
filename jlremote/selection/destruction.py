"""The question before work ends or is deleted: a named target, and the user's yes.

1. A command destroys if it ends or deletes what does not come back: `rm`, `stop --container`,
   `--force` and `--all`, `job rm`, `job stop --force`, `job list --clean`, `mount --unmount` of a
   folder in use with `--force`, or with `--all`, and `disconnect` with open shells, copies or ssh
   clients. A bare `jlr stop` ends Jupyter with idle kernels only, and asks nothing. Nor does a
   `job stop` of a job by its name, as with docker and Slurm, or a `cp` over a file, as with scp.
2. Without a name it hits the only session; where there are several, the name must be typed. A bare
   `jlr stop` takes the latest one, but never another one than the session that was used last: twice
   `jlr stop` does not stop two sessions.
3. It says what ends, and asks on a terminal; `--yes` answers beforehand. Without a terminal, and
   with `--no-input`, it refuses and names what would be lost. Where nothing is lost, it does not
   ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jlremote.errors import JlrError, NeedsAuthentication, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_to
from jlremote.hosts.requests import StopRequest, stop_command
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord, StopRecord
from jlremote.link.client.call import LinkStuck
from jlremote.link.client.link import Link
from jlremote.link.wire.link_files import destinations
from jlremote.questions import Question
from jlremote.text import listed, one_line

LISTED = 12  # more of them would push the question off the screen


@dataclass(frozen=True)
class Destruction:
    """What a command is about to end or delete."""

    question: str  # for example "Delete the container of lab/cont1?"
    losses: tuple[str, ...]  # what ends or is deleted, a short text each


def confirm(planned: Destruction, context: Context, *, yes: bool) -> None:
    """Ask before something is lost, unless `yes` (`JlrError`: a no, or no terminal to ask on)."""
    if yes or not planned.losses:
        return
    more = len(planned.losses) - LISTED
    lines = [*planned.losses[:LISTED], *([f"and {more} more"] if more > 0 else [])]
    text = "\n".join(("This will be lost:", *(f"  {loss}" for loss in lines), planned.question))
    try:
        answer = context.asker.ask(Question("confirm", text, echo=True))
    except NeedsAuthentication:
        lost = f"jlr cannot ask here, and this would be lost: {'; '.join(lines)}"
        raise JlrError(lost, hint="add `--yes` to do it without a question") from None
    if answer != "yes":
        raise JlrError("nothing was changed, because the answer was no")


def default_session(
    known: Sequence[SessionRecord], last_stop: StopRecord | None, request: StopRequest
) -> SessionRecord | None:
    """Return the session that `jlr stop` without a name means; `None` without any session.

    Of the `known` ones the one used last comes first; that of `last_stop` may have no record any
    more. If it must be named, raise `Usage`.
    """
    if not known:
        return None
    chosen = next((record for record in known if record.forwarded), known[0])
    # No hint deletes what is another user's.
    own = [record for record in known if not (record.shared and request.destroys)]
    names = [stop_command(record.host, record.name, request) for record in own]
    if request.destroys and len(known) > 1:
        raise unnamed(request.command, len(known), names)
    last: SessionRecord | StopRecord = known[0]
    if last_stop is not None and last_stop.stopped > known[0].last_used:
        last = last_stop
    if (last.host, last.name) == (chosen.host, chosen.name):
        return chosen
    what = f"no default session: `{last.host}/{last.name}`, the latest, is stopped already"
    raise Usage(what, hint=f"name one: {_listed(names)}")


def unnamed(what: str, candidates: int, commands: Sequence[str]) -> Usage:
    """Return the error that a command needs a name, as it would guess what to destroy."""
    hint = f"name one: {_listed(commands)}" if commands else "`jlr list` shows them"
    return Usage(f"`{what}` needs the name of a session: there are {candidates}", hint=hint)


def _listed(commands: Sequence[str]) -> str:
    return listed([f"`{command}`" for command in commands], LISTED)


def disconnect(host: str | None, context: Context, *, yes: bool) -> Iterator[str]:
    """End the links to one host, or all links of this user; yield the hosts of ended links.

    Raise `JlrError` if the person said no, or one does not end; the others have ended.
    """
    links = _links(host, context)
    stuck: dict[Link, JlrError] = {}
    losses: list[str] = []
    for link in links:
        try:
            losses += dict.fromkeys(link.status().work)
        except LinkStuck as silent:  # the next question would only take as long again
            stuck[link] = silent
        except JlrError:  # none runs, or one of another version
            continue
    where = "all hosts" if host is None else host
    planned = Destruction(f"Disconnect from {where}?", tuple(map(one_line, losses)))
    confirm(planned, context, yes=yes)
    for link in links:  # also a stuck one, and before any ends: a command must not begin it again
        link.stay_disconnected()
    ended, refused = set[str](), list(stuck.values())
    for link in (each for each in links if each not in stuck):
        try:
            if link.shut_down() and link.name not in ended:
                ended.add(link.name)
                yield link.name
        except JlrError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _links(host: str | None, context: Context) -> list[Link]:
    known = sessions.load_all()
    ways = [(r.host, Path(r.ssh_config) if r.ssh_config else None) for r in known]
    ways += [*destinations(), (host or "", context.ssh_config)]
    distinct = {(name, config and config.resolve()) for name, config in ways if name}
    wanted = (way for way in distinct if host in (None, way[0]))
    links = [link_to(name, replace(context, ssh_config=config)) for name, config in wanted]
    return sorted(links, key=lambda link: link.name)
