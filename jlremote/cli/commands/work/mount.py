"""`jlr mount` and `jlr unmount`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.workflow.mounts.known_mounts import MountReport
    from jlremote.workflow.mounts.mount import MountRequest


@command(
    "mount",
    examples=(
        "jlr mount ~/proj                             # the session's project folder",
        "jlr mount ~/data dgx/cont1 --remote /data    # a folder of the container's volumes",
        "jlr mount ~/raid --on-host --remote /raid/me --read-only",
        "jlr mount                                    # what is mounted, and its state",
    ),
)
@click.argument("local", required=False, shell_complete=candidates.folders)
@click.argument("session", required=False, shell_complete=candidates.sessions)
@click.option(
    "--remote",
    metavar="DIR",
    help="Which folder: a path in the container, or one below the home folder of the host.",
)
@click.option("--on-host", is_flag=True, help="DIR is a path of the host, not of the container.")
@click.option("--read-only", is_flag=True, help="Nothing can be changed through it.")
@click.option("--nonempty", is_flag=True, help="Cover a folder that is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the mount, or all, as JSON.")
@click.pass_obj
def mount(
    invocation: Invocation,
    local: str | None,
    session: str | None,
    remote: str | None,
    on_host: bool,
    read_only: bool,
    nonempty: bool,
    as_json: bool,
) -> None:
    """Show a folder of the host as the folder LOCAL of this machine, with sshfs.

    It is the session's project folder: where the container's working folder is kept on the host, or
    where Jupyter runs without a container. It goes over the connection that jlr has already. While
    the host is away programs get errors instead of hanging; when it is back, so is the folder.

    Without LOCAL, the mounts are listed.
    """
    from jlremote.workflow.mounts.mount import MountRequest

    if local is None:
        if remote is not None or on_host or read_only or nonempty:
            raise Usage("LOCAL is missing", hint="say where: `jlr mount ~/proj …`")
        _list(invocation, as_json=as_json)
        return
    if on_host and remote is None:
        raise Usage("`--on-host` says where `--remote DIR` is, and there is none")
    request = MountRequest(local, session, remote, on_host, read_only, nonempty)
    _mount(invocation, request, as_json=as_json)


@command("unmount", examples=("jlr unmount ~/proj", "jlr unmount --all"))
@click.argument("local", required=False, shell_complete=candidates.mounts)
@click.option("--all", "every", is_flag=True, help="All that jlr has mounted.")
@click.option("--force", is_flag=True, help="Even if programs use it; they get errors.")
@click.pass_obj
def unmount(invocation: Invocation, local: str | None, every: bool, force: bool) -> None:
    """Take the folder LOCAL away again; nothing changes on the host.

    A mount whose host is away, or whose sshfs has ended, goes as well. One that programs use stays,
    and they are named, unless you say --force.
    """
    if every == (local is not None):
        raise Usage("say which folder, or `--all`", hint="`jlr mount` lists them")
    from jlremote.workflow.mounts import unmount as workflow

    context = invocation.context()
    if local is not None:
        done = [workflow.unmount(local, context, force=force)]
    else:
        done = workflow.unmount_all(context, force=force)
    for path in done:
        answer(f"unmounted {path}")
    if not done:
        context.progress.note("nothing is mounted")


def _mount(invocation: Invocation, request: MountRequest, *, as_json: bool) -> None:
    from jlremote.text import one_line
    from jlremote.workflow.mounts.mount import mount as mount_folder

    report = mount_folder(request, invocation.context(silent=as_json))
    if as_json:
        answer_json(report.to_json())
    else:
        answer(one_line(f"{report.local} shows {report.host}:{report.remote}"))


def _list(invocation: Invocation, *, as_json: bool) -> None:
    from jlremote.cli.screen import tables
    from jlremote.workflow.mounts.known_mounts import reports

    context = invocation.context(silent=as_json)
    found: list[MountReport] = reports(context)
    if as_json:
        answer_json([report.to_json() for report in found])
    elif found:
        tables.show_table(tables.MOUNT_HEADINGS, [tables.mount_row(report) for report in found])
    else:
        context.progress.note("nothing is mounted; `jlr mount LOCAL` mounts a session's folder")
