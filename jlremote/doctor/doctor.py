"""`jlr doctor`: check the chain from this machine to a kernel, and give one verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from jlremote.doctor import host_checks, host_facts, laptop
from jlremote.doctor.diagnosis import Check, Diagnosis, Facts, Finding, Verdict, verdict
from jlremote.doctor.host_checks import ConnectionFacts
from jlremote.doctor.host_facts import HostFacts
from jlremote.doctor.session_checks import PROOF, SessionChecks
from jlremote.doctor.trial import NOTHING, Trial
from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.gpus.snapshot import NvidiaSmiMissing
from jlremote.hosts.context import Context
from jlremote.hosts.engines import Search, searched
from jlremote.hosts.links import link_on
from jlremote.hosts.requests import StartRequest
from jlremote.hosts.rollback import undisturbed
from jlremote.images import image_names
from jlremote.jupyter.configuration import HOST_PORT
from jlremote.jupyter.survey import survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.host.addresses import LOCALHOST
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.engine.engine_errors import EngineSilent, EngineUnusable
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import AUTO, runtime_named, runtime_of
from jlremote.questions import Asker, Question

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
    """Examine this machine and a host, `tell` each finding, keep nothing, return the verdict."""
    asker = _RecordingAsker(context.asker)
    this = _Examination(request, replace(context, asker=asker), tell, Diagnosis(), asker)
    this.look_at_laptop()
    if request.host is not None:
        if request.image and this.settled(request.host).get("runtime") not in IMAGE_RUNTIMES:
            image_names.check(request.image)
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
            found = [*self.diagnosis.judged(laptop.GROUP, laptop.CHECKS, self.request.host)]
        for finding in found:
            self.tell(finding)

    def look_at_host(self, name: str) -> None:
        link = link_on(name, self.context)
        self._judge(name, host_checks.CONNECTION, self._connect(link))
        trial = self._trial(link)
        if trial.facts.scheduler is not None:
            self._judge(name, host_checks.CLUSTER, trial.facts)
        self._judge(name, host_checks.CHECKS, trial.facts)
        made, step = ExitStack(), self.context.progress.step
        try:
            session = SessionChecks(trial, self.context, self.diagnosis, made)
            for finding in self.diagnosis.judged(
                name, session.in_order(), session, lambda check: step(f"Try {check}")
            ):
                self.tell(finding)
        finally:
            with undisturbed(made), step("Clean up"), suppress(JlrError):
                made.close()

    def _judge(self, group: str, checks: Sequence[Check[Facts]], facts: Facts) -> None:
        for finding in self.diagnosis.judged(group, checks, facts):
            self.tell(finding)

    def _connect(self, link: Link) -> ConnectionFacts:
        try:
            with self.context.progress.step(f"Connect to {link.name}"):
                notes = link.status(connect=True).notes
                answers = link.run(host_facts.GREETING)
                refusal = link.refusal(LOCALHOST, HOST_PORT)
        except JlrError as error:
            unasked = isinstance(error, NeedsAuthentication) and self.asker.last == "host-key"
            return ConnectionFacts(error, asked_for_key=unasked)
        address, port = [*answers["address"].stdout.split(), "", "", "", ""][2:4]
        user = answers["user"].stdout.strip()
        return ConnectionFacts(notes=notes, address=address, port=port, user=user, refusal=refusal)

    def _trial(self, link: Link) -> Trial:
        settled = self.settled(link.name)
        record: SessionRecord | None = None
        with suppress(JlrError):  # the check of the folders has reported it
            known = (one for one in sessions.load_all() if one.host == link.name)
            record = max(known, key=lambda one: one.forwarded, default=None)
        chosen, search = self._runtime(link, record, settled)
        if record is not None and (record.runtime != chosen.name or self.request.image):
            record = None
        image = self.request.image or (record.image if record else settled.get("image"))
        image = None if image is None else str(image)
        named = image if chosen.has_containers else None
        facts, found = HostFacts(link.name, engine=chosen.engine), NOTHING
        if self.diagnosis.well(host_checks.SHELL):
            with self.context.progress.step("Check the host"):
                silent = isinstance(search.unusable.get(chosen.name), EngineSilent)
                facts = _facts(link, chosen.engine, named, silent=silent)
                if record is not None and facts.engine_error is None:
                    with suppress(JlrError):  # the checks of the engine report it
                        seen = survey(link, runtime_of(record), record.name)
                        found = seen if seen.container and seen.server else NOTHING
            others = {name: why for name, why in search.unusable.items() if name != chosen.name}
            facts = replace(facts, image_needed=found is NOTHING, others=tuple(others.values()))
        network = settled.get("network") if chosen.has_containers else None
        start = StartRequest(
            host=link.name,
            runtime=str(settled.get("runtime", AUTO)),
            image=image if chosen.has_images else None,
            options=ContainerOptions(network=network),
            python=settled.get("python"),
            conda_env=settled.get("conda-env"),
        )
        if found is NOTHING:
            return Trial(link, facts, chosen, None, NOTHING, start)
        assert record is not None
        return Trial(link, facts, runtime_of(record), record, found, start)

    def _runtime(
        self, link: Link, record: SessionRecord | None, settled: dict[str, Any]
    ) -> tuple[Runtime, Search]:
        unnamed = self.request.runtime in (None, AUTO) and self.request.sudo is None
        if record is not None and unnamed:
            return runtime_named(record.runtime), Search()
        named, sudo = str(settled.get("runtime", AUTO)), bool(settled.get("sudo", False))
        if named != AUTO or not self.diagnosis.well(host_checks.SHELL):
            return runtime_named(named, sudo=sudo), Search()
        with self.context.progress.step("Look for an engine"):
            search = searched(link, sudo=sudo)
        return Containers(search.likeliest), search

    def settled(self, name: str) -> dict[str, Any]:
        options = {
            "runtime": self.request.runtime,
            "sudo": self.request.sudo,
            "python": self.request.python,
            "conda-env": self.request.conda_env,
        }
        with suppress(JlrError):
            return dict(settings.load().chosen(name, options))
        return {option: value for option, value in options.items() if value is not None}


def _facts(link: Link, engine: Engine | None, image: str | None, *, silent: bool) -> HostFacts:
    asked = host_facts.steps(engine, image, silent=silent)

    def ask() -> HostFacts:
        answers = link.run(asked, timeout=ASK_SECONDS)
        return host_facts.read_facts(link.name, engine, image, answers)

    facts = ask()
    error = facts.engine_error
    works = not isinstance(error, EngineUnusable) or isinstance(error, EngineSilent)
    cluster = facts.scheduler is not None and not facts.apptainer
    if works and not cluster and not isinstance(facts.gpus, NvidiaSmiMissing):
        return facts
    login, finds_more = link.login_shell()
    facts = ask() if finds_more else facts
    return replace(facts, looked=login.looked(), unasked=login.trouble)
