"""The far half of `jlr doctor`: a container, its GPUs, Jupyter in it, and a kernel's answer.

They are tried on a session that runs, where there is one, with a kernel of our own; else on a new
container, or without an engine a new Jupyter. Whatever is made goes onto a stack that removes it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from jlremote.doctor import toolkit
from jlremote.doctor.findings import Diagnosis, Finding, Opinion, fine, of_error, skip, warn
from jlremote.doctor.host_facts import HostFacts
from jlremote.errors import JlrError
from jlremote.host.script import command_line
from jlremote.host.shell import run_script
from jlremote.jupyter import scripts
from jlremote.jupyter.api import Access, AccessRefused, JupyterApi
from jlremote.jupyter.discovery import endpoint
from jlremote.jupyter.kernel import KernelLine, kernel_line
from jlremote.jupyter.locate import Survey, survey
from jlremote.jupyter.server import Server
from jlremote.link.client import Link
from jlremote.link.status import ForwardStatus
from jlremote.runtimes import docker_commands as docker
from jlremote.runtimes.contract import Container, ContainerSpec, Runtime
from jlremote.runtimes.docker_errors import creation_error
from jlremote.runtimes.engine_errors import reason
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow import gpus, launching, placing
from jlremote.workflow.answering import of_access, wait_for_answer
from jlremote.workflow.context import Context
from jlremote.workflow.requests import StartRequest
from jlremote.workflow.undertaking import Undertaking

QUESTION, ANSWER = "6*7", "42"
PROOF = "kernel"
ANY_PORT = 0
NOT_CREATED = 81
NOTHING = Survey(None, None)
Tell = Callable[[Finding], None]


@dataclass(frozen=True)
class Running:
    """A session that runs, which is looked at and left as it is."""

    record: SessionRecord
    container: Container
    server: Server


def running(link: Link, runtime: Runtime, record: SessionRecord) -> Running | None:
    """Return a session of the laptop's as it runs, `None` if it does not, or nobody can tell."""
    with suppress(JlrError):  # the checks tell what is wrong with the engine
        found = survey(link, runtime, record.name)
        servers = found.findings.servers if found.findings else ()
        if found.container is not None and servers:
            return Running(record, found.container, servers[0])
    return None


@dataclass(frozen=True)
class Subject:
    """What the end of the chain is tried on.

    Attributes:
        link: the host.
        facts: what is known of it.
        runtime: in what.
        running: a session there, `None` for none that runs.
        request: what a new one would be started with; its image may be `None`.
    """

    link: Link
    facts: HostFacts
    runtime: Runtime
    running: Running | None
    request: StartRequest

    @property
    def ready(self) -> tuple[str, ...]:
        """The checks that must be well before a container can be had."""
        if self.runtime.engine is None:
            return ("login",)
        if self.running is not None or self.request.image is None:
            return ("permission",)
        return ("permission", "disk", "image", "architecture")


