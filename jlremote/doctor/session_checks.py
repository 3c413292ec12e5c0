"""Checks of a session: a container, its GPUs, Jupyter in it, and a kernel's answer.

They are tried on a session that runs, with a kernel of their own; else on a new container, or
without an engine on a new Jupyter. What they create goes onto a stack that removes it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from jlremote.containers import image_definition, jupyter_launch, provision
from jlremote.doctor import network
from jlremote.doctor.diagnosis import (
    WITHOUT_CONTAINERS,
    Diagnosis,
    Finding,
    fine,
    from_error,
    skip,
    warn,
)
from jlremote.doctor.trial import NOTHING, Trial, judge_gpus
from jlremote.errors import JlrError
from jlremote.forwards.jupyter_check import access_note, wait_for_answer
from jlremote.hosts.context import Context
from jlremote.hosts.requests import StartContext
from jlremote.jupyter import scripts
from jlremote.jupyter.api import Access, AccessRefused, JupyterApi, open_socket
from jlremote.jupyter.locate import server_endpoint
from jlremote.jupyter.survey import survey
from jlremote.kernels.execution import ExecRequest, execute_in
from jlremote.link.wire.status import ForwardStatus
from jlremote.output.runs import output_of
from jlremote.output.view import lines_of
from jlremote.place.host.contract import run_script
from jlremote.place.runtimes.engine.engine_errors import reason
from jlremote.text import one_line

QUESTION, ANSWER = "6*7", "42"
# A kernel's first start imports IPython, and the host may be busy.
ANSWER_SECONDS = 60.0
PROOF = "kernel"
ANY_PORT = 0
Tell = Callable[[Finding], None]


@dataclass
class SessionChecks:
    """The checks from the container to the kernel, in their order."""

    trial: Trial
    context: Context
    diagnosis: Diagnosis
    tell: Tell
    made: ExitStack

    def __post_init__(self) -> None:
        trial = self.trial
        prefix = "jlr-" if trial.runtime.has_containers else ""
        self._name = f"{prefix}doctor-{secrets.token_hex(4)}"
        given = (trial.link, trial.runtime, self._name, trial.request)
        self._start = StartContext(*given, self.context, self.made)
        self._found = trial.found
        self._container, self._server = trial.found.container, trial.found.server
        self._forward: ForwardStatus | None = None
        self._kernel = ""

    def examine(self) -> None:
        """Try one check after the other, and report each."""
        trial = self.trial
        self._check("container", "Try a container", trial.ready, self._judge_container)
        may_try = ("permission",) if trial.runtime.has_containers else ("shell",)
        self._check("network", "Look for a network", may_try, self._judge_network)
        gpus = ("permission", "driver")
        self._check("toolkit", "Look for GPUs in a container", gpus, self._judge_toolkit)
        where = "container" if trial.runtime.has_containers else "shell"
        self._check("jupyter", "Launch Jupyter", (where,), self._judge_jupyter)
        self._check("http", "Ask Jupyter", ("forwarding", "jupyter"), self._judge_http)
        self._check("websocket", "Start a kernel", ("http",), self._judge_websocket)
        self._check(PROOF, f"Ask the kernel for {QUESTION}", ("websocket",), self._judge_kernel)

    def _check(
        self, name: str, title: str, needs: Sequence[str], judge: Callable[[], Finding]
    ) -> None:
        judgement = self.diagnosis.skipped(needs)
        if judgement is None:
            try:
                with self.context.progress.step(title):
                    judgement = judge()
            except JlrError as error:
                judgement = from_error(error)
        self.tell(self.diagnosis.add(self.trial.link.name, name, judgement))

    def _judge_container(self) -> Finding:
        trial = self.trial
        if not trial.runtime.has_containers:
            return WITHOUT_CONTAINERS
        if trial.record is not None:
            return fine(f"the session `{trial.record.name}` runs")
        if trial.request.image is None:
            host = trial.link.name
            return skip(
                "no session runs there and no image is named",
                f"`jlr doctor {host} --image IMAGE` tries a new container",
            )
        self._start, self._container, self._found = provision.ensure(self._start, NOTHING)
        tried = run_script(trial.link, trial.runtime.inside(self._name, "true"))
        if tried.status != 0:
            raise JlrError(
                f"nothing runs in a new container of {trial.request.image}: {reason(tried)}",
                hint="try it there: "
                f"`{trial.runtime.shown('run', '--rm', '-it', trial.request.image, 'sh')}`",
            )
        return fine(f"a new container of {trial.request.image} starts")

    def _judge_network(self) -> Finding:
        runtime, record = self.trial.runtime, self.trial.record
        asked = {"host": network.ASK}
        if runtime.has_containers and self.diagnosis.well("container"):
            name = self._name if record is None else record.name
            asked["inside"] = runtime.inside(name, network.ASK)
        answers = self.trial.link.run(asked)
        return network.judge(runtime.engine, answers["host"], answers.get("inside"))

    def _judge_toolkit(self) -> Finding:
        name = f"{self._name}-gpus"
        return judge_gpus(self.trial, self.diagnosis, name, self.context)

    def _judge_jupyter(self) -> Finding:
        if self.trial.record is not None:
            return fine(f"the session `{self.trial.record.name}` runs")
        if self.trial.runtime.in_jobs:
            submits = f"`jlr start {self.trial.link.name} NAME --slurm …` submits one"
            return skip("no session's job runs there", submits)
        if not self.trial.runtime.has_containers:
            script = scripts.clear(self.trial.runtime, self._name)
            clear = self.trial.runtime.inside(self._name, script)
            self.made.callback(_quietly, run_script, self.trial.link, clear)
            if self.trial.runtime.has_images:
                self._start, self._container, self._found = image_definition.define(self._start)
            else:  # the survey is one of the host itself
                self._found = survey(self.trial.link, self.trial.runtime, self._name)
                self._container = self._found.container
        self._server, launched = jupyter_launch.ensure(self._start, self._found)
        return fine("launched" if launched else "the one in the container runs")

    def _judge_http(self) -> Finding:
        assert self._container is not None
        assert self._server is not None
        link = self.trial.link
        to = server_endpoint(self.trial.runtime, self._container, self._server)
        # Under its own name, so that the session's forward is left alone.
        self._forward = link.forward(self._name, ANY_PORT, to)
        self.made.callback(_quietly, link.unforward, self._name)
        wait_for_answer(link, self._forward)
        began = time.monotonic()
        access = self._api.access()
        milliseconds = round(1000 * (time.monotonic() - began))
        if access is Access.OPEN:
            return warn(
                access_note(access, link.name) or "open to all", "`jlr start` launches its own"
            )
        taken = f" in {milliseconds} ms" if milliseconds else ""
        return fine(f"answers through the tunnel{taken}")

    @property
    def _api(self) -> JupyterApi:
        assert self._forward is not None
        return JupyterApi(self._forward.local_port, self._forward.server)

    def _judge_websocket(self) -> Finding:
        try:
            self._kernel = self._api.start_kernel()
        except AccessRefused:
            return skip("Jupyter asks for its password, which jlr does not have")
        self.made.callback(_quietly, self._api.end_kernel, self._kernel)
        open_socket(self._api, self._kernel).close()
        return fine("answers through the tunnel")

    def _judge_kernel(self) -> Finding:
        request = ExecRequest(self._name, (QUESTION,), seconds=ANSWER_SECONDS)
        try:
            told = execute_in(self._kernel, self._api, request, self.context)
            answer = one_line("\n".join(lines_of(map(output_of, told))))
        except JlrError as error:
            raise JlrError(f"the kernel did not answer `{QUESTION}`: {error.message}") from error
        if ANSWER not in answer:  # R prints `[1] 42`
            return from_error(JlrError(f"the kernel answers that {QUESTION} is {answer}"))
        return fine(f"{QUESTION} is {answer}")


def _quietly(undo: Callable[..., object], *arguments: object) -> None:
    with suppress(JlrError):
        undo(*arguments)
