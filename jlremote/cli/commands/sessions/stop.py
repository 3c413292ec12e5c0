"""`jlr stop`, `jlr restart` and `jlr renew`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_each, answer_either, shown
from jlremote.errors import JlrError, Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions.stop import StopReport


@command(
    "stop",
    examples=(
        "jlr stop",
        "jlr stop dgx/cont1 --container",
        "jlr stop dgx/cont1 --remove --force",
        "jlr stop cont1 cont2",
        "jlr stop --all",
        "jlr stop train-3f2a --remove                         # a job",
    ),
)
@click.argument(
    "chosen", nargs=-1, metavar="[SESSION]...", shell_complete=candidates.sessions_and_jobs
)
@click.option("--container", is_flag=True, help="Stop the container too.")
@click.option("--remove", is_flag=True, help="Stop the container and delete it.")
@click.option("--all", "every", is_flag=True, help="Stop every session of every host.")
@click.option("--force", is_flag=True, help="Stop it even if kernels or programs work.")
@shared.yes_option
@shared.json_option("Print a JSON array.")
@click.pass_obj
def stop(
    invocation: Invocation,
    chosen: tuple[str, ...],
    container: bool,
    remove: bool,
    every: bool,
    force: bool,
    yes: bool,
) -> None:
    """Stop a session: its Jupyter server, its kernels and the local port.

    The container keeps running, unless you use --container (stop it) or --remove (stop and delete
    it, with all its files outside volumes). Busy kernels, programs in terminals and, with the
    container, shells, jobs and its own programs are stopped only with --force.

    On a terminal --container, --remove, --force and --all say what is lost, and ask. With one of
    them SESSION must be named if there are several; else the default is never another one than the
    latest.

    SESSION may be a job: it gets SIGTERM, and is killed after ten seconds, or at once with --force.
    --remove then deletes it with its output.
    """
    from jlremote.hosts.requests import StopRequest

    request = StopRequest(container=container, remove=remove, force=force, yes=yes)
    if every and chosen:
        raise Usage(
            "`--all` and a session cannot be combined",
            hint=f"`jlr stop {shlex.join(chosen)}{request.options}` stops only what is named",
        )
    context = invocation.context()
    done = _all_stopped(request, context) if every else _each_stopped(chosen, request, context)
    told = (
        (f"{one.host}/{one.name}: {', '.join(one.done) or 'nothing to stop'}", vars(one))
        for one in done
    )
    answer_each(told, context, none="no sessions")


@command(
    "restart",
    examples=(
        "jlr restart cont1",
        "jlr restart dgx/cont1 --force        # although kernels work",
        "jlr restart cont1 --container        # with all else that runs in it",
    ),
)
@click.argument("session", shell_complete=candidates.sessions)
@click.option("--container", is_flag=True, help="Restart the container too.")
@click.option("--force", is_flag=True, help="Restart it even if kernels or programs work.")
@shared.yes_option
@shared.json_option("Print the session as a JSON object.")
@click.pass_obj
def restart(invocation: Invocation, session: str, container: bool, force: bool, yes: bool) -> None:
    """Stop a session and start it again: a new Jupyter server, on the same local ports.

    It has the variables of `jlr start --env` again; of a cluster's job one with the same options is
    submitted, also when its time is over. Its kernels end. Busy ones, programs in
    terminals and, with the container, all that works in it end only with --force. On a terminal
    --container and --force say what is lost, and ask. A page that is open in the browser must be
    loaded anew, by `jlr open`.
    """
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions import restart as workflow

    request = StopRequest(container=container, force=force, yes=yes, again=True)
    report = workflow.restart(session, request, invocation.context())
    answer_either(shown(report.address), report.to_json())


@command("renew", examples=("jlr renew", "jlr renew hpc/work"))
@click.argument("session", required=False, shell_complete=candidates.sessions)
@shared.json_option("Print the successor as a JSON object.")
@click.pass_obj
def renew(invocation: Invocation, session: str | None) -> None:
    """Queue a job that follows the one of a session on a cluster, before its time limit ends that.

    It asks for the same, begins when the present job is over, and takes over the session's name and
    local port. Its kernels are new: variables are lost, files stay. `jlr stop` cancels both jobs.
    """
    from jlremote.sessions import restart as workflow

    report = workflow.renew(session, invocation.context())
    words = (
        f"job {report.job} follows job {report.follows} of {report.host}/{report.name}, with its "
        "name and local port and new kernels; `jlr open` opens it then"
    )
    answer_either(words, report.to_json())


def _each_stopped(
    chosen: tuple[str, ...], request: StopRequest, context: Context
) -> Iterator[StopReport]:
    """Stop sessions and jobs, the default without a name; then raise what was refused."""
    from jlremote.sessions import stop as workflow

    refused = []
    for name in dict.fromkeys(chosen or (None,)):
        try:
            yield _stopped(name, request, context)
        except JlrError as error:
            refused.append(error)
    if failure := workflow.together(refused):
        raise failure


def _all_stopped(request: StopRequest, context: Context) -> Iterator[StopReport]:
    """Stop all sessions; then raise what was refused."""
    from jlremote.sessions import stop as workflow

    report = workflow.stop_all(request, context)
    yield from report.done
    if report.refused is not None:
        raise report.refused


def _stopped(name: str | None, request: StopRequest, context: Context) -> StopReport:
    """Stop a session or a job and return what was done."""
    from jlremote.jobs import known_jobs
    from jlremote.sessions import stop as workflow

    job = known_jobs.meant(name, context)
    if job is None:
        return workflow.stop(name, request, context)
    if request.container:
        raise Usage(f"`{name}` is a job", hint="`--container` is for sessions")
    done = known_jobs.stop(job, request, context)
    return workflow.StopReport(job.job.name, job.host.name, tuple(done))
