"""Parts for the tests of workflows: a host that answers, and a laptop that takes notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from jlremote.errors import Busy, NeedsAuthentication
from jlremote.hosts.context import Context
from jlremote.jupyter.endpoint import Endpoint, Server
from jlremote.laptop.sessions import MountRecord
from jlremote.link.wire.states import ForwardKey, ForwardStatus, LinkStatus, LoginShell
from jlremote.place.host.contract import Completed, Steps
from jlremote.questions import Asker, Question


@dataclass
class FakeHost:
    """A host that answers each step by its name; one that it does not know is a fault of the test.

    Attributes:
        name: what was typed after `ssh`.
        answers: how each step ends; a plain text is printed by a step that ends well. The user
            there is `ada` unless they say otherwise.
        asked: the texts of the steps of the last script.
        login: what its login shell has, and whether that is more.
    """

    name: str
    answers: dict[str, Completed | str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    login: tuple[LoginShell, bool] = (LoginShell("/bin/bash"), False)

    def login_shell(self) -> tuple[LoginShell, bool]:
        return self.login

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        self.asked = dict(steps)
        found = {
            step: ({"user": "ada", "scheduled": "", "clock": ""} | self.answers)[step]
            for step in steps
        }
        return {
            step: Completed(0, answer, "") if isinstance(answer, str) else answer
            for step, answer in found.items()
        }


class Answering:
    """A part of a stand-in for a link: its host answers."""

    def answers(self) -> bool | None:
        return True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        yield


@dataclass
class Notes:
    """Progress that is kept and shown nowhere."""

    steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    announced: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.steps.append(title)
        yield

    def waiting(self, title: str, *, long: bool) -> AbstractContextManager[None]:
        """Keep nothing: it is shown only where the answer is slow."""
        return nullcontext()

    def advance(self, text: str) -> None:
        """Keep nothing: only the latest word counts."""

    def note(self, text: str) -> None:
        self.notes.append(text)

    def announce(self, title: str, text: str) -> None:
        self.announced.append((title, text))

    def detail(self, text: str) -> None:
        self.details.append(text)

    def command(self, text: str) -> None:
        self.commands.append(text)


class NoAnswer:
    """Nobody is there to be asked."""

    def ask(self, question: Question) -> str:
        raise NeedsAuthentication(f"a test was asked: {question.text}")


class Person:
    """A person at a terminal, who gives one answer to each request to confirm.

    Attributes:
        asked: the text of the last question.
    """

    def __init__(self, answer: str) -> None:
        self.answer, self.asked = answer, ""

    def ask(self, question: Question) -> str:
        assert question.kind == "confirm"
        self.asked = question.text
        return self.answer


def context(notes: Notes | None = None, asker: Asker | None = None) -> Context:
    """Return the laptop's side of a workflow, which keeps what it is told in `notes`."""
    return Context(None, asker or NoAnswer(), notes or Notes(), lambda *_: None)


class FakeLink:
    """A link that forwards on any local port but those that are taken."""

    name = "dgx"

    def __init__(self, *taken: int) -> None:
        self.taken = set(taken)
        self.held: dict[ForwardKey, tuple[int, Endpoint]] = {}
        self.unseen: list[int] = []

    def forward(
        self, session: str, local_port: int, endpoint: Endpoint, *, seen: bool = True
    ) -> ForwardStatus:
        if local_port in self.taken:
            raise Busy(f"port {local_port} is taken")
        if not seen:
            self.unseen.append(local_port)
        key = (session, endpoint.further_port)
        self.held[key] = (local_port, endpoint)
        return ForwardStatus(*key, local_port, "up", 0.0, None, endpoint, None)

    def unforward(self, session: str, port: int | None = None) -> bool:
        return self.held.pop((session, port), None) is not None

    def status(self, *, connect: bool = False) -> LinkStatus:
        told = (
            ForwardStatus(*key, local, "up", 0.0, None, endpoint, None)
            for key, (local, endpoint) in self.held.items()
        )
        return LinkStatus("up", 0.0, None, tuple(told), ())


RECORD = MountRecord("/home/ada/p", "/srv/p", "lab", "cont1", None, False, False)
SERVER = Server(
    pid=7,
    process_start="99",
    port=8888,
    base_url="/cont1/",
    token="t",
    password=False,
    root_directory="/",
    loopback_only=True,
    loopback="127.0.0.1",
    ours=True,
    python="/usr/bin/python3",
)
