"""`jlr list`, `jlr status` and `jlr logs`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from jlremote import times
from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer, answer_json, answer_words, as_json, watched
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.listing.report import SessionReport

_LINES = 100


@command(
    "list",
    examples=(
        "jlr list",
        "jlr list dgx                  # include those that other laptops started",
        "jlr list dgx --all            # every container there, of all users",
        "jlr list @lab                 # the sessions on all hosts of [pools.lab]",
        "jlr list --running            # leave out those that were stopped",
        "jlr list --json | jq -r '.[] | select(.state == \"up\") | .url'",
    ),
)
@shared.optional_host_argument
@click.option("--all", "every", is_flag=True, help="List every container of HOST, of all users.")
@click.option("--running", is_flag=True, help="Leave out the sessions that were stopped.")
@shared.json_option("Print a JSON array.")
@click.pass_obj
def list_sessions(invocation: Invocation, host: str | None, every: bool, running: bool) -> None:
    """List the sessions, one per line: host, state, kernels, port, GPUs, image, job of a cluster.

    Without HOST these are the sessions of this laptop; `stopped` are those whose containers still
    run. With HOST, all your sessions on that host, also those that other laptops started: `running`
    are not forwarded here, and `jlr open HOST/NAME` forwards one. Of several, `*` marks the one
    that other commands mean without SESSION. HOST may be a pool, `@NAME`.
    """
    if every and running:
        raise Usage("`--all` and `--running` cannot be combined", hint="leave one of them out")
    if every:
        _list_containers(invocation, host)
        return
    from jlremote.cli.screen import reports, tables
    from jlremote.listing import listing

    context = invocation.context()
    found = listing.reports(context, host, stopped=not running)
    where = f" on `{host}`" if host else ""
    none = f"no sessions{where}; `jlr start HOST CONTAINER` starts one"
    columns = reports.session_columns(found)
    tables.show_reports(found, columns, context, none=none)
    if not as_json():
        _show_reasons(found)
        mounts = [mount for report in found for mount in report.mounts]
        tables.show_section(mounts, reports.MOUNTS)
        for reason in reports.mount_reasons(mounts):
            answer_words(reason)
        _explain_running(found, context)


def _list_containers(invocation: Invocation, host: str | None) -> None:
    if host is None:
        raise Usage("`--all` needs a host", hint="`jlr list HOST --all`")
    from jlremote.cli.screen import reports, tables
    from jlremote.listing.listing import containers

    context = invocation.context()
    found, none = containers(host, context), f"no containers on `{host}`"
    tables.show_reports(found, reports.CONTAINERS, context, none=none)


@command(
    "status",
    examples=(
        "jlr status",
        "jlr status dgx/cont1",
        "jlr status --watch",
        "jlr status cont1 --json | jq -r .state",
    ),
)
@shared.session_argument
@click.option("--watch", is_flag=True, help="Show every change until Ctrl-C.")
@shared.json_option("Print a JSON object; with --watch one per line.")
@click.pass_obj
def status(invocation: Invocation, session: str | None, watch: bool) -> None:
    """Show one session: its state and for how long, its URL, kernels, ports and mounts."""
    context = invocation.context()
    if watch:
        with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
            _watch(session, context)
        return
    from jlremote.listing.listing import report

    found = report(session, context)
    if as_json():
        answer_json(found.to_json())
    else:
        _show(found)


def _watch(session: str | None, context: Context) -> None:
    from jlremote.listing.watch import watch

    changing = watch(session, context)
    if not as_json() and watched(sys.stdout):
        from jlremote.cli.screen import reports, tables

        tables.show_live(map(reports.drawn, changing))
        return
    last = None
    for report in changing:
        facts = report.to_json()
        # That time goes on is no change.
        if (now := facts | {"time_left": None}) == last:
            continue
        last = now
        if as_json():
            answer_json(facts, indent=None)
        else:
            _show(report)
            answer("")


def _show(report: SessionReport) -> None:
    from jlremote.cli.screen import reports, tables

    for line in reports.session_lines(report):
        (answer if line.startswith("url:") else answer_words)(line)  # a URL is not broken at all
    tables.show_section(report.kernels or (), reports.KERNELS)
    tables.show_section(report.ports, reports.PORTS)
    tables.show_section(report.mounts, reports.MOUNTS)
    for reason in (*reports.port_reasons(report.ports), *reports.mount_reasons(report.mounts)):
        answer_words(reason)


def _show_reasons(found: list[SessionReport]) -> None:
    """Print why sessions are not up, and what keeps them, for which no column has room."""
    from jlremote.text import one_line

    explained = [(report, report.detail) for report in found if report.detail]
    kept = ((report, ", ".join(report.awake or ())) for report in found)
    explained += [(report, f"kept from its idle stop by {why}") for report, why in kept if why]
    if explained:
        answer("")
    for report, why in explained:
        answer_words(one_line(f"{report.host}/{report.name}: {why}"))


def _explain_running(found: list[SessionReport], context: Context) -> None:
    """Note what to do with sessions that are not forwarded here."""
    running = next((report for report in found if report.state == "running"), None)
    if running:
        command = f"`jlr open {running.host}/{running.name}`"
        context.progress.note(f"`running` is not forwarded here; {command} forwards it")


@command(
    "logs",
    examples=(
        "jlr logs",
        "jlr logs -f cont1",
        "jlr logs --tail 1000 dgx/cont1 | grep -i error",
        "jlr logs cont1 --since 2h",
        "jlr logs cont1 --container            # what the container's own program wrote",
        "jlr logs -f dgx/train-3f2a            # a job's output",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions_and_jobs)
@click.option("-f", "--follow", is_flag=True, help="Follow the output until Ctrl-C.")
@click.option(
    "-n",
    "--tail",
    type=shared.number(0),
    metavar="N",
    help=f"Start with the last N lines. Default: {_LINES}, with --since all.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Leave out what is older: `30m`, `2h`, or a moment as `2026-01-31T12:00`.",
)
@click.option("--container", is_flag=True, help="Show the log of the container's own program.")
@click.pass_obj
def logs(
    invocation: Invocation,
    session: str | None,
    follow: bool,
    tail: int | None,
    since: str | None,
    container: bool,
) -> None:
    """Show the log of a session's Jupyter server, or the output of a job.

    SESSION may be a job; its stdout and stderr are kept apart, byte for byte.
    """
    from jlremote.hosts.requests import LogRequest
    from jlremote.jobs import known_jobs
    from jlremote.sessions.logs import log

    moment = None if since is None else times.since(since, "`--since`")
    lines = _LINES if tail is None and since is None else tail
    wanted = LogRequest(follow, lines, moment, container)
    context = invocation.context()
    if job := known_jobs.meant(session, context):
        from jlremote.cli.screen.program_output import JobOutput

        known_jobs.log(job, JobOutput().show, wanted)
        return
    for text in log(session, wanted, context):
        answer(text, newline=False)
