"""The Jupyter server of a session: reuse the one that runs, or launch one."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from jlremote.containers import recording
from jlremote.errors import JlrError, NotFound
from jlremote.hosts.requests import StartContext, StartRequest
from jlremote.jupyter import launch, scripts
from jlremote.jupyter.discovery import Findings, read_probe
from jlremote.jupyter.endpoint import Server, hostname
from jlremote.jupyter.launch import ON_PATH, Launch, launch_once, with_conda, with_python
from jlremote.jupyter.recorder import NOT_RECORDED
from jlremote.jupyter.survey import Survey, refuse_halted
from jlremote.place.host.contract import Completed, attempt, run_script
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.docker import docker_errors
from jlremote.place.runtimes.docker.docker_commands import logs_argv, state_argv
from jlremote.place.runtimes.engine.engine_errors import engine_error, tried
from jlremote.place.runtimes.processes import GPUS_FILE
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.text import one_line, printable

BY_HAND = "by-hand"  # the id of a launch that is only shown
LOG_LINES = 10
END_SECONDS = 15
COMMAND_NOT_FOUND = 127
# The errors of docker and podman if a container does not run.
NOT_RUNNING = ("is not running", "on running containers")
# The errors of Python and of the `jupyter` command, which a kernel alone also installs.
NOT_THERE = ("No module named jupyterlab", "`jupyter-lab` not found")


def ensure(start: StartContext, found: Survey) -> tuple[Server, bool]:
    """Return a server, and whether it is new (`NotFound`: none installed; `JlrError`: its log)."""
    if (server := _running(start, found)) is not None:
        _explain_running(start, found, server)
        now = found.findings.recording if found.findings else NOT_RECORDED
        recording.ensure(start, now, server)
        return server, False
    on_path = found.findings is None or found.findings.jupyter or _missing_python(start.request)
    if start.runtime.has_containers and not on_path:
        raise _missing(start, found)
    with start.context.progress.step("Launch JupyterLab"):
        server, ours = _launch(start, found)
        if server.sock and start.host.refusal(server.sock) is not None:
            runtime, name, sock = start.runtime, start.name, server.sock
            if ours:  # end it, and wait until its shell is done with the folder
                end = scripts.end(runtime, name, server.pid, server.process_start, patience=0)
                steps = {"end": end, "done": scripts.await_end(runtime, name)}
                start.host.run({step: runtime.inside(name, text) for step, text in steps.items()})
            else:  # the start that launched it ends it
                run_script(start.host, wait_while(f"[ -S {shlex.quote(sock)} ]", END_SECONDS))
            start = replace(start, mark=secrets.token_hex(6), sockets=False)
            server, ours = _launch(start, found)
    if ours:
        _explain_folder(start, found, server)
    else:
        start.note(f"Jupyter was just being started in `{start.name}`: waited for that server")
        _explain_running(start, found, server)
    return server, ours


def _running(start: StartContext, found: Survey) -> Server | None:
    taken, asked = found.server_on(start.server), start.request.server
    others = ", ".join(
        f"`--server {one.port}` takes that of {printable(one.root_directory)}"
        for one in found.servers
        if one is not taken or asked is not None
    )
    if asked is not None and (taken is None or taken.port != asked):
        hint = others or "without `--server` one is launched"
        raise NotFound(f"no Jupyter server runs on port {asked} of `{start.name}`", hint=hint)
    if taken is not None and len(found.servers) > 1 and asked is None:
        chosen = taken.port == start.server
        why = "as before" if chosen else "jlr launched it" if taken.ours else "the first one found"
        using = f"using the one on port {taken.port} ({why}): {others}"
        start.note(f"{len(found.servers)} Jupyter servers run in `{start.name}`; {using}")
    return taken


def _explain_running(start: StartContext, found: Survey, server: Server) -> None:
    request, unused = start.request, list[str]()
    if request.idle_stop is not None and request.idle_stop != server.idle_stop:
        unused.append("`--idle-stop`")
    recorded = found.findings is not None and found.findings.recording.state == "on"
    if recorded and not request.record:
        unused.append("`--no-record`")
    for option, named in (("conda-env", request.conda_env), ("python", request.python)):
        part = f"/{(named or '').removeprefix('~').strip('/')}/"
        is_by = any(part in f"{path}/" for path in (server.called, server.python))
        if named is not None and part != "/base/" and not is_by:
            unused.append(f"`--{option}`")
    if unused:
        after = f", after `jlr stop {request.host}/{start.name}`" if server.ours else ""
        apply = f"{' and '.join(unused)} will apply to its next start{after}"
        start.note(f"Jupyter already runs in `{start.name}`: {apply}")


def _folders(start: StartContext, container: Container | None) -> list[str]:
    if not start.runtime.has_containers or start.request.options.workdir is not None:
        return []
    if container is not None:
        return [volume.target for volume in container.volumes if volume.name is None]
    split = (volume.split(":") for volume in start.request.options.volumes)
    return [parts[1] for parts in split if len(parts) > 1 and parts[0].startswith(("/", "~"))]


def _explain_folder(start: StartContext, found: Survey, server: Server) -> None:
    folders, here = _folders(start, found.container), PurePosixPath(server.root_directory)
    if folders:
        is_kept = any(map(here.is_relative_to, folders))
        where = "" if is_kept else f", which `{start.request.host}` does not keep"
        start.note(f"JupyterLab opens in `{here}`{where}; a new container opens in `--workdir`")


def _script(start: StartContext, folders: Sequence[str] = (), *, join: bool = True) -> str:
    jupyter = (packages.USE if start.runtime.has_images else "") + ON_PATH
    if start.request.python is not None:
        jupyter = with_python(start.request.python)
    elif start.request.conda_env is not None:
        jupyter = with_conda(start.request.conda_env)
    environment = start.environment
    if start.runtime.enters_image:  # for shells and jobs, too
        environment += f'printf %s {shlex.quote(environment)} >"$directory/{GPUS_FILE}"\n'
    by_tcp = start.request.scheduled is not None and start.request.scheduled.by_tcp
    # `--reach tcp` asks for all addresses.
    bind_address = "0.0.0.0" if by_tcp else "127.0.0.1" if start.loopback else None  # noqa: S104
    return Launch(
        start.runtime,
        start.name,
        start.mark,
        hostname(start.request.host, start.name),
        bind_address=bind_address,
        jupyter=environment + jupyter,
        idle_stop=start.request.idle_stop or 0,
        on_socket=start.sockets and not start.runtime.has_containers and not by_tcp,
        folders=folders,
        join=join,
        user=start.user,
        record=start.request.record,
    ).script()


def first_script(start: StartContext) -> str:
    """Return the script that a new container runs: JupyterLab, the first time only.

    That saves an `exec`, a tenth of a second. If packages are to be installed first, perhaps
    JupyterLab among them, it is empty.
    """
    if start.request.options.packages:
        return ""
    loopback = replace(start, loopback=start.request.options.on_host_network)
    launching = _script(loopback, _folders(start, None))
    return launch_once(start.runtime, start.name, start.mark, launching)


def later_script(
    start: StartContext, container: Container | None = None, *, join: bool = True
) -> str:
    """Return the script that runs JupyterLab in a container that is there, or on the host.

    With `join` it launches none while a server that another command began is starting.
    """
    script = _script(start, _folders(start, container), join=join)
    return start.runtime.as_launched(script)


def _launch(start: StartContext, found: Survey) -> tuple[Server, bool]:
    runs_itself = found.container is None and not start.request.options.packages
    for join in (True, True, False):
        script = "" if runs_itself else later_script(start, found.container, join=join)
        if script:
            ending = launch.abandon(start.runtime, start.name, start.mark)
            start.undo.callback(attempt, start.host, start.runtime.inside(start.name, ending))
        findings, runs_itself = _awaited(start, found, script), False
        if findings is None:
            continue
        for server in findings.servers:
            if server.ours or findings.joined:
                _refuse_other_settings(start, server)
                return server, not findings.joined
        if not findings.joined:
            raise _failed(start, found, findings)
        undone = scripts.session_directory(start.runtime, start.name)
        undone += f'rm -f "$directory"/joined-{start.mark}\n'
        run_script(start.host, start.runtime.inside(start.name, undone))
    what = f"another start of Jupyter in `{start.name}` ended before it answered"
    raise JlrError(what, hint="run the command again")


def _refuse_other_settings(start: StartContext, server: Server) -> None:
    served, is_open = one_line(server.base_url), not (server.token or server.password)
    elsewhere = not served.startswith(f"/{start.name}-")
    if server.ours and (elsewhere or server.secure or is_open):
        how = f"`{served}`{' by TLS' * server.secure}{' without a token' * is_open}"
        hint = "look for a `jupyter-lab` of the image that drops `JUPYTER_CONFIG_PATH` or has "
        hint += "options of its own; `--python` or `--conda-env` chooses another one"
        what = f"the Jupyter of `{start.name}` does not follow its settings: it serves {how}"
        raise JlrError(what, hint=hint)


def _awaited(start: StartContext, found: Survey, script: str) -> Findings | None:
    runtime, name = start.runtime, start.name
    probing = launch.wait_and_probe(runtime, name, start.mark)
    doing = runtime.launched(name, script, probing) if script else runtime.inside(name, probing)
    launched = run_script(start.host, doing, timeout=launch.WAIT_SECONDS + 30.0)
    if launched.status == launch.OTHER_ENDED:
        return None
    if launched.status == scripts.NO_FOLDER:
        raise _no_folder(start, launched)
    if launched.status == launch.NOT_LAUNCHED:
        seconds = launch.LAUNCH_SECONDS
        raise JlrError(f"JupyterLab could not be launched within {seconds} s: {launched.complaint}")
    findings = read_probe(launched.stdout)
    if launched.status != 0 or not findings.directory:
        raise _not_awaited(start, found, launched)
    return findings


def _not_awaited(start: StartContext, found: Survey, failed: Completed) -> JlrError:
    """Return the error of a script that could not wait for Jupyter: mostly, the container ended."""
    if start.runtime.has_containers:
        engine = start.engine
        if not failed.stderr:  # so its client ends when its daemon is killed
            asked = run_script(start.host, tried(state_argv(engine, start.name, "Running")))
            if asked.status != 0:
                return engine_error(engine, asked)
        if found.container is not None:
            if (halted := _halted(start, found.container)) is not None:
                return halted
        elif any(words in failed.complaint.lower() for words in NOT_RUNNING):
            log = command_line(logs_argv(engine, start.name, 1, follow=False))
            last = run_script(start.host, log)
            image = str(start.request.image)
            return docker_errors.ended_error(engine, start.name, image, last.stderr or last.stdout)
    return JlrError(f"cannot wait for JupyterLab's start: {failed.complaint}")


def _halted(start: StartContext, before: Container) -> JlrError | None:
    """Return the error of a container that ran a moment ago, or raise it; `None` if it runs."""
    now = start.runtime.read(start.name, start.host.run(start.runtime.describe(start.name)))
    if now is None or now.paused or now.restarting:
        refuse_halted(start.request.host, start.name, start.runtime, now)
    elif now.restarts > before.restarts:
        why = f"its engine has restarted it {now.restarts} times"
        return docker_errors.start_error(start.engine, start.name, why)
    elif not now.running:
        return docker_errors.start_error(start.engine, start.name, "it ends at once")
    return None


def _no_folder(start: StartContext, failed: Completed) -> JlrError:
    engine, complaint = start.runtime.engine, failed.complaint.lower()
    hint = "`df` there shows whether it is full or read-only; Jupyter needs it for its own files"
    if engine and variables.NOT_PRIVATE in complaint:
        look = engine.shown("exec", start.name, "ls", "-l", "/tmp")  # noqa: S108
        hint = f"`{look}` shows its owner; without `-v /tmp:/tmp` a container has its own"
    elif engine and "read-only" in complaint:
        hint = "`-- --tmpfs /tmp` gives a new container a folder for Jupyter's own files"
    elif engine and "no space left" in complaint:
        hint = docker_errors.space_hint(engine)
    where = start.runtime.place(start.name, start.request.host)
    return JlrError(f"cannot write files in {where}: {failed.complaint}", hint=hint)


def _failed(start: StartContext, found: Survey, findings: Findings) -> JlrError:
    status = findings.exit_status
    show = scripts.show_log(start.runtime, start.name, lines=LOG_LINES)
    shown = run_script(start.host, start.runtime.inside(start.name, show))
    log = printable(shown.stdout).strip()
    if status == COMMAND_NOT_FOUND and (missing := _missing_python(start.request)):
        within = "in" if start.runtime.has_containers or start.runtime.in_jobs else "on"
        where = start.runtime.place(start.name, start.request.host)
        if start.runtime.has_containers and found.container is None:  # it is removed by then
            where = f"the image `{start.request.image}`"
        hint = "`--python` takes a Python or a virtual environment, `--conda-env` the name or "
        hint += "folder of an environment of conda"
        return NotFound(f"{missing} {within} {where}", hint=hint)
    if status == COMMAND_NOT_FOUND or any(words in log for words in NOT_THERE):
        return _missing(start, found)
    happened = f"JupyterLab ended at once with exit status {status}"
    if status is None:
        happened = f"JupyterLab did not start within {launch.WAIT_SECONDS} s"
    last = f"; the last lines of its log:\n{log}" if log else ", and its log is empty"
    by_hand = f"`{_by_hand(start, found)}` on `{start.request.host}` tries it by hand"
    return JlrError(f"{happened}{last}", hint=by_hand)


def _by_hand(start: StartContext, found: Survey) -> str:
    lab, container = ("jupyter", "lab"), found.container
    if not start.runtime.has_images:
        environment = start.request.conda_env
        return command_line((*(("conda", "run", "-n", environment) if environment else ()), *lab))
    if container is not None and start.runtime.enters_image:
        return command_line((start.runtime.program, "exec", str(container.image), *lab))
    if container is None:  # a new one, which is removed by the time that this is read
        return start.engine.shown("run", "-it", "--rm", str(start.request.image), *lab)
    return start.engine.shown("exec", "-it", start.name, *lab)


def _missing_python(request: StartRequest) -> str | None:
    if request.conda_env is not None:
        return f"there is no conda environment `{request.conda_env}`"
    return f"there is no Python `{request.python}`" if request.python is not None else None


def _missing(start: StartContext, found: Survey) -> NotFound:
    install = "python3 -m pip install jupyterlab"
    if not start.runtime.has_images:
        where, remedy = f"on `{start.request.host}`", f"`{install}` there installs it"
    elif found.container is not None and start.runtime.enters_image:
        where = f"in the image `{found.container.image}`"
        remedy = "`--install jupyterlab` installs it for a new session"
    elif found.container is None:
        where = f"in the image `{start.request.image}`"
        remedy = "`--install jupyterlab` installs it; or choose an image that has it"
        options = start.request.options
        # With folders of the host it runs as the login user instead of the image's.
        if options.user is None and (options.volumes or start.request.workspace):
            remedy += "; `--user root` if only root may use the image's own"
    else:
        install = f"{start.engine.shown('exec', start.name)} {install}"
        where, remedy = f"in the container `{start.name}`", f"`{install}` there installs it"
    return NotFound(f"there is no JupyterLab (nor Notebook) {where}", hint=remedy)