class FarEnd:
    """The checks from the container to the kernel, in their order.

    Args:
        subject: what they are tried on.
        context: the laptop's side.
        diagnosis: what was found before, and gets what is found now.
        tell: is told each finding.
        made: takes back what was made.
    """

    def __init__(
        self,
        subject: Subject,
        context: Context,
        diagnosis: Diagnosis,
        tell: Tell,
        made: ExitStack,
    ) -> None:
        self._subject = subject
        self._context = context
        self._diagnosis = diagnosis
        self._tell = tell
        self._made = made
        self._name = f"{'jlr-' if subject.runtime.engine else ''}doctor-{secrets.token_hex(4)}"
        given = (subject.link, subject.runtime, self._name, subject.request)
        self._start = Undertaking(*given, context, made)
        self._found = NOTHING
        here = subject.running
        self._container = here.container if here else None
        self._server = here.server if here else None
        self._forward: ForwardStatus | None = None
        self._kernel = ""
        self._line: KernelLine | None = None

    def examine(self) -> None:
        """Judge one after the other, and tell of each."""
        self._check("container", "Look for a container", self._subject.ready, self._judge_container)
        self._check("toolkit", "Look for GPUs in a container", ("permission", "driver"), self._gpus)
        where = "login" if self._subject.runtime.engine is None else "container"
        self._check("jupyter", "Launch Jupyter", (where,), self._judge_jupyter)
        self._check("http", "Ask Jupyter", ("forwarding", "jupyter"), self._judge_http)
        self._check("websocket", "Start a kernel", ("http",), self._judge_websocket)
        self._check(PROOF, f"Ask the kernel for {QUESTION}", ("websocket",), self._judge_kernel)

    def _check(
        self, name: str, title: str, needs: Sequence[str], judge: Callable[[], Opinion]
    ) -> None:
        opinion = self._diagnosis.skipped(needs)
        if opinion is None:
            try:
                with self._context.progress.step(title):
                    opinion = judge()
            except JlrError as error:
                opinion = of_error(error)
        self._tell(self._diagnosis.add(self._subject.link.name, name, opinion))

    def _judge_container(self) -> Opinion:
        subject = self._subject
        if subject.runtime.engine is None:
            return skip("without containers (`--runtime none`)")
        if subject.running is not None:
            return fine(f"that of the session `{subject.running.record.name}` runs")
        if subject.request.image is None:
            host = subject.link.name
            return skip(
                "no session runs there, and no image is named",
                f"`jlr doctor {host} --image IMAGE` tries it in a container of its own",
            )
        self._container, self._found = placing.ensure(self._start, NOTHING)
        tried = run_script(subject.link, subject.runtime.inside(self._name, "true"))
        if tried.status != 0:
            raise JlrError(
                f"nothing runs in a new container of {subject.request.image}: {reason(tried)}",
                hint=f"try it there: `{subject.runtime.engine.shown('run', '--rm', '-it')} "
                f"{subject.request.image} sh`",
            )
        return fine(f"a new one of {subject.request.image} starts")

    def _gpus(self) -> Opinion:
        facts, here = self._subject.facts, self._subject.running
        if not toolkit.has_gpus(facts) or facts.engine is None:
            return toolkit.unproved(facts)
        if here is not None and here.container.gpus:
            return self._gpus_of_session(here.record)
        if facts.image is None or not self._diagnosis.well("image", "architecture", "disk"):
            return toolkit.unproved(facts)
        return self._gpus_of_new_container(facts.image.name)

    def _gpus_of_session(self, record: SessionRecord) -> Opinion:
        script = self._subject.runtime.inside(record.name, toolkit.PROOF)
        done = run_script(self._subject.link, script)
        lost = gpus.fault(self._subject.link, record) if done.status != 0 else None
        if lost is not None:
            return of_error(JlrError(lost.why, hint=lost.mend))
        return toolkit.proved(self._subject.facts, f"`{record.name}`", done)

    def _gpus_of_new_container(self, image: str) -> Opinion:
        engine, name = self._subject.facts.engine, f"{self._name}-gpus"
        assert engine is not None
        spec = ContainerSpec(name, image, gpus="all")
        script = (
            f"{command_line(docker.create_argv(engine, spec))} >/dev/null &&"
            f" {command_line(docker.start_argv(engine, name))} >/dev/null || exit {NOT_CREATED}\n"
            f"{self._subject.runtime.inside(name, toolkit.PROOF)}"
        )
        with ExitStack() as undo:
            undo.callback(self._remove, name)
            done = run_script(self._subject.link, script)
        if done.status != NOT_CREATED:
            return toolkit.proved(self._subject.facts, f"a new container of {image}", done)
        error = creation_error(engine, spec, done)
        if "no GPUs" in error.message:
            return toolkit.refused(self._subject.facts, error.message)
        return of_error(error)

    def _remove(self, name: str) -> None:
        engine = self._subject.facts.engine
        assert engine is not None
        with suppress(JlrError):
            done = run_script(self._subject.link, command_line(docker.remove_argv(engine, name)))
            if done.status == 0 or "no such container" in done.stderr.lower():
                return
        where = self._subject.link.name
        self._context.progress.note(f"left behind on `{where}`: the container `{name}`")

    def _judge_jupyter(self) -> Opinion:
        if self._subject.running is not None:
            return fine(f"that of the session `{self._subject.running.record.name}` runs")
        if self._subject.runtime.engine is None:
            # There the place is the host itself, which every survey tells about.
            self._found = survey(self._subject.link, self._subject.runtime, self._name)
            self._container = self._found.container
            self._made.callback(self._clear)
        self._server, launched = launching.ensure(self._start, self._found)
        return fine("launched" if launched else "the container's own runs")

    def _clear(self) -> None:
        """Remove what a Jupyter without a container leaves on the disk."""
        with suppress(JlrError):
            script = scripts.clear(self._name, engine=False)
            run_script(self._subject.link, self._subject.runtime.inside(self._name, script))

    def _judge_http(self) -> Opinion:
        assert self._container is not None
        assert self._server is not None
        link = self._subject.link
        to = endpoint(self._subject.runtime, self._container, self._server)
        # Of a name of its own: the session's own forward is left alone.
        self._forward = link.forward(self._name, ANY_PORT, to)
        self._made.callback(self._unforward)
        wait_for_answer(link, self._forward)
        began = time.monotonic()
        access = self._api.access()
        milliseconds = round(1000 * (time.monotonic() - began))
        if access is Access.OPEN:
            return warn(
                of_access(access, link.name) or "open to all", "`jlr start` launches its own"
            )
        return fine("comes through the tunnel" + (f", {milliseconds} ms" if milliseconds else ""))

    def _unforward(self) -> None:
        with suppress(JlrError):
            self._subject.link.unforward(self._name)

    @property
    def _api(self) -> JupyterApi:
        assert self._forward is not None
        return JupyterApi(self._forward.local_port, self._forward.endpoint.server)

    def _judge_websocket(self) -> Opinion:
        try:
            self._kernel = self._api.start_kernel()
        except AccessRefused:
            return skip("Jupyter wants its password, which jlr does not have")
        self._made.callback(self._end_kernel)
        self._line = self._made.enter_context(kernel_line(self._api, self._kernel))
        return fine("comes through the tunnel")

    def _end_kernel(self) -> None:
        with suppress(JlrError):
            self._api.end_kernel(self._kernel)

    def _judge_kernel(self) -> Opinion:
        assert self._line is not None
        answer = self._line.result(QUESTION)
        if ANSWER not in answer:  # R says `[1] 42`
            return of_error(JlrError(f"the kernel says {QUESTION} is {answer}"))
        return fine(f"{QUESTION} is {answer}")
