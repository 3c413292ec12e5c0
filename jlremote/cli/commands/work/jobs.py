"""`jlr runs` and `jlr attach`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import json_option, optional_host_argument
from jlremote.cli.screen.terminal import answer_json

if TYPE_CHECKING:
    from jlremote.jobs.job import Job

HEADINGS = ("JOB", "HOST", "STATE", "SINCE", "GPUS", "CONTAINER", "COMMAND")


@command(
    "runs",
    examples=(
        "jlr runs",
        "jlr runs dgx",
        "jlr runs dgx --clean",
        "jlr runs --json | jq -r '.[] | select(.exit_code > 0) | .name'",
    ),
)
@optional_host_argument
@click.option("--clean", is_flag=True, help="Delete the ended jobs and their output.")
@json_option("Print a JSON array.")
@click.pass_obj
def runs(invocation: Invocation, host: str | None, clean: bool, as_json: bool) -> None:
    """List the jobs, one per line: those on HOST, or on every host where this machine started one.

    All your jobs on a host are listed, also those that another machine started.
    """
    from jlremote.cli.screen import tables
    from jlremote.workflow.jobs import jobs

    context = invocation.context(silent=as_json)
    if clean:
        for name in jobs.clean(host, context):
            context.progress.note(f"deleted {name}")
    found = list(jobs.listed(host, context))
    if as_json:
        answer_json([{"host": where} | job.to_json() for where, job in found])
    elif found:
        tables.show_table(HEADINGS, [_row(where, job) for where, job in found])
    else:
        context.progress.note("no jobs; `jlr run HOST … -- COMMAND` starts one")


@command("attach", examples=("jlr attach", "jlr attach sweep", "jlr attach dgx/train-3f2a"))
@click.argument("job", required=False, shell_complete=candidates.jobs)
@click.pass_obj
def attach(invocation: Invocation, job: str | None) -> int:
    """Show a job's output from the beginning, wait for its end and return its exit code.

    JOB is its name, or HOST/NAME if another machine started it. Default: the latest job of this
    machine. Ctrl-C is sent to the job, as with `jlr run`.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.workflow.jobs import follow, jobs

    context = invocation.context()
    return follow.follow(jobs.find(job, context), LocalTerminal().show, context)


def _row(host: str, job: Job) -> tuple[str, ...]:
    from jlremote import times

    state = job.state if job.exit_code is None else f"exit {job.exit_code}"
    since = job.since if job.ended is None else job.ended
    return (
        job.name,
        host,
        state,
        times.age(since) if since else "",
        job.gpus or "",
        job.container or "",
        job.command,
    )
