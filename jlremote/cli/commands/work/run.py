"""`jlr run`."""

from __future__ import annotations

from typing import Any

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.options.creation import creation_options, refuse_creation, settled
from jlremote.cli.options.engine import runtime_options
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import Usage


@command(
    "run",
    takes_command=True,
    examples=(
        "jlr run dgx --image torch --gpus auto -v /raid/me:/data -- python /data/train.py",
        "jlr run dgx --in cont1 -- python -m pkg.train",
        "jlr run dgx --in cont1 --gpus none -- python -m pkg.prepare",
        "jlr run hpc --runtime none --detach --name sweep -- ./sweep.sh 10",
        "jlr attach sweep",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.option(
    "--in",
    "inside",
    metavar="SESSION",
    shell_complete=candidates.sessions,
    help="Run in the container of this session, or any other that runs there.",
)
@click.option(
    "--name", metavar="NAME", help="The job's name, and its container's. Default: made up."
)
@click.option("-d", "--detach", is_flag=True, help="Print the job's name and do not wait.")
@creation_options
@runtime_options
@click.option("--json", "as_json", is_flag=True, help="With --detach: print the job as an object.")
@click.pass_obj
def run(
    invocation: Invocation,
    /,
    *,
    host: str,
    inside: str | None,
    name: str | None,
    detach: bool,
    as_json: bool,
    command: tuple[str, ...],
    **options: Any,
) -> int:
    """Run a COMMAND as a job, show its output and pass its exit code on.

    It runs in a new container of --image, --in a session's, or with --runtime none on the host
    itself. It goes on whatever happens here: a lost connection, a closed lid, a killed `jlr`.
    Output that came meanwhile is caught up with. It reads nothing from stdin.

    Ctrl-C asks the job to stop (SIGINT); a second one kills it, a third leaves it alone.

    A job that has ended is kept, with its output, until `jlr stop JOB --remove` or
    `jlr runs --clean`; with --rm it is deleted once its exit code is here.
    """
    _check(host, command, detach=detach, as_json=as_json)
    from jlremote.workflow.jobs import run as workflow

    request, remove = _request(host, command, name, inside, detach, options)
    context = invocation.context(silent=as_json)
    found = workflow.run(request, context)
    if detach:
        answer_json(found.job.to_json()) if as_json else answer(found.job.name)
        return 0
    from jlremote.cli.screen.shell_screen import LocalScreen
    from jlremote.workflow.jobs import follow, jobs

    context.progress.note(f"job {found.selector}")
    code = follow.follow(found, LocalScreen().show, context)
    if remove:
        jobs.remove(found)
    return code


def _check(host: str, command: tuple[str, ...], *, detach: bool, as_json: bool) -> None:
    """See that what was given goes together.

    Raises:
        Usage: it does not.
    """
    if not command:
        raise Usage("no command was given", hint=f"`jlr run {host} … -- COMMAND`")
    if as_json and not detach:
        raise Usage("`--json` goes with `--detach`", hint="`jlr runs --json` lists the jobs")


def _request(
    host: str,
    command: tuple[str, ...],
    name: str | None,
    inside: str | None,
    detach: bool,
    options: dict[str, Any],
) -> tuple[Any, bool]:
    """Return the request, and whether the job is deleted when it has been seen to its end."""
    from dataclasses import replace

    from jlremote.workflow.host.requests import RunRequest, container_options

    chosen = settled(host, options)
    if elsewhere := _elsewhere(inside, chosen):
        refuse_creation(options, elsewhere, "env", "workdir", "user", "rm")
    wanted = container_options(chosen)
    # The engine would delete it before anybody has asked how it ended.
    remove = bool(wanted.remove) and not detach
    if remove:
        wanted = replace(wanted, remove=None)
    request = RunRequest(
        host,
        command,
        name=name,
        name_rule=chosen.get("name", "{name}"),
        inside=inside,
        runtime=chosen.get("runtime", "auto"),
        sudo=chosen.get("sudo", False),
        image=None if inside else chosen.get("image"),
        workspace=chosen.get("workspace"),
        options=wanted,
        gpus=chosen.get("gpus"),
        share_gpus=chosen.get("share-gpus", False),
    )
    return request, remove


def _elsewhere(inside: str | None, chosen: dict[str, Any]) -> str | None:
    """Return the option by which a job has no container of its own, `None` if it has one."""
    if inside is not None:
        return "--in"
    return "--runtime none" if chosen.get("runtime") == "none" else None
