"""`jlr cp`, and the folder of a job: sent before it begins; what it made is brought back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from jlremote.copies import tar_fetch, tar_send
from jlremote.copies.exchange import CopyPlace, CopyReport, in_words, plain_errors
from jlremote.copies.names import RemotePath, one_place, parsed
from jlremote.copies.staging import folder_of
from jlremote.errors import NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.requests import RunRequest
from jlremote.laptop.typed_place import host_word

_HERE = "."  # of `--workspace`: a folder with the name of this one


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
    Raise `Usage` if both ends are on this machine, or neither is; `NotFound` if there is no such
    place or source.
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
            hint = "`jlr cp data.csv cont1:/data/` names the session before the colon"
            raise Usage("a copy needs one end on this machine, and one on a host", hint=hint)
    context.progress.note(f"copied {in_words(report.files, report.total)}")
    return report


@dataclass(frozen=True)
class JobFolder:
    """A folder of this machine, and the one that was made like it for a job."""

    local: Path
    where: str
    path: str


def sent_first(request: RunRequest, local: Path, context: Context) -> tuple[RunRequest, JobFolder]:
    """Sync a folder to where a job will run, and return the request for a job that runs in it.

    A job in a new image gets it as its workspace, which is a folder of the host; any other begins
    in it.
    """
    from jlremote.copies.sync import SyncRequest, sync_all

    wanted = request.wanted
    in_image = request.inside is None and wanted.image is not None
    into = wanted.workspace if in_image and wanted.workspace != _HERE else None
    where = host_word(wanted.host) if request.inside is None else f"{wanted.host}/{request.inside}"
    made = sync_all(SyncRequest(local, where, into), context)
    options = replace(wanted.options, workdir=None if in_image else made)
    wanted = replace(wanted, options=options, workspace=made if in_image else None)
    return replace(request, wanted=wanted), JobFolder(local, where, made)


def check_patterns(patterns: Sequence[str]) -> None:
    """Check what is to be brought back (`Usage`: it is not in the folder, or cannot be named)."""
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise Usage(f"`--back {pattern}` is not in the folder that was sent")
        if set("*?[") & set(str(path.parent)):
            what = f"`--back {pattern}` has a pattern for a folder"
            raise Usage(what, hint="name the folder: all that is in it comes back")


def bring_back(folder: JobFolder, patterns: Sequence[str], context: Context) -> None:
    """Copy what a job made, by patterns below its folder, to the same places of the local one."""
    report = CopyReport(context.progress)
    place = CopyPlace(folder.where, context)
    with context.progress.step("Bring back"), plain_errors():
        for pattern in patterns:
            into = folder.local / PurePosixPath(pattern).parent
            into.mkdir(parents=True, exist_ok=True)
            source = RemotePath(folder.where, f"{folder.path}/{pattern}")
            try:
                tar_fetch.fetch(report, place, [source], into, recursive=True, preserve=True)
            except NotFound as missing:
                context.progress.note(missing.message)
    context.progress.note(f"brought back {in_words(report.files, report.total)}")
