"""Links to hosts, each with the ssh configuration of its sessions, their states, and pools."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from jlremote.errors import (
    Authentication,
    JlrError,
    NameNotResolved,
    NeedsAuthentication,
    NotBegun,
    UnknownPlace,
    Unreachable,
    Usage,
)
from jlremote.hosts.context import Context, known_way
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings.options import is_pool
from jlremote.laptop.typed_place import check_host, is_known_host, known_hosts
from jlremote.link.client.call import LinkStuck, NoLink, start_link
from jlremote.link.client.link import Link, LinkEvents
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import OtherVersion
from jlremote.link.wire.states import LinkStatus, State
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import in_short
from jlremote.place.host.sudo import by_hand
from jlremote.questions import NeverAsks
from jlremote.text import closest, one_line, printable

if TYPE_CHECKING:
    from jlremote.laptop.job_records import JobRecord
    from jlremote.laptop.sessions import MountRecord

# How long a list waits for a link that is reconnecting.
PATIENCE_SECONDS = 4.0


@dataclass(frozen=True)
class Unreached:
    """Why a link is not connected; the fields are those of `SessionReport`."""

    state: str
    since: str | None
    detail: str | None


# The hosts with a note that their scheduler, or they themselves, do not answer.
_noted_waiting: set[str] = set()
_noted_silent: set[str] = set()
# A list shows that a host asks for something, and does not ask the user.
ASKS_NOTHING = NeverAsks("any other `jlr` command for it asks in a terminal")


def link_to(host: str, context: Context, *, without: str | None = None) -> Link:
    """Return the link to `host`; its process starts on first use.

    A new process restores the host's sessions on their ports: the last one may have been killed, or
    ended for another version. The session `without` is left to the caller (`Usage`: the host is a
    pool, or no host).
    """
    if is_pool(host):
        from jlremote.laptop.settings import settings

        hosts = settings.load().pool(host)
        raise Usage(
            f"`{host}` is a pool, and this command takes one host",
            hint=f"name one of {', '.join(f'`{each}`' for each in hosts)}; "
            "`start`, `run`, `list` and `gpus` take pools",
        )
    check_host(host)
    config = None if context.ssh_config is None else context.ssh_config.resolve()
    events = LinkEvents(
        on_command=lambda script: context.progress.command(by_hand(in_short(script))),
        on_failure=lambda said: _show_failure(said, context),
        on_start=lambda link: context.restore(link, config, without, context.progress),
        on_silence=lambda link, script: _expect_answer(link, script, context),
        on_unanswered=lambda answers: _note_silence(host, answers, context),
        explain=lambda error: _explained(error, host, context),
        waiting=context.progress.waiting,
    )
    agent = os.environ.get("SSH_AUTH_SOCK")
    return Link(host, config, context.asker, events, agent_socket=agent)


def begin(host: str, context: Context) -> None:
    """Start the process of a host's link, if there is none, without waiting until it listens."""
    check_host(host)
    sessions.check_writable()
    config = known_way(host, context).ssh_config
    files = LinkFiles(host, config and config.resolve())
    if not files.key.exists():  # else one runs or was killed; the first request finds out
        begun = threading.Event()

        def start() -> None:
            try:
                with suppress(JlrError, OSError):  # the first request fails likewise, and reports
                    start_link(files, begun.set)
            finally:
                begun.set()

        threading.Thread(target=start, daemon=True).start()
        begun.wait()


def _show_failure(said: str, context: Context) -> None:
    for line in printable(said).splitlines():
        context.progress.detail(line)


def _expect_answer(link: Link, script: str, context: Context) -> None:
    # Loaded here: for most commands the engines would double what there is to load.
    from jlremote.hosts.engines import expect_answer
    from jlremote.place.clusters.slurm import SLURM

    expect_answer(link, script)
    trial = SLURM.trial(script)
    if trial is None or link.name in _noted_waiting:
        return
    _noted_waiting.add(link.name)  # first: the trial may be silent, too
    answers = True
    with suppress(JlrError):  # the server has no session to spare for it, or is away
        answers = run_script(link, trial).status == 0
    if answers:
        _noted_waiting.remove(link.name)
    else:
        context.progress.note(f"{SLURM.name} does not answer on `{link.name}` so far; still asking")


def _note_silence(host: str, answers: bool | None, context: Context) -> None:
    if host not in _noted_silent:
        _noted_silent.add(host)
        silent = f"`{host}` does not answer"
        why = f"there is no connection to `{host}` yet" if answers is None else silent
        context.progress.note(f"{why}; still trying")


def goes_on(host: str) -> str:
    """Return the hint for a host that does not answer."""
    return f"jlr keeps trying, and `jlr list` shows when it answers; `ssh {host}` tests it"


def connect(link: Link, context: Context) -> Link:
    """Connect a link, if it is not connected, and return it (`Authentication`, `Unreachable`)."""
    with context.progress.step(f"Connect to {link.name}"):
        status = link.status(connect=True)
    for note in status.notes:
        context.progress.detail(note)
    return link


def _explained(error: JlrError, typed: str, context: Context) -> JlrError:
    if isinstance(error, NotBegun):
        return NotBegun(f"`{typed}` does not answer", hint=goes_on(typed))
    # Of a known host the address is what is wrong.
    if not isinstance(error, NameNotResolved) or is_known_host(typed, context.ssh_config):
        return error
    user, at, name = typed.rpartition("@")
    known = {
        name: f"{record.host}/{name}"
        for record in sessions.load_all()
        for name in (record.name, record.typed)
        if name
    }
    known |= {host: f"{user}{at}{host}" for host in known_hosts(context.ssh_config)}
    near = closest(name, known)
    why = f"`{typed}` is neither a host nor a session that is known here: {error.message}"
    return UnknownPlace(why, hint=f"did you mean `{known[near]}`?" if near else error.hint)


