"""The program that passes a log on in large pieces, run here."""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from jlremote.jobs import containers
from jlremote.jobs.containers import _JOINED as JOINED
from jlremote.jobs.containers import _beyond
from jlremote.place.host.shell_text import until_hang_up
from jlremote.place.host.sudo import SUDO, endable
from jlremote.remote import joining
from tests.lab.programs import SYSTEM_PATH, lives, wait_until
from tests.place.host.parts import OLD_SUDO
from tests.place.host.shells import run_sh

SECONDS = 30
PIECES = """\
import os, random
numbers = random.Random(7)
for _ in range(3000):
    os.write(1, numbers.randbytes(numbers.randrange(600)))
    os.write(2, numbers.randbytes(numbers.randrange(60)))
"""


def printed() -> tuple[bytes, bytes]:
    """Return what `PIECES` writes to stdout and to stderr."""
    numbers, stdout, stderr = random.Random(7), b"", b""
    for _ in range(3000):
        stdout += numbers.randbytes(numbers.randrange(600))
        stderr += numbers.randbytes(numbers.randrange(60))
    return stdout, stderr


@contextmanager
def joined(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command by the program, with pipes."""
    with subprocess.Popen(
        (*JOINED, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_both_streams_arrive_whole_with_the_exit_status() -> None:
    with joined("python3", "-c", f"{PIECES}raise SystemExit(3)") as process:
        assert process.communicate(timeout=SECONDS) == printed()
        assert process.returncode == 3


def test_the_bytes_that_were_shown_are_left_out_of_what_it_passes_on() -> None:
    argv = ("sh", "-c", "printf 0123456789; printf abcdefghij >&2; exit 3")
    show = f"{shlex.join((*JOINED, *argv))} 2>&1 1>&5 5>&-"
    done = run_sh("sh", _beyond(show, 4, 7))
    assert (done.stdout, done.stderr) == ("456789", "hij")


@pytest.mark.parametrize(
    ("text", "status", "complaint"),
    [("kill -KILL $$", 137, b""), ("exec jlr-no-such-program", 127, b"not found")],
)
def test_a_command_that_is_killed_or_missing_is_told_as_a_shell_does(
    text: str, status: int, complaint: bytes
) -> None:
    with joined("sh", "-c", text) as process:
        _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == status
    assert complaint in stderr


def test_pieces_behind_a_large_one_are_passed_on_together(monkeypatch: pytest.MonkeyPatch) -> None:
    source, end = os.pipe()
    target, reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    large = bytes(joining._MUCH)
    os.write(end, large)
    more = iter((b"one", b"two", b"three"))

    def nap(_: float) -> None:
        for piece in more:
            os.write(end, piece)
        os.close(end)

    monkeypatch.setattr("jlremote.remote.joining.time.sleep", nap)
    with target, reader:
        joining._pass_on({source: target.fileno()})
        target.shutdown(socket.SHUT_WR)
        assert [reader.recv(1 << 16) for _ in range(3)] == [large, b"onetwothree", b""]
    os.close(source)


def test_a_line_comes_at_once_and_a_signal_ends_the_command() -> None:
    with joined("sh", "-c", "echo $$; exec sleep 600") as process:
        assert process.stdout is not None
        command = psutil.Process(int(process.stdout.readline()))
        process.terminate()
        assert process.wait(SECONDS) == 128 + signal.SIGTERM
        wait_until(lambda: not lives(command), "the end of the command")


def test_it_ends_with_its_reader() -> None:
    with joined("sh", "-c", "echo $$; exec yes") as process:
        assert process.stdout is not None
        command = psutil.Process(int(process.stdout.readline()))
        process.stdout.close()
        assert process.wait(SECONDS) in {128 + signal.SIGTERM, 128 + signal.SIGPIPE}
        wait_until(lambda: not lives(command), "the end of the command")


def test_a_log_behind_an_old_sudo_ends_with_the_connection(tmp_path: Path) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(OLD_SUDO)
    sudo.chmod(0o755)
    text = until_hang_up(endable((*SUDO, "sh", "-c", "echo $$; exec sleep 600"), JOINED))
    with subprocess.Popen(
        ("sh", "-c", text),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": f"{tmp_path}:{SYSTEM_PATH}"},
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        command = psutil.Process(int(shell.stdout.readline()))
        shell.stdin.close()
        wait_until(lambda: not lives(command), "the end of what `sudo` runs")


def test_without_python_the_command_runs_as_it_is() -> None:
    argv = ("/bin/sh", "-c", containers._JOIN, "text", "/bin/sh", "-c", "echo $0; exit 3")
    done = subprocess.run(argv, capture_output=True, timeout=SECONDS, env={"PATH": "/nowhere"})
    assert (done.returncode, done.stdout) == (3, b"/bin/sh\n")
