"""The end of the doctor's chain, where its parts are exchanged for ones that only answer."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jlremote.doctor import session_checks
from jlremote.doctor.diagnosis import Diagnosis, Finding, fine, skip
from jlremote.doctor.host_facts import HostFacts, ImageFacts
from jlremote.doctor.session_checks import SessionChecks
from jlremote.doctor.trial import NOTHING, Trial, judge_gpus
from jlremote.errors import JlrError
from jlremote.gpus.inventory import Gpu, Inventory
from jlremote.hosts.requests import StartRequest
from jlremote.jupyter.api import Access, AccessRefused
from jlremote.jupyter.survey import Survey
from jlremote.kernels.execution import ExecRequest
from jlremote.laptop.sessions import SessionRecord
from jlremote.output.recorded_files import Record
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Container, Runtime
from tests.stories.parts import FakeHost, context

CONTAINER = Container("c0ffee", "cont1", running=True, started_at="2026-01-01")


@dataclass
class FakeLink(FakeHost):
    """A link that notes its forwards."""

    forwards: list[str] = field(default_factory=list)

    def forward(self, name: str, port: int, to: object) -> Any:
        self.forwards.append(name)
        return SimpleNamespace(local_port=8888, server=object())

    def unforward(self, name: str) -> None:
        self.forwards.remove(name)


@dataclass
class Jupyter:
    """A Jupyter whose kernel knows one sum.

    Attributes:
        answer: what its kernel answers.
        access_kind: how it authenticates.
        password: whether it asks for its password.
        kernels: the kernels that run.
    """

    answer: str = "42"
    access_kind: Access = Access.TOKEN
    password: bool = False
    kernels: list[str] = field(default_factory=list)

    def access(self) -> Access:
        return self.access_kind

    def start_kernel(self) -> str:
        if self.password:
            raise AccessRefused("no")
        self.kernels.append("k1")
        return "k1"

    def end_kernel(self, kernel: str) -> None:
        self.kernels.remove(kernel)


WELL = {"script": "", "host": "", "inside": ""}


@dataclass
class Chain:
    """One examination of the end of the chain."""

    link: FakeLink = field(default_factory=lambda: FakeLink("lab", dict(WELL)))
    jupyter: Jupyter = field(default_factory=Jupyter)
    told: list[Finding] = field(default_factory=list)
    made: ExitStack = field(default_factory=ExitStack)

    def examine(
        self, runtime: Runtime | None = None, *, runs: bool = False, image: str | None = "me/x"
    ) -> dict[str, Finding]:
        """Examine it after all earlier checks passed; return the findings by their checks."""
        record = SessionRecord("lab", "cont1", "docker", 8888) if runs else None
        found = Survey(CONTAINER, None) if runs else NOTHING
        request = StartRequest("lab", "x", image=image)
        link = cast("Any", self.link)
        trial = Trial(link, HostFacts("lab"), runtime or Containers(DOCKER), record, found, request)
        diagnosis = Diagnosis()
        for check in ("shell", "permission", "driver", "disk", "forwarding", "image"):
            diagnosis.add("lab", check, fine("well"))
        SessionChecks(trial, context(), diagnosis, self.told.append, self.made).examine()
        return {finding.check: finding for finding in self.told}


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    chain = Chain()
    launched = (cast("Any", object()), True)
    found = Survey(CONTAINER, None)

    def told(_kernel: str, _api: object, request: ExecRequest, _context: object) -> list[Record]:
        assert request.cells == ("6*7",)
        content = {"data": {"text/plain": chain.jupyter.answer}}
        return [Record(1.0, "k1", "execute_result", content=content)]

    for name, value in {
        "provision": SimpleNamespace(ensure=lambda start, _: (start, CONTAINER, found)),
        "jupyter_launch": SimpleNamespace(ensure=lambda *_: launched),
        "judge_gpus": lambda *_: skip("no GPUs"),
        "survey": lambda *_: found,
        "server_endpoint": lambda *_: object(),
        "wait_for_answer": lambda *_: None,
        "JupyterApi": lambda *_: chain.jupyter,
        "open_socket": lambda *_: SimpleNamespace(close=lambda: None),
        "execute_in": told,
    }.items():
        monkeypatch.setattr(session_checks, name, value)
    return chain


def test_all_that_was_made_is_removed(chain: Chain) -> None:
    chain.examine()
    assert len(chain.link.forwards) == 1
    assert chain.jupyter.kernels == ["k1"]
    chain.made.close()
    assert (chain.link.forwards, chain.jupyter.kernels) == ([], [])


def test_a_container_in_which_nothing_runs_breaks_the_chain(chain: Chain) -> None:
    chain.link.answers["script"] = Completed(126, "", "exec format error")
    found = chain.examine()
    assert found["container"].mark == "failed"
    assert "nothing runs in a new container of me/x" in found["container"].text
    assert "docker run --rm -it me/x sh" in found["container"].mend[0]
    assert found["kernel"].text == "needs `container`"


def test_an_open_server_is_a_warning_and_a_password_ends_the_chain(chain: Chain) -> None:
    chain.jupyter.access_kind = Access.OPEN
    chain.jupyter.password = True
    found = chain.examine()
    assert found["http"].mark == "warning"
    assert "asks for its password" in found["websocket"].text
    assert found["kernel"].mark == "skipped"
    assert chain.jupyter.kernels == []


@pytest.mark.parametrize(("answer", "mark"), [("[1] 42", "ok"), ("41", "failed")])
def test_a_kernel_must_answer_the_sum_in_any_language(chain: Chain, answer: str, mark: str) -> None:
    chain.jupyter.answer = answer
    found = chain.examine()["kernel"]
    assert (found.mark, answer in found.text) == (mark, True)


GPU = Gpu(0, "NVIDIA H200", cast("Any", None))
WITH_GPUS = HostFacts(
    "lab",
    engine=DOCKER,
    gpus=Inventory((GPU,), 0.0, "ada"),
    toolkit=("/usr/bin/nvidia-ctk",),
    image=ImageFacts("me/x", found=True),
)


def judge(facts: HostFacts, answer: Completed | str, *, gpus: str | None = None) -> Any:
    """Judge the toolkit on a session's container with `gpus`, or on a new one."""
    record = SessionRecord("lab", "cont1", "docker", 8888)
    container = replace(CONTAINER, gpus=gpus)
    found = Survey(container, None) if gpus else NOTHING
    link: Any = FakeLink("lab", {"script": answer})
    request = StartRequest("lab", "x", image="me/x")
    trial = Trial(link, facts, Containers(DOCKER), record if gpus else None, found, request)
    return judge_gpus(trial, Diagnosis(), "doctor-gpus", context())


def test_gpus_are_proved_in_the_sessions_container() -> None:
    found = judge(WITH_GPUS, "GPU 0: NVIDIA H200 (UUID: GPU-1)\n", gpus="all")
    assert (found.mark, found.text) == ("ok", "`nvidia-smi` in `cont1`: 1 GPU")


def test_without_gpus_or_an_image_nothing_is_tried() -> None:
    assert judge(HostFacts("lab", engine=DOCKER), "").mark == "skipped"
    unnamed = judge(replace(WITH_GPUS, image=None), "")
    assert (unnamed.mark, "not tried" in unnamed.text) == ("warning", True)


def test_a_host_that_cannot_be_asked_is_a_finding_of_its_check(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise JlrError("the link is gone", hint="`jlr list`")

    monkeypatch.setattr(session_checks, "wait_for_answer", lost)
    found = chain.examine()
    assert (found["http"].mark, found["http"].text) == ("failed", "the link is gone")
    assert found["http"].mend == ("`jlr list`",)
