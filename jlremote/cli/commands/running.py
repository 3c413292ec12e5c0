"""`jlr run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command
from jlremote.cli.commands.attaching import detach_keys_option, document, show_to_its_end
from jlremote.cli.completion import candidates
from jlremote.cli.options import creation, shared
from jlremote.cli.screen.terminal import answer_either, answer_json, as_json
from jlremote.errors import Usage
from jlremote.laptop.settings.options import IMAGE_RUNTIMES

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import RunRequest, Scheduled


@command(
    "run",
    takes_command=True,
    json="Print the job as a JSON object (of --array: an array), its output on stderr.",
)
@click.argument("place", metavar="[HOST|SESSION]", required=False, shell_complete=candidates.places)
@click.argument("notebook", required=False)
@shared.session_option(
    "--in inside SESSION",
    "Run in this session or running container.",
    shell_complete=candidates.containers,
    common=True,
)
@shared.session_option(
    "-p --parameter parameters NAME=VALUE",
    "Set a variable of the notebook, as papermill does. Repeatable.",
    multiple=True,
)
@shared.session_option(
    "-k --kernel KIND", "Run the notebook with this kind of kernel. Default: the one that it names."
)
@shared.session_option(
    "--sync [=DIR]", "Send this folder, or DIR, there; run in it.", flag_value=".", common=True
)
@shared.session_option(
    "--back GLOB",
    "With --sync: copy these files of it to DIR at the end. Repeatable.",
    multiple=True,
)
@shared.session_option("--name NAME", "Name of the job. Default: random.", common=True)
@shared.session_option("-d --detach", "Print the job's name and do not wait.", common=True)
@shared.session_option("-i --interactive", "With --image: pass this command's stdin to the job.")
@shared.session_option("-t --tty terminal", "With --image: a terminal, this one.", common=True)
@detach_keys_option
@creation.creation_options
@creation.cluster_options
@creation.launcher_options
def run(context: Context, /, *, place: str | None, notebook: str | None, **options: Any) -> int:
    """Run a COMMAND or a notebook as a job; show its output, return its exit code.

    It runs in a new container of --image, in the container of SESSION, or on the host itself with
    --runtime none (these two need Python 3.6 or later on the host); with --slurm it is a job of the
    cluster. With --in, HOST may be left out; without both it is the host of the settings. The job
    keeps running whatever happens here: a lost connection, a closed lid, a killed `jlr`. Output of
    that time is shown later.

    NOTEBOOK and scripts are files on the host, or in the container; --sync sends this folder there
    first, for a new container to the host, mounted at /workspace. What cells print is shown as it
    comes, and the executed copy is beside the notebook, NAME.executed.ipynb. The exit code is 1 if
    a cell fails. nbclient is needed there, which JupyterLab brings.

    With --image, -it attaches the job to this terminal, as `docker run -it` does. ctrl-p,ctrl-q or
    `~.` at the beginning of a line detach, and `jlr job attach` attaches again. -i alone passes the
    stdin of this command to it, which ends with the connection. Without -i it gets none. Elsewhere
    `jlr shell` passes stdin on, and `jlr shell --keep` keeps a command and its terminal.

    Ctrl-C on a terminal asks whether to leave the job running or to interrupt it, and a second one
    interrupts it: SIGINT to all ranks of it. A third one kills it, a fourth leaves it running. In a
    script, and with -i, the first one interrupts it. A job that still waits in Slurm's queue stays
    there, unless --cancel-on-interrupt.

    With --wait and --detach it waits for its GPUs on the host, and begins without this machine.

    With a pool, `@NAME`, it runs on the host of the session, else where most GPU memory is free.

    An ended job is kept, with its output, until `jlr job rm JOB` or `jlr job list --clean`. With
    --rm it is deleted once its output and exit code were read, with --detach by `jlr job attach`.

    With --json the job is printed once it has ended, with its exit code, and at once with --detach;
    of --array it is an array.

    Examples:
        jlr run dgx --image torch --gpus auto -v /raid/me:/data -- python /data/train.py
        jlr run @lab --image torch --gpus auto -- python train.py  # on a host of [pools.lab]
        jlr run dgx --image torch --gpus auto --sync . --back runs -- python train.py
        jlr run cont1 -- python -m pkg.train                 # or dgx/cont1, or dgx --in cont1
        jlr run dgx --image torch --gpus all -it --rm -- python
        jlr run box --runtime none --detach --name sweep -- ./sweep.sh 10
        jlr run dgx --image torch --json -- ./check.sh | jq .exit_code
        jlr run hpc --slurm --gres gpu:1 --time 8:00:00 -- python train.py
        jlr run hpc --slurm --nodes 2 --gres gpu:4 --launcher torchrun -- python train.py
        jlr run dgx --in cont1 train.ipynb -p epochs=10      # a notebook to its end
    """
    if notebook is None and place is not None and place.endswith(".ipynb"):
        place, notebook = None, place
    of_notebook = (options.pop(name) for name in ("kernel", "parameters", "command"))
    command = _of_notebook(notebook, *of_notebook)
    if not command:
        raise Usage("the command is missing", hint=f"`jlr run {place or 'HOST'} … -- COMMAND`")
    if as_json() and options["terminal"] and not options["detach"]:
        raise shared.refused_together("-t", "--json")
    back: tuple[str, ...] = options.pop("back")
    sync: str | None = options.pop("sync")
    _check_sync(sync, back, options)
    watched = _interaction(options)
    from jlremote.jobs import begin as workflow
    from jlremote.jobs.command_file import not_sent
    from jlremote.jobs.follow import CtrlC

    host, inside = _where(place, options.pop("inside"), context)
    given = {"container": options.pop("name"), "wait": options.pop("wait")}
    host = shared.host_of(host, inside, options, context, waits=given["wait"] is not None)
    how, others = creation.parted(host, options)
    with shared.named_as_set(host, {**options, "host": host}):
        request = _request(host, command, inside, others, how, watched, given)
        if how is not None and options["dry_run"]:
            creation.show_estimate(host, how, context)
            return 0
        folder = None
        if sync is not None:
            from jlremote.copies import cp

            workflow.check(request)
            request, folder = cp.sent_first(request, Path(sync).expanduser(), context)
        started = workflow.run(request, context)
    for job in started if request.wanted.notify else ():
        workflow.watch(job, context)
    array = how is not None and how.resources.array
    if request.detach:
        documents = [document(job.host.name, job.job) for job in started]
        names = "\n".join(job.job.name for job in started)
        answer_either(names, documents if array else documents[0])
        return 0
    ctrl_c = CtrlC.SIGNALS
    if options["cancel_on_interrupt"]:
        ctrl_c |= CtrlC.CANCELS
    codes, ends = [], []
    for job in started:
        context.progress.note(f"job {job.selector}")
        gives, keys = request.interactive, request.detach_keys
        code, facts = show_to_its_end(job, context, keys, ctrl_c=ctrl_c, gives=gives)
        codes.append(code)
        ends.append(facts)
        if request.wanted.notify:
            workflow.tell_end(job, code, context)
    if sync is None and (note := not_sent(command, codes)):
        context.progress.note(note)
    if folder is not None and back:
        cp.bring_back(folder, back, context)
    if as_json():
        answer_json(ends if array else ends[0])
    return max(codes)


def _check_sync(sync: str | None, back: tuple[str, ...], options: dict[str, Any]) -> None:
    if sync is not None and options["workdir"] is not None:
        raise shared.refused_together("--sync", "--workdir")
    if not back:
        return
    if sync is None:
        raise Usage("`--back` needs `--sync`", hint="`jlr cp` copies files of any job")
    if options["detach"]:
        raise shared.refused_together("--back", "--detach")
    from jlremote.copies.cp import check_patterns

    check_patterns(back)


def _where(place: str | None, inside: str | None, context: Context) -> tuple[str, str | None]:
    from jlremote.laptop.typed_place import leash

    if place is None and inside is None and (only := leash()) is not None:
        return str(only.host), only.name
    typed = None if place is None else shared.resolved_host(place, context)
    if inside is None:
        return (shared.default_host(), None) if typed is None else (str(typed.host), typed.name)
    if typed is not None and typed.name is not None:
        raise shared.refused_together(str(place), f"--in {inside}")
    from jlremote.laptop.typed_place import resolved
    from jlremote.selection.session_selection import chosen

    if typed is not None and "/" not in inside:
        return str(typed.host), inside  # it need not be known here
    meant = resolved(inside, context.ssh_config, context.progress.note)
    if meant.host is None and (host := shared.setting("host")):
        return host, inside
    if meant.host is None or meant.name is None:
        record = chosen(inside, context)
        return record.host, record.name
    if typed is not None and typed.host != meant.host:
        hint = f"`jlr run {meant.host} --in {meant.name} -- …`"
        raise Usage(f"`{inside}` is not on `{typed.host}`", hint=hint)
    return meant.host, meant.name


def _of_notebook(
    notebook: str | None, kernel: str | None, parameters: tuple[str, ...], command: tuple[str, ...]
) -> tuple[str, ...]:
    if notebook is None and (parameters or kernel is not None):
        given = "-p NAME=VALUE" if parameters else "-k KIND"
        hint = f"name one, as in `train.ipynb {given}`"
        raise Usage(f"`{given[:2]}` is for a notebook", hint=hint)
    if notebook is None:
        return command
    from jlremote.jobs.command_file import notebook_command

    begun = notebook_command(notebook, kernel, parameters)
    if command:
        raise Usage("run either a notebook or a command", hint=f"leave out `{notebook}` or `-- …`")
    return begun


def _interaction(options: dict[str, Any]) -> dict[str, Any]:
    from jlremote.cli.keyboard.local_terminal import LocalTerminal

    names = ("interactive", "terminal", "detach", "detach_keys")
    taken = {name: options.pop(name) for name in names}
    if taken["detach_keys"] and not taken["terminal"]:
        raise Usage("`--detach-keys` needs `-t`", hint="without it Ctrl-C asks, and may leave it")
    taken["interactive"] &= not taken["terminal"]  # which has it anyway
    if taken["terminal"] and not taken["detach"] and LocalTerminal().kind is None:
        raise Usage("`-t` needs a terminal here", hint="leave it out, or begin it with `--detach`")
    return taken


def _request(
    host: str,
    command: tuple[str, ...],
    inside: str | None,
    options: dict[str, Any],
    how: Scheduled | None,
    watched: dict[str, Any],
    given: dict[str, Any],
) -> RunRequest:
    from jlremote.hosts.requests import RunRequest, StartRequest, container_options

    chosen = creation.settled(host, options)
    runtime = chosen.get("runtime")
    if how is not None:
        _check_beside_slurm(inside, options)
        if options["image"] is None and runtime not in IMAGE_RUNTIMES:
            chosen.pop("image", None)  # one of the settings is an engine's
    if inside is None and (runtime in IMAGE_RUNTIMES if how is None else "image" in chosen):
        creation.refuse_of_engines(options, runtime or IMAGE_RUNTIMES[0], "packages")
    elif how is not None:
        creation.refuse_creation(options, "--slurm", "env", "env_file", "workdir", "rm")
    elif inside is not None or runtime == "none":  # no container of its own
        elsewhere = "--runtime none" if inside is None else "--in"
        own = ("env", "env_file", "workdir", "user", "rm")
        creation.refuse_creation(options, elsewhere, *own)
    container = container_options(chosen)
    # Of the settings, `container` and `idle-stop` are those of sessions.
    fields = creation.request_fields(StartRequest, chosen) | {"idle_stop": None} | given
    if inside is not None:
        fields.pop("image", None)
    # The engine must not delete the job before its output was read.
    where = StartRequest(host, options=replace(container, remove=None), **fields)
    return RunRequest(where, command, inside, how, remove=bool(container.remove), **watched)


def _check_beside_slurm(inside: str | None, options: dict[str, Any]) -> None:
    if inside is not None:
        raise shared.refused_together("--in", "--slurm")
    if options["sudo"] or options["runtime"] not in (None, "auto", "none", *IMAGE_RUNTIMES):
        hint = "leave out `--runtime` and `--sudo`; `--image` takes an image for Apptainer"
        raise Usage("`--slurm` runs the command without a container engine", hint=hint)
