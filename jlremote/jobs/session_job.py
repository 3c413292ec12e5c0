"""A session as a job of a cluster's scheduler: submit it, wait for it, and cancel it."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial

from jlremote.containers import image_definition, jupyter_launch, recording
from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.forwards import local_ports
from jlremote.gpus import allocation
from jlremote.gpus.wait import DISK_HINT
from jlremote.hosts.requests import Scheduled, StartContext, StopRequest
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jobs import begin_scheduled
from jlremote.jobs.follow import reached, wait_begun
from jlremote.jobs.known_jobs import STOP_SECONDS, JobHandle
from jlremote.jobs.scheduled_jobs import ScheduledJobs
from jlremote.jobs.scheduled_script import ScheduledPlan
from jlremote.jupyter import launch, scripts
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.survey import Survey, anew, survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.clusters.scheduler import FOLLOWS, Resources
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.host.contract import Host, run_script, understood
from jlremote.place.host.job import Job
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.on_node import GPUS, JOBS, LAST_WORDS, PROBE, SERVERS
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.place.runtimes.scripts import variables
from jlremote.text import one_line, printable
from jlremote.untrusted import document

SESSIONS = ScheduledJobs(JOBS, followed=True)
# An image that is unpacked first, or Python on a file system under load, takes minutes.
_BEGIN_SECONDS = 600
_LOG_LINES = 30  # Lmod says first which module is unknown, and then much that is no news
_SOCKET_BYTES = 107  # of a unix socket's path on Linux
_COUNT = "SLURM_GPUS_ON_NODE"
_DEVICES = "CUDA_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|ZE_AFFINITY_MASK"
_GPUS = f"env | grep -E '^({_DEVICES}|{_COUNT}|SLURM_JOB_ID)='"
# A successor waits for the job alone, and not for what the job waited for.
BEGINS = ("--dependency", "-d", "--begin", "-b")


def ensure(
    start: StartContext, seen: Survey, submitted: Callable[[], None]
) -> tuple[Container, Server, bool]:
    """Return the session's server in its job, and whether the job was submitted just now.

    A job that is there is joined, however long it takes. `submitted` is called once there is a job,
    which from then on needs nothing of this command.

    Raise `NotFound` if it has no job, and none was asked for; `JlrError` if the scheduler refused
    it, or it ended before Jupyter listened.
    """
    job = read_jobs(start.host, start.name).get(start.name)
    is_new = job is None or job.over
    if is_new:
        try:
            _submit(start, seen.container)
        except Busy:  # another laptop's
            job, is_new = read_jobs(start.host, start.name).get(start.name), False
            if job is None or job.over:
                raise
    if not is_new and job is not None and start.request.scheduled is not None:
        called = f"job {job.job}" if job.job else "the job"
        start.note(f"joining {called} of `{start.name}`, which already exists")
    submitted()
    same = job is not None and seen.container is not None and seen.container.job == job.job
    with _left_queued(start):
        running = seen.server if same and not is_new else None
        server = running or _awaited(start)
        container = survey(start.host, start.runtime, start.name).container
    if container is None or not container.running:
        raise JlrError(f"the job of `{start.name}` ended just now", state="job-ended")
    if running is not None:
        recording.ensure_in_job(start, running)
    elif start.runtime.has_images:
        _prove_gpus(start)
    return container, server, is_new


def _prove_gpus(start: StartContext) -> None:
    printed = run_script(start.host, f"cat {JOBS}/{shlex.quote(start.name)}/{GPUS}").stdout
    if given := re.search(rf"^{_COUNT}=(\d+)$", printed, re.MULTILINE):
        with start.context.progress.step("Check the GPUs in the image"):
            allocation.prove(start, given[1])


def _submit(start: StartContext, container: Container | None) -> None:
    how = start.request.scheduled
    if how is None:
        stands = container.stands if container else "has no job"
        hint = anew(start.request.host, start.name)
        raise NotFound(f"`{start.request.host}/{start.name}` {stands}", hint=hint)
    if not how.by_tcp:
        _check_socket(start)
    for old in _folders(start.host, start.name).values():
        if not old.over:
            how_it_is = old.detail or old.state
            raise Busy(f"job {old.job} of `{start.name}` has not ended: {how_it_is}")
        _deleted(start.host, start.name, SESSIONS.remove(old.name))
    if how.by_tcp:
        start.note(
            "with `--reach tcp` every user of the cluster can connect to Jupyter's port; only its "
            "token keeps them out, and it travels unencrypted from the login node to the node"
        )
    with undone_on_failure() as undo:
        start = _with_image(replace(start, undo=undo), how, container)
        plan = _plan(start, how)
        try:
            begin_scheduled.submit(start, plan, SESSIONS)
        except Busy:
            undo.pop_all()
            raise
        _remember(start)


def _check_socket(start: StartContext) -> None:
    """Check the length of the socket's path, before the job waits for a node (`Usage`)."""
    own = shlex.quote(f"/{start.name}/runtime/{scripts.SOCKET}{start.mark}")
    path = run_script(start.host, f'printf %s "{SERVERS}"{own}').stdout
    if (more := len(path.encode()) - _SOCKET_BYTES) > 0:
        raise Usage(
            f"cannot make a unix socket for `{start.name}`: its path is {more} bytes longer than "
            f"the {_SOCKET_BYTES} that are possible: `{one_line(path)}`",
            hint=f"`jlr start {start.request.host} {start.name} --slurm --reach tcp …` needs none; "
            "a shorter name may leave room for one",
        )


