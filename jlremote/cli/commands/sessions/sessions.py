"""`jlr list` and `jlr status`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.terminal import answer, answer_json, watched
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.workflow.host.context import Context
    from jlremote.workflow.session.report import SessionReport

_HEADINGS = ("SESSION", "HOST", "STATE", "SINCE", "KERNELS", "PORT", "GPUS", "IMAGE")


@command(
    "list",
    examples=(
        "jlr list",
        "jlr list dgx                  # also those that another laptop has started",
        "jlr list dgx --all            # every container there, whoever's",
        "jlr list --json | jq -r '.[] | select(.state == \"up\") | .url'",
    ),
)
@click.argument("host", required=False, shell_complete=candidates.hosts)
@click.option("--all", "every", is_flag=True, help="Every container of HOST, whoever's it is.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
@click.pass_obj
def list_sessions(invocation: Invocation, host: str | None, every: bool, as_json: bool) -> None:
    """List the sessions, a line each: where, in which state, and whether kernels are busy.

    Without HOST, those of this laptop. With HOST, that host is asked for all that jlr has there,
    from whichever laptop: `running` are those that are not forwarded here, and `jlr open HOST/NAME`
    forwards one.
    """
    if every:
        _list_containers(invocation, host, as_json=as_json)
        return
    from jlremote.cli.screen import tables
    from jlremote.workflow.show.listing import reports

    context = invocation.context(silent=as_json)
    found = reports(context, host)
    if as_json:
        answer_json([report.to_json() for report in found])
    elif found:
        tables.show_table(_HEADINGS, [tables.session_row(report) for report in found])
        _show_reasons(found)
        _show_mounts(found)
        _explain_running(found, context)
    else:
        where = f" on `{host}`" if host else ""
        context.progress.note(f"no sessions{where}; `jlr start HOST CONTAINER` makes one")


def _list_containers(invocation: Invocation, host: str | None, *, as_json: bool) -> None:
    if host is None:
        raise Usage("`--all` is of one host", hint="`jlr list HOST --all`")
    from jlremote.cli.screen import tables
    from jlremote.workflow.show.containers import containers

    context = invocation.context(silent=as_json)
    found = containers(host, context)
    if as_json:
        answer_json([report.to_json() for report in found])
    elif found:
        tables.show_table(tables.CONTAINER_HEADINGS, [tables.container_row(one) for one in found])
    else:
        context.progress.note(f"no containers on `{host}`")


@command(
    "status",
    examples=(
        "jlr status",
        "jlr status dgx/cont1",
        "jlr status --watch",
        "jlr status cont1 --json | jq -r .state",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions)
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, and show what changes.")
@click.option("--json", "as_json", is_flag=True, help="Print one object; with --watch one a line.")
@click.pass_obj
def status(invocation: Invocation, session: str | None, watch: bool, as_json: bool) -> None:
    """Show one session in full: its state in words and since when, its URL and its kernels."""
    context = invocation.context(silent=as_json)
    if watch:
        with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
            _watch(session, context, as_json=as_json)
        return
    from jlremote.workflow.show.listing import report

    found = report(session, context)
    if as_json:
        answer_json(found.to_json())
    else:
        _show(found)


def _watch(session: str | None, context: Context, *, as_json: bool) -> None:
    from jlremote.workflow.show.watch import watch

    reports = watch(session, context)
    if not as_json and watched(sys.stdout):
        from jlremote.cli.screen.session_live import show_live

        show_live(reports)
        return
    last = None
    for report in reports:
        now = report.to_json()
        if now != last:
            _show_change(report, as_json=as_json)
        last = now


def _show_change(report: SessionReport, *, as_json: bool) -> None:
    if as_json:
        import json

        answer(json.dumps(report.to_json()))
        return
    _show(report)
    answer("")


def _show(report: SessionReport) -> None:
    from jlremote import times
    from jlremote.cli.screen import tables

    for line in tables.session_lines(report):
        answer(line)
    if report.kernels:
        rows = [(k.notebook, k.state, times.ago(k.last_activity)) for k in report.kernels]
        answer("")
        tables.show_table(("NOTEBOOK", "STATE", "SINCE"), rows)
    if report.ports:
        answer("")
        tables.show_table(tables.PORT_HEADINGS, [tables.port_row(port) for port in report.ports])
    _show_mounts([report])


def _show_reasons(reports: list[SessionReport]) -> None:
    """Tell why sessions are not up, which no column has room for."""
    from jlremote.text import one_line

    explained = [report for report in reports if report.detail]
    if explained:
        answer("")
    for report in explained:
        answer(f"{one_line(f'{report.host}/{report.name}: {report.detail}')}")


def _explain_running(reports: list[SessionReport], context: Context) -> None:
    """Say what to do with sessions that only their host knows."""
    running = [report for report in reports if report.state == "running"]
    if running:
        one = f"{running[0].host}/{running[0].name}"
        context.progress.note(f"`running` is not forwarded here; `jlr open {one}` does that")


def _show_mounts(reports: list[SessionReport]) -> None:
    from jlremote.cli.screen import tables

    mounts = [mount for report in reports for mount in report.mounts]
    if mounts:
        answer("")
        tables.show_table(tables.MOUNT_HEADINGS, [tables.mount_row(mount) for mount in mounts])
