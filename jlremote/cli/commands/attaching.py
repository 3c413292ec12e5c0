"""`jlr job list` and `attach`, `jlr wait` and `jlr shell`; how a job is shown to its end."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen import reports
from jlremote.cli.screen.program_output import JobOutput
from jlremote.cli.screen.terminal import answer_json, as_json
from jlremote.errors import Usage
from jlremote.text import is_name, one_line
from jlremote.times import seconds_of

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.jobs.follow import CtrlC
    from jlremote.jobs.known_jobs import JobHandle
    from jlremote.place.host.job import Job

detach_keys_option = shared.session_option(
    "--detach-keys KEYS", "Keys that detach from a job. Default: ctrl-p,ctrl-q."
)


@command("job list", json="Print a JSON array.")
@shared.optional_host_argument
@option("--clean", "Delete your ended jobs and their output.")
@shared.yes_option
def runs(context: Context, host: str | None, clean: bool, yes: bool) -> None:
    """List the jobs, one per line: those on HOST, or on every host where this machine started one.

    All your jobs on a host are listed, also those that another machine started. --clean deletes
    your ended ones on HOST, without HOST only those that this machine started; it asks before.

    Examples:
        jlr job list
        jlr job list dgx --clean
        jlr job list --json | jq -r '.[] | select(.exit_code > 0) | .name'
    """
    from jlremote.jobs import known_jobs

    if clean:
        for name in known_jobs.clean(host, context, yes=yes):
            context.progress.note(f"deleted {name}")
    listed = list(known_jobs.listed(host, context))
    if as_json():
        answer_json([document(*each) for each in listed])
    elif listed:
        reports.show_rows(listed, reports.JOBS)
        for where, job in listed:
            if job.detail and not job.over:
                context.progress.note(f"`{where}/{job.name}`: {job.detail}")
            elif job.waits:
                context.progress.note(f"`{where}/{job.name}` waits: {job.waits}")
    else:
        context.progress.note("no jobs; `jlr run --help` says how to start one")


@command("job attach", json="Print the job as a JSON object at its end, its output on stderr.")
@click.argument("job", required=False, shell_complete=candidates.jobs)
@option("-i --interactive", "Pass this command's stdin to the job.")
@detach_keys_option
def attach(context: Context, job: str | None, interactive: bool, detach_keys: str | None) -> int:
    """Show a job's output from the beginning, wait for its end and return its exit code.

    JOB is its name, or HOST/NAME if another machine started it. Default: the latest job of this
    machine. Ctrl-C and ctrl-p,ctrl-q end this command, and the job goes on. A job that was begun
    with --rm is deleted afterwards.

    A job that has a terminal (`jlr run -it`) gets this one, with Ctrl-C, until it ends or you leave
    it by ctrl-p,ctrl-q or `~.`; after a lost connection it attaches again by itself. With -i one
    that was begun with -i gets the stdin of this command.

    Examples:
        jlr job attach
        jlr job attach dgx/train-3f2a
        jlr job attach sweep --json | jq .exit_code   # its output goes to stderr
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.jobs import known_jobs
    from jlremote.jobs.follow import CtrlC

    screen = LocalTerminal()
    handle = known_jobs.find(job, context)
    name = handle.selector
    if job is None:
        context.progress.note(f"job {name}")
    leaving: AbstractContextManager[None] = nullcontext()
    if not handle.job.over and screen.in_foreground:
        keys = detach_keys or "ctrl-p,ctrl-q"
        if not handle.job.terminal or screen.kind is None or as_json():
            leaving = nullcontext() if interactive else screen.leaving(keys)
            keys = "Ctrl-C" if interactive else f"Ctrl-C or {keys}"
        context.progress.note(f"{keys} leaves `{name}` running; `jlr job stop {name}` ends it")
    with leaving:
        code, facts = show_to_its_end(
            handle, context, detach_keys, ctrl_c=CtrlC.LEAVES, gives=interactive
        )
    if as_json():
        answer_json(facts)
    return code


def show_to_its_end(
    job: JobHandle, context: Context, detach_keys: str | None, *, ctrl_c: CtrlC, gives: bool = False
) -> tuple[int, dict[str, Any]]:
    """Show a job's output; return its exit code and its JSON; delete a job of `--rm`.

    A job with a terminal gets this one, and may be left running. With `gives` another one gets
    this process's stdin. With `--json` all output goes to stderr, and no job gets this terminal.
    Where Ctrl-C signals the job, the first one on a terminal asks, unless stdin is the job's.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.jobs import follow, known_jobs

    screen, over = LocalTerminal(), True
    if job.job.terminal and not job.job.over and screen.kind is not None and not as_json():
        code, over = follow.attach(job, screen, context, detach_keys)
    else:
        with follow.given(job, screen.piped()) if gives else nullcontext():
            show = JobOutput(beside=as_json()).show
            if ctrl_c and screen.in_foreground and not gives:
                ctrl_c |= follow.CtrlC.ASKS
            code, job = follow.follow(job, show, context, ctrl_c)
    facts = document(job.host.name, job.job)
    if job.job.remove and over:
        known_jobs.remove(job)
    return code, facts


def document(host: str, job: Job) -> dict[str, Any]:
    """Return a job's object of `--json`."""
    return {"host": host} | job.to_json()