def _with_image(start: StartContext, how: Scheduled, container: Container | None) -> StartContext:
    if not start.runtime.has_images:
        return start
    if container is not None and container.image is not None:
        image_definition.use_again(start, container)
        return start
    gpus = "all" if how.resources.asks_for_gpus else None
    start = replace(start, request=replace(start.request, gpus=gpus))
    return image_definition.define(start)[0]


def _deleted(host: Host, name: str, script: str) -> None:
    """Run a script that deletes files of a session: those left would count as another job's."""
    done = run_script(host, script)
    if done.status != 0:
        what = f"cannot delete the files of the last job of `{host.name}/{name}`"
        raise JlrError(f"{what}: {one_line(done.complaint)}", hint=DISK_HINT)


def _plan(start: StartContext, how: Scheduled) -> ScheduledPlan:
    given = () if start.runtime.has_images else start.request.options.environment
    plain, private = variables.parted(dict(item.split("=", 1) for item in given))
    begun = ("env", *(f"{name}={value}" for name, value in plain.items())) if plain else ()
    # A login shell may have other variables than a command by ssh.
    state_home = 'export XDG_STATE_HOME="${directory%/jlr/*}"\n'
    plan = begin_scheduled.new_plan(
        start, how, (*begun, "sh", "-c", _text(start)), "jupyter lab", state_home + private
    )
    # A successor finds the image, and needs no key for it.
    return replace(plan, record=json.dumps(asdict(replace(plan, key=""))) + "\n")


def following(host: Host, name: str) -> tuple[Job, ScheduledPlan]:
    """Return a session's job and its successor's plan (`NotFound`: no job; `Busy`: it has one)."""
    folders = _folders(host, name)
    job, after = folders.get(name), folders.get(name + FOLLOWS)
    if job is None or job.job is None:
        hint = f"`jlr start {host.name} {name} --slurm …` submits one"
        raise NotFound(f"`{host.name}/{name}` has no job that could be followed", hint=hint)
    if after is not None and not after.over:
        what = f"job {after.job} follows job {job.job} of `{host.name}/{name}` already"
        hint = f"`jlr stop {host.name}/{name}` cancels both"
        raise Busy(what, hint=hint)
    _deleted(host, name, SESSIONS.remove(name + FOLLOWS))
    plan = kept_plan(host, name)
    begins = tuple(each for each in plan.resources.arguments if not each.startswith(BEGINS))
    resources = replace(
        plan.resources, arguments=(*begins, *(() if job.over else SLURM.after(job.job)))
    )
    plan = replace(plan, name=name + FOLLOWS, replaces=plan.name, resources=resources)
    return job, replace(plan, mark=secrets.token_hex(6))


