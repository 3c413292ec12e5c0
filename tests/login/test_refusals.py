"""Each cause for which a host cannot be used has its own words, and says what to do next."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.servers import HostServers
from tests.login.parts import start, started, starting
from tests.long import LONG
from tests.outages.parts import within
from tests.sessions.parts import add, answering, failed, nothing_is_left

Host = Callable[..., str]


@pytest.fixture
def host(
    laptop: Laptop,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
    session: HostServers,
) -> Host:
    """Gives a host whose sshd has further options."""

    def make(*options: str, settings: Sequence[str] = ()) -> str:
        server = another_sshd(*options)
        laptop.add_host("host", server, account, key=keys.private, options=settings)
        return "host"

    return make


def refused(laptop: Laptop, host: str, status: int, *words: str) -> str:
    """Start the session, which must fail with these words, a hint, and nothing left behind."""
    message = failed(start(laptop, host), status, "\nhint: ", *words)
    nothing_is_left(laptop)
    return message


def test_no_address_a_closed_port_silence_and_another_protocol_are_different_errors(
    laptop: Laptop,
) -> None:
    refused(
        laptop,
        "no-such-host.invalid",
        6,
        "neither a host nor a session",
        "has no address",
        "`HostName`",
    )
    with laptop.ssh_config.open("a") as config:
        config.write("Host named\n    HostName no-such-host.invalid\n")
    refused(laptop, "named", 5, "`no-such-host.invalid` has no address", "`HostName`")
    add(laptop, "closed", free_port())
    refused(laptop, "closed", 5, "refused the connection", "listens on that port")
    with answering(b"") as port:
        add(laptop, "silent", port, "ConnectTimeout 1")
        refused(laptop, "silent", 5, "did not answer in time", "VPN")
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        add(laptop, "web", port)
        refused(laptop, "web", 5, "SSH server", "`HTTP/1.1 400 Bad Request`")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("Ciphers aes128-cbc,3des-cbc", "no cipher in common; it has aes128-cbc, 3des-cbc"),
        LONG("KexAlgorithms diffie-hellman-group14-sha1", "no key exchange in common; it has diff"),
        LONG("MACs hmac-sha1\nCiphers aes128-ctr", "no MAC in common; it has hmac-sha1"),
    ],
)
def test_a_server_without_safe_algorithms_is_reported_with_its_list(
    laptop: Laptop, host: Host, option: str, words: str
) -> None:
    refused(laptop, host(option), 5, words, "have the SSH server updated")


def test_a_refused_key_a_missing_file_and_no_key_are_different_errors(
    laptop: Laptop, sshd: SSHServer, account: Account
) -> None:
    key = laptop.make_key()
    laptop.add_host("locked", sshd, account, key=key)
    refused(laptop, "locked", 4, "tried publickey (1 key)", f"offered: {key}", "`ssh -v locked`")
    gone = laptop.folder / "gone"
    laptop.add_host("keyless", sshd, account, key=gone)
    refused(laptop, "keyless", 4, "tried no method", f"`{gone}` does not exist")
    laptop.add_host("forbidden", sshd, account)
    refused(laptop, "forbidden", 4, "your ssh config allows only", "`PubkeyAuthentication`")


def test_batch_mode_is_named_in_the_hint(
    laptop: Laptop, plain: SSHServer, account: Account
) -> None:
    laptop.add_host("batch", plain, account, options=["BatchMode yes"])
    refused(laptop, "batch", 4, "remove `BatchMode yes` from your ssh config")


def test_a_host_without_forwarding_is_reported_and_frees_the_port(
    laptop: Laptop, host: Host
) -> None:
    name = host("AllowTcpForwarding no")
    message = failed(start(laptop, name), 1, "does not permit connections", "prohibited")
    assert "hint: ask its administrator for `AllowTcpForwarding local`" in message
    assert json.loads(laptop.jlr("list", "--json").stdout) == []
    (link,) = laptop.processes()
    assert [c for c in link.net_connections() if c.status == psutil.CONN_LISTEN] == []


def test_one_session_is_enough_and_none_is_reported(
    laptop: Laptop, host: Host, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    started(laptop, host("MaxSessions 1"))
    assert laptop.jlr("disconnect", "host").status == 0
    laptop.add_host("none", another_sshd("MaxSessions 0"), account, key=keys.private)
    with within(15):
        failed(start(laptop, "none"), 7, "opens no more sessions", "`MaxSessions`")


def test_settings_not_honoured_are_reported_once_and_only_with_verbose(
    laptop: Laptop, host: Host
) -> None:
    name = host(settings=["ForwardAgent yes", "LocalForward 9999 localhost:80"])
    for _ in range(2):  # on a new link, and on one that is there
        verbose = start(laptop, name, "--verbose")
        assert verbose.status == 0
        for setting in ("forwardagent yes", "localforward 9999"):
            assert verbose.stderr.count(f"host: `{setting}") == 1
    assert "forwardagent" not in started(laptop, name).stderr


def test_a_banner_does_not_drive_the_terminal(
    laptop: Laptop, plain: SSHServer, host: Host, tmp_path: Path
) -> None:
    banner = tmp_path / "banner"
    banner.write_text("\x1b]0;owned\x07\x1b[2Jwelcome\x9b31m\n" * 3)
    name = host(f"Banner {banner}")
    assert "welcome" in laptop.ssh(name, "true").stderr
    with starting(laptop, name) as terminal:
        assert terminal.ends() == 0
    assert "owned" not in terminal.screen
    assert "\x1b[2J" not in terminal.screen
    assert "\x9b" not in terminal.screen
