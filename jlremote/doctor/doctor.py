"""`jlr doctor`: check the chain from this machine to a kernel, and give one verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from jlremote.doctor import connection, host, host_facts, laptop
from jlremote.doctor.connection import ConnectionFacts
from jlremote.doctor.findings import Check, Diagnosis, Facts, Finding, Verdict, verdict
from jlremote.doctor.host_facts import HostFacts
from jlremote.doctor.session_checks import PROOF, SessionChecks
from jlremote.doctor.trial import Trial, running
from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.gpus.snapshot import NvidiaSmiMissing
from jlremote.hosts.context import Context
from jlremote.hosts.engines import Search, searched
from jlremote.hosts.links import link_on
from jlremote.hosts.requests import StartRequest
from jlremote.hosts.rollback import undisturbed
from jlremote.jupyter.configuration import HOST_PORT
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings import settings
from jlremote.link.client.link import Link
from jlremote.place.host.addresses import LOCALHOST
from jlremote.place.host.contract import Steps
from jlremote.place.runtimes.engine.engine_errors import EngineSilent, EngineUnusable
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import AUTO, runtime_named, runtime_of
from jlremote.questions import Asker, Question
from jlremote.untrusted import moment

# `nvidia-smi` may be slow, and so may an engine with many containers.
ASK_SECONDS = 90.0


@dataclass(frozen=True)
class DoctorRequest:
    """`jlr doctor [HOST]`."""

    host: str | None = None  # what `ssh HOST` takes; `None` for this machine alone
    image: str | None = None  # the image of a new container to try, even if a session runs
    runtime: str | None = None  # `None` for the session's or that of the settings
    sudo: bool | None = None  # whether to run the engine with `sudo`; `None` for the setting
    python: str | None = None  # with runtime `none`: see `StartRequest`
    conda_env: str | None = None  # with runtime `none`: see `StartRequest`


def doctor(request: DoctorRequest, context: Context, tell: Callable[[Finding], None]) -> Verdict:
    """Examine this machine and a host, `tell` each finding at once, and return the verdict.

    What was created for the examination is removed before this returns or raises.
    """
    asker = _RecordingAsker(context.asker)
    this = _Examination(request, replace(context, asker=asker), tell, Diagnosis(), asker)
    this.look_at_laptop()
    if request.host is not None:
        this.look_at_host(request.host)
        return verdict(this.diagnosis.findings, f"`{request.host}`", PROOF)
    return verdict(this.diagnosis.findings, "this machine")


@dataclass
class _RecordingAsker:
    """An asker that passes questions on and remembers the kind of the last one."""

    asker: Asker
    last: str | None = None

    def ask(self, question: Question) -> str:
        self.last = question.kind
        return self.asker.ask(question)


@dataclass(frozen=True)
class _Examination:
    """One call of `doctor`."""

    request: DoctorRequest
    context: Context
    tell: Callable[[Finding], None]
    diagnosis: Diagnosis
    asker: _RecordingAsker

    def look_at_laptop(self) -> None:
        with self.context.progress.step("Check this machine"):
            checks = laptop.checks(self.context, self.request.host)
            found = [*self.diagnosis.judged(laptop.GROUP, checks, None)]
        for finding in found:
            self.tell(finding)

    def look_at_host(self, name: str) -> None:
        link = link_on(name, self.context)
        self._judge(name, connection.CHECKS, self._connect(link))
        trial = self._trial(link)
        if trial.facts.scheduler is not None:
            self._judge(name, host.CLUSTER, trial.facts)
        self._judge(name, host.CHECKS, trial.facts)
        made = ExitStack()
        try:
            SessionChecks(trial, self.context, self.diagnosis, self.tell, made).examine()
        finally:
            with undisturbed(made), self.context.progress.step("Clean up"):
                made.close()

    def _judge(self, group: str, checks: Sequence[Check[Facts]], facts: Facts) -> None:
        for finding in self.diagnosis.judged(group, checks, facts):
            self.tell(finding)

    def _connect(self, link: Link) -> ConnectionFacts:
        """Connect, and ask for address, user, time and whether forwarding is permitted."""
        try:
            with self.context.progress.step(f"Connect to {link.name}"):
                notes = link.status(connect=True).notes
                began = time.time()
                told = link.run(host_facts.GREETING)
                refusal = link.refusal(LOCALHOST, HOST_PORT)
                sockets = _reaches_sockets(link)
        except JlrError as error:
            unasked = isinstance(error, NeedsAuthentication) and self.asker.last == "host-key"
            return ConnectionFacts(error, asked_for_key=unasked)
        greeting = {name: done.stdout.strip() for name, done in told.items()}
        address, port = [*greeting["address"].split(), "", "", "", ""][2:4]
        return ConnectionFacts(
            notes=notes,
            address=address,
            port=port,
            user=greeting["user"],
            skew=_skew(greeting["time"], began, time.time()),
            refusal=refusal,
            sockets=sockets,
        )

    def _trial(self, link: Link) -> Trial:
        """Ask the host for facts, and choose what the end of the chain is tried on."""
        settled = self._settled(link.name)
        record = _session(link.name)
        chosen, search = self._runtime(link, record, settled)
        if record is not None and (record.runtime != chosen.name or self.request.image):
            record = None
        image = self.request.image or (record.image if record else settled.get("image"))
        named = str(image) if image is not None and chosen.has_containers else None
        facts, here = HostFacts(link.name, engine=chosen.engine), None
        if self.diagnosis.well(connection.SHELL):
            with self.context.progress.step("Check the host"):
                silent = isinstance(search.unusable.get(chosen.name), EngineSilent)
                asked = host_facts.steps(chosen.engine, named, silent=silent)
                facts = _facts(link, chosen.engine, named, asked)
                if record is not None and facts.engine_error is None:
                    here = running(link, record)
            others = {name: why for name, why in search.unusable.items() if name != chosen.name}
            facts = replace(facts, image_needed=here is None, others=tuple(others.values()))
        asked_for = str(settled.get("runtime", AUTO))
        if asked_for != AUTO:
            facts = replace(facts, gpus_by=None, engine_chosen_by=self._chooser(link.name))
        start = StartRequest(
            host=link.name,
            runtime=asked_for,
            image=named,
            python=settled.get("python"),
            conda_env=settled.get("conda-env"),
        )
        runtime = chosen if record is None or here is None else runtime_of(record)
        return Trial(link, facts, runtime, here, start)

    def _runtime(
        self, link: Link, record: SessionRecord | None, settled: dict[str, Any]
    ) -> tuple[Runtime, Search]:
        """Return the runtime that `jlr start` would choose, and why others cannot be used."""
        unnamed = self.request.runtime in (None, AUTO) and self.request.sudo is None
        if record is not None and unnamed:
            return runtime_named(record.runtime), Search()
        named, sudo = str(settled.get("runtime", AUTO)), bool(settled.get("sudo", False))
        if named != AUTO or not self.diagnosis.well(connection.SHELL):
            return runtime_named(named, sudo=sudo), Search()
        with self.context.progress.step("Look for an engine"):
            search = searched(link, sudo=sudo)
        return Containers(search.likeliest), search

    def _settled(self, name: str) -> dict[str, Any]:
        """Return the options of the call and the settings; errors in these are reported before."""
        with suppress(JlrError):
            return dict(settings.load().chosen(name, self._flags))
        return {option: value for option, value in self._flags.items() if value is not None}

    @property
    def _flags(self) -> dict[str, Any]:
        given = self.request
        return {
            "runtime": given.runtime,
            "sudo": given.sudo,
            "python": given.python,
            "conda-env": given.conda_env,
        }

    def _chooser(self, name: str) -> str:
        """Return the setting that names the runtime, in words; empty for none."""
        with suppress(JlrError):
            known = settings.load()
            for origin in known.origins(name, self._flags):
                if origin.option == "runtime" and origin.is_set:
                    return origin.within(known.path)
        return ""


def _facts(link: Link, engine: Engine | None, image: str | None, asked: Steps) -> HostFacts:
    """Return what a host tells, with what only its login shell finds where something is missing."""

    def told() -> HostFacts:
        answers = link.run(asked, timeout=ASK_SECONDS)
        return host_facts.read_facts(link.name, engine, image, answers)

    facts = told()
    unusable = isinstance(facts.engine_error, EngineUnusable)
    found = not unusable or isinstance(facts.engine_error, EngineSilent)
    cluster = facts.scheduler is not None and not facts.apptainer
    if found and not cluster and not isinstance(facts.gpus, NvidiaSmiMissing):
        return facts
    login, finds_more = link.login_shell()
    facts = told() if finds_more else facts
    return replace(facts, looked=login.looked(), unasked=login.trouble)


def _reaches_sockets(link: Link) -> bool | None:
    """Return whether the SSH server connects to unix sockets; `None` if none could be made."""
    told = ""
    with link.stream(host_facts.SOCKET) as output:
        for piece in output:
            told = (told + piece)[-4096:]
            if told.endswith("\n") and told.startswith("/"):
                return link.reaches(told.strip())
    return None


def _session(name: str) -> SessionRecord | None:
    """Return the host's latest session, those that are forwarded first."""
    with suppress(JlrError):  # the check of the folders has reported it
        records = [record for record in sessions.load_all() if record.host == name]
        return next(iter(sorted(records, key=lambda record: not record.forwarded)), None)
    return None


def _skew(told: str, began: float, ended: float) -> float | None:
    """Return how many seconds the host's clock is ahead, as exactly as a round trip can tell."""
    theirs = moment(told)
    if theirs is None:
        return None
    if began - 1 <= theirs <= ended + 1:
        return 0.0
    return theirs - (ended if theirs > ended else began)