def link_of(record: SessionRecord | MountRecord | JobRecord, context: Context) -> Link:
    """Return the link of a session, mount or job."""
    config = None if record.ssh_config is None else Path(record.ssh_config)
    return link_to(record.host, replace(context, ssh_config=config))


def link_on(host: str, context: Context, *, without: str | None = None) -> Link:
    """Return the link to a host, with the ssh configuration of its sessions."""
    return link_to(host, known_way(host, context), without=without)


def forget(host: str, context: Context) -> tuple[str, ...]:
    """Delete the passwords and passphrases of a host and its jump hosts; return them in words."""
    return link_on(host, context).forget()


def connected_status(link: Link) -> LinkStatus:
    """Return the status of a link once it is connected."""
    return link.status(connect=True, patience=PATIENCE_SECONDS)


def is_connected(link: Link) -> bool:
    """Return whether a link is connected now; nothing is begun and the host is not asked."""
    try:
        return not link.disconnected and link.status().state == State.UP
    except JlrError:  # its process does not run
        return False


def undisturbed(link: Link) -> LinkStatus:
    """Return the status of a link, connected unless it waits for the user, or was disconnected."""
    # Trying again without the user would only add a failed login to the host's log.
    if link.disconnected:
        why = "disconnected by `jlr disconnect`; the next command for it connects again"
        raise Unreachable(why)
    with suppress(NoLink):
        status = link.status()
        if status.state == State.NEEDS_AUTH:
            raise NeedsAuthentication(status.detail or "the host asks a question")
    return connected_status(link)


def status_of(
    link: Link, ask: Callable[[Link], LinkStatus] = connected_status
) -> LinkStatus | Unreached:
    """Return the status of a link, or why it is not connected."""
    from jlremote.times import utc

    try:
        return ask(link)
    except LinkStuck as stuck:  # the next question would only take as long again
        return Unreached(State.DOWN, None, stuck.message)
    except OtherVersion as other:  # its forwards go on, whatever their state is
        return Unreached(State.DOWN, None, f"{other.message}; {other.hint}")
    except (Authentication, Unreachable, Usage) as failure:  # Usage: the ssh config may be gone
        why = failure
        state = State.NEEDS_AUTH if isinstance(why, Authentication) else None
    try:
        own = link.status()
    except JlrError:
        return Unreached(state or State.DOWN, None, why.message)
    same = state in (None, own.state)
    return Unreached(state or own.state, utc(own.since) if same else None, why.message)


# How long the others wait for a host that does not answer.
POOL_SECONDS = 10.0

T = TypeVar("T")


@dataclass(frozen=True)
class PoolAnswer(Generic[T]):
    """The answer of one host of a pool, or why there is none."""

    host: str
    answer: T | None
    error: JlrError | None = None


def ask_each(
    hosts: Sequence[str],
    question: Callable[[str, Context], T],
    context: Context,
    *,
    after_first: float = POOL_SECONDS,
) -> list[PoolAnswer[T]]:
    """Return the answers of hosts to `question`, which are asked at the same time.

    Once one has answered, the others have `after_first` seconds. A host that needs the user is
    asked once more when the others have answered, one by one.
    """
    quiet = partial(_answer, question=question, context=replace(context, asker=ASKS_NOTHING))
    with context.progress.step(f"Ask {', '.join(hosts)}"):
        found = _side_by_side(hosts, quiet, after_first)
    for number, one in enumerate(found):
        if isinstance(one.error, NeedsAuthentication):
            found[number] = _answer(one.host, question, context)
    return found


def _side_by_side(
    hosts: Sequence[str], ask: Callable[[str], PoolAnswer[T]], after_first: float
) -> list[PoolAnswer[T]]:
    answers = queue.SimpleQueue[PoolAnswer[T]]()
    for host in hosts:  # a daemon: a host that never answers keeps no command from ending
        asking = threading.Thread(target=lambda host=host: answers.put(ask(host)), daemon=True)
        asking.start()
    found = dict[str, PoolAnswer[T]]()
    began = time.monotonic()
    until = began + POOL_SECONDS
    with suppress(queue.Empty):
        for _ in hosts:
            one = answers.get(timeout=max(0, until - time.monotonic()))
            found[one.host] = one
            if one.answer is not None:
                until = min(until, time.monotonic() + after_first)
    silent = Unreachable(f"no answer within {time.monotonic() - began:.0f} s")
    return [found.get(host) or PoolAnswer(host, None, silent) for host in hosts]


def _answer(host: str, question: Callable[[str, Context], T], context: Context) -> PoolAnswer[T]:
    try:
        return PoolAnswer(host, question(host, context))
    except JlrError as error:
        return PoolAnswer(host, None, error)


def note_silent(answers: Sequence[PoolAnswer[T]], context: Context) -> None:
    """Report each host of a pool that did not answer; raise the last one's error if none has."""
    silent = [(one.host, one.error) for one in answers if one.error is not None]
    for host, error in silent:
        context.progress.note(f"cannot ask `{host}`: {one_line(error.message)}")
    if silent and len(silent) == len(answers):
        raise silent[-1][1]