def kept_plan(host: Host, name: str) -> ScheduledPlan:
    """Return the plan of a session's job (`JlrError` if it is not there)."""
    kept = run_script(host, f"cat {JOBS}/{shlex.quote(name)}/plan").stdout
    with understood("the plan of the job"):
        facts = document(kept)
        facts |= {name: tuple(facts[name]) for name in ("argv", "modules", "indices")}
        asked = facts.pop("resources")
        resources = Resources(**asked | {"arguments": tuple(asked["arguments"])})
        return ScheduledPlan(**facts | {"resources": resources, "record": kept})


def _text(start: StartContext) -> str:
    runtime, name = start.runtime, start.name
    probing = launch.wait_and_probe(runtime, name, start.mark, patience=_BEGIN_SECONDS)
    probe = f"{JOBS}/{shlex.quote(name)}/{PROBE}"
    launching = runtime.in_image(name, jupyter_launch.later_script(start))
    exit_file = f'"{SERVERS}"/{shlex.quote(name)}/exit'
    return (
        f"{SLURM.plain_variables}umask 077\n{_GPUS} >{JOBS}/{shlex.quote(name)}/{GPUS} || :\n"
        f'rm -f "{SERVERS}"/{shlex.quote(name)}/launch {probe}\n'  # a predecessor's
        f"{{ {command_line(('sh', '-c', probing))} >{probe}- && mv -f {probe}- {probe}; }} &\n"
        f'{launching}\nexit "$(cat {exit_file} || echo 1)"\n'
    )


def _remember(start: StartContext) -> None:
    known, config = start.known, start.context.ssh_config
    record = known or SessionRecord(
        start.request.host,
        start.name,
        start.runtime.name,
        start.request.local_port or local_ports.first_candidate(start.request.host, start.name),
        ssh_config=None if config is None else str(config.resolve()),
    )
    sessions.save(replace(record, runtime=start.runtime.name, forwarded=True).used_now())


@contextmanager
def _left_queued(start: StartContext) -> Iterator[None]:
    """At Ctrl-C leave the job in the queue and say how to come back, or cancel it on request."""
    where = f"{start.request.host}/{start.name}"
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if start.request.cancel_on_interrupt:
            cancel(start.host, start.runtime, start.name, StopRequest(force=True))
            if start.known is not None:
                sessions.save(replace(start.known, forwarded=False))
            start.note(f"cancelled the job of `{where}`")
        else:
            start.note(
                f"the job of `{where}` stays; `jlr start {start.request.host} {start.name}` waits "
                f"for it again, `jlr stop {where}` cancels it"
            )
        raise


def _awaited(start: StartContext) -> Server:
    where, note = f"{start.request.host}/{start.name}", start.context.progress.note

    def look() -> Job:
        if (job := read_jobs(start.host, start.name).get(start.name)) is None:
            raise JlrError(f"the job of `{start.name}` was removed meanwhile", state="job-ended")
        return job

    job = reached(look, where, start.context)
    while not job.over:
        if job.state in ("waiting", "unknown"):
            handle = JobHandle(start.host, SESSIONS, job)
            reached(partial(wait_begun, handle, note), where, start.context)
            job = reached(look, where, start.context)
            if job.over:
                break
        with start.context.progress.step(f"Wait for JupyterLab in job {job.job}"):
            server = reached(partial(_listening, start, job), where, start.context).server
        if server is not None:
            return server
        before, job = job, reached(look, where, start.context)
        if job.job == before.job and job.state != "unknown":
            break
    raise _failed(start, job)


