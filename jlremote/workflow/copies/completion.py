"""The names that complete a path of another machine, for `jlr cp cont1:/da<TAB>`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError, NotFound
from jlremote.host.contract import run_script
from jlremote.host.shell_text import IN_FOLDER, command_line
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.runtimes.bare import Bare
from jlremote.runtimes.contract import Attachment, Runtime
from jlremote.runtimes.table import runtime_of
from jlremote.storage import sessions
from jlremote.text import without_controls
from jlremote.untrusted import Refused, path_part
from jlremote.workflow.copies.names import RemotePath
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import ASKS_NOTHING, link_of, link_on

_SECONDS = 3.0


def remote_paths(begun: RemotePath, context: Context) -> list[str]:
    """Return the paths there that begin as `begun` does, folders with a slash at their end.

    Only a link that is up is asked: a completion neither connects nor asks for a password.
    """
    folder, slash, name = begun.path.rpartition("/")
    list_names = (
        *("sh", "-c", f"{IN_FOLDER} && ls -1Ap 2>/dev/null", "sh"),
        folder + slash or ".",
    )
    try:
        link, runtime, where = _place(begun.where, replace(context, asker=ASKS_NOTHING))
        if link.status().state != State.UP:
            return []
        argv = runtime.attached(where, list_names, Attachment(), {})
        told = run_script(link, command_line(argv), timeout=_SECONDS).stdout
    except JlrError:
        return []
    hidden = name.startswith(".")
    return [
        f"{folder}{slash}{found}"
        for found in told.split("\n")
        if found.startswith(name)
        and (hidden or not found.startswith("."))
        and _is_name(found.removesuffix("/"))
    ]


def _is_name(found: str) -> bool:
    with suppress(Refused):
        return without_controls(path_part(found)) == found
    return False


def _place(where: str, context: Context) -> tuple[Link, Runtime, str]:
    """Return a session's place, else a host's; both as this laptop knows them."""
    try:
        record = sessions.choose(where)
    except NotFound:
        return link_on(where, context), Bare(), where
    return link_of(record, context), runtime_of(record), record.name
