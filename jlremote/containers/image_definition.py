"""Definition of a session in an image, for a runtime whose sessions are processes of the host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from jlremote.containers import new_container
from jlremote.containers.host_folders import WORKSPACE, found_on_host, with_workspace
from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import allocation
from jlremote.gpus.choice import parse_request
from jlremote.hosts.engines import look_further
from jlremote.hosts.requests import StartContext
from jlremote.images import image_files
from jlremote.images.image_files import DOCKER, file_name, is_reference, login_hint
from jlremote.jupyter import scripts
from jlremote.jupyter.survey import Survey, survey
from jlremote.place.clusters.scheduler import KEY
from jlremote.place.host.contract import attempt, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes import processes
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.place.runtimes.engine.kinds import Argv
from jlremote.place.runtimes.runtime import Attachment, Container, ContainerSpec, Runtime
from jlremote.text import one_line, printable

_TAKEN = 75  # sysexits.h: EX_TEMPFAIL
_MISSING = 127  # as a shell says it
_TRY_SECONDS = 600.0  # an image that has to be unpacked first takes minutes
# The program says `FATAL:   …`, and the part of it that makes the container `ERROR  : …`.
_FATAL = re.compile(r"^(?:FATAL|ERROR) *: *(.+)", re.MULTILINE)
_UNKNOWN = re.compile(r"unknown (?:shorthand )?flag: (?:'\w' in )?(-\S+)")
# Shell text for a job's own folder, which is `$directory` there.
_JOB = "jlr_job_folder"
JOB_FOLDER = f'{_JOB}=$directory; export {_JOB}; mkdir -p "$directory/tmp"\n'


def define(start: StartContext) -> tuple[StartContext, Container, Survey]:
    """Define the session, try its image and return it, with the packages that were asked for.

    Raise `NotFound` if there is no such image, or none was named, `EngineMissing` if the program is
    not installed, and `JlrError` if the image or an option is refused.
    """
    typed = start.request.image
    if typed is None:
        what = f"`{start.request.host}` has no session `{start.name}`, and no `--image` was given"
        raise NotFound(what, hint="add `--image x.sif`, `--image docker://…` or `--image FOLDER`")
    start = allocation.by_uuid(start)
    with start.context.progress.step(f"Create {start.name} from {typed}"):
        image = _image(start, typed)
        _write(start, _spec(start, image))
        _try(start, image)
        found = survey(start.host, start.runtime, start.name)
    if found.container is None:
        raise JlrError(f"the definition of `{start.name}` is gone")
    new_container.install(start, start.request.options.packages)
    return with_its_gpus(start, found.container), found.container, found


def with_its_gpus(start: StartContext, container: Container) -> StartContext:
    """Return the start with the GPUs that the session was defined with."""
    return replace(start, request=replace(start.request, gpus=container.engine_gpus))


def use_again(start: StartContext, container: Container) -> None:
    """Try the image of a session whose server does not run, and complete its packages."""
    with start.context.progress.step(f"Start {start.name}"):
        _try(start, str(container.image))
    new_container.install_again(start, container)


def plan(start: StartContext) -> list[str]:
    """Return the script that would enter the session; for `--dry-run`."""
    spec = _spec(start, str(start.request.image))
    return [processes.enter(start.runtime.program, spec, _folder(start.runtime, start.name))]


def differ(typed: str, image: str) -> bool:
    """Return whether a session's image is another than the typed one, as far as names tell."""
    name = file_name(typed) if is_reference(typed) else PurePosixPath(typed).name
    return PurePosixPath(image).name != name


def _spec(start: StartContext, image: str) -> ContainerSpec:
    wanted = with_workspace(start.request.options, start.request.workspace, start.host.name)
    options = found_on_host(wanted, start.host)
    gpus = start.request.gpus
    if gpus is not None and parse_request(gpus).kind == "none":
        gpus = None
    return ContainerSpec(start.name, image, options=options, gpus=gpus)


def entered(
    start: StartContext,
    command: Argv,
    how: Attachment,
    environment: Mapping[str, str],
    *,
    elsewhere: bool = False,
) -> Argv:
    """Return the command of a job in the image of the request, which runs in `JOB_FOLDER`.

    One that runs `elsewhere`, and later, has its image tried here, if the program is here. Raise
    `NotFound` if there is no such image, `JlrError` if it is refused.
    """
    typed = str(start.request.image)
    installed = _is_installed(start.runtime.program)
    with start.context.progress.step(f"Look for {typed}"):
        if not elsewhere and run_script(start.host, installed).status != 0:
            _look_further(start)
        spec = _spec(start, _image(start, typed))
        if elsewhere:
            trial = command_line((start.runtime.program, "exec", spec.image, "true"))
            _run_trial(start, spec.image, trial, elsewhere=True)
    # They are set as those of a process, not as arguments.
    spec = replace(spec, options=replace(spec.options, environment=(), workdir=None))
    workdir = how.workdir or (WORKSPACE if start.request.workspace else None)
    begun = processes.attached(start.name, command, replace(how, workdir=workdir), environment)
    text = processes.enter(start.runtime.program, spec, f'"${_JOB}"')
    return ("sh", "-c", text, "sh", *begun)


