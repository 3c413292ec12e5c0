"""`jlr cp`: the story of a copy, to a place or from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jlremote.copies import tar_fetch, tar_send
from jlremote.copies.exchange import CopyPlace, CopyReport, in_words, plain_errors
from jlremote.copies.names import RemotePath, one_place, parsed
from jlremote.copies.staging import folder_of
from jlremote.errors import Usage
from jlremote.hosts.context import Context


def copy(
    sources: Sequence[str],
    target: str,
    context: Context,
    *,
    recursive: bool,
    preserve: bool = False,
) -> CopyReport:
    """Copy files, and with `recursive` folders, between this machine and one place.

    Modes are as umask wants them, or with `preserve` as they are but for setuid, setgid and sticky.

    Raises:
        Usage: both ends are on this machine, or neither is.
        NotFound: there is no such place or source.
    """
    paths, into = [parsed(source) for source in sources], parsed(target)
    remote = [path for path in paths if isinstance(path, RemotePath)]
    local = [path for path in paths if isinstance(path, Path)]
    report = CopyReport(context.progress)
    with context.progress.step("Copy"), plain_errors():
        if isinstance(into, RemotePath) and not remote:
            tar_send.check_sources(local, recursive=recursive)
            tar_send.send(report, CopyPlace(into.where, context), local, into, preserve=preserve)
        elif isinstance(into, Path) and not local:
            folder_of(into)
            place = CopyPlace(one_place(remote), context)
            tar_fetch.fetch(report, place, remote, into, recursive=recursive, preserve=preserve)
        else:
            raise Usage(
                "a copy needs one end on this machine, and one on a host",
                hint="`jlr cp data.csv cont1:/data/` names the session before the colon",
            )
    context.progress.note(f"copied {in_words(report.files, report.total)}")
    return report