@command("wait", json="Print a JSON object for each on a line, once it is done.")
@click.argument(
    "typed", nargs=-1, metavar="[JOB|RUN|SESSION]...", shell_complete=candidates.sessions_and_jobs
)
@option("--for what WHAT", "`idle`, `gpus`, `gpus=N`, `time-left=15m` or `end`.", default="end")
@option(
    "--timeout TIME",
    "Give up after `30s`, `4m`, …, with exit code 124.",
    type=lambda text: seconds_of(text, "`--timeout`"),
    default="off",
)
def wait(context: Context, typed: tuple[str, ...], what: str, timeout: int) -> int:
    """Wait for the end of jobs, of runs of `jlr exec` or of sessions, by default the latest job.

    The exit code is the job's own, of a run 1 if its code failed; of several the highest. RUN is of
    the latest session, SESSION/RUN of another. `idle`: no kernel of a session is busy. `gpus=2`:
    `--gpus 2` would take GPUs of a HOST, the first of several or of a `@POOL`; jobs and runs beside
    it are waited for to their end. `time-left=15m`: Slurm ends a job or session in less.

    Examples:
        jlr wait sweep && jlr cp cont1:result.csv .
        jlr wait dgx/sweep-0 run-3f2a91c04b7e --timeout 4m --json
        jlr wait cont1 --for idle && jlr stop cont1
    """
    from jlremote.sessions import wait as workflow

    codes = [0]
    waited = workflow.targets(typed, what, context)
    for one in workflow.until_done(waited, context, what, timeout):
        if as_json():
            answer_json(vars(one), indent=None)
        context.progress.note(f"`{one.name}`: {one.detail}")
        codes.append(one.exit_code)
    return max(codes)


@command("shell", takes_command=True, takes_line=True)
@shared.where_argument
@option("-u --user USER[:GROUP]", "User in the container.")
@option("-w --workdir FOLDER", "Folder to start in.")
@option(
    "--detach-keys KEYS",
    "Keys that detach, and leave the process running in the container. Default: ctrl-p,ctrl-q.",
)
@option(
    "--keep/--no-keep", "Keep the shell in tmux; the same command attaches. Default: over a loss."
)
@option("--name NAME", "With --keep: name of the shell, to keep several.")
@shared.shared_option
def shell(context: Context, /, *, name: str | None, **options: Any) -> int:
    """Open a terminal in a session's container, or run a command there.

    LINE is for the shell there, as with ssh, so `rsync -e "jlr shell"` and
    GIT_SSH_COMMAND="jlr shell" work. Behind `--`, words stay as they are.

    HOST/CONTAINER may be any running container of the host. HOST is the host itself, and so is a
    session without a container. Exit code and output are those of the command. Without a terminal
    here it gets none there, and its bytes stay unchanged.

    `~.` at the beginning of a line ends it, even without a network; a lost connection ends a
    command. A terminal without one attaches again by itself where the host has tmux, which is not
    noticed otherwise. With --keep it is your own tmux, which a closed window, `~.` and ctrl-b d
    leave running. `keep = true` in the settings does that for each terminal without a command, and
    attaches first to one that no other terminal shows; `keep = false` is --no-keep.

    Examples:
        jlr shell dgx/cont1 htop                     # in any container, also without Jupyter
        jlr shell cont1 --keep                       # again after a loss: the same shell
        jlr shell dgx                                # on the host itself
        jlr shell cont1 -u root -- apt-get install -y git
        jlr shell cont1 -- tar -C /data -c runs | tar -x     # bytes stay unchanged
        jlr shell -- python - < here.py; echo $?
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.sessions import shell as workflow

    screen = LocalTerminal()
    if options["keep"] and screen.kind is None:
        raise Usage("`--keep` needs a terminal here", hint="`jlr run … --detach` is for scripts")
    if name is not None and not options["keep"]:
        raise Usage("`--name` needs `--keep`", hint="`jlr shell … --keep --name NAME`")
    if name is not None and not is_name(name):
        why = f"invalid name `{one_line(name)}`"
        raise Usage(why, hint="use letters, digits, `_`, `.` and `-`")
    request = workflow.ShellRequest(**options, label=name or "")
    return workflow.shell(request, screen, context)