def pulled_first(start: StartContext) -> tuple[str, str]:
    """Return shell text that pulls a job's image if it must, and the text of its file `KEY`."""
    typed = start.request.image
    if typed is None or not start.runtime.has_images or not _pulled_by_job(start):
        return "", ""
    folder, program = start.request.image_folder, start.runtime.program
    image = shlex.quote(image_files.place(start.host, program, typed, folder))
    script, key = image_files.puller(start.host, program, typed, folder)
    pull = f"{command_line(('sh', '-c', script))} <{KEY if key else '/dev/null'} >&2"
    failed = f"the job cannot pull `{one_line(typed)}`"
    if typed.startswith(DOCKER):
        failed += f"; if its registry refused: {login_hint(program, typed, start.request.host)}"
    return (
        f"[ -e {image} ] || {pull}\nstatus=$?; rm -f {KEY}\n"
        f'[ "$status" = 0 ] || {{ echo {shlex.quote(failed)} >&2; exit "$status"; }}'
    ), key.decode()


def _pulled_by_job(start: StartContext) -> bool:
    how, typed = start.request.scheduled, start.request.image
    return how is not None and how.pull_on == "job" and typed is not None and is_reference(typed)


def _image(start: StartContext, typed: str) -> str:
    folder, program = start.request.image_folder, start.runtime.program
    if _pulled_by_job(start):
        image_files.found_there(start.host, typed, folder, start.context)
        return image_files.place(start.host, program, typed, folder)
    return image_files.on_host(start.host, program, typed, folder, start.context)


def _folder(runtime: Runtime, name: str) -> str:
    return f'"{runtime.servers_folder}"/{shlex.quote(name)}'


def _write(start: StartContext, spec: ContainerSpec) -> None:
    enter = processes.enter(start.runtime.program, spec, _folder(start.runtime, start.name))
    definition, program = processes.written_definition(spec), start.runtime.program
    # The nodes of a cluster may have it, and its login node not.
    there = "" if start.runtime.in_jobs else f"{_is_installed(program)} || exit {_MISSING}\n"
    done = run_script(
        start.host,
        f"""\
{there}umask 077; directory={_folder(start.runtime, start.name)}
fails() {{ printf %s "$directory"; exit "$1"; }}
mkdir -p "$directory/tmp" || fails {scripts.NO_FOLDER}
(set -C; : >"$directory/container.json") || {{
  [ ! -e "$directory/container.json" ] || exit {_TAKEN}
  fails {scripts.NO_FOLDER}
}}
# `cat` says why it cannot write, where a shell's own `printf` may not.
printf %s {shlex.quote(enter)} | cat >"$directory/enter" &&
  printf '%s\\n' {shlex.quote(definition)} | cat >"$directory/container.json" ||
  fails 1
""",
    )
    if done.status == _MISSING:
        _look_further(start)
        _write(start, spec)
        return
    if done.status == _TAKEN:
        raise Busy(f"another command has just made `{start.name}`", hint="run it again")
    if done.status != scripts.NO_FOLDER:
        start.undo.callback(attempt, start.host, scripts.clear(start.runtime, start.name))
    if done.status != 0:
        place = f"in `{one_line(done.stdout)}` on `{start.request.host}`"
        raise JlrError(f"cannot write the session's files {place}: {done.complaint}")


def _is_installed(program: str) -> str:
    return f"command -v {program} >/dev/null"


def _look_further(start: StartContext) -> None:
    program = start.runtime.program
    hint = "put the `module load` that your site documents into `~/.bashrc` there; "
    hint += "`--runtime singularity` uses the older program"
    what = f"`{program}` was not found on `{start.request.host}`"
    look_further(start.host, program, EngineMissing(what, hint=hint))


def _try(start: StartContext, image: str) -> None:
    trial = start.runtime.in_image(start.name, ":")
    _run_trial(start, image, trial, elsewhere=start.runtime.in_jobs)


def _run_trial(start: StartContext, image: str, trial: str, *, elsewhere: bool) -> None:
    if elsewhere:  # only a job may have the program or the image
        trial = f"! {_is_installed(start.runtime.program)} || {trial}"
    if _pulled_by_job(start):
        trial = f"[ ! -e {shlex.quote(image)} ] || {trial}"
    text = f"{processes.TRIAL}=--nocolor; export {processes.TRIAL}\n{trial}"
    done = run_script(start.host, text, timeout=_TRY_SECONDS)
    if done.status == 0:
        return
    program, fatal = start.runtime.program, _FATAL.findall(printable(done.stderr))
    reason = one_line((fatal or [done.complaint])[-1])
    if done.status == _MISSING and not fatal:
        raise EngineMissing(f"cannot run `{program}` on the host: {reason}")
    if unknown := _UNKNOWN.search(done.stderr):
        hint = "leave it out after `--`, and in `engine-arguments` of the settings"
        raise Usage(f"`{program} exec` has no option `{unknown[1]}`", hint=hint)
    hint = f"`{program} exec {shlex.quote(image)} true` there tries it by hand"
    if "image format" in reason or "squashfs" in reason.lower():
        hint = "the file may be cut short: copy or pull it again; " + hint
    raise JlrError(f"cannot use the image `{image}`: {reason}", hint=hint)
