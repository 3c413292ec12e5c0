"""While the host is away programs on a mount fail in time; when it is back, so is the mount."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.lab.line import Line
from tests.lab.programs import load
from tests.mounts.parts import LIMIT_SECONDS, Desk, attempt, own, until, works


@contextmanager
def a_program_that_reads(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    """Keep a file of the mount open, in a program of its own that reads on when it is told."""
    (desk.project / "data").write_bytes(bytes(1 << 20))
    own(desk.account, desk.project)
    script = "exec 3<data; echo ready; read go; exec cat <&3"
    with subprocess.Popen(
        ("sh", "-c", script), cwd=desk.local, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        yield program
        program.kill()


def test_while_the_host_is_down_programs_fail_in_time_and_then_go_on(
    far_desk: Desk, line: Line
) -> None:
    far_desk.mount()
    line.take_down()
    with ThreadPoolExecutor() as pool:
        names = [str(far_desk.local / f"file{number}") for number in range(8)]
        for outcome in pool.map(lambda name: attempt("cat", name), names):
            assert outcome.error != 0
            assert outcome.seconds < LIMIT_SECONDS
    at_once = attempt("cat", str(far_desk.local / "another"))
    assert at_once.error != 0
    assert at_once.seconds < 2 * load()
    assert far_desk.states() == ["reconnecting"]
    line.bring_up()
    until(lambda: works(far_desk.local), "the mount's return")
    assert far_desk.states() == ["up"]


def test_a_host_that_falls_silent_is_given_up_in_time(far_desk: Desk, line: Line) -> None:
    """A program that reads, one that writes and one that begins meanwhile all come to an end."""
    far_desk.mount()
    with a_program_that_reads(far_desk) as reader, ThreadPoolExecutor() as pool:
        copy = ("dd", "if=/dev/zero", f"of={far_desk.local / 'big'}", "bs=1M", "count=2000")
        writing = pool.submit(attempt, *copy)
        until(lambda: _size(far_desk) > 1 << 20, "the copy's beginning")
        line.stall()
        began = time.monotonic()
        beginning = pool.submit(attempt, "ls", str(far_desk.local / "nothing"))
        reader.communicate(b"go\n", timeout=LIMIT_SECONDS)
        assert reader.returncode != 0
        assert writing.result().error != 0
        assert beginning.result().error != 0
        assert time.monotonic() - began < LIMIT_SECONDS
    far_desk.jlr("mount", timeout=30)
    line.cut()
    line.resume()
    until(lambda: works(far_desk.local), "the mount's return", timeout=90)


def _size(desk: Desk) -> int:
    file = desk.project / "big"
    return file.stat().st_size if file.exists() else 0


def test_a_link_that_was_killed_comes_back_with_the_next_command(desk: Desk) -> None:
    desk.mount()
    sshfs = desk.sshfs()
    desk.link().kill()
    lost = attempt("ls", str(desk.local / "nothing"))
    assert lost.error != 0
    assert lost.seconds < 5 * load()
    assert desk.states() == ["up"]
    assert works(desk.local)
    assert desk.sshfs() == sshfs
