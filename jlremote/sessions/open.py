"""`jlr open` and `jlr url`: the URL of a running session.

Some imports happen where they are needed: for a running session, loading them all would double the
time of the command.
"""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError, NotFound
from jlremote.forwards.address import Address, address_of
from jlremote.forwards.jupyter_check import silent_host, wait_for_answer
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.endpoint import time_limit_warning
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.link.wire.status import ForwardStatus
from jlremote.text import did_you_mean


def address(
    selector: str | None, path: str | None, context: Context, *, as_shared: bool = False
) -> Address:
    """Return the URLs of a session, or of a path in it, with the token, once its server answers.

    Raises:
        NotFound: there is no such session or path, or the session was stopped.
        JlrError: it is another user's, and not to be joined `as_shared`.
        Unreachable: the host or the server does not answer.
    """
    record, forward, name = answering(selector, context, as_shared=as_shared)
    if path and JupyterApi(forward.local_port, forward.server).lacks(path):
        raise _missing(path, record, typed=selector)
    with suppress(JlrError):  # a full disk must not prevent the use of a session
        sessions.save(record.used_now())
    if ends := time_limit_warning(record.host, record.name, forward.endpoint.until):
        context.progress.note(ends)
    if lost := halted.gpu_fault(link_of(record, context), record):
        context.progress.note(f"{lost.message}; {lost.hint}")
    return address_of(forward, name, path)


def answering(
    selector: str | None, context: Context, *, as_shared: bool = False
) -> tuple[SessionRecord, ForwardStatus, str]:
    """Return a session, its forward, and the name under which Jupyter has answered through it.

    Raises as `address` does.
    """
    record = _running(selector, context, as_shared=as_shared)
    return record, *_answering(link_of(record, context), record)


def _missing(path: str, record: SessionRecord, *, typed: str | None) -> NotFound:
    """Return the error of a path that Jupyter does not have; it may be a misspelt session."""
    hint = "paths begin at the folder that JupyterLab shows; a session is named as HOST/NAME"
    known = sessions.load_all() if typed is None else ()
    names = [name for each in known for name in (each.name, f"{each.host}/{each.name}")]
    return NotFound(
        f"there is no `{path}` in the session `{record.selector}`",
        hint=did_you_mean(path, names) or hint,
    )


def _running(selector: str | None, context: Context, *, as_shared: bool) -> SessionRecord:
    with suppress(NotFound):
        record = sessions.choose(selector)
        if record.forwarded:
            return record
    from jlremote.selection import session_selection

    return session_selection.running(selector, context, as_shared=as_shared)


def _answering(link: Link, record: SessionRecord) -> tuple[ForwardStatus, str]:
    """Return the session's forward, and the name under which Jupyter has answered through it."""
    forward = live_forward(link, record)
    try:
        return forward, wait_for_answer(link, forward)
    except JlrError:
        # A server that was started since the last check has another port or token.
        now = _usable(link.check(record.name), record)
        if now.endpoint == forward.endpoint:
            raise
        return now, wait_for_answer(link, now)


def live_forward(link: Link, record: SessionRecord) -> ForwardStatus:
    """Return the session's forward, which leads to a server that was just proved to run.

    Raises:
        NotFound: the session was stopped, or its server or container is gone.
    """
    forward = link.status(connect=True).forward(record.name)
    if forward is None and record.forwarded:
        from jlremote.forwards.local_ports import bring_back

        forward = bring_back(link, record)
    elif forward is not None and forward.state != State.UP:
        forward = link.check(record.name)  # it may have been started again
    elif forward is None:
        halted.check(link, record)
    return _usable(forward, record)


def _usable(forward: ForwardStatus | None, record: SessionRecord) -> ForwardStatus:
    """Return a forward that is up; refuse none, or one in another state."""
    session = f"the session `{record.selector}`"
    if forward is None:
        raise NotFound(f"{session} does not run", hint=halted.again(record))
    if forward.state == State.RECONNECTING:
        raise silent_host(record.host)
    if forward.state != State.UP:
        hint = halted.again(record, forward.state, forward.endpoint.place.called)
        raise JlrError(f"{session} is {forward.state}: {forward.detail}", hint=hint)
    return forward
