"""`jlr gpus`, `jlr doctor`, `jlr disconnect` and `jlr forget`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer, answer_each, answer_json, as_json, tell, watched
from jlremote.errors import Usage
from jlremote.laptop.settings.options import is_pool
from jlremote.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jlremote.cli.screen.gpu_table import Shown
    from jlremote.doctor.diagnosis import Finding
    from jlremote.hosts.context import Context

PAUSE_SECONDS = 0.5
POOL_SECONDS = 2.0  # the least pause between questions to all hosts of a pool


@command(
    "gpus",
    examples=(
        "jlr gpus dgx",
        "jlr gpus dgx --watch",
        "jlr gpus dgx --watch 5",
        "jlr gpus @lab                 # all hosts of [pools.lab], in one table",
        "jlr gpus dgx --json | jq -r '.gpus[] | select(.state == \"free\") | .index'",
    ),
)
@shared.host_argument
@click.option(
    "--watch",
    type=shared.number(0.1, 3600),
    is_flag=False,
    flag_value=PAUSE_SECONDS,
    metavar="[SECONDS]",
    help=f"Repeat until Ctrl-C, every SECONDS ({PAUSE_SECONDS:g} by default).",
)
@shared.json_option("Print a JSON object; with --watch one per line.")
@click.pass_obj
def gpus(invocation: Invocation, host: str, watch: float | None) -> None:
    """Show the GPUs of a host and their users, containers, ages and load.

    STATE is `free`, `busy` (at least 90 % of the time), `partly busy`, `idle, memory held` (memory
    is used and nothing computes), `reserved` (by jlr, for a session or job), `assigned, idle` (to a
    container, or to a job of Slurm), `cannot tell`, `held` or `error`.

    On a login node of a cluster that has no GPU, show the partitions as Slurm knows them: their
    free GPUs, and the jobs that hold the others, yours first; --watch asks once a minute.

    HOST may be a pool, `@NAME`: its hosts are asked at the same time.
    """
    if watch is None:
        _show_gpus(host, invocation.context())
        return
    with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
        _watch_gpus(host, watch, invocation)


def _show_gpus(host: str, context: Context) -> None:
    from jlremote.cli.screen import gpu_table
    from jlremote.gpus import host_gpus, pool_gpus
    from jlremote.hosts import pools

    shown: gpu_table.Shown
    if is_pool(host):
        shown = answers = pool_gpus.of_pool(host, context)
        if not as_json():
            pools.note_silent(answers, context)
    else:
        shown = host_gpus.inventory(host, context)
    if as_json():
        answer_json(gpu_table.document(shown, host))
    else:
        _print_gpus(shown, context, ())


def _watch_gpus(host: str, seconds: float, invocation: Invocation) -> None:
    from jlremote.cli.screen import gpu_table, tables
    from jlremote.gpus import host_gpus, pool_gpus

    snapshots: Iterator[gpu_table.Shown]
    context = invocation.context()
    if is_pool(host):
        # A step for each look would bury what is watched.
        quiet = invocation.context(silent=True)
        snapshots = pool_gpus.watch_pool(host, max(seconds, POOL_SECONDS), quiet)
    else:
        snapshots = host_gpus.watch(host, seconds, context)
    if as_json():
        for shown in snapshots:
            answer_json(gpu_table.document(shown, host), indent=None)
    elif watched(sys.stdout):
        from jlremote.cli.screen import gpu_live  # imports rich

        tables.show_live(gpu_live.drawings(host, snapshots))
    else:
        told: tuple[str, ...] = ()
        for shown in snapshots:
            told = _print_gpus(shown, context, told)
            answer("")


def _print_gpus(shown: Shown, context: Context, told: tuple[str, ...]) -> tuple[str, ...]:
    """Print the tables, and the notes that were not `told`; return those that are now."""
    from jlremote.cli.screen import gpu_table

    gpu_table.show(shown)
    notes = gpu_table.notes_of(shown)
    for note in notes:
        if note not in told:
            context.progress.note(note)
    return notes


@command(
    "doctor",
    examples=(
        "jlr doctor",
        "jlr doctor dgx",
        "jlr doctor dgx --image nvcr.io/nvidia/pytorch:24.05-py3",
        "jlr doctor lab --runtime none --python ~/venv",
        "jlr doctor dgx --report report.txt     # to attach to a bug report",
        "jlr doctor dgx --json | jq -r '.checks[] | select(.mark == \"failed\") | .mend[]'",
    ),
)
@shared.optional_host_argument
@click.option("--image", metavar="IMAGE", help="Try a new container of this image, then remove it.")
@shared.runtime_options
@shared.python_options
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a report without secrets to FILE; a terminal shows it first, and asks.",
)
@shared.json_option("Print one JSON object at the end.")
@click.pass_context
def doctor(click_context: click.Context, /, *, report_file: Path | None, **options: Any) -> None:
    """Find out what is wrong, and what to do about it.

    Without HOST it checks this machine; with HOST the whole chain: name, login, engine, GPUs,
    disks, and a kernel that answers through the tunnel. That kernel starts in a session that runs
    there, else in a container of --image. The doctor removes what it makes; it only prints advice.

    ✓ works, ! works with a problem, ✗ does not work, - was not tried. The exit code is 0, or that
    of the first ✗: 4 authentication, 5 unreachable, 6 not found, 1 anything else.
    """
    from jlremote.cli.screen.findings import FindingPrinter
    from jlremote.doctor.doctor import DoctorRequest
    from jlremote.doctor.doctor import doctor as examine

    request = DoctorRequest(**options)
    invocation = click_context.ensure_object(Invocation)
    if report_file is not None:
        if as_json():
            raise Usage(
                "`--report` and `--json` cannot be combined", hint="leave out one of the two"
            )
        if os.path.lexists(report_file):  # also of a name that is too long for a file
            raise Usage(f"`{report_file}` exists already", hint="name a new file, or remove it")
    printer = FindingPrinter(quiet=invocation.quiet)
    findings: list[Finding] = []
    context = invocation.context(lasting=False)
    collects = as_json() or report_file is not None
    verdict = examine(request, context, findings.append if collects else printer.show)
    if report_file is not None:
        from jlremote.doctor.bug_report import report

        text = report(request.host, findings, verdict, context)
        _write_report(text, report_file, asks=not invocation.no_input and sys.stdin.isatty())
    elif as_json():
        checks = [finding.to_json() for finding in findings]
        answer_json({"host": request.host} | verdict.to_json() | {"checks": checks})
    else:
        printer.close(verdict)
    click_context.exit(verdict.exit_code)


def _write_report(text: str, file: Path, *, asks: bool) -> None:
    from jlremote.laptop import paths

    answer(text, newline=False)
    if asks and not click.confirm(f"Write this to `{printable(str(file))}`?", err=True):
        return
    paths.write_new(file, text)
    tell(f"wrote `{file}`; read it once more before you send it")


@command("disconnect", examples=("jlr disconnect dgx", "jlr disconnect --all --yes"))
@shared.optional_host_argument
@click.option("--all", "every", is_flag=True, help="Every host, also without a session.")
@shared.yes_option
@shared.json_option("Print a JSON array.")
@click.pass_obj
def disconnect(invocation: Invocation, host: str | None, every: bool, yes: bool) -> None:
    """End the connection to a host, and its forwards; Jupyter and its kernels keep running.

    Open shells, copies and ssh clients over it end; a terminal is told which, and asked. Jobs of
    `jlr run` go on. The next command for the host connects again, and may ask for a password or a
    code again; a `jlr list` without HOST does not. On a machine that others use, close its pages
    first: they send their secrets to any program that takes their port.
    """
    if every == bool(host):
        raise Usage("name a host or use `--all`", hint="`jlr list` shows the hosts")
    from jlremote.selection import destruction

    context = invocation.context()
    names = destruction.disconnect(host, context, yes=yes)
    ended = ((f"disconnected from {name}", {"host": name}) for name in names)
    none = f"not connected to {host}" if host else "no connections"
    answer_each(ended, context, none=none)


@command("forget", examples=("jlr forget dgx",))
@shared.host_argument
@shared.json_option("Print a JSON array.")
@click.pass_obj
def forget(invocation: Invocation, host: str) -> None:
    """Delete the passwords and passphrases of a host from the keychain.

    Those of its jump hosts are deleted, too. The next login asks again, also whether to remember
    the answer.
    """
    from jlremote.hosts import links

    context = invocation.context()
    accounts = links.forget(host, context)
    deleted = ((f"forgot the {account}", {"forgotten": account}) for account in accounts)
    answer_each(deleted, context, none=f"nothing is remembered for {host}")
