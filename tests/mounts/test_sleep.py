"""A laptop that sleeps, and a server that restarts or stops, leave the mount working as before.

A laptop's sleep is imitated by stopping whatever of ours carries the mount, link and sshfs; a
program that looks at the mount meanwhile waits, as it would have slept itself.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.sshd import SSHServer
from tests.mounts.parts import LIMIT_SECONDS, Desk, attempt, own, until, works

# Longer than the link lets a mount's connection be quiet before it asks for a sign of life.
LONG_SLEEP_SECONDS = 14.0


@contextmanager
def asleep(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    """Stop the link and sshfs; give a program that reads a file of the mount and has to wait."""
    own(desk.account, desk.project)
    carriers = [desk.link(), *desk.sshfs()]
    for process in carriers:
        process.suspend()
    reader = subprocess.Popen(
        ("cat", str(desk.local / "notes")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield reader
    finally:
        for process in carriers:
            process.resume()


def is_in_order(desk: Desk, content: bytes) -> None:
    """See that the mount works without a hand, and shows and stores what it should."""
    until(lambda: works(desk.local), "the mount's return")
    assert (desk.local / "notes").read_bytes() == content
    (desk.local / "after").write_bytes(b"written after the sleep")
    assert desk.has_project("after", b"written after the sleep")
    assert desk.states() == ["up"]


@pytest.mark.long
@pytest.mark.parametrize("seconds", [1.0, LONG_SLEEP_SECONDS])
def test_after_a_sleep_a_waiting_program_gets_an_answer(desk: Desk, seconds: float) -> None:
    (desk.project / "notes").write_bytes(b"before the sleep")
    desk.mount()
    sshfs = desk.sshfs()
    with asleep(desk) as reader:
        time.sleep(seconds)
        assert reader.poll() is None
        (desk.project / "notes").write_bytes(b"changed meanwhile")
    assert reader.communicate(timeout=LIMIT_SECONDS)[0] == b"changed meanwhile"
    is_in_order(desk, b"changed meanwhile")
    assert desk.sshfs() == sshfs


def test_a_server_that_gave_up_during_the_sleep_is_found_again(desk: Desk, sshd: SSHServer) -> None:
    (desk.project / "notes").write_bytes(b"before the sleep")
    desk.mount()
    sshfs = desk.sshfs()
    with asleep(desk) as reader:
        sshd.drop_connections()
    # It may get an error or its answer, by when sshfs looked; it must not wait for good.
    reader.communicate(timeout=LIMIT_SECONDS)
    is_in_order(desk, b"before the sleep")
    assert desk.sshfs() == sshfs


def test_a_server_that_stops_answering_is_given_up_by_the_users_own_settings(
    quick_desk: Desk, sshd: SSHServer
) -> None:
    """Noticed within four seconds, as the host's settings allow; then there is a new connection."""
    desk = quick_desk
    (desk.project / "notes").write_bytes(b"x")
    own(desk.account, desk.project)
    desk.mount()
    frozen = sshd.sessions()
    sshd.freeze_connections()
    try:
        waited = attempt("cat", str(desk.local / "notes"))
        assert waited.error != 0
        assert waited.seconds < LIMIT_SECONDS / 2
        is_in_order(desk, b"x")
    finally:
        for process in frozen:
            process.kill()
