"""The events of an engine are read for as long as it sends any."""

from __future__ import annotations

from typing import cast

from jlremote.link.forwards.link_forwards import (
    LONGEST_PAUSE_SECONDS,
    PAUSE_SECONDS,
    ContainerEvents,
)
from jlremote.ssh.contract import Connection, Output
from tests.lab.programs import wait_until


class Endless:
    """A connection over which every reading ends at once; it is gone after a dozen of pauses."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def wait_closed(self, timeout: float) -> bool:
        self.pauses.append(timeout)
        return len(self.pauses) == 12

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        return True


def test_an_engine_that_ends_every_reading_is_asked_less_and_less_often() -> None:
    connection = Endless()
    events = ContainerEvents(lambda *_: None)
    events.observe(cast("Connection", connection), "docker")
    wait_until(lambda: len(connection.pauses) == 12, "the last pause")
    assert connection.pauses[0] == PAUSE_SECONDS
    assert connection.pauses == sorted(connection.pauses)
    assert connection.pauses[-1] == LONGEST_PAUSE_SECONDS
