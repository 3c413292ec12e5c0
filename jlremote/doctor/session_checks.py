"""Checks of a session: a container, its GPUs, Jupyter in it, and a kernel's answer.

They are tried on a session that runs, with a kernel of their own; else on a new container, or
without an engine on a new Jupyter. What they create goes onto a stack that removes it.
"""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass

from jlremote.containers import image_definition, jupyter_launch, provision
from jlremote.doctor.diagnosis import Check, Diagnosis, Finding, fine, from_error, skip, warn
from jlremote.doctor.host_facts import WITHOUT_CONTAINERS
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
from jlremote.link.wire.states import ForwardStatus
from jlremote.output.runs import output_of
from jlremote.output.view import lines_of
from jlremote.place.host.contract import Completed, attempt, run_script
from jlremote.place.host.shell_text import bounded
from jlremote.place.runtimes.engine.engine_errors import reason
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import one_line

QUESTION, ANSWER = "6*7", "42"
# A kernel's first start imports IPython, and the host may be busy.
ANSWER_SECONDS = 60.0
PROOF = "kernel"
ANY_PORT = 0

SITE = "pypi.org"  # where pip's packages come from
_NO_NAME, _NO_WAY, _NO_PROGRAM, _PROXY = 3, 4, 5, 6
_SECONDS = 8
_LOOK = f"""\
fails() {{ [ -z "$https_proxy$HTTPS_PROXY" ] || exit {_PROXY}; exit "$1"; }}
python=$(command -v python3 || command -v python)
if [ -n "$python" ]; then
  "$python" -c 'import socket; socket.getaddrinfo("{SITE}", 443)' 2>/dev/null || fails {_NO_NAME}
  "$python" -c 'import socket; socket.create_connection(("{SITE}", 443), 3)' 2>/dev/null ||
    fails {_NO_WAY}
elif command -v getent >/dev/null; then getent hosts {SITE} >/dev/null || fails {_NO_NAME}
else exit {_NO_PROGRAM}; fi
"""
ASK = bounded(("sh", "-c", _LOOK), _SECONDS)
_LACKS = {_NO_NAME: f"cannot resolve `{SITE}`", _NO_WAY: f"cannot connect to `{SITE}`"}

_HOSTS_OWN = {
    _NO_NAME: "`cat /etc/resolv.conf` there shows its name servers, "
    f"`getent hosts {SITE}` tries them; ",
    _NO_WAY: "its firewall or its network lets nothing out to port 443; ",
}
_BY_PROXY = "where it is meant to use a proxy, set `https_proxy` in /etc/environment there"
_DNS = (
    "`-- --dns ADDRESS` gives a new container a name server; "
    '`"dns": ["ADDRESS"]` in /etc/docker/daemon.json gives it to all'
)
_NETWORK = (
    "`sysctl net.ipv4.ip_forward` on the host must be 1, and its firewall must forward the "
    "engine's network; `--network host` needs neither"
)


