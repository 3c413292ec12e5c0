"""The demo's SSH server, asked by paramiko and by OpenSSH."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import paramiko
import psutil
import pytest

from jlremote.demo.loopback_host import Account, configured_server
from tests.lab.programs import PATIENCE, lives, wait_until

# Reaches this machine, and is no loopback address: it stands for a container's.
EVERY_INTERFACE = "0.0.0.0"


@dataclass(frozen=True)
class Host:
    port: int
    user: str
    config: Path
    folder: Path

    @property
    def key(self) -> paramiko.PKey:
        return paramiko.Ed25519Key.from_private_key_file(str(self.config.parent / "id"))

    def transport(self) -> paramiko.Transport:
        """Return a connection that has not logged in, to a server that proved who it is."""
        transport = paramiko.Transport(("127.0.0.1", self.port))
        transport.start_client(timeout=PATIENCE)
        known = paramiko.HostKeys(str(self.config.parent / "known_hosts"))
        assert known.check(f"[127.0.0.1]:{self.port}", transport.get_remote_server_key())
        return transport


def login(folder: Path) -> Account:
    return Account("someone", "/bin/sh", folder, {"PATH": os.environ["PATH"], "MARK": "here"})


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A server that forwards to the loopback alone."""
    config, there = tmp_path / "keys" / "ssh_config", login(tmp_path)
    config.parent.mkdir()
    with configured_server("demo", config, there) as port:
        yield Host(port, there.user, config, tmp_path)


@pytest.fixture
def client(host: Host) -> Iterator[paramiko.Transport]:
    transport = host.transport()
    transport.auth_publickey(host.user, host.key)
    yield transport
    transport.close()


PROHIBITED = 1  # RFC 4254, 5.1: SSH_OPEN_ADMINISTRATIVELY_PROHIBITED

needs_openssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="`ssh` is not installed")


def session(client: paramiko.Transport, command: str | None = None) -> paramiko.Channel:
    channel = client.open_session(timeout=PATIENCE)
    channel.settimeout(PATIENCE)
    if command is not None:
        channel.exec_command(command)
    return channel


def output(channel: paramiko.Channel) -> bytes:
    return b"".join(iter(lambda: channel.recv(1 << 20), b""))


def ended(channel: paramiko.Channel) -> int:
    """Return a session's exit status; it must come soon."""
    assert channel.status_event.wait(PATIENCE), "no exit status came"
    return int(channel.exit_status)


def ssh(host: Host, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run OpenSSH's client with the configuration that the demo wrote."""
    argv = ("ssh", "-F", str(host.config), "-o", "BatchMode=yes", *words)
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=PATIENCE, check=False)


@pytest.mark.lab  # it takes seconds
@pytest.mark.parametrize("stubborn", ["", "trap '' HUP TERM;"])
def test_closing_the_channel_ends_the_command_and_its_children(
    client: paramiko.Transport, stubborn: str, tmp_path: Path
) -> None:
    shell = session(client, f"{stubborn} sleep 300 & echo $! >{tmp_path}/pid; echo up; wait")
    assert shell.recv(10) == b"up\n"
    child = psutil.Process(int((tmp_path / "pid").read_text()))
    shell.close()
    wait_until(lambda: not lives(child), "the end of the child")


def test_ctrl_c_in_a_terminal_interrupts_a_program(client: paramiko.Transport) -> None:
    shell = session(client)
    shell.get_pty("xterm")
    shell.exec_command("trap 'echo caught; exit 3' INT; echo up $TERM; while :; do sleep 0.1; done")
    assert shell.recv(100) == b"up xterm\r\n"
    shell.sendall(b"\x03")
    assert (output(shell), ended(shell)) == (b"^Ccaught\r\n", 3)


def test_another_key_is_refused(host: Host) -> None:
    transport = host.transport()
    with pytest.raises(paramiko.AuthenticationException):
        transport.auth_publickey(host.user, paramiko.RSAKey.generate(2048))
    transport.close()


def test_nothing_but_a_key_is_taken(host: Host) -> None:
    transport = host.transport()
    with pytest.raises(paramiko.BadAuthenticationType) as refusal:
        transport.auth_password(host.user, "password", fallback=False)
    assert refusal.value.allowed_types == ["publickey"]
    transport.close()


@pytest.mark.parametrize("address", [EVERY_INTERFACE, "192.0.2.1", "example.com", "::"])
def test_a_forward_to_elsewhere_is_refused(client: paramiko.Transport, address: str) -> None:
    with pytest.raises(paramiko.ChannelException) as refusal:
        client.open_channel("direct-tcpip", (address, 80), ("127.0.0.1", 1), timeout=PATIENCE)
    assert refusal.value.code == PROHIBITED


def test_a_forward_from_the_far_side_is_refused(client: paramiko.Transport) -> None:
    with pytest.raises(paramiko.SSHException):
        client.request_port_forward("127.0.0.1", 0)


@pytest.mark.lab  # it takes seconds
def test_the_end_of_the_server_ends_what_it_runs(tmp_path: Path) -> None:
    there = login(tmp_path)
    with configured_server("demo", tmp_path / "ssh_config", there) as port:
        host = Host(port, there.user, tmp_path / "ssh_config", tmp_path)
        client = host.transport()
        client.auth_publickey(host.user, host.key)
        shell = session(client, "trap '' HUP TERM; echo $$; while :; do sleep 1; done")
        stubborn = psutil.Process(int(shell.recv(20)))
    assert not lives(stubborn)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    client.close()


@needs_openssh
def test_openssh_logs_in_with_the_written_configuration(host: Host) -> None:
    done = ssh(host, "demo", "exec /bin/sh -s", stdin=b"echo from ssh; exit 9\n")
    assert (done.stdout, done.returncode) == (b"from ssh\n", 9), done.stderr


@needs_openssh
def test_openssh_refuses_a_server_with_another_host_key(host: Host, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key()
    (host.config.parent / "known_hosts").write_bytes(f"[127.0.0.1]:{host.port} ".encode() + other)
    done = ssh(host, "demo", "true")
    assert (done.returncode, b"HOST IDENTIFICATION HAS CHANGED" in done.stderr) == (255, True)


def test_the_configuration_is_readable_by_its_owner_alone(host: Host) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in host.config.parent.iterdir()}
    assert modes == {"id": 0o600, "known_hosts": 0o600, "ssh_config": 0o600}
