"""`jlr cp`, `jlr mount` and `jlr unmount`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import (
    answer_each,
    answer_either,
    answer_json,
    answer_words,
    as_json,
)
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context

# As `scp` takes it; a local path with a colon may begin with `./`.
_REMOTE = re.compile(r"([^/:~.-][^/:]*(?:/[^/:]+)?):(.*)")


@command(
    "mount",
    examples=(
        "jlr mount ~/proj                             # the session's project folder",
        "jlr mount ~/data dgx/cont1:/data             # a folder of the container's volumes",
        "jlr mount ~/raid dgx:/raid/me --read-only    # a folder of a host, without a session",
        "jlr mount                                    # what is mounted, and its state",
    ),
)
@click.argument("local", required=False, shell_complete=candidates.folders)
@click.argument(
    "source", metavar="[SESSION[:DIR]|HOST:DIR]", required=False, shell_complete=candidates.sessions
)
@click.option(
    "--remote",
    metavar="DIR",
    help="The folder: a path in the container, or below the home folder on the host.",
)
@click.option("--on-host", is_flag=True, help="DIR is a path on the host, not in the container.")
@click.option("--read-only", is_flag=True, help="Allow no changes through the mount.")
@click.option("--nonempty", is_flag=True, help="Mount over a folder that is not empty.")
@shared.json_option("Print the mount as a JSON object, or all as an array.")
@click.pass_obj
def mount(
    invocation: Invocation, /, *, local: str | None, source: str | None, **options: Any
) -> None:
    """Mount a folder of the host at the folder LOCAL of this machine, with sshfs.

    The default is the session's project folder: the host's folder behind the container's working
    folder, or where Jupyter runs without a container. SESSION:DIR is the same as SESSION --remote
    DIR. HOST:DIR is a folder of a host, which needs no session; without a `/` in front it lies
    below the home folder there. A known host comes before a session of that name. What is mounted
    may also come before LOCAL. The mount uses the connection of the link. While the host is
    unreachable, programs get errors instead of hanging; later the folder works again.

    Without LOCAL, the mounts are listed.
    """
    context = invocation.context()
    local, source = _in_order(local, source, context)
    if local is None:
        if source is not None or any(value not in (None, False) for value in options.values()):
            raise Usage("LOCAL is missing", hint="`jlr mount ~/proj …` mounts at ~/proj")
        _list(invocation)
        return
    options |= _named(source, options["remote"], context)
    if options["on_host"] and options["remote"] is None:
        raise Usage("`--on-host` needs `--remote DIR`")
    from jlremote.mounts.mount import MountRequest
    from jlremote.mounts.mount import mount as mount_folder
    from jlremote.text import one_line

    request = MountRequest(local, **options)
    report = mount_folder(request, context)
    text = one_line(f"{report.local} shows {report.host}:{report.remote}")
    answer_either(text, report.to_json())


def _in_order(
    local: str | None, source: str | None, context: Context
) -> tuple[str | None, str | None]:
    """Return the local folder and what is mounted there, which may have been typed first."""
    if local is None or source is None:
        alone = source is None and local is not None and _place(local, context)
        return (source, local) if alone else (local, source)
    if _is_path(local) or _is_path(source):
        return (local, source) if _is_path(local) else (source, local)
    first, second = _is_remote(local, context), _is_remote(source, context)
    return (source, local) if first and not second else (local, source)


def _is_path(word: str) -> bool:
    """Return whether a word can only be a local path."""
    return word.startswith(("/", ".", "~"))


def _is_remote(word: str, context: Context) -> bool:
    """Return whether a word means HOST:DIR, SESSION:DIR or a session that is known."""
    return bool(_place(word, context) or _is_session(word))


def _place(word: str, context: Context) -> tuple[str, str] | None:
    """Return the parts of HOST:DIR or SESSION:DIR, `None` for another word."""
    found = _REMOTE.fullmatch(word)
    if found is None:
        return None
    host, slash, _ = found[1].rpartition("@")[2].partition("/")
    if slash and not (_is_session(found[1]) or host in _hosts(context)):
        return None  # a local path with a colon
    return found[1], found[2]


def _named(source: str | None, remote: str | None, context: Context) -> dict[str, Any]:
    """Return the fields of a request that SESSION, SESSION:DIR or HOST:DIR means."""
    place = _place(source or "", context)
    if place is None:
        return {"session": source}
    if remote is not None:
        raise Usage(f"`{source}` and `--remote` cannot be combined", hint="leave out one of both")
    where, folder = place
    if "/" in where or (_is_session(where) and where not in _hosts(context)):
        return {"session": where, "remote": folder or None}
    return {"session": None, "host": where, "remote": folder or "~", "on_host": True}


def _is_session(word: str) -> bool:
    from jlremote.laptop import sessions
    from jlremote.laptop.records import matching

    return bool(matching(sessions.load_all(), word))


def _hosts(context: Context) -> list[str]:
    from jlremote.hosts.links import known_hosts

    return known_hosts(context)


@command("unmount", examples=("jlr unmount ~/proj", "jlr unmount --all"))
@click.argument("local", required=False, shell_complete=candidates.mounts)
@click.option("--all", "every", is_flag=True, help="Unmount all mounts of jlr.")
@click.option("--force", is_flag=True, help="Unmount even if programs use it; they get errors.")
@shared.yes_option
@shared.json_option("Print a JSON array.")
@click.pass_obj
def unmount(invocation: Invocation, local: str | None, every: bool, force: bool, yes: bool) -> None:
    """Unmount the folder LOCAL, which `jlr mount` mounted; nothing changes on the host.

    This also works while the host is unreachable or sshfs has ended. A mount that programs use
    stays, and they are named, unless you use --force, which asks first; so does --all.
    """
    if every == (local is not None):
        raise Usage("name a folder or use `--all`", hint="`jlr mount` lists the mounts")
    from jlremote.mounts import unmount as workflow

    context = invocation.context()
    if local is not None:
        done = [workflow.unmount(local, context, force=force, yes=yes)]
    else:
        done = workflow.unmount_all(context, force=force, yes=yes)
    told = ((f"unmounted {path}", {"local": path}) for path in done)
    answer_each(told, context, none="nothing is mounted")


def _list(invocation: Invocation) -> None:
    from jlremote.cli.screen import reports, tables
    from jlremote.mounts import known_mounts

    context = invocation.context()
    found = known_mounts.reports(context)
    none = "nothing is mounted; `jlr mount LOCAL` mounts a session's folder"
    tables.show_reports(found, reports.MOUNTS, context, none=none)
    for reason in () if as_json() else reports.mount_reasons(found):
        answer_words(reason)


@command(
    "cp",
    examples=(
        "jlr cp data.csv cont1:/data/          # into the session's container",
        "jlr cp -r cont1:runs .                # a folder, from where shells begin",
        "jlr cp 'cont1:runs/*.png' figures     # quoted, so it is expanded there",
        "jlr cp -r src dgx:~/src               # the host's own files",
        "jlr cp -r src cont1:src --json | jq .bytes",
    ),
)
@click.argument(
    "paths", metavar="SRC... DST", nargs=-1, required=True, shell_complete=candidates.copied
)
@click.option("-r", "--recursive", is_flag=True, help="Copy folders with all that is in them.")
@click.option(
    "-p",
    "--preserve",
    is_flag=True,
    help="Keep modes as they are, but for setuid, setgid and sticky; else umask decides.",
)
@shared.json_option("Print what was copied as a JSON object.")
@click.pass_obj
def cp(invocation: Invocation, paths: tuple[str, ...], recursive: bool, preserve: bool) -> None:
    """Copy files between this machine and a session, a container or a host.

    WHERE:PATH is there, all else is here; WHERE is a SESSION, HOST/CONTAINER or HOST. Times are
    kept. A file appears under its name once it is whole. Links that lead out of a copied folder are
    left out. A folder goes by rsync where both machines have it, and only what differs is sent;
    all else goes by tar.
    """
    from jlremote.copies.cp import copy

    *sources, target = paths
    if not sources:
        raise Usage("`jlr cp` needs a source and a target", hint="`jlr cp FILE SESSION:PATH`")
    context = invocation.context()
    copied = copy(sources, target, context, recursive=recursive, preserve=preserve)
    if as_json():
        answer_json(vars(copied))