@dataclass
class SessionChecks:
    """The checks from the container to the kernel."""

    trial: Trial
    context: Context
    diagnosis: Diagnosis
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

    def in_order(self) -> tuple[Check[SessionChecks], ...]:
        """Return the checks in their order."""
        has_containers, is_new = self.trial.runtime.has_containers, self.trial.record is None
        may_try = "permission" if has_containers else "shell"
        creates = has_containers and is_new and self.trial.request.image is not None
        return (
            Check(
                "container",
                SessionChecks._container_runs,
                (may_try, "disk", "image") if creates else (may_try,),
            ),
            Check("network", SessionChecks._network, (may_try,)),
            Check(
                "toolkit",
                lambda it: judge_gpus(it.trial, it.diagnosis, f"{it._name}-gpus", it.context),
                ("permission", "driver"),
            ),
            Check("jupyter", SessionChecks._jupyter, ("container" if has_containers else "shell",)),
            Check("http", SessionChecks._http, ("forwarding", "jupyter")),
            Check("websocket", SessionChecks._websocket, ("http",)),
            Check(PROOF, SessionChecks._answer, ("websocket",)),
        )

    def _container_runs(self) -> Finding:
        trial = self.trial
        if not trial.runtime.has_containers:
            return WITHOUT_CONTAINERS
        if trial.record is not None:
            return fine(f"the session `{trial.record.name}` runs")
        if trial.request.image is None:
            way = f"`jlr doctor {trial.link.name} --image IMAGE` tries a new container"
            return skip("no session runs there and no image is named", way)
        self._start, self._container, self._found = provision.ensure(self._start, NOTHING)
        tried = run_script(trial.link, trial.runtime.inside(self._name, "true"))
        if tried.status != 0:
            again = trial.runtime.shown("run", "--rm", "-it", trial.request.image, "sh")
            what = f"nothing runs in a new container of {trial.request.image}: {reason(tried)}"
            raise JlrError(what, hint=f"try it there: `{again}`")
        return fine(f"a new container of {trial.request.image} starts")

    def _network(self) -> Finding:
        runtime, record = self.trial.runtime, self.trial.record
        asked = {"host": ASK}
        if runtime.has_containers and self.diagnosis.well("container"):
            name = self._name if record is None else record.name
            asked["inside"] = runtime.inside(name, ASK)
        answers = self.trial.link.run(asked)
        return judge_network(runtime.engine, answers["host"], answers.get("inside"))

    def _jupyter(self) -> Finding:
        if self.trial.record is not None:
            return fine(f"the session `{self.trial.record.name}` runs")
        if self.trial.runtime.in_jobs:
            submits = f"`jlr start {self.trial.link.name} NAME --slurm …` submits one"
            return skip("no session's job runs there", submits)
        if not self.trial.runtime.has_containers:
            script = scripts.clear(self.trial.runtime, self._name)
            clear = self.trial.runtime.inside(self._name, script)
            self.made.callback(attempt, self.trial.link, clear)
            if self.trial.runtime.has_images:
                self._start, self._container, self._found = image_definition.define(self._start)
            else:  # the survey is one of the host itself
                self._found = survey(self.trial.link, self.trial.runtime, self._name)
                self._container = self._found.container
        self._server, launched = jupyter_launch.ensure(self._start, self._found)
        return fine("launched" if launched else "the one in the container runs")

    def _http(self) -> Finding:
        assert self._container is not None
        assert self._server is not None
        link = self.trial.link
        to = server_endpoint(self.trial.runtime, self._container, self._server)
        # Under its own name, so that the session's forward is left alone.
        self._forward = link.forward(self._name, ANY_PORT, to)
        self.made.callback(link.unforward, self._name)
        wait_for_answer(link, self._forward)
        began = time.monotonic()
        access = self._api.access()
        milliseconds = round(1000 * (time.monotonic() - began))
        if access is Access.OPEN:
            note = access_note(access, link.name) or "open to all"
            return warn(note, "`jlr start` launches its own")
        taken = f" in {milliseconds} ms" if milliseconds else ""
        return fine(f"answers through the tunnel{taken}")

    @property
    def _api(self) -> JupyterApi:
        assert self._forward is not None
        return JupyterApi(self._forward.local_port, self._forward.server)

    def _websocket(self) -> Finding:
        try:
            self._kernel = self._api.start_kernel()
        except AccessRefused:
            return skip("Jupyter asks for its password, which jlr does not have")
        self.made.callback(self._api.end_kernel, self._kernel)
        open_socket(self._api, self._kernel).close()
        return fine("answers through the tunnel")

    def _answer(self) -> Finding:
        request = ExecRequest(self._name, (QUESTION,), seconds=ANSWER_SECONDS)
        try:
            told = execute_in(self._kernel, self._api, request, self.context)
            answer = one_line("\n".join(lines_of(map(output_of, told))))
        except JlrError as error:
            raise JlrError(f"the kernel did not answer `{QUESTION}`: {error.message}") from error
        if ANSWER not in answer:  # R prints `[1] 42`
            return from_error(JlrError(f"the kernel answers that {QUESTION} is {answer}"))
        return fine(f"{QUESTION} is {answer}")


def judge_network(engine: Engine | None, on_host: Completed, inside: Completed | None) -> Finding:
    """Judge what a container (`None` for none) reaches of what the host does, by `ASK` in both."""
    if inside is not None and inside.status == 0:
        return fine(f"containers reach {SITE}")
    if on_host.status == _NO_PROGRAM:
        return skip("not tried: it takes Python or `getent`")
    if on_host.status == _PROXY:
        return skip(f"not tried: the host reaches `{SITE}` by a proxy, if at all")
    if on_host.status != 0:
        lacks = _LACKS.get(on_host.status, f"does not reach `{SITE}` in {_SECONDS} s")
        return warn(f"the host itself {lacks}", _HOSTS_OWN.get(on_host.status, "") + _BY_PROXY)
    if engine is None or inside is None:
        return fine(f"the host reaches {SITE}")
    if inside.status == _NO_PROGRAM:
        return skip("not tried in the container: it has neither Python nor `getent`")
    if inside.status == _PROXY:
        return skip(f"not tried: containers reach `{SITE}` by a proxy, if at all")
    mend = _NETWORK
    if inside.status == _NO_NAME:
        mend = _DNS if engine.kind.daemon else _DNS.partition(";")[0]
    lacks = _LACKS.get(inside.status, f"do not reach `{SITE}` in {_SECONDS} s")
    return warn(f"containers {lacks}, but the host does", mend)
