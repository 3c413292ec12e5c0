"""`jlr run`, `jlr runs` and `jlr attach`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import cluster, creation, shared
from jlremote.cli.screen.terminal import answer, answer_either, answer_json
from jlremote.errors import Usage
from jlremote.storage.settings.options import IMAGE_RUNTIMES

if TYPE_CHECKING:
    from jlremote.jobs.job import Job
    from jlremote.workflow.host.context import Context
    from jlremote.workflow.host.requests import RunRequest, Scheduled
    from jlremote.workflow.jobs.jobs import JobHandle

_detach_keys = option(
    "Session",
    "--detach-keys",
    type=shared.DETACH_KEYS,
    metavar="KEYS",
    help="Keys that detach from a job's terminal. Default: ctrl-p,ctrl-q.",
)
HEADINGS = ("JOB", "HOST", "STATE", "SINCE", "GPUS", "WHERE", "COMMAND")


@command(
    "run",
    takes_command=True,
    examples=(
        "jlr run dgx --image torch --gpus auto -v /raid/me:/data -- python /data/train.py",
        "jlr run @lab --image torch --gpus auto -- python train.py  # on a host of [pools.lab]",
        "jlr run dgx --in cont1 -- python -m pkg.train",
        "jlr run dgx --in cont1 --gpus none -- python -m pkg.prepare",
        "jlr run dgx --image torch --gpus all -it --rm -- python",
        "jlr run dgx --image torch -i -- python - < here.py",
        "jlr run box --runtime none --detach --name sweep -- ./sweep.sh 10",
        "jlr run hpc --slurm --gres gpu:1 --time 8:00:00 -- python train.py",
        "jlr run hpc --slurm --nodes 2 --gres gpu:4 --launcher torchrun -- python train.py",
        "jlr run dgx --in cont1 train.ipynb -p epochs=10      # a notebook to its end",
        "jlr attach sweep",
    ),
)
@shared.host_argument
@click.argument("notebook", required=False)
@option(
    "Session",
    "--in",
    "inside",
    metavar="SESSION",
    shell_complete=candidates.sessions,
    help="Run in the container of this session, or in any running container.",
)
@option(
    "Session",
    *("-p", "--parameter", "parameters"),
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a variable of the notebook, as papermill does. Repeatable.",
)
@option(
    "Session", "--name", metavar="NAME", help="Name of the job and its container. Default: random."
)
@option("Session", "-d", "--detach", is_flag=True, help="Print the job's name and do not wait.")
@option(
    "Session", "-i", "--interactive", is_flag=True, help="Pass this command's stdin to the job."
)
@option("Session", "-t", "--tty", "terminal", is_flag=True, help="Attach the job to this terminal.")
@_detach_keys
@creation.creation_options
@shared.wait_option
@shared.runtime_options
@cluster.cluster_options
@cluster.launcher_options
@shared.json_option("With --detach: print the job as a JSON object, an array's as an array.")
@click.pass_obj
def run(
    invocation: Invocation,
    /,
    *,
    host: str,
    notebook: str | None,
    parameters: tuple[str, ...],
    inside: str | None,
    name: str | None,
    as_json: bool,
    wait: str | None,
    command: tuple[str, ...],
    **options: Any,
) -> int:
    """Run a COMMAND or a notebook as a job, show its output and return its exit code.

    It runs in a new container of --image, in a session's container with --in, or on the host itself
    with --runtime none; with --slurm it is a job of the cluster. It keeps running whatever happens
    here: a lost connection, a closed lid, a killed `jlr`. Output of that time is shown later.

    NOTEBOOK is one on the host, or in the container. What its cells print is shown as it comes, and
    the executed copy is beside it, NAME.executed.ipynb. The exit code is 1 if a cell fails. It
    needs nbclient there, which JupyterLab brings.

    -it attaches it to this terminal, as `docker run -it` does. ctrl-p,ctrl-q or `~.` at the
    beginning of a line detach, and `jlr attach` attaches again. -i alone passes it the stdin of
    this command, which ends with the connection. Without -i it gets none.

    Ctrl-C sends SIGINT to the job, to all ranks of it; a second one kills it, a third leaves it
    running. A job that still waits in Slurm's queue stays there, unless --cancel-on-interrupt.

    With a pool, `@NAME`, it runs on the host of the session, else where most GPU memory is free.

    An ended job is kept, with its output, until `jlr stop JOB --remove` or `jlr runs --clean`. With
    --rm it is deleted once its output and exit code were read, with --detach by `jlr attach`.
    """
    command, options = _of_notebook(notebook, parameters, command, options)
    if not command:
        raise Usage("the command is missing", hint=f"`jlr run {host} … -- COMMAND`")
    if as_json and not options["detach"]:
        raise Usage("`--json` needs `--detach`", hint="`jlr runs --json` lists the jobs")
    watched = _interaction(options)
    from jlremote.workflow.jobs import run as workflow

    context = invocation.context(silent=as_json)
    host = shared.host_of(host, inside, options, context, waits=wait is not None)
    how, others = cluster.parted(host, options)
    with creation.named_as_set(host, options):
        request = replace(_request(host, command, name, inside, others, how), **watched)
        request = replace(request, wanted=replace(request.wanted, wait=shared.waiting(wait)))
        if how is not None and options["dry_run"]:
            from jlremote.workflow.jobs.scheduled import estimate

            answer(estimate(host, how, context))
            return 0
        found = workflow.run(request, context)
    if request.detach:
        told = [_document(each.host.name, each.job) for each in found]
        names = "\n".join(each.job.name for each in found)
        array = how is not None and how.resources.array
        answer_either(names, told if array else told[0], as_json=as_json)
        return 0
    codes = []
    for each in found:
        context.progress.note(f"job {each.selector}")
        cancels = options["cancel_on_interrupt"]
        gives, keys = request.interactive, request.detach_keys
        codes.append(_shown_to_its_end(each, context, keys, cancels=cancels, gives=gives))
    return max(codes)


def _of_notebook(
    notebook: str | None,
    parameters: tuple[str, ...],
    command: tuple[str, ...],
    options: dict[str, Any],
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the command and the options of a job; those that run the notebook, if one is named.

    Raises:
        Usage: there is a notebook and a command, or a parameter and no notebook.
    """
    if notebook is None and parameters:
        raise Usage("`-p` is for a notebook", hint="`jlr run HOST … train.ipynb -p NAME=VALUE`")
    if notebook is None:
        return command, options
    from jlremote.jobs import notebook as program

    program.check(notebook, parameters)
    if command:
        raise Usage("run either a notebook or a command", hint=f"leave out `{notebook}` or `-- …`")
    given = (*options["env"], program.environment())
    return program.command(notebook, parameters), options | {"env": given}


