"""The server proves who it is before anything is offered to it."""

from __future__ import annotations

import subprocess

import pytest

from jlremote.errors import HostKey, HostKeyChanged, Usage
from tests.lab.accounts import Account
from tests.lab.sshd import WITH_PASSWORDS, SSHServer, make_key
from tests.outages.parts import within
from tests.ssh.conftest import PASSWORD, StartServer, sign
from tests.ssh.laptop import Laptop, Person, logins


def host_public(server: SSHServer, index: int = 0) -> str:
    key, data, *_ = server.host_keys[index].with_suffix(".pub").read_text().split()
    return f"{key} {data}"


def place(server: SSHServer) -> str:
    return f"[127.0.0.1]:{server.port}"


@pytest.fixture
def stranger(start: StartServer, laptop: Laptop, account: Account) -> SSHServer:
    """A server with an unknown key."""
    running = start(known=False)
    laptop.configure(running, account)
    return running


@pytest.mark.parametrize("hashed", ["yes", "no"])
def test_a_new_line_is_the_one_that_ssh_writes(
    hashed: str, stranger: SSHServer, laptop: Laptop, account: Account
) -> None:
    laptop.configure(
        stranger, account, f"HashKnownHosts {hashed}", "StrictHostKeyChecking accept-new"
    )
    before = "# mine\n\nother ssh-rsa AAAA broken\n"
    lines = []
    for way in (laptop.theirs, laptop.ours):
        laptop.known_hosts.write_text(before)
        assert way() is None
        after = laptop.known_hosts.read_text()
        assert after.startswith(before)
        lines.append(after.removeprefix(before).split(" "))
        found = subprocess.run(
            ("ssh-keygen", "-F", place(stranger), "-f", str(laptop.known_hosts)), check=False
        )
        assert found.returncode == 0
    (their_name, *their_key), (our_name, *our_key) = lines
    assert our_key == their_key
    if hashed == "yes":
        assert (our_name[:3], len(our_name)) == (their_name[:3], len(their_name)) == ("|1|", 60)
    else:
        assert our_name == their_name


SETTINGS = ("ask", "yes", "no", "accept-new")


