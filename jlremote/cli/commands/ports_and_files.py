"""`jlr forward`, `jlr cp`, `jlr sync` and `jlr mount`."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.completion import candidates
from jlremote.cli.completion.candidates import copied
from jlremote.cli.options import shared
from jlremote.cli.screen import reports
from jlremote.cli.screen.terminal import (
    answer_each,
    answer_either,
    answer_json,
    as_json,
    shown,
    until_ctrl_c,
)
from jlremote.errors import Usage
from jlremote.text import one_line

if TYPE_CHECKING:
    from jlremote.hosts.context import Context


def _ports(value: Any) -> tuple[int | None, int]:
    if isinstance(value, tuple):
        return value
    local, colon, port = value.rpartition(":")
    remote = shared.port(port)
    return (shared.port(local) if colon else None), remote


@command("forward", json="Print a JSON array; with --auto an object for each port.")
@shared.session_argument
@click.argument("port", required=False, type=_ports, metavar="[[LOCAL:]PORT]")
@option("--host on_host", "PORT is the host's, not the container's.")
@option("--remove PORT", "Stop forwarding this port.", type=shared.port)
@option("--auto", "Forward ports while programs listen there, open pages, until Ctrl-C.")
@option("--no-browser", "With --auto: open no pages.")
def forward(
    invocation: Invocation,
    session: str | None,
    port: tuple[int | None, int] | None,
    on_host: bool,
    remove: int | None,
    auto: bool,
    no_browser: bool,
) -> None:
    """Forward a further port of a session, or list the forwarded ports.

    PORT is a port in the container, for example TensorBoard's 6006; it may be opened there later.
    The local port is LOCAL, or else PORT if that is free. A terminal shows
    http://PORT-NAME-HOST.localhost, a script gets http://127.0.0.1. The forward comes back with the
    connection and ends with `jlr stop`.

    With --host, PORT is a port of the host itself: of a program of yours, or one that a container
    publishes. Other users' programs are refused.

    A number alone is a PORT of the latest session. Without PORT the forwarded ports are listed:
    `up`, `closed` (nothing listens there) or `taken` (by another program).

    Examples:
        jlr forward 6006                  # TensorBoard in the latest session
        jlr forward cont1 8080:6006       # at port 8080 of this machine
        jlr forward cont1 5432 --host     # a database on the host, also in another container
        jlr forward cont1 --remove 6006
        jlr forward --auto                # TensorBoard, Gradio, Ray, … as they come
        jlr forward --json | jq -r '.[] | select(.state == "up") | .local_port'
    """
    if port is None and session is not None and (":" in session or session.isdecimal()):
        session, port = None, _ports(session)
    if on_host and port is None:
        raise Usage("`--host` needs a port", hint="as in `jlr forward 5432 --host`")
    from jlremote.sessions import further_ports

    context = invocation.context()
    if auto:
        if port is not None or remove is not None:
            raise shared.refused_together("--auto", "--remove" if remove else "PORT")
        browser = shared.chosen_browser(None, no_browser)
        _follow_ports(session, context, invocation.context(silent=True), browser)
        return
    if port is not None and remove is not None:
        removal = f"jlr forward {shlex.quote(session or 'SESSION')} --remove {remove}"
        raise Usage("`--remove` already names the port", hint=f"`{removal}`")
    if port is not None:
        local, remote_port = port
        report = further_ports.add(session, remote_port, context, exact=local, on_host=on_host)
        address = report.address
        answer_either(shown(address), [report.to_json()])
        if shown(address) != address.url:
            context.progress.note(f"in Safari, or if the program refuses that name: {address.url}")
        if report.detail:
            context.progress.note(report.detail)
        return
    if remove is not None:
        further_ports.remove(session, remove, context)
        context.progress.note(f"stopped forwarding port {remove}")
    ports = further_ports.listed(session, context)
    none = "no further ports; `jlr forward PORT` adds one"
    reports.show_reports(ports, reports.PORTS, context, none=none, reasons=reports.port_reasons)


def _follow_ports(
    session: str | None, context: Context, silent: Context, browser: str | None
) -> None:
    from jlremote.sessions.further_ports import follow

    context.progress.note("forwarding what begins to listen; Ctrl-C ends that and these forwards")
    following = follow(session, silent, pages=browser != "none")
    with until_ctrl_c(), closing(following):
        for port, opens in following:
            become = f" → {shown(port.address)}" if port.state == "up" else f": {port.detail}"
            line = one_line(f"{port.port} {port.program or '-'}{become}")
            if opens:
                shared.browse(port.address, context, browser=browser, asked=False)
            else:
                answer_either(line, port.to_json())


@command("mount", json="Print the mount as a JSON object, or all as an array.")
@click.argument("local", required=False, shell_complete=candidates.mount_folders)
@click.argument(
    "source", metavar="[SESSION[:DIR]|HOST:DIR]", required=False, shell_complete=candidates.sessions
)
@option("--read-only", "Allow no changes through the mount.")
@option("-u --unmount unmounts", "Unmount LOCAL; nothing changes on the host.")
@option("--all every", "With --unmount: all mounts of jlr.")
@option("--force", "With --unmount: even if programs use it; they get errors.")
@shared.yes_option
def mount(context: Context, /, *, local: str | None, source: str | None, **options: bool) -> None:
    """Mount a folder of the host at the folder LOCAL of this machine, with sshfs.

    The default is the session's project folder: the host's folder behind the container's working
    folder, or where Jupyter runs without a container. SESSION:DIR is a folder of the container's
    volumes. HOST:DIR is a folder of a host, without a `/` at its beginning below the home folder.
    While the host is unreachable, programs get errors instead of hanging; later it works again.

    Without LOCAL, the mounts are listed.

    --unmount also works while the host is unreachable or sshfs has ended. A mount that programs use
    stays, and they are named, unless you use --force, which asks first; so does --all.

    Examples:
        jlr mount ~/proj                             # the session's project folder
        jlr mount ~/data dgx/cont1:/data             # a folder of the container's volumes
        jlr mount ~/raid dgx:/raid/me --read-only    # a folder of a host, without a session
        jlr mount                                    # what is mounted, and its state
        jlr mount --unmount ~/proj                   # also a dead one
        jlr mount --unmount --all
    """
    read_only, unmounts = options.pop("read_only"), options.pop("unmounts")
    usage = "`jlr mount --unmount LOCAL`"
    if unmounts:
        if source is not None or read_only:
            raise Usage("`--unmount` takes LOCAL alone", hint=usage)
        _unmount(local, context, **options)
        return
    if options["every"] or options["force"]:
        which = "--all" if options["every"] else "--force"
        raise Usage(f"`{which}` is for `--unmount`", hint=usage)
    local, source = _in_order(local, source, context)
    if local is not None:
        from jlremote.mounts import mount as workflow

        named = _named(source, context)
        report = workflow.mount(workflow.MountRequest(local, read_only=read_only, **named), context)
        made = report.record
        text = one_line(f"{made.local} shows {made.host}:{made.remote}")
        answer_either(text, report.to_json())
        return
    if source is not None or read_only:
        raise Usage("LOCAL is missing", hint="`jlr mount ~/proj …` mounts at ~/proj")
    from jlremote.mounts import known_mounts

    mounts = known_mounts.reports(context)
    none = "nothing is mounted; `jlr mount LOCAL` mounts a session's folder"
    reports.show_reports(mounts, reports.MOUNTS, context, none=none, reasons=reports.mount_reasons)


def _in_order(
    local: str | None, source: str | None, context: Context
) -> tuple[str | None, str | None]:
    from jlremote.laptop.typed_place import resolved, with_path

    def remoteness(word: str) -> int:
        """Return 0 for a path of this machine, 2 for HOST:DIR or a session, and 1 else."""
        if word.startswith(("/", ".", "~")):
            return 0
        return 2 if with_path(word) or resolved(word, context.ssh_config).session else 1

    if local is None or source is None:
        alone = source is None and local is not None and with_path(local)
        return (source, local) if alone else (local, source)
    return (source, local) if remoteness(local) > remoteness(source) else (local, source)


def _named(source: str | None, context: Context) -> dict[str, Any]:
    from jlremote.laptop.typed_place import resolved, with_path

    where_and_folder = with_path(source or "")
    if where_and_folder is None:
        return {"session": source}
    where, folder = where_and_folder
    typed = resolved(where, context.ssh_config, context.progress.note)
    if typed.host is not None and typed.name is not None:
        return {"session": where, "remote": folder or None}
    host = typed.host or where
    return {"session": None, "host": host, "remote": folder or "~", "on_host": True}


def _unmount(local: str | None, context: Context, *, every: bool, **how: bool) -> None:
    if every == (local is not None):
        raise Usage("name a folder or use `--all`", hint="`jlr mount` lists the mounts")
    from jlremote.mounts import known_mounts as workflow

    if local is not None:
        done = [workflow.unmount(local, context, **how)]
    else:
        done = workflow.unmount_all(context, **how)
    lines = ((f"unmounted {path}", {"local": path}) for path in done)
    answer_each(lines, context, none="nothing is mounted")


@command("cp", json="Print what was copied as a JSON object.")
@click.argument("paths", metavar="SRC... DST", nargs=-1, required=True, shell_complete=copied)
@option("-r --recursive", "Copy folders with all that is in them.")
@option(
    "-p --preserve",
    "Keep modes as they are, but for setuid, setgid and sticky; else umask decides.",
)
def cp(context: Context, paths: tuple[str, ...], recursive: bool, preserve: bool) -> None:
    """Copy files between this machine and a session, a container or a host.

    WHERE:PATH is a remote path, any other is on this machine; WHERE is a SESSION, HOST/CONTAINER or
    HOST. Times are kept. A file appears under its name once it is whole. Links that lead out of a
    copied folder are left out.

    Examples:
        jlr cp data.csv cont1:/data/          # into the session's container
        jlr cp -r cont1:runs .                # a folder, from where shells begin
        jlr cp 'cont1:runs/*.png' figures     # quoted, so it is expanded there
        jlr cp -r src dgx:~/src               # the host's own files
    """
    from jlremote.copies.cp import copy

    *sources, target = paths
    if not sources:
        raise Usage("`jlr cp` needs a source and a target", hint="as in `jlr cp a.csv cont1:/data`")
    done = copy(sources, target, context, recursive=recursive, preserve=preserve)
    if as_json():
        report = {"files": done.files, "bytes": done.total, "skipped": done.skipped}
        answer_json(report)


@command("sync", json="Print what was done as a JSON object.")
@click.argument("local", required=False, shell_complete=copied)
@click.argument("target", metavar="[SESSION[:DIR]]", required=False, shell_complete=copied)
@option("--overwrite", "Replace files that changed there, or were there before.")
@option("--watch", "Go on, and send what changes as it is saved, until Ctrl-C.")
@option("--dry-run", "Print what would be sent and deleted; change nothing.")
def sync(
    context: Context, /, *, local: str | None, target: str | None, watch: bool, **how: bool
) -> None:
    """Make a folder of a session like the folder LOCAL of this machine, by default this one.

    What `.gitignore` and `.jlrignore` name stays here, and so does `.git`. DIR is by default the
    folder in which shells and jobs begin there; where that is `/` or the home folder, the one in it
    with the name of LOCAL. A file appears there once it is whole. Deleted is only what an earlier
    sync brought; a file that changed there, or was there before, is named and stays.

    It needs Python 3.6 or later there.

    Examples:
        jlr sync                              # this folder, to the latest session
        jlr sync ~/proj cont1:/data/proj      # or dgx:proj, without a session
        jlr sync . cont1 --watch              # an edit is there within a second
    """
    dry_run = how.pop("dry_run")
    if watch and (dry_run or as_json()):
        raise shared.refused_together("--watch", "--dry-run" if dry_run else "--json")
    from jlremote.copies import sync as workflow
    from jlremote.laptop.typed_place import with_path

    if target is None and local is not None and not local.startswith(("/", ".", "~")):
        local, target = None, local
    where, into = with_path(target or "") or (target, None)
    folder = Path(local or ".").expanduser()
    request = workflow.SyncRequest(folder, where, into or None, dry=dry_run, **how)
    result = workflow.sync(request, context)
    if as_json():
        answer_json(vars(result))
    elif dry_run:
        for act, names in (("send", result.sent), ("delete", result.deleted)):
            for name in names:
                answer_either(f"{act} {one_line(name)}", name)
    workflow.check_conflicts(request, result)
    if watch:
        workflow.watch(request, context)
