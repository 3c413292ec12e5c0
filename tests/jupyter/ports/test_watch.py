"""`jlr list --watch` on a real session: every change within two seconds, and nothing touched."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until

SOON = 2.0


class Watcher:
    """`jlr list --watch --json`, and the objects that it prints."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self._output = process.stdout.fileno()
        self._rest = b""

    def next(self, timeout: float) -> dict[str, Any]:
        limit = time.monotonic() + timeout
        while b"\n" not in self._rest:
            left = max(0.0, limit - time.monotonic())
            assert select.select([self._output], [], [], left)[0], f"no line within {timeout} s"
            self._rest += os.read(self._output, 65536)
        line, _, self._rest = self._rest.partition(b"\n")
        return dict(json.loads(line))

    def until_state(self, state: str, timeout: float) -> dict[str, Any]:
        limit = time.monotonic() + timeout
        report = self.next(timeout)
        while report["state"] != state:
            report = self.next(max(0.0, limit - time.monotonic()))
        return report


@contextmanager
def watching(laptop: Laptop) -> Iterator[Watcher]:
    with laptop.spawn("list", "--watch", "--json") as process:
        try:
            yield Watcher(process)
        finally:  # it watches for ever, also after a failed assertion
            process.send_signal(signal.SIGINT)
            status = process.wait(PATIENCE)
        assert status == 0


def test_a_line_says_each_change_since_when_and_why_and_starts_no_link_again(
    desk: Desk, laptop: Laptop, inside: Container, sshd: SSHServer
) -> None:
    with watching(laptop) as watcher:
        first = watcher.next(20)
        assert (first["name"], first["state"], first["detail"]) == (inside.name, "up", None)
        assert datetime.fromisoformat(first["since"]).timestamp() <= time.time()
        stopped = time.time()
        sshd.stop()
        try:
            lost = watcher.until_state("reconnecting", SOON)
            assert lost["detail"]
            since = datetime.fromisoformat(lost["since"])
            assert since.utcoffset() is not None
            assert stopped - 1 <= since.timestamp() <= time.time()
        finally:
            sshd.start()
        back = watcher.until_state("up", 10)
        assert back["url"] == first["url"]
        assert back["detail"] is None
        assert laptop.jlr("disconnect", "lab").status == 0
        down = watcher.until_state("down", SOON + 1)
        assert "not forwarded any more" in down["detail"]
        until(lambda: desk.processes() == [], "the end of the link")
        assert laptop.jlr("url").status == 0
        watcher.until_state("up", SOON + 1)
        assert laptop.jlr("stop", "--force", "--yes").status == 0
        watcher.until_state("stopped", SOON + 1)


def test_in_a_terminal_the_picture_changes(
    laptop: Laptop, inside: Container, sshd: SSHServer
) -> None:
    with laptop.terminal("jlr", "list", "--watch") as shown:
        shown.expect("up[^ ]* for ")
        sshd.stop()
        try:
            shown.expect("reconnecting[^ ]* for ", timeout=SOON + 1)
        finally:
            sshd.start()
        shown.expect("up[^ ]* for ")
        shown.sendintr()
        shown.expect("\x1b\\[\\?25h")
        until(lambda: not shown.isalive(), "its end")
        assert shown.exitstatus == 0
