"""`jlr stop`, `rm` and `restart`, `jlr job stop` and `rm`, and `jlr disconnect`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option, options
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_each, answer_either, shown
from jlremote.errors import JlrError, Usage

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions.stop import StopReport


_of_sessions = options(
    click.argument(
        "chosen", nargs=-1, metavar="[SESSION]...", shell_complete=candidates.sessions_and_jobs
    ),
    option("--all every", "Every session of every host."),
    option("--force", "Also if kernels or programs work."),
    shared.yes_option,
)
_of_jobs = options(
    click.argument(
        "chosen", nargs=-1, required=True, metavar="JOB...", shell_complete=candidates.jobs
    ),
    option("--force", "Kill it at once."),
    shared.yes_option,
)


@command("stop", json="Print a JSON array.")
@_of_sessions
@option("--container", "Stop the container too.")
def stop(context: Context, /, **options: Any) -> None:
    """Stop a session: its Jupyter server, its kernels and the local port.

    The container keeps running, unless you use --container; `jlr rm` deletes it. Busy kernels,
    programs in terminals and, with the container, shells, jobs and its own programs are stopped
    only with --force.

    On a terminal --container, --force and --all say what is lost, and ask. Without SESSION, only
    the latest session can be stopped; with one of these options, SESSION must be named if there
    are several.

    SESSION may be a job: see `jlr job stop`.

    Examples:
        jlr stop
        jlr stop dgx/cont1 --container
        jlr stop cont1 cont2
    """
    _stop(context, **options)


@command("rm", json="Print a JSON array.")
@_of_sessions
def remove(context: Context, /, **options: Any) -> None:
    """Stop a session and delete its container, with all its files outside volumes.

    On a terminal it says what is lost, and asks. Busy kernels, shells, jobs and other programs in
    the container end only with --force. SESSION must be named if there are several; it may be a
    job: see `jlr job rm`.

    Examples:
        jlr rm cont1
        jlr rm dgx/cont1 --force
    """
    _stop(context, **options, remove=True)


@command("job stop", json="Print a JSON array.")
@_of_jobs
def stop_job(context: Context, /, **options: Any) -> None:
    """Stop a job; its output stays.

    It gets SIGTERM, and is killed after ten seconds, or at once with --force, which asks first.

    Examples:
        jlr job stop train-3f2a
        jlr job stop dgx/sweep-0 dgx/sweep-1 --force --yes
    """
    _stop(context, **options, jobs=True)


@command("job rm", json="Print a JSON array.")
@_of_jobs
def remove_job(context: Context, /, **options: Any) -> None:
    """Stop a job and delete it with its output and exit code.

    On a terminal it says what is lost, and asks.

    Examples:
        jlr job rm train-3f2a
    """
    _stop(context, **options, jobs=True, remove=True)


@command("restart", json="Print the session as a JSON object.")
@click.argument("session", shell_complete=candidates.sessions)
@option("--container", "Restart the container too.")
@option("--force", "Restart it even if kernels or programs work.")
@shared.yes_option
def restart(context: Context, /, *, session: str, **options: bool) -> None:
    """Stop a session and start it again: a new Jupyter server, on the same local ports.

    Of a cluster's job one with the same options is submitted, also when its time is over. Its
    kernels end. Busy ones, programs in terminals and, with the container, all that works in it end
    only with --force. On a terminal --container and --force say what is lost, and ask. A page that
    is open in the browser must be loaded anew, by `jlr open`.

    Examples:
        jlr restart cont1
        jlr restart dgx/cont1 --force        # although kernels work
        jlr restart cont1 --container        # with all else that runs in it
    """
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions import restart as workflow

    request = StopRequest(**options, again=True)
    report = workflow.restart(session, request, context)
    answer_either(shown(report.address), report.to_json())
    shared.follow_ports(report.host, report.name)


@command("disconnect", json="Print a JSON array.")
@shared.optional_named_host_argument
@option("--all every", "Every host, also without a session.")
@option("--forget forgets", "Delete the host's passwords and passphrases from the keychain, too.")
@shared.yes_option
def disconnect(context: Context, host: str | None, every: bool, forgets: bool, yes: bool) -> None:
    """End the connection to a host, and its forwards; Jupyter and its kernels keep running.

    Open shells, copies and ssh clients over it end; a terminal is told which, and asked. Jobs of
    `jlr run` go on. The next command for the host connects again, and may ask for a password or a
    code again; a `jlr list` without HOST does not. On a machine that others use, close its pages
    first: they send their secrets to any program that takes their port.

    --forget deletes the secrets of its jump hosts, too. The next login asks again, also whether to
    remember the answer.

    Examples:
        jlr disconnect dgx
        jlr disconnect --all --yes
        jlr disconnect dgx --forget
    """
    if every == bool(host):
        raise Usage("name a host or use `--all`", hint="`jlr list` shows the hosts")
    if forgets and host is None:
        raise Usage("`--forget` needs a host", hint="`jlr list` shows the hosts")
    from jlremote.selection import destruction

    names = destruction.disconnect(host, context, yes=yes)
    ended = ((f"disconnected from {name}", {"host": name}) for name in names)
    none = f"not connected to {host}" if host else "no connections"
    if not forgets or host is None:
        answer_each(ended, context, none=none)
        return
    from jlremote.hosts import links

    told = list(ended)
    told += [(f"forgot the {one}", {"forgotten": one}) for one in links.forget(host, context)]
    list(destruction.disconnect(host, context, yes=True))  # of the link that has deleted them
    answer_each(told, context, none=f"{none}, and nothing is remembered for {host}")


def _stop(
    context: Context,
    *,
    chosen: tuple[str, ...],
    every: bool = False,
    jobs: bool = False,
    **options: bool,
) -> None:
    from jlremote.hosts.requests import StopRequest
    from jlremote.sessions import stop as workflow

    request = StopRequest(**options)
    if every and chosen:
        verb, *flags = request.command.split()
        named = shlex.join(("jlr", verb, *chosen, *flags))
        hint = f"`{named}` takes only what is named"
        raise Usage("`--all` and a session cannot be combined", hint=hint)
    each = _each(chosen, request, context, jobs=jobs)
    lines = (
        (f"{one.host}/{one.name}: {', '.join(one.done) or 'nothing to stop'}", vars(one))
        for one in (workflow.stop_all(request, context) if every else each)
    )
    answer_each(lines, context, none="no sessions")


def _each(
    chosen: tuple[str, ...], request: StopRequest, context: Context, *, jobs: bool
) -> Iterator[StopReport]:
    from jlremote.jobs import known_jobs
    from jlremote.sessions import stop as workflow

    refused = []
    for name in dict.fromkeys(chosen or (None,)):
        try:
            job = (known_jobs.find if jobs else known_jobs.meant)(name, context)
            if job is None:
                yield workflow.stop(name, request, context)
            elif request.container:
                raise Usage(f"`{name}` is a job", hint="`--container` is for sessions")
            else:
                done = known_jobs.stop(job, request, context)
                yield workflow.StopReport(job.job.name, job.host.name, tuple(done))
        except JlrError as error:
            refused.append(error)
    if failure := workflow.together(refused):
        raise failure
