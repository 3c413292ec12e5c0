"""`jlr list`, `jlr logs` and `jlr output`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen import reports
from jlremote.cli.screen.program_output import CellOutput, JobOutput
from jlremote.cli.screen.terminal import answer, answer_either, answer_json, as_json, watched
from jlremote.errors import Usage
from jlremote.text import one_line, size_in_words

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.listing.session_report import SessionReport


_LINES = 100


@command("list", json="Print a JSON array, of one session an object; with --watch one per line.")
@click.argument("place", metavar="[HOST|SESSION]", required=False, shell_complete=candidates.places)
@option("--all every", "List every container of HOST, of all users.")
@option("--watch", "Show every change of SESSION, by default of the latest, until Ctrl-C.")
def list_sessions(
    invocation: Invocation, /, *, place: str | None, every: bool, watch: bool
) -> None:
    """List the sessions, one per line: host, state, kernels, port, GPUs, image, job of a cluster.

    Without HOST these are the sessions of this laptop; `stopped` are those whose containers still
    run. With HOST, all your sessions on that host, also those that other laptops started: `running`
    are not forwarded here, and `jlr open HOST/NAME` forwards one. Of several, `*` marks the one
    that other commands mean without SESSION. HOST may be a pool, `@NAME`.

    With SESSION, show that one: its state and for how long, URL, kernels, mounts and open ports.

    Examples:
        jlr list
        jlr list dgx                  # include those that other laptops started
        jlr list cont1                # one session, with kernels, ports and mounts
        jlr list cont1 --watch
        jlr list dgx --all            # every container there, of all users
        jlr list --json | jq -r '.[] | select(.state == "up") | .url'
    """
    context = invocation.context()
    typed = None if place is None else shared.resolved_host(place, context)
    host = None if typed is None else typed.host
    if (typed is None and watch) or (typed is not None and typed.name is not None):
        if every:
            raise Usage("`--all` is for a host", hint="leave it out")
        from jlremote.listing.listing import report

        if watch:
            with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
                # What later looks wait for would be drawn over what is watched.
                _watch(place, context, invocation.context(silent=True))
        elif as_json():
            answer_json(report(place, context, listening=True).to_json())
        else:
            _show(report(place, context, listening=True))
    elif watch:
        raise Usage(f"`{place}` is not a session", hint="`jlr list --watch` watches the latest one")
    elif not every:
        _list_sessions(host, context)
    elif host is None:
        raise Usage("`--all` needs a host", hint="`jlr list` shows the hosts of your sessions")
    else:
        from jlremote.listing.listing import containers

        listed, none = containers(host, context), f"no containers on `{host}`"
        reports.show_reports(listed, reports.CONTAINERS, context, none=none)


def _list_sessions(host: str | None, context: Context) -> None:
    from jlremote.listing import listing

    listed = listing.reports(context, host)
    where = f" on `{host}`" if host else ""
    none = f"no sessions{where}; `jlr start --help` says how to start one"
    some_on_cluster = any(report.job for report in listed)
    columns = {**reports.SESSIONS, **(reports.JOB if some_on_cluster else {})}
    reports.show_reports(listed, columns, context, none=none)
    if as_json():
        return
    explained = [(report, report.detail) for report in listed if report.detail]
    kept = ((report, ", ".join(report.awake or ())) for report in listed)
    explained += [(report, f"kept from its idle stop by {why}") for report, why in kept if why]
    if explained:
        answer("")
    for report, why in explained:
        answer(one_line(f"{report.host}/{report.name}: {why}"))
    mounts = [mount for report in listed for mount in report.mounts]
    reports.show_section(mounts, reports.MOUNTS, reports.mount_reasons)
    running_one = next((report for report in listed if report.state == "running"), None)
    if running_one:
        command = f"`jlr open {running_one.host}/{running_one.name}`"
        context.progress.note(f"`running` is not forwarded here; {command} forwards it")


def _watch(session: str | None, context: Context, later: Context) -> None:
    from jlremote.listing.watch import watch

    changing = watch(session, context, later)
    if not as_json() and watched(sys.stdout):
        reports.show_live(map(reports.drawn, changing))
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
    for line in reports.session_lines(report):
        answer(line)
    reports.show_section(report.kernels or (), reports.KERNELS)
    ports = {**reports.PORTS, "PROGRAM": lambda one: one.program or "-"}
    reports.show_section(report.ports, ports, reports.port_reasons)
    reports.show_section(report.mounts, reports.MOUNTS, reports.mount_reasons)


@command("logs")
@click.argument("session", required=False, shell_complete=candidates.sessions_and_jobs)
@option("-f --follow", "Follow the output until Ctrl-C.")
@option(
    "-n --tail N",
    f"Start with the last N lines. Default: {_LINES}, with --since all.",
    type=shared.number(0),
)
@shared.since_option
@option("--container", "Show the log of the container's own program.")
def logs(context: Context, /, *, session: str | None, **options: Any) -> None:
    """Show the log of a session's Jupyter server, or the output of a job.

    SESSION may be a job; its stdout and stderr are kept apart, byte for byte.

    Examples:
        jlr logs
        jlr logs --tail 1000 dgx/cont1 | grep -i error
        jlr logs cont1 --container            # what the container's own program wrote
        jlr logs -f dgx/train-3f2a            # a job's output
    """
    from jlremote.hosts.requests import LogRequest
    from jlremote.jobs import known_jobs
    from jlremote.sessions.logs import log

    if options["since"] is options["tail"] is None:
        options["tail"] = _LINES
    request = LogRequest(**options)
    if job := known_jobs.meant(session, context):
        known_jobs.log(job, JobOutput().show, request)
        return
    for text in log(session, request, context):
        answer(text, newline=False)


@command("job logs")
@click.argument("job", required=False, shell_complete=candidates.jobs)
@option("-f --follow", "Follow the output until Ctrl-C; the job runs on.")
@option("-n --tail N", "Start with the last N lines. Default: all.", type=shared.number(0))
@shared.since_option
def job_logs(context: Context, /, *, job: str | None, **options: Any) -> None:
    """Show the output of a job; its stdout and stderr are kept apart, byte for byte.

    Default: the latest job of this machine.

    Examples:
        jlr job logs
        jlr job logs -f dgx/train-3f2a
    """
    from jlremote.hosts.requests import LogRequest
    from jlremote.jobs import known_jobs

    handle = known_jobs.find(job, context)
    known_jobs.log(handle, JobOutput().show, LogRequest(**options))


@command(
    "output", json="Print a JSON array, an object for each run of a cell; with -f one per line."
)
@shared.session_argument
@click.argument("notebook", metavar="[NOTEBOOK|RUN]", required=False)
@option("-f --follow", "Show also what comes, until Ctrl-C or the end of RUN.")
@option("-n --tail N", "Start with the last N lines, or with --json runs.", type=shared.number(0))
@option(
    "--save COPY",
    "Write a copy of the notebook with all outputs in their cells.",
    type=click.Path(path_type=Path),
)
@option("--force", "Let --save overwrite the file that it names.")
def output(
    context: Context, /, *, session: str | None, notebook: str | None, save: Path | None, **how: Any
) -> int:
    """Show what a session's cells printed, also while no page was open.

    NOTEBOOK is a path below Jupyter's root, or its end; by default all, with --save the one that
    ran last. RUN is the name that `jlr exec` gives a run. A program on the host records the
    kernels, so a closed lid or a lost connection loses nothing; 200 MB of a session are kept. The
    exit code is 1 if the last cell of a notebook ended with its kernel, and with -f if RUN failed.

    Examples:
        jlr output cont1 train.ipynb
        jlr output -f --tail 20               # the last lines and what comes, until Ctrl-C
        jlr output -f cont1 run-3f2a91c04b7e  # a run of `jlr exec`, to its end
        jlr output train.ipynb --save here.ipynb
        jlr output dgx/cont1 --json | jq -r '.[] | select(.status == "error") | .code'
    """
    from jlremote.output.runs import is_run

    names_no_session = session is not None and (session.endswith(".ipynb") or is_run(session))
    if names_no_session and notebook is None:
        session, notebook = None, session
    follow, tail, force = (how[name] for name in ("follow", "tail", "force"))
    if force and save is None:
        raise Usage("`--force` is for `--save`", hint="add `--save COPY.ipynb`")
    if save is None:
        print_output = _follow_output if follow else _show_output
        return print_output(session, notebook, context, tail)
    if follow or tail is not None:
        raise shared.refused_together("--save", "--follow" if follow else "--tail")
    _save_copy(session, notebook, save, context, force=force)
    return 0


def _show_output(
    session: str | None, notebook: str | None, context: Context, tail: int | None
) -> int:
    from jlremote.output import view
    from jlremote.output.reading import recorded
    from jlremote.output.runs import KERNEL_ENDS

    outputs = recorded(session, notebook, context, end_only=not as_json())
    latest = {run.notebook: run for run in outputs.runs}.values()
    code = 1 if any(run.status in KERNEL_ENDS for run in latest) else 0
    if as_json():
        answer_json([run.to_json() for run in _last(outputs.runs, tail)])
        return code
    CellOutput().show(_last(view.whole(outputs.runs, outputs.lost), tail))
    if not outputs.runs:
        context.progress.note("no cell has run")
    if outputs.left_out:
        name = f"{outputs.session.host}/{outputs.session.name}"
        context.progress.note(
            f"{size_in_words(outputs.left_out)} of older records are left out; "
            f"`jlr output {name} --json` has them"
        )
    return code


def _last(items: list[Any], count: int | None) -> list[Any]:
    return items if count is None else items[len(items) - min(count, len(items)) :]


def _follow_output(
    session: str | None, notebook: str | None, context: Context, tail: int | None
) -> int:
    from jlremote.output.reading import followed
    from jlremote.output.view import Live, ended

    records, status = followed(session, notebook, context), ""
    if as_json():
        for run in ended(record for record in records if record is not None):
            answer_json(run.to_json(), indent=None)
            status = run.status
        return 0 if status == "ok" else 1
    before = list(iter(records.__next__, None))
    live, screen = Live(), CellOutput()
    screen.show(_last(live.begin(filter(None, before)), tail), live.current)
    ends = (record.text("status") for record in reversed(before) if record and record.kind == "end")
    status = next(ends, "")
    for record in filter(None, records):  # without end, but where it is a run of `jlr exec`
        screen.show(live.take(record), live.current)
        status = record.text("status") if record.kind == "end" else status
    return 0 if status == "ok" else 1


def _save_copy(
    session: str | None, notebook: str | None, copy: Path, context: Context, *, force: bool
) -> None:
    from jlremote.output import notebook_copy
    from jlremote.output.reading import recorded

    notebook_copy.check_destination(copy, force=force)
    saved = notebook_copy.save(recorded(session, notebook, context), copy, context, force=force)
    cells = "1 cell" if saved.cells == 1 else f"{saved.cells} cells"
    text = f"`{saved.file}` is `{one_line(saved.notebook)}` with the outputs of {cells}"
    answer_either(text, saved.to_json())
    if saved.incomplete:
        context.progress.note(
            f"some output of {saved.incomplete} of them was not recorded; `jlr output` says why"
        )
    if saved.homeless:
        context.progress.note(
            f"{saved.homeless} further runs belong to cells that are no longer in the notebook; "
            "`jlr output` shows them"
        )
