"""`jlr open` and `jlr url`: the URL of a running session; and sessions brought back by a new link.

Some imports happen where they are needed: for a running session, loading them all would double the
time of the command.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from jlremote.errors import JlrError, NotFound, Unreachable
from jlremote.forwards.address import Address, address_of
from jlremote.forwards.jupyter_check import silent_host, wait_for_answer
from jlremote.hosts import halted
from jlremote.hosts.context import Context, Progress
from jlremote.hosts.links import link_of
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.endpoint import time_limit_warning
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus, State
from jlremote.selection import session_selection


def address(
    selector: str | None, path: str | None, context: Context, *, as_shared: bool = False
) -> tuple[SessionRecord, Address]:
    """Return a session, and its URLs or those of a path in it, once its server answers.

    If there is no such session or path, or it was stopped, raise `NotFound`; if nothing answers
    `Unreachable`; if it is another user's, and not to be joined `as_shared`, `JlrError`.
    """
    record, forward, hostname = answering(selector, context, as_shared=as_shared)
    if path and JupyterApi(forward.local_port, forward.server).lacks(path):
        hint = "paths begin at the folder that JupyterLab shows; a session is named as HOST/NAME"
        raise NotFound(f"there is no `{path}` in the session `{record.selector}`", hint=hint)
    with suppress(JlrError):  # a full disk must not prevent the use of a session
        sessions.save(record.used_now())
    if ends := time_limit_warning(record.host, record.name, forward.endpoint.until):
        context.progress.note(ends)
    if lost := halted.gpu_fault(link_of(record, context), record):
        context.progress.note(f"{lost.message}; {lost.hint}")
    return record, address_of(forward, hostname, path)


def answering(
    selector: str | None, context: Context, *, as_shared: bool = False
) -> tuple[SessionRecord, ForwardStatus, str]:
    """Return a session, its forward, and the host name by which Jupyter has answered through it."""
    record = session_selection.running(selector, context, as_shared=as_shared)
    link = link_of(record, context)
    forward = live_forward(link, record)
    try:
        return record, forward, wait_for_answer(link, forward)
    except JlrError:
        # A server that was started since the last check has another port or token.
        now = _usable(link.check(record.name), record)
        if now.endpoint == forward.endpoint:
            raise
        return record, now, wait_for_answer(link, now)


def live_forward(link: Link, record: SessionRecord) -> ForwardStatus:
    """Return the session's forward to a server that was just proved to run (else `NotFound`)."""
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
    session = f"the session `{record.selector}`"
    if forward is None:
        raise NotFound(f"{session} does not run", hint=halted.again(record))
    if forward.state == State.RECONNECTING:
        raise silent_host(record.host)
    if forward.state != State.UP:
        hint = halted.again(record, forward.state, forward.endpoint.place.called)
        raise JlrError(f"{session} is {forward.state}: {forward.detail}", hint=hint)
    return forward


def restore(link: Link, ssh_config: Path | None, without: str | None, progress: Progress) -> None:
    """Restore the forwards and mounts of a link that was killed or ended for another version.

    The session `without` is left to the caller; `ssh_config` is an absolute path. Raise
    `Unreachable` if the host is not reached.
    """
    from jlremote.forwards.local_ports import bring_back
    from jlremote.mounts import known_mounts

    config = None if ssh_config is None else str(ssh_config)
    for record in sessions.load_all():
        here = (record.host, record.ssh_config) == (link.name, config)
        if here and record.forwarded and record.name != without:
            try:
                bring_back(link, record)
            except Unreachable:
                raise
            except JlrError as error:
                progress.note(f"`{record.name}` is not forwarded: {error.message}")
    known_mounts.bring_back(link, ssh_config)
