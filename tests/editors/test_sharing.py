"""OpenSSH's client at the control socket of a name: who comes there, and what becomes of it."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jlremote.editors import connection_sharing, ssh_config
from jlremote.laptop import known_names
from jlremote.laptop.sessions import SessionRecord, delete, save
from tests.cli.terminal import Terminal
from tests.editors.conftest import SECONDS, Clients
from tests.lab.programs import wait_until
from tests.shell.parts import running

NAME = "cont1.jlr"


class Counter:
    """A control socket at which each client is counted and sent away."""

    def __init__(self, path: Path) -> None:
        self._count = 0
        self._own = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                self._count += 1
                client.close()

    def count(self) -> int:
        """Return how many clients have come, by coming as the last one."""
        with socket.socket(socket.AF_UNIX) as last:
            last.settimeout(SECONDS)
            last.connect(self._listener.getsockname())
            assert last.recv(1) == b""
        self._own += 1
        return self._count - self._own

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        self._listener.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders for all files of jlr, one with spaces in its path."""
    folder = tmp_path / "all files"
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME"):
        place = folder if name == "XDG_DATA_HOME" else tmp_path / name[-8:]
        monkeypatch.setenv(name, str(place))
        place.mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def counter(home: Path) -> Iterator[Counter]:
    path = known_names.control_socket(NAME)
    assert path is not None
    one = Counter(path)
    yield one
    one.close()


@pytest.fixture
def config(home: Path) -> Path:
    file = home / "config"
    first = "Host *\n    ProxyCommand false\n"  # no other connection
    file.write_text(first + ssh_config.block(), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "argv",
    [
        ("ssh", "-F", "{}", NAME, "true"),
        ("ssh", "-F", "{}", "-T", "-q", NAME, "two\nlines"),
        ("ssh", "-F", "{}", "-o", "SendEnv=GIT_PROTOCOL", f"me@{NAME}", "git-upload-pack 'x'"),
        ("ssh", "-F", "{}", "-oBatchMode=yes", "-s", NAME, "sftp"),
        ("scp", "-F", "{}", f"{NAME}:x", "y"),
        ("scp", "-O", "-F", "{}", f"{NAME}:x", "y"),
        ("sftp", "-F", "{}", NAME),
        ("rsync", "-e", "ssh -F {}", f"{NAME}:x", "y"),
        ("git", "-c", "core.sshCommand=ssh -F {}", "ls-remote", f"{NAME}:x"),
    ],
)
def test_a_plain_command_comes(
    argv: tuple[str, ...], config: Path, counter: Counter, tmp_path: Path
) -> None:
    words = [word.replace("{}", str(config)) for word in argv]
    subprocess.run(words, stdin=subprocess.DEVNULL, cwd=tmp_path, timeout=SECONDS, check=False)
    assert counter.count() == 1


@pytest.mark.parametrize(
    "argv",
    [
        (NAME,),
        ("-T", NAME),
        ("-N", NAME),
        ("-t", NAME, "true"),
        ("-A", NAME, "true"),
        ("-L", "1234:h:2", NAME, "true"),
        (NAME, "-L", "1234:h:2", "true"),
        ("-T", "-D", "1234", NAME, "bash"),
        ("-W", "h:2", NAME),
        ("-v", NAME, "true"),
        ("-o", "ForwardAgent=yes", NAME, "true"),
        ("-oSessionType=none", NAME, "true"),
        ("-S", "none", NAME, "true"),
        ("-O", "check", NAME),
        ("-fn", NAME, "true"),
        ("other.jlr", "true"),
        (f"ssh://{NAME}", "true"),
        ("x" * 200 + ".jlr", "true"),
    ],
)
def test_what_wants_more_has_a_connection_of_its_own(
    argv: tuple[str, ...], config: Path, counter: Counter
) -> None:
    done = subprocess.run(
        ("ssh", "-F", str(config), *argv),
        stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 255
    assert b"too long" not in done.stderr
    assert counter.count() == 0


def test_a_terminal_as_stdin_is_left_to_ssh(config: Path, counter: Counter) -> None:
    argv = ("ssh", "-F", str(config), NAME, "cat")
    for words, count in ((argv, 0), (("ssh", "-n", *argv[1:]), 1)):
        terminal = Terminal(words, environment=dict(os.environ))
        try:
            terminal.process.wait(SECONDS)
        finally:
            terminal.close()
        assert counter.count() == count


def test_what_the_users_own_configuration_asks_for_is_seen(home: Path) -> None:
    file = home / "theirs"
    for line, wanted in (
        ("User x", True),
        ("ForwardAgent no", True),
        ("ForwardAgent yes", False),
        ("LocalForward 1234 h:2", False),
        ("RequestTTY force", False),
        ("RemoteCommand top", False),
        ("NoSuchSetting x", False),
    ):
        file.write_text(f"Host {NAME}\n    {line}\n", encoding="utf-8")
        assert connection_sharing.is_wanted(NAME, str(file)) is wanted, line


def test_a_session_of_that_name_that_comes_or_goes_removes_the_socket(
    home: Path, counter: Counter
) -> None:
    path = known_names.control_socket(NAME)
    assert path is not None
    save(SessionRecord("lab", "other", "docker", 8888))
    assert path.exists()
    save(SessionRecord("lab", "u-cont1", "docker", 8889, typed="cont1"))
    assert not path.exists()
    path.touch()
    delete(SessionRecord("lab", "cont1", "docker", 8888))
    assert not path.exists()
    assert known_names.control_socket("x/y.jlr") is None
    assert known_names.control_socket("x" * 200) is None


def test_a_client_that_is_killed_ends_its_command_without_a_word(clients: Clients) -> None:
    assert clients.ssh(clients.name, "true").returncode == 0
    one = clients.popen(clients.name, "echo begun; exec sleep 641")
    assert one.stdout is not None
    assert one.stdout.readline() == b"begun\n"
    wait_until(lambda: running(clients.inside, r"^\s*\d+\s+sleep 641$"), "the program", SECONDS)
    one.terminate()
    told, _ = one.communicate(timeout=SECONDS)
    assert (one.returncode, told) == (255, b"")
    wait_until(lambda: not running(clients.inside, "sleep 641"), "its end there", SECONDS)


def test_what_does_not_speak_the_protocol_is_sent_away(clients: Clients) -> None:
    assert clients.ssh(clients.name, "true").returncode == 0
    folder = Path(clients.laptop.environment["XDG_RUNTIME_DIR"]) / "jlr" / "ssh"
    for data in (b"SSH-2.0-x\r\n", b"\xff" * 8, bytes((0, 0, 0, 1, 7)), bytes(4)):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(SECONDS)
            stranger.connect(str(folder / clients.name))
            stranger.sendall(data)
            stranger.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):  # what it has said was not read to its end
                assert stranger.recv(1) == b""
    done = clients.ssh(clients.name, "echo still")
    assert done.stdout == b"still\n", done


def test_a_link_that_was_killed_is_found_again(clients: Clients) -> None:
    """Its sockets stay. ssh says so once and makes a connection, which mends it."""
    assert clients.ssh(clients.name, "true").returncode == 0
    (link,) = [one for one in clients.laptop.processes() if "jlremote.link" in one.cmdline()]
    link.kill()
    link.wait(SECONDS)
    first = clients.ssh(clients.name, "echo first")
    assert first.stdout == b"first\n", first
    again = clients.ssh(clients.name, "echo again")
    assert (again.stdout, again.stderr) == (b"again\n", b""), again
