"""The program that takes a command's stdin and stdout past the engine, run here."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jlremote.runtimes.scripts import direct
from jlremote.runtimes.scripts.direct import DirectStreams

COUNT = struct.Struct(">Q")
SECONDS = 30


@contextmanager
def program(
    *command: str, address: str = "127.0.0.1", path: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    text = direct.run(DirectStreams(address, "word"))
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ("/bin/sh", "-c", text, "sh", *command),
        stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def announced(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Return the port and the secret."""
    assert process.stdout is not None
    word, port, secret = process.stdout.readline().split()
    assert word == b"word"
    return int(port), secret


def connected(port: int, secret: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), SECONDS)
    sock.sendall(secret)
    return sock


def run(*command: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
    """Run a command to which nothing connects."""
    with program(*command) as process:
        announced(process)
        output, complaint = process.communicate(given, timeout=SECONDS)
    return process.returncode, output, complaint


def test_without_a_connection_all_goes_through_the_own_streams() -> None:
    script = "cat; echo oops >&2; exit 7"
    assert run("sh", "-c", script, given=b"some") == (7, b"some", b"oops\n")


@pytest.mark.parametrize("name", ["TERM", "KILL", "PIPE"])
def test_a_signal_that_ends_the_command_is_told(name: str) -> None:
    status, _, _ = run("sh", "-c", f"kill -s {name} $$")
    assert status == 128 + signal.Signals[f"SIG{name}"]


def test_a_command_that_is_missing_is_told_by_the_shell() -> None:
    status, output, complaint = run("no-such-command")
    assert (status, output) == (127, b"")
    assert b"no-such-command" in complaint


def test_a_signal_to_the_group_ends_the_command_alone() -> None:
    with program("sh", "-c", "trap 'echo got; exit 5' TERM; echo begun; sleep 60 & wait") as there:
        announced(there)
        assert there.stdout is not None
        assert there.stdout.readline() == b"begun\n"
        os.killpg(there.pid, signal.SIGTERM)
        assert there.stdout.read() == b"got\n"
        assert there.wait(SECONDS) == 5


def test_what_a_command_leaves_running_does_not_keep_it() -> None:
    with program("sh", "-c", "sleep 60 & echo done") as there:
        announced(there)
        assert there.wait(SECONDS) == 0
        assert there.stdout is not None
        os.killpg(there.pid, signal.SIGKILL)
        assert there.stdout.read() == b"done\n"


def test_both_directions_change_over_without_loss() -> None:
    data = os.urandom(20_000_000)
    with program("sh", "-c", "head -c 3; echo >&2; exec cat") as there:
        port, secret = announced(there)
        assert there.stdin is not None
        assert there.stdout is not None
        assert there.stderr is not None
        there.stdin.write(b"one")
        there.stdin.flush()
        assert there.stderr.readline() == b"\n"
        assert there.stdout.read(3) == b"one"
        with connected(port, secret) as sock:

            def send() -> None:
                sock.sendall(COUNT.pack(3) + data)
                sock.shutdown(socket.SHUT_WR)

            sending = threading.Thread(target=send)
            sending.start()
            with sock.makefile("rb") as answers:
                (before,) = COUNT.unpack(answers.read(COUNT.size))
                assert there.stdout.read(before - 3) + answers.read() == data
            sending.join()
        assert there.wait(SECONDS) == 0


def test_output_that_is_not_read_yet_outlasts_the_command() -> None:
    """It is longer than what the kernel holds, and input is left that nothing reads."""
    with program("sh", "-c", "read -r _; head -c 9000000 /dev/zero") as there:
        port, secret = announced(there)
        with connected(port, secret) as sock:
            sock.sendall(COUNT.pack(0) + b"go\n" + bytes(1000))
            with sock.makefile("rb") as answers:
                (before,) = COUNT.unpack(answers.read(COUNT.size))
                assert (before, len(answers.read())) == (0, 9_000_000)
        assert there.wait(SECONDS) == 0


def test_it_ends_when_the_other_side_leaves_what_has_arrived() -> None:
    """The end of the command was sent, and the kernel still counts output that will never go."""
    with program("sh", "-c", "read -r _; head -c 300000 /dev/zero; echo over >&2") as there:
        port, secret = announced(there)
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", port))
            sock.sendall(secret + COUNT.pack(0) + b"go\n")
            assert there.stderr is not None
            assert there.stderr.readline() == b"over\n"
            with pytest.raises(subprocess.TimeoutExpired):
                there.wait(0.5)  # for this side
        assert there.wait(SECONDS) == 0


def test_nothing_is_given_to_a_connection_without_the_secret() -> None:
    with program("sh", "-c", "read -r _; echo private") as there:
        port, secret = announced(there)
        for guess in (b"0" * len(secret), secret[:-1] + b"-"):
            with connected(port, guess) as stranger:
                assert stranger.recv(1) == b""
        assert there.stdin is not None
        there.stdin.write(b"go\n")
        there.stdin.flush()
        assert there.stdout is not None
        assert there.stdout.read() == b"private\n"
        assert there.wait(SECONDS) == 0


def test_a_reader_that_leaves_ends_the_command_as_a_pipe_does() -> None:
    with program("sh", "-c", "read -r _; exec yes") as there:
        port, secret = announced(there)
        with connected(port, secret) as sock:
            sock.sendall(COUNT.pack(0) + b"go\n")
            assert sock.recv(100)
        assert there.wait(SECONDS) == 128 + signal.SIGPIPE


def test_where_it_cannot_listen_it_becomes_the_command() -> None:
    with program("cat", address="203.0.113.7") as there:
        assert there.communicate(b"some", SECONDS)[0] == b"word 0 -\nsome"


def test_without_python_it_becomes_the_command(tmp_path: Path) -> None:
    (tmp_path / "cat").symlink_to("/bin/cat")
    with program("cat", path=str(tmp_path)) as there:
        output = there.communicate(b"some", SECONDS)[0]
    assert (output[:5], output[-5:]) == (b"word ", b"\nsome")


def test_with_a_python_that_lacks_a_module_it_becomes_the_command(tmp_path: Path) -> None:
    lacks = "import sys; sys.modules['termios'] = None"
    python = tmp_path / "python3"
    begin = f'start=$1; shift; exec {sys.executable} -c "{lacks}\n$start" "$@"'
    python.write_text(f"#!/bin/sh\nshift 3\n{begin}\n")
    python.chmod(0o755)
    with program("cat", path=f"{tmp_path}:{os.environ['PATH']}") as there:
        assert there.communicate(b"some", SECONDS)[0] == b"word 0 -\nsome"
