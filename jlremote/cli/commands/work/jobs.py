"""`jlr runs` and `jlr attach`, and how a job is shown to its end."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_json, as_json

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.jobs.known_jobs import JobHandle
    from jlremote.place.host.job import Job

detach_keys_option = option(
    "Session",
    "--detach-keys",
    type=shared.detach_keys,
    metavar="KEYS",
    help="Keys that detach from a job's terminal. Default: ctrl-p,ctrl-q.",
)
HEADINGS = ("JOB", "HOST", "STATE", "SINCE", "GPUS", "WHERE", "COMMAND")


@command(
    "runs",
    examples=(
        "jlr runs",
        "jlr runs dgx",
        "jlr runs dgx --clean",
        "jlr runs --json | jq -r '.[] | select(.exit_code > 0) | .name'",
    ),
)
@shared.optional_host_argument
@click.option("--clean", is_flag=True, help="Delete your ended jobs and their output.")
@shared.yes_option
@shared.json_option("Print a JSON array.")
@click.pass_obj
def runs(invocation: Invocation, host: str | None, clean: bool, yes: bool) -> None:
    """List the jobs, one per line: those on HOST, or on every host where this machine started one.

    All your jobs on a host are listed, also those that another machine started. --clean deletes
    your ended ones on HOST, without HOST only those that this machine started; it asks before.
    """
    from jlremote.cli.screen import tables
    from jlremote.jobs import known_jobs

    context = invocation.context()
    if clean:
        for name in known_jobs.clean(host, context, yes=yes):
            context.progress.note(f"deleted {name}")
    found = list(known_jobs.listed(host, context))
    if as_json():
        answer_json([document(*each) for each in found])
    elif found:
        tables.show_table(HEADINGS, [_row(where, job) for where, job in found])
        for where, job in found:
            if job.detail and not job.over:
                context.progress.note(f"`{where}/{job.name}`: {job.detail}")
            elif job.waits:
                context.progress.note(f"`{where}/{job.name}` waits: {job.waits}")
    else:
        context.progress.note("no jobs; `jlr run HOST … -- COMMAND` starts one")


@command(
    "attach",
    examples=(
        "jlr attach",
        "jlr attach sweep",
        "jlr attach dgx/train-3f2a",
        "jlr attach sweep --json | jq .exit_code   # its output goes to stderr",
    ),
)
@click.argument("job", required=False, shell_complete=candidates.jobs)
@click.option("-i", "--interactive", is_flag=True, help="Pass this command's stdin to the job.")
@detach_keys_option
@shared.json_option("Print the job as a JSON object at its end, its output on stderr.")
@click.pass_obj
def attach(
    invocation: Invocation, job: str | None, interactive: bool, detach_keys: str | None
) -> int:
    """Show a job's output from the beginning, wait for its end and return its exit code.

    JOB is its name, or HOST/NAME if another machine started it. Default: the latest job of this
    machine. Ctrl-C is sent to the job, as with `jlr run`. A job that was begun with --rm is deleted
    afterwards.

    A job that has a terminal (`jlr run -it`) gets this one, until it ends or you leave it. With -i
    one that was begun with -i gets the stdin of this command.
    """
    from jlremote.jobs import known_jobs

    context = invocation.context()
    found = known_jobs.find(job, context)
    if job is None:
        context.progress.note(f"job {found.selector}")
    told: list[dict[str, Any]] | None = [] if as_json() else None
    code = show_to_its_end(found, context, detach_keys, gives=interactive, told=told)
    for each in told or ():
        answer_json(each)
    return code


def show_to_its_end(
    found: JobHandle,
    context: Context,
    detach_keys: str | None,
    *,
    cancels: bool = False,
    gives: bool = False,
    told: list[dict[str, Any]] | None = None,
) -> int:
    """Show a job's output and return its exit code; delete it then if it was begun with `--rm`.

    A job with a terminal gets this one, and may be left running. With `gives` another one gets
    this process's stdin. With `told`, to which the job's object is added at its end, all output
    goes to stderr, and no job gets this terminal.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.cli.screen.program_output import JobOutput
    from jlremote.jobs import follow, known_jobs, streams

    screen = LocalTerminal()
    has_terminal = found.job.terminal and not found.job.over and screen.kind is not None
    if has_terminal and told is None:
        code, over = streams.attach(found, screen, context, detach_keys)
    else:
        with streams.given(found, screen.piped()) if gives else nullcontext():
            show = JobOutput(beside=told is not None).show
            code, found = follow.follow(found, show, context, cancels=cancels)
            over = True
    if told is not None:
        told.append(document(found.host.name, found.job))
    if found.job.remove and over:
        known_jobs.remove(found)
    return code


def document(host: str, job: Job) -> dict[str, Any]:
    """Return a job's object of `--json`."""
    return {"host": host} | job.to_json()


def _row(host: str, job: Job) -> tuple[str, ...]:
    from jlremote import times

    since = job.since if job.ended is None else job.ended
    return (
        job.name,
        host,
        _state(job),
        times.age(since) if since else "",
        job.gpus or "",
        job.container or job.node or "",
        job.command,
    )


def _state(job: Job) -> str:
    """Return the state; with a scheduler's limit, or how a job ended that it or its wait ended."""
    from jlremote import times

    if (job.job or job.since is None) and job.over and job.detail:
        return job.detail.partition(": ")[0]
    if job.until is not None and not job.over:
        return f"{job.state}, {times.left(job.until)} left"
    return job.state if job.exit_code is None else f"exit {job.exit_code}"