def _listening(start: StartContext, job: Job) -> Survey:
    # A successor has a folder of its own until it runs.
    folder = f"{JOBS}/{shlex.quote(start.name)}"
    own = f'directory={folder}; [ "$(cat "$directory/id")" = {shlex.quote(job.job or "")} ]'
    nothing = " && ".join(f'[ ! -e "$directory/{file}" ]' for file in (PROBE, "exit", "ending"))
    waits = f"{{ {own} || directory={folder}{FOLLOWS}; {nothing}; }} 2>/dev/null"
    late = f'[ "$(date +%s)" -lt "$((begun + {_BEGIN_SECONDS}))" ]'
    wait = f"begun=$(date +%s)\n{SESSIONS.wait(f'{waits} && {late}')}"
    run_script(start.host, wait, timeout=_BEGIN_SECONDS + 60.0)
    return survey(start.host, start.runtime, start.name)


def _failed(start: StartContext, job: Job) -> JlrError:
    container = survey(start.host, start.runtime, start.name).container
    how = container.stands.partition(LAST_WORDS)[0] if container else "is gone"
    if job.state == "lost":
        how = f"does not run: {job.detail}"
    elif not job.over and container and container.waits:
        how = f"has not begun, though its job {job.job} runs on `{job.node}`"
    folder, server = (f"{root}/{shlex.quote(start.name)}" for root in (JOBS, f'"{SERVERS}"'))
    logs = (
        f"tail -qn {_LOG_LINES} {folder}/log {folder}/stderr 2>/dev/null\n"
        f"[ ! {server}/jupyter.log -nt {folder}/command ] ||"
        f" tail -n {_LOG_LINES} {server}/jupyter.log\n"
    )
    log = printable(run_script(start.host, logs).stdout).strip()
    hint = f"`jlr logs {start.request.host}/{start.name}` shows more"
    if any(words in log for words in jupyter_launch.NOT_THERE):
        hint = "`--module`, `--conda-env`, `--python` or `--image` chooses one that has JupyterLab"
    return JlrError(
        f"`{start.name}` {how}; the last lines of its logs:\n{log}", hint=hint, state="job-ended"
    )


def cancel(host: Host, runtime: Runtime, name: str, request: StopRequest) -> list[str]:
    """Cancel the session's job, and return what was done (`JlrError`: it does not end)."""
    server = f'"{SERVERS}"/{shlex.quote(name)}'
    mark = f"umask 077; mkdir -p {server} && echo stopped >{server}/ended\n"
    done = []
    # The successor first, or it would begin now; it may have begun meanwhile.
    for _ in range(3):
        live = [job for job in _folders(host, name).values() if not job.over]
        if not live:
            break
        not_stopped = f"{{ status=$?; rm -f {server}/ended; exit $status; }}"
        stopping = f"(\n{SESSIONS.stop(live[0].name, force=request.force)}) || {not_stopped}"
        ended = run_script(host, mark + stopping, timeout=STOP_SECONDS)
        if ended.status != 0:
            raise JlrError(f"cannot cancel the job of `{name}`: {one_line(ended.complaint)}")
        done.append(f"cancelled job {live[0].job}")
    if request.remove:
        removing = SESSIONS.remove(name) + SESSIONS.remove(name + FOLLOWS)
        _deleted(host, name, removing + scripts.clear(runtime, name))
        done.append("deleted its files")
    return done


def read_jobs(host: Host, name: str | None = None) -> dict[str, Job]:
    """Return the jobs of one or all sessions of a cluster, by the sessions' names."""
    folders = _folders(host, name)
    jobs = {each.removesuffix(FOLLOWS): job for each, job in folders.items()}
    for each, job in jobs.items():
        successor = folders.get(each + FOLLOWS)
        if successor is None or successor.over or successor.job == job.job:
            continue
        detail = "; ".join(filter(None, (job.detail, f"job {successor.job} follows it")))
        jobs[each] = successor if job.over else replace(job, detail=detail)
    return jobs


def _folders(host: Host, name: str | None = None) -> dict[str, Job]:
    return {job.name: job for job in SESSIONS.read(run_script(host, SESSIONS.tell(name)).stdout)}