def test_a_changed_key_is_refused_whatever_the_setting_and_nothing_is_offered(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    middle = start(known=False)
    other = make_key(laptop.folder / "other").with_suffix(".pub").read_text().strip()
    laptop.known_hosts.write_text(f"# first\n{place(middle)} {other}\n")
    for setting in SETTINGS:
        laptop.configure(middle, account, f"StrictHostKeyChecking {setting}")
        person = Person(["yes", PASSWORD])
        with pytest.raises(HostKeyChanged) as caught, laptop.connected(person=person):
            pass
        assert f"{laptop.known_hosts}:2" in caught.value.message
        assert "ssh-keygen -f" in str(caught.value.hint)
        assert place(middle) in str(caught.value.hint)
        assert person.asked == []
    assert logins(middle) == [], "the man in the middle saw an attempt to log in"


def test_a_key_of_another_type_than_the_known_one_has_changed_as_with_ssh(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    middle = start(WITH_PASSWORDS, known=False, host_key_kinds=("ecdsa",))
    methods = "PreferredAuthentications password,keyboard-interactive"
    other = make_key(laptop.folder / "other").with_suffix(".pub").read_text().strip()
    line = f"{place(middle)} {other}\n"
    laptop.known_hosts.write_text(line)
    for setting in SETTINGS:
        laptop.configure(middle, account, f"StrictHostKeyChecking {setting}", methods)
        assert isinstance(laptop.ours("yes", PASSWORD, PASSWORD), HostKeyChanged)
        assert laptop.theirs("yes", PASSWORD, PASSWORD) is not None
        assert laptop.known_hosts.read_text() == line
    assert not any("Accepted" in entry or "Failed password" in entry for entry in logins(middle))
    # It is the right key of one of several types that counts, whatever its place in the file.
    laptop.known_hosts.write_text(f"{line}{place(middle)} {host_public(middle)}\n{line}")
    laptop.configure(middle, account)
    assert laptop.get_in()


def test_a_man_in_the_middle_behind_a_known_jump_host_sees_no_login(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    bastion, middle = start(), start(known=False)
    other = make_key(laptop.folder / "other").with_suffix(".pub").read_text().strip()
    laptop.configure(middle, account, "ProxyJump bastion")
    config = laptop.config.read_text()
    laptop.configure(bastion, account)
    laptop.config.write_text(config + laptop.config.read_text().replace("Host lab", "Host bastion"))
    with laptop.known_hosts.open("a") as file:
        file.write(f"{place(middle)} {other}\n")
    assert isinstance(laptop.ours(), HostKeyChanged)
    assert laptop.theirs() is not None
    assert any("Accepted" in line for line in logins(bastion))


def test_a_man_in_the_middle_in_front_of_the_jump_host_sees_no_login_either(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    middle, inner = start(known=False), start()
    laptop.configure(inner, account, "ProxyJump bastion")
    config = laptop.config.read_text()
    laptop.configure(middle, account)
    laptop.config.write_text(config + laptop.config.read_text().replace("Host lab", "Host bastion"))
    error = laptop.ours("no")
    assert isinstance(error, HostKey)
    assert error.message.startswith("jump host: ")
    assert logins(middle) == logins(inner) == []


def test_a_revoked_key_is_refused_even_if_another_line_trusts_it(
    server: SSHServer, laptop: Laptop
) -> None:
    with laptop.known_hosts.open("a") as file:
        file.write(f"@revoked * {host_public(server)}\n")
    assert isinstance(laptop.ours(), HostKey)
    assert laptop.theirs() is not None
    assert logins(server) == []


def test_revoked_host_keys_is_honoured_and_an_unreadable_one_refuses_all(
    server: SSHServer, laptop: Laptop, account: Account
) -> None:
    revoked = laptop.folder / "revoked"
    laptop.configure(server, account, f"RevokedHostKeys {revoked}")
    assert isinstance(laptop.ours(), Usage)
    assert laptop.theirs() is not None
    revoked.write_text(make_key(laptop.folder / "x").with_suffix(".pub").read_text())
    assert laptop.get_in()
    revoked.write_text(f"# old\n{host_public(server)}\n")
    assert isinstance(laptop.ours(), HostKey)
    assert laptop.theirs() is not None
    revoked.write_bytes(b"SSHKRL\n\0rest")
    assert "binary" in str(laptop.ours())


def test_a_known_key_of_another_type_is_the_one_asked_for(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    server = start(known=False, host_key_kinds=("ed25519", "rsa", "ecdsa"))
    laptop.configure(server, account, "StrictHostKeyChecking yes")
    for index in range(3):
        laptop.known_hosts.write_text(f"{place(server)} {host_public(server, index)}\n")
        assert laptop.ours() is None, index
        assert laptop.theirs() is None, index


def test_a_wildcard_a_negation_and_a_name_without_port_count_as_with_ssh(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    server = start(known=False)
    laptop.configure(server, account, "StrictHostKeyChecking yes")
    key = host_public(server)
    lines = {
        f"[127.0.0.*]:{server.port} {key}": True,
        f"* {key}": True,
        f"*,![127.0.0.1]:{server.port},!127.0.0.1 {key}": False,
        f"127.0.0.1 {key}": True,  # ssh takes the very key under the bare name
        f"127.0.0.2 {key}": False,
    }
    for line, way in lines.items():
        laptop.known_hosts.write_text(f"{line}\n")
        assert (laptop.ours() is None, laptop.theirs() is None) == (way, way), line


def certified(
    start: StartServer, laptop: Laptop, account: Account, *options: str
) -> tuple[SSHServer, str]:
    """Return a server with a certificate that was signed so, and its authority's public key."""
    authority, host_key = make_key(laptop.folder / "ca"), make_key(laptop.folder / "host")
    certificate = sign(authority, host_key.with_suffix(".pub"), *options)
    server = start(
        [f"HostKey {host_key}", f"HostCertificate {certificate}"], known=False, host_key_kinds=()
    )
    laptop.configure(server, account, "StrictHostKeyChecking yes")
    return server, authority.with_suffix(".pub").read_text()


@pytest.mark.parametrize(
    ("options", "pattern", "way"),
    [
        (("-h", "-n", "127.0.0.1,myalias"), "[127.0.0.1]:*", True),
        (("-h", "-n", "127.0.0.1"), "*.example.org", False),
        (("-h", "-n", "other.example.org"), "*", False),
        (("-h", "-n", "127.0.0.1", "-V", "20200101:20200201"), "*", False),
        (("-n", "127.0.0.1"), "*", False),
    ],
    ids=["right", "another line", "another name", "expired", "a user's certificate"],
)
def test_a_certificate_counts_only_for_its_name_time_and_purpose(
    options: tuple[str, ...],
    pattern: str,
    way: bool,
    start: StartServer,
    laptop: Laptop,
    account: Account,
) -> None:
    server, public = certified(start, laptop, account, *options)
    laptop.known_hosts.write_text(f"@cert-authority {pattern} {public}")
    assert (laptop.ours() is None, laptop.theirs() is None) == (way, way)
    assert way or logins(server) == []


def test_a_revoked_authority_is_refused(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    _, public = certified(start, laptop, account, "-h", "-n", "127.0.0.1")
    laptop.known_hosts.write_text(f"@cert-authority * {public}@revoked * {public}")
    assert isinstance(laptop.ours(), HostKey)
    assert laptop.theirs() is not None


def test_an_unwritable_known_hosts_file_does_not_prevent_the_login(
    stranger: SSHServer, laptop: Laptop, account: Account
) -> None:
    laptop.configure(stranger, account, "UserKnownHostsFile /proc/nowhere/known_hosts")
    assert laptop.theirs("yes") is None
    with within(10):
        assert laptop.ours("yes") is None
