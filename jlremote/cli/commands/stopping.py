"""`jlr stop`, `restart`, `renew`, `disconnect` and `forget`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_each, answer_either, shown
from jlremote.errors import JlrError, Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions.stop import StopReport


@command("stop")
@click.argument(
    "chosen", nargs=-1, metavar="[SESSION]...", shell_complete=candidates.sessions_and_jobs
)
@option("--container", "Stop the container too.")
@option("--remove", "Stop the container and delete it.")
@option("--all every", "Stop every session of every host.")
@option("--force", "Stop it even if kernels or programs work.")
@shared.yes_option
@shared.json_option("Print a JSON array.")
def stop(
    invocation: Invocation, /, *, chosen: tuple[str, ...], every: bool, **options: bool
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

    Examples:
        jlr stop
        jlr stop dgx/cont1 --container
        jlr stop dgx/cont1 --remove --force
        jlr stop cont1 cont2
        jlr stop train-3f2a --remove                         # a job
    """
    from jlremote.hosts.requests import StopRequest

    request = StopRequest(**options)
    if every and chosen:
        raise Usage(
            "`--all` and a session cannot be combined",
            hint=f"`jlr stop {shlex.join(chosen)}{request.options}` stops only what is named",
        )
    context = invocation.context()
    done = _all_stopped(request, context) if every else _each_stopped(chosen, request, context)
    lines = (
        (f"{one.host}/{one.name}: {', '.join(one.done) or 'nothing to stop'}", vars(one))
        for one in done
    )
    answer_each(lines, context, none="no sessions")


@command("restart")
@click.argument("session", shell_complete=candidates.sessions)
@option("--container", "Restart the container too.")
@option("--force", "Restart it even if kernels or programs work.")
@shared.yes_option
@shared.json_option("Print the session as a JSON object.")
def restart(invocation: Invocation, /, *, session: str, **options: bool) -> None:
    """Stop a session and start it again: a new Jupyter server, on the same local ports.

    It has the variables of `jlr start --env` again; of a cluster's job one with the same options is
    submitted, also when its time is over. Its kernels end. Busy ones, programs in
    terminals and, with the container, all that works in it end only with --force. On a terminal
    --container and --force say what is lost, and ask. A page that is open in the browser must be
    loaded anew, by `jlr open`.

    Examples:
        jlr restart cont1
        jlr restart dgx/cont1 --force        # although kernels work
        jlr restart cont1 --container        # with all else that runs in it
    """
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions import restart as workflow

    request = StopRequest(**options, again=True)
    report = workflow.restart(session, request, invocation.context())
    answer_either(shown(report.address), report.to_json())


@command("renew")
@click.argument("session", required=False, shell_complete=candidates.sessions)
@shared.json_option("Print the successor as a JSON object.")
def renew(invocation: Invocation, session: str | None) -> None:
    """Queue a job that follows the one of a session on a cluster, before its time limit ends that.

    It asks for the same, begins when the present job is over, and takes over the session's name and
    local port. Its kernels are new: variables are lost, files stay. `jlr stop` cancels both jobs.

    Examples:
        jlr renew hpc/work
    """
    from jlremote.sessions import restart as workflow

    report = workflow.renew(session, invocation.context())
    words = (
        f"job {report.job} follows job {report.follows} of {report.host}/{report.name}, with its "
        "name and local port and new kernels; `jlr open` opens it then"
    )
    answer_either(words, report.to_json())


@command("disconnect")
@shared.optional_named_host_argument
@option("--all every", "Every host, also without a session.")
@shared.yes_option
@shared.json_option("Print a JSON array.")
def disconnect(invocation: Invocation, host: str | None, every: bool, yes: bool) -> None:
    """End the connection to a host, and its forwards; Jupyter and its kernels keep running.

    Open shells, copies and ssh clients over it end; a terminal is told which, and asked. Jobs of
    `jlr run` go on. The next command for the host connects again, and may ask for a password or a
    code again; a `jlr list` without HOST does not. On a machine that others use, close its pages
    first: they send their secrets to any program that takes their port.

    Examples:
        jlr disconnect dgx
        jlr disconnect --all --yes
    """
    if every == bool(host):
        raise Usage("name a host or use `--all`", hint="`jlr list` shows the hosts")
    from jlremote.selection import destruction

    context = invocation.context()
    names = destruction.disconnect(host, context, yes=yes)
    ended = ((f"disconnected from {name}", {"host": name}) for name in names)
    none = f"not connected to {host}" if host else "no connections"
    answer_each(ended, context, none=none)


@command("forget")
@shared.named_host_argument
@shared.json_option("Print a JSON array.")
def forget(invocation: Invocation, host: str) -> None:
    """Delete the passwords and passphrases of a host from the keychain.

    Those of its jump hosts are deleted, too. The next login asks again, also whether to remember
    the answer.

    Examples:
        jlr forget dgx
    """
    from jlremote.hosts import links

    context = invocation.context()
    accounts = links.forget(host, context)
    deleted = ((f"forgot the {account}", {"forgotten": account}) for account in accounts)
    answer_each(deleted, context, none=f"nothing is remembered for {host}")


def _each_stopped(
    chosen: tuple[str, ...], request: StopRequest, context: Context
) -> Iterator[StopReport]:
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
    from jlremote.sessions import stop as workflow

    report = workflow.stop_all(request, context)
    yield from report.done
    if report.refused is not None:
        raise report.refused


def _stopped(name: str | None, request: StopRequest, context: Context) -> StopReport:
    from jlremote.jobs import known_jobs
    from jlremote.sessions import stop as workflow

    job = known_jobs.meant(name, context)
    if job is None:
        return workflow.stop(name, request, context)
    if request.container:
        raise Usage(f"`{name}` is a job", hint="`--container` is for sessions")
    done = known_jobs.stop(job, request, context)
    return workflow.StopReport(job.job.name, job.host.name, tuple(done))
