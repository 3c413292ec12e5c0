"""`jlr list` and `jlr status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.terminal import answer, answer_json

if TYPE_CHECKING:
    from jlremote.workflow.report import SessionReport

_HEADINGS = ("SESSION", "HOST", "STATE", "KERNELS", "PORT", "GPUS", "IMAGE")


@command(
    "list",
    examples=(
        "jlr list",
        "jlr list dgx",
        "jlr list --json | jq -r '.[] | select(.state == \"up\") | .url'",
    ),
)
@click.argument("host", required=False, shell_complete=candidates.hosts)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
@click.pass_obj
def list_sessions(invocation: Invocation, host: str | None, as_json: bool) -> None:
    """List the sessions, a line each: where, in which state, and whether kernels are busy.

    With HOST, only that host's.
    """
    from jlremote.cli import tables
    from jlremote.workflow.listing import reports

    context = invocation.context(silent=as_json)
    found = reports(context, host)
    if as_json:
        answer_json([report.to_json() for report in found])
    elif found:
        tables.show_table(_HEADINGS, [tables.session_row(report) for report in found])
        _show_mounts(found)
    else:
        context.progress.note("no sessions; `jlr start HOST CONTAINER` makes one")


@command(
    "status",
    examples=(
        "jlr status",
        "jlr status dgx/cont1",
        "jlr status cont1 --json | jq -r .state",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions)
@click.option("--json", "as_json", is_flag=True, help="Print one object.")
@click.pass_obj
def status(invocation: Invocation, session: str | None, as_json: bool) -> None:
    """Show one session in full: its state in words, its URL and its kernels."""
    from jlremote.workflow.listing import report

    found = report(session, invocation.context(silent=as_json))
    if as_json:
        answer_json(found.to_json())
    else:
        _show(found)


def _show(report: SessionReport) -> None:
    from jlremote.cli import tables
    from jlremote.text import one_line

    facts = {
        "session": f"{report.name} on {report.host}",
        "state": tables.state_in_words(report),
        "url": report.url,
        "runtime": report.runtime,
        "container": report.container,
        "image": report.image,
        "gpus": report.gpus,
        "kernels": tables.kernels_in_short(report.kernels),
    }
    for name, value in facts.items():
        if value:
            answer(f"{name + ':':<11}{value if name == 'state' else one_line(value)}")
    if report.kernels:
        rows = [(k.notebook, k.state, tables.ago(k.last_activity)) for k in report.kernels]
        answer("")
        tables.show_table(("NOTEBOOK", "STATE", "SINCE"), rows)
    _show_mounts([report])


def _show_mounts(reports: list[SessionReport]) -> None:
    from jlremote.cli import tables

    mounts = [mount for report in reports for mount in report.mounts]
    if mounts:
        answer("")
        tables.show_table(tables.MOUNT_HEADINGS, [tables.mount_row(mount) for mount in mounts])