def _interaction(options: dict[str, Any]) -> dict[str, Any]:
    """Take what says how the job is watched out of the options, and return it.

    Raises:
        Usage: there is no terminal here.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal

    names = ("interactive", "terminal", "detach", "detach_keys")
    taken = {name: options.pop(name) for name in names}
    taken["interactive"] &= not taken["terminal"]  # which has it anyway
    if taken["terminal"] and not taken["detach"] and LocalTerminal().kind is None:
        raise Usage("`-t` needs a terminal here", hint="leave it out, or begin it with `--detach`")
    return taken


def _request(
    host: str,
    command: tuple[str, ...],
    name: str | None,
    inside: str | None,
    options: dict[str, Any],
    how: Scheduled | None,
) -> RunRequest:
    """Return the request; the engine must not delete the job before it was read."""
    from jlremote.workflow.host.requests import RunRequest, StartRequest, container_options

    chosen = creation.settled(host, options)
    if how is not None:
        if options["image"] is None and chosen.get("runtime") not in IMAGE_RUNTIMES:
            chosen.pop("image", None)  # one of the settings is an engine's
        _refuse_beside_slurm(inside, options, chosen)
    elif inside is not None or chosen.get("runtime") == "none":  # no container of its own
        elsewhere = "--runtime none" if inside is None else "--in"
        creation.refuse_creation(options, elsewhere, "env", "env_file", "workdir", "user", "rm")
    elif chosen.get("runtime") in IMAGE_RUNTIMES:
        creation.refuse_of_engines(options, chosen["runtime"], "packages")
    wanted = container_options(chosen)
    # Of the settings, `container` and `idle-stop` are those of sessions.
    fields = creation.request_fields(StartRequest, chosen) | {"container": name, "idle_stop": None}
    if inside is not None:
        fields.pop("image", None)
    where = StartRequest(host, options=replace(wanted, remove=None), **fields)
    return RunRequest(where, command, inside, how, remove=bool(wanted.remove))


def _refuse_beside_slurm(
    inside: str | None, options: dict[str, Any], chosen: dict[str, Any]
) -> None:
    """Refuse what only engines and single machines have; settings are left alone."""
    if "image" in chosen:
        creation.refuse_of_engines(options, chosen.get("runtime", IMAGE_RUNTIMES[0]), "packages")
    else:
        creation.refuse_creation(options, "--slurm", "env", "env_file", "workdir", "rm")
    if options["gpus"] or options["share_gpus"]:
        raise Usage("`--gpus` is not for a cluster", hint="`--slurm --gres gpu:N` asks for N GPUs")
    if inside is not None:
        raise Usage(
            "`--in` and `--slurm` cannot be combined", hint="`--no-slurm`, or leave out `--in`"
        )
    if options["sudo"] or options["runtime"] not in (None, "auto", "none", *IMAGE_RUNTIMES):
        raise Usage(
            "`--slurm` runs the command without a container engine",
            hint="leave out `--runtime` and `--sudo`; `--image` takes an image for Apptainer",
        )


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
def runs(invocation: Invocation, host: str | None, clean: bool, yes: bool, as_json: bool) -> None:
    """List the jobs, one per line: those on HOST, or on every host where this machine started one.

    All your jobs on a host are listed, also those that another machine started. --clean deletes
    your ended ones on HOST, without HOST only those that this machine started; it asks before.
    """
    from jlremote.cli.screen import tables
    from jlremote.workflow.jobs import jobs

    context = invocation.context(silent=as_json)
    if clean:
        for name in jobs.clean(host, context, yes=yes):
            context.progress.note(f"deleted {name}")
    found = list(jobs.listed(host, context))
    if as_json:
        answer_json([_document(*each) for each in found])
    elif found:
        tables.show_table(HEADINGS, [_row(where, job) for where, job in found])
        for where, job in found:
            if job.detail and not job.over:
                context.progress.note(f"`{where}/{job.name}`: {job.detail}")
    else:
        context.progress.note("no jobs; `jlr run HOST … -- COMMAND` starts one")


@command("attach", examples=("jlr attach", "jlr attach sweep", "jlr attach dgx/train-3f2a"))
@click.argument("job", required=False, shell_complete=candidates.jobs)
@click.option("-i", "--interactive", is_flag=True, help="Pass this command's stdin to the job.")
@_detach_keys
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
    from jlremote.workflow.jobs import jobs

    context = invocation.context()
    return _shown_to_its_end(jobs.find(job, context), context, detach_keys, gives=interactive)


def _shown_to_its_end(
    found: JobHandle,
    context: Context,
    detach_keys: str | None,
    *,
    cancels: bool = False,
    gives: bool = False,
) -> int:
    """Show a job's output and return its exit code; delete it then if it was begun with `--rm`.

    A job with a terminal gets this one, and may be left running. With `gives` another one gets
    this process's stdin.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.cli.screen.job_output import JobOutput
    from jlremote.workflow.jobs import follow, jobs, stdin, terminal

    screen = LocalTerminal()
    if found.job.terminal and not found.job.over and screen.kind is not None:
        code, over = terminal.attach(found, screen, context, detach_keys)
    else:
        with stdin.given(found, screen.piped()) if gives else nullcontext():
            code, over = follow.follow(found, JobOutput().show, context, cancels=cancels), True
    if found.job.remove and over:
        jobs.remove(found)
    return code


def _document(host: str, job: Job) -> dict[str, Any]:
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
    """Return the state, with what a scheduler knows of it: its limit, or how it ended the job."""
    from jlremote import times

    if job.job and job.over and job.detail:
        return job.detail.partition(":")[0]
    if job.until is not None and not job.over:
        return f"{job.state}, {times.left(job.until)} left"
    return job.state if job.exit_code is None else f"exit {job.exit_code}"
