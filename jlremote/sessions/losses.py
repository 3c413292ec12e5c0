"""What ends or is deleted with a session: kernels, programs, the container and its files."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError
from jlremote.hosts.requests import StopRequest, stop_command
from jlremote.jupyter import activity
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.survey import NOTICED_SECONDS, Survey, survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus
from jlremote.mounts import known_mounts
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine_containers import changes_in_words
from jlremote.place.runtimes.runtime import KILLED, Runtime
from jlremote.selection.destruction import Destruction
from jlremote.text import one_line


@dataclass(frozen=True)
class Work:
    """What ends with a session, in words."""

    kernels: tuple[Kernel, ...] = ()
    programs: tuple[str, ...] = ()  # in terminals, shells and the container itself
    silent: str | None = None  # why Jupyter did not tell its kernels
    unseen: str | None = None  # why the programs could not be asked for
    whole: bool = False  # whether the container or job ends

    @property
    def losses(self) -> tuple[str, ...]:
        """Each kernel and program, for the question before they end."""
        unknown: tuple[str, ...] = ("kernels that do not answer",) if self.silent else ()
        unknown += ("programs that could not be listed",) if self.unseen else ()
        kernels = (f"the kernel of `{one_line(k.notebook)}` ({k.state})" for k in self.kernels)
        return (*unknown, *kernels, *self.programs)


@dataclass(frozen=True)
class SessionEnding:
    """A session that is to be stopped, and what was found on its host."""

    host: Link
    runtime: Runtime
    record: SessionRecord
    request: StopRequest
    found: Survey
    forward: ForwardStatus | None = None
    api: JupyterApi | None = None  # of the server that ends, or would end by force
    planned: Destruction | None = None  # `None` where another user's session is only left

    @property
    def ends_all(self) -> bool:
        """Whether the whole container or job ends."""
        return self.request.ends_container or self.runtime.in_jobs

    def command(self, **options: bool) -> str:
        """Return the whole command that stops the session with other options."""
        request = replace(self.request, **options)
        return stop_command(self.record.host, self.record.name, request)

    def ends(self, server: Server) -> bool:
        """Check that a server ends; one that jlr did not launch ends only on request."""
        return server.ours or self.request.force or self.request.ends_container


def work(ending: SessionEnding, api: JupyterApi | None) -> Work:
    """Find what ends with a stop: work of Jupyter, or of the whole container."""
    host, runtime, found, ends_all = ending.host, ending.runtime, ending.found, ending.ends_all
    container = found.container
    if api is not None and not (ends_all or ending.ends(api.server)):
        api = None
    if container is None or not (api or (ends_all and container.running)):
        return Work()
    if found.unasked is not None:
        return Work(unseen=found.unasked, whole=ends_all)
    script = activity.PROCESSES.replace("OWNS", runtime.owns(container))
    looking = runtime.on_machine(container.id, script)
    looked = run_script(host, runtime.inside(container.id, looking))
    if looked.status != 0:
        with suppress(JlrError):  # what cannot be asked may run on
            if not still_runs(host, runtime, container.name, looked.status):
                return Work()
    unseen = None if looked.status == 0 else one_line(looked.complaint)
    seen = activity.read(looked.stdout)
    whole = ends_all or (api is not None and seen.is_main(api.server))
    programs: list[str] = [] if api is None else [*seen.terminals(api.server)]
    if whole and (runtime.has_containers or runtime.in_jobs):
        for server in found.servers:
            if api is None or server != api.server:
                programs += (f"another Jupyter (process {server.pid})", *seen.terminals(server))
        programs += seen.others(found.servers, f'directory="{runtime.servers_folder}"')
    try:
        kernels = api.kernels() if api is not None else ()
    except JlrError as silent:
        # A stop before this one may have ended the server a moment ago.
        now = survey(host, runtime, container.name).servers
        if api is not None and any(one.identity == api.server.identity for one in now):
            return Work((), tuple(programs), silent.message, unseen, whole)
        kernels = ()
    return Work(kernels, tuple(programs), None, unseen, whole)


def still_runs(host: Host, runtime: Runtime, name: str, status: int) -> bool:
    """Check that the container runs, or is paused, after a step in it failed with `status`.

    Its end kills what runs in it a moment before the engine reports it.
    """
    deadline = time.monotonic() + (NOTICED_SECONDS if status == KILLED else 0)
    while (now := survey(host, runtime, name).container) and (now.running or now.paused):
        if time.monotonic() >= deadline:
            return True
        time.sleep(0.2)
    return False


def refuse_if_busy(ending: SessionEnding, work: Work) -> None:
    """Raise `Busy` if something works, or could not be asked for, unless `force` ends it."""
    selector, request = ending.record.selector, ending.request
    if request.force:
        return
    verb = "restarts" if request.again else "deletes" if request.remove else "stops"
    anyway = f"`{ending.command(force=True)}` {verb} it anyway"
    why = {"busy kernels": work.silent, "programs": work.unseen}
    if unknown := [what for what, cause in why.items() if cause]:
        cause = work.silent or work.unseen
        raise Busy(f"cannot ask `{selector}` for {' and '.join(unknown)}: {cause}", hint=anyway)
    busy = [f"`{each.notebook}`" for each in work.kernels if each.state == "busy"]
    works = [f"has busy kernels: {', '.join(busy)}"] if busy else []
    works += [f"runs {', '.join(work.programs)}"] if work.programs else []
    if works:
        raise Busy(f"`{selector}` {' and '.join(works)}", hint=anyway)


def planned(ending: SessionEnding, work: Work) -> Destruction:
    """Return what a stop ends or deletes beyond Jupyter with idle kernels."""
    record, request, found, runtime = ending.record, ending.request, ending.found, ending.runtime
    selector, lost = record.selector, work.losses if request.destroys else ()
    container, whose = found.container, ""
    if found.whose is not None:
        whose, lost = f" of `{found.whose}`", (f"work of another user, `{found.whose}`", *lost)
    if container is not None and container.renamed:
        whose += f", now called `{container.renamed}`"
    question = f"Stop {selector}{whose}?"
    if container is not None and runtime.has_containers:
        deleted = request.remove or (work.whole and bool(container.options.remove))
        if work.whole or request.ends_container:
            question = f"Stop the container of {selector}{whose}?"
            lost += ("what is paused in its container",) if container.paused else ()
        if deleted:
            question = f"Stop and delete the container of {selector}{whose}?"
            lost += ("all files of its container outside volumes",)
            if not request.yes:  # the files and packages that only the container has
                changed = command_line(runtime.required_engine("diff", container.id))
                listing = run_script(ending.host, f"{changed} | grep '^[AC] ' | head -n 5000")
                targets = [volume.target for volume in container.volumes]
                lost += changes_in_words(listing.stdout, targets)
    elif container is not None and runtime.has_images and request.remove:
        question = f"Stop {selector} and delete its files?"
        lost += ("the files in its own /tmp, and its installed packages",)
    if request.force and not request.yes:
        lost += known_mounts.losses_of_session(record.host, record.name)
    return Destruction(question, lost)
