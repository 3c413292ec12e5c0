"""Parts for the tests of containers: a start in progress on a host that answers in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from jlremote.hosts.requests import StartContext, StartRequest
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from tests.stories.parts import Notes, context

Answer = Completed | str
CONTAINERS = Containers(DOCKER)
INSPECTED: dict[str, Any] = {
    "Id": "c0ffee",
    "Name": "/cont1",
    "State": {"Running": True, "StartedAt": "2026-01-01"},
    "Config": {"Image": "torch", "Labels": {}},
    "HostConfig": {"NetworkMode": "bridge"},
    "NetworkSettings": {"Networks": {"bridge": {"IPAddress": "10.0.0.2"}}},
    "Mounts": [],
}


def refused(words: str, status: int = 125) -> Completed:
    """Return the end of a step that failed."""
    return Completed(status, "", words)


def inspected(how: str = "", why: str = "", **state: object) -> str:
    """Return what `inspect` prints of a container, behind a line that says `how` it runs.

    The next one says `why` it has no network of its own.
    """
    facts = INSPECTED | {"State": INSPECTED["State"] | state}
    return (f"{how}\n{why}\n" if how else "") + json.dumps([facts])


@dataclass
class TurnHost:
    """A host whose steps give their answers one after the other, the last one again and again.

    Attributes:
        answers: the answers of each step by its name.
        scripts: the text of each step that was run, in order.
        sockets: the unix sockets that its SSH server connects to.
    """

    answers: dict[str, list[Answer]]
    name: str = "dgx"
    scripts: list[tuple[str, str]] = field(default_factory=list)
    sockets: set[str] = field(default_factory=set)

    def refusal(self, path: str) -> str | None:
        return None if path in self.sockets else "open failed"

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        return {step: self._answer(step, text) for step, text in steps.items()}

    def texts(self, step: str) -> list[str]:
        """Return the scripts of a step, in order."""
        return [text for name, text in self.scripts if name == step]

    def _answer(self, step: str, text: str) -> Completed:
        self.scripts.append((step, text))
        queue = self.answers[step]
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        return Completed(0, answer, "") if isinstance(answer, str) else answer

    @contextmanager
    def stream(self, script: str) -> Iterator[Stream]:
        done = self._answer("stream", script)
        yield Stream(done.stdout, done.status)


@dataclass
class Stream:
    """The output of a script that is watched."""

    printed: str
    status: int

    def text(self) -> Iterator[str]:
        yield from self.printed.splitlines(keepends=True)


@dataclass
class Start:
    """A start in progress, with what it asked and told."""

    host: TurnHost
    notes: Notes
    context: StartContext


def start(
    answers: dict[str, list[Answer]],
    request: StartRequest | None = None,
    runtime: Runtime = CONTAINERS,
) -> Start:
    """Return a start of `cont1` on a host with these answers."""
    nothing: dict[str, list[Answer]] = {"script": [""]}
    host, notes = TurnHost(nothing | answers), Notes()
    request = request or StartRequest("dgx", "cont1", image="torch")
    link = cast("Link", host)
    made = StartContext(link, runtime, "cont1", request, context(notes), ExitStack(), mark="l1")
    return Start(host, notes, made)
