"""Every setting beside its real counterpart: `ssh` and jlr both get in, or both do not.

docs/ssh.md names these tests; a row that jlr treats otherwise on purpose has a test that says so.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from jlremote import errors
from tests.lab.accounts import Account
from tests.lab.ports import free_port
from tests.lab.sshd import WITH_PASSWORDS, SSHServer, make_key
from tests.long import LONG
from tests.rows import REPOSITORY
from tests.ssh.conftest import PASSWORD, StartServer
from tests.ssh.laptop import HOST, Laptop

IN, OUT = True, False
_PIPE = Path(__file__).with_name("proxy_program.py")


@dataclass(frozen=True)
class Row:
    """One line of the matrix.

    Attributes:
        name: the setting and what is special.
        settings: lines of the config, `{…}` filled in by the test.
        way: whether one gets in.
        options: lines of sshd_config.
        answers: what a person answers.
        known: whether the server's key is in known_hosts.
    """

    name: str
    settings: tuple[str, ...]
    way: bool
    options: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    known: bool = True


ROWS = (
    Row("nothing special", (), IN),
    Row("IdentityFile of a stranger first", ("IdentityFile {stranger}",), IN),
    Row("IdentityFile with tokens", ("IdentityFile {folder}/%n-%r.key",), IN),
    Row("PubkeyAuthentication no", ("PubkeyAuthentication no",), OUT),
    Row(
        "PreferredAuthentications password, and it is taken",
        ("PreferredAuthentications password",),
        IN,
        WITH_PASSWORDS,
        (PASSWORD,),
    ),
    Row(
        "PasswordAuthentication no",
        ("PreferredAuthentications password", "PasswordAuthentication no"),
        OUT,
        WITH_PASSWORDS,
        (PASSWORD,),
    ),
    Row(
        "BatchMode asks nothing",
        ("PreferredAuthentications password", "BatchMode yes"),
        OUT,
        WITH_PASSWORDS,
        (PASSWORD,),
    ),
    Row(
        "NumberOfPasswordPrompts 1",
        ("PreferredAuthentications password", "NumberOfPasswordPrompts 1"),
        OUT,
        WITH_PASSWORDS,
        ("wrong one", PASSWORD),
    ),
    Row(
        "NumberOfPasswordPrompts 2",
        ("PreferredAuthentications password", "NumberOfPasswordPrompts 2"),
        IN,
        WITH_PASSWORDS,
        ("wrong two", PASSWORD),
    ),
    Row("PubkeyAcceptedAlgorithms without ours", ("PubkeyAcceptedAlgorithms ssh-rsa",), OUT),
    Row("StrictHostKeyChecking yes, unknown", ("StrictHostKeyChecking yes",), OUT, known=False),
    Row("StrictHostKeyChecking ask, no", (), OUT, known=False, answers=("no",)),
    Row("StrictHostKeyChecking ask, batch", ("BatchMode yes",), OUT, known=False),
    Row("StrictHostKeyChecking accept-new", ("StrictHostKeyChecking accept-new",), IN, known=False),
    Row(
        "NoHostAuthenticationForLocalhost",
        ("NoHostAuthenticationForLocalhost yes", "StrictHostKeyChecking yes"),
        IN,
        known=False,
    ),
    Row(
        "NoHostAuthenticationForLocalhost with HostKeyAlias",
        (
            "NoHostAuthenticationForLocalhost yes",
            "StrictHostKeyChecking yes",
            "HostKeyAlias somewhere",
        ),
        OUT,
        known=False,
    ),
    Row(
        "NoHostAuthenticationForLocalhost behind a ProxyCommand",
        (
            "NoHostAuthenticationForLocalhost yes",
            "StrictHostKeyChecking yes",
            "ProxyCommand {python} {pipe} %h %p",
        ),
        OUT,
        known=False,
    ),
    Row("HostKeyAlias unknown", ("HostKeyAlias other", "StrictHostKeyChecking yes"), OUT),
    Row("HostKeyAlias known", ("HostKeyAlias MyAlias", "StrictHostKeyChecking yes"), IN),
    Row("UserKnownHostsFile none", ("UserKnownHostsFile none", "StrictHostKeyChecking yes"), OUT),
    Row(
        "UserKnownHostsFile with two files",
        ("UserKnownHostsFile {folder}/missing {folder}/known_hosts", "StrictHostKeyChecking yes"),
        IN,
    ),
    Row(
        "GlobalKnownHostsFile",
        (
            "UserKnownHostsFile {folder}/missing",
            "GlobalKnownHostsFile {folder}/known_hosts",
            "StrictHostKeyChecking yes",
        ),
        IN,
    ),
    Row("BindAddress", ("BindAddress 127.0.0.2",), IN),
    Row("ProxyCommand", ("ProxyCommand {python} {pipe} %h %p",), IN),
    Row("ProxyCommand in a pipeline", ("ProxyCommand true && {python} {pipe} %h %p",), OUT),
    Row("ProxyUseFdpass", ("ProxyCommand {python} {pipe} --pass %h %p", "ProxyUseFdpass yes"), IN),
    Row("ProxyJump in circles", ("ProxyJump 127.0.0.1",), OUT),
    Row("Include and Match", ("Include {folder}/included", "Match exec true"), IN),
    Row("Ciphers without GCM", ("Ciphers aes256-ctr",), IN),
    Row("KexAlgorithms curve25519-sha256 alone", ("KexAlgorithms curve25519-sha256",), IN),
    Row(
        "KexAlgorithms group exchange", ("KexAlgorithms diffie-hellman-group-exchange-sha256",), IN
    ),
    Row("a setting that ssh does not know", ("NoSuchSetting yes",), OUT),
    Row("an unknown token", ("ProxyCommand nc %q %p",), OUT),
    Row("a variable that is not set", ("IdentityFile ${{NO_SUCH_VARIABLE_HERE}}",), OUT),
    Row(
        "the server wants publickey twice", (), OUT, ("AuthenticationMethods publickey,publickey",)
    ),
    Row(
        "the server wants key and password",
        (),
        IN,
        (*WITH_PASSWORDS, "AuthenticationMethods publickey,password"),
        (PASSWORD,),
    ),
    Row(
        "MaxAuthTries 1 and a stranger's key",
        ("IdentityFile {stranger}",),
        OUT,
        ("MaxAuthTries 1",),
    ),
    Row("AllowUsers somebody else", (), OUT, ("AllowUsers nobody",)),
    Row("ciphers that are not safe", (), OUT, ("Ciphers aes128-cbc",)),
    Row("a key exchange that is not safe", (), OUT, ("KexAlgorithms diffie-hellman-group1-sha1",)),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_ssh_and_jlr_both_log_in_or_both_fail(
    row: Row, shared: StartServer, shared_key: Path, key_folder: Path, account: Account
) -> None:
    server = shared(row.options)
    laptop = Laptop(Path(tempfile.mkdtemp(dir=key_folder)), shared_key)
    if row.known:
        laptop.knows(server)
        laptop.knows(server, "myalias")
    tokens = laptop.folder / f"{HOST}-{account.name}.key"
    tokens.write_bytes(shared_key.read_bytes())
    tokens.chmod(0o600)
    (laptop.folder / "included").write_text("ConnectionAttempts 2\n")
    values = {
        "folder": laptop.folder,
        "stranger": make_key(laptop.folder / "stranger"),
        "python": sys.executable,
        "pipe": _PIPE,
    }
    laptop.configure(server, account, *(line.format(**values) for line in row.settings))
    theirs = laptop.theirs(*row.answers)
    laptop.known_hosts.unlink(missing_ok=True)
    if row.known:
        laptop.knows(server)
        laptop.knows(server, "myalias")
    ours = laptop.ours(*row.answers)
    assert (theirs is None, ours is None) == (row.way, row.way), f"ssh: {theirs}\njlr: {ours!r}"


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        LONG("rsa", "RFC4716"),
        ("rsa", "PEM"),
        LONG("rsa", "PKCS8"),
        LONG("ecdsa", "RFC4716"),
        LONG("ecdsa", "PEM"),
        ("ecdsa", "PKCS8"),
        ("ed25519", "RFC4716"),  # OpenSSH writes these in its own format only
    ],
)
@pytest.mark.parametrize("passphrase", [LONG(""), "open sesame"])
def test_every_kind_and_form_of_key_file_gets_in_as_with_ssh(
    kind: str, form: str, passphrase: str, host: SSHServer, guest: Laptop, account: Account
) -> None:
    key = make_key(guest.folder / "other", kind, passphrase)
    if form != "RFC4716":
        guest.convert(key, form, passphrase)
    with host.authorized_keys.open("a") as file:
        file.write(key.with_suffix(".pub").read_text())
    guest.configure(host, account, identity=key)
    answers = (passphrase,) if passphrase else ()
    assert guest.theirs(*answers) is None
    assert guest.ours(*answers) is None


def test_relative_paths_work_as_with_ssh(
    host: SSHServer, guest: Laptop, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link, which connects, is in another folder than the person."""
    key = Path(os.path.relpath(guest.key, guest.folder))
    guest.configure(host, account, "UserKnownHostsFile known_hosts", identity=key)
    assert guest.theirs() is not None
    monkeypatch.chdir(guest.folder)
    assert guest.theirs() is None
    monkeypatch.chdir("/")
    assert guest.ours(folder=guest.folder) is None


def test_ipv6_works_as_with_ssh(start: StartServer, laptop: Laptop, account: Account) -> None:
    port = free_port()
    server = start([f"ListenAddress [::1]:{port}"], port=port)
    laptop.knows(server, f"[::1]:{port}")
    laptop.configure(server, account, "HostName ::1", "AddressFamily inet6")
    assert laptop.get_in()


def test_connect_timeout_ends_a_silent_server_as_with_ssh(
    host: SSHServer, guest: Laptop, account: Account
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        guest.configure(host, account, f"Port {port}", "ConnectTimeout 1")
        assert guest.theirs() is not None
        ours = guest.ours()
        assert type(ours).__name__ == "ConnectionTimedOut"


def test_the_document_names_every_setting_of_the_matrix_and_tests_and_errors_that_exist() -> None:
    text = (REPOSITORY / "docs/ssh.md").read_text(encoding="utf-8")
    settings = {line.split()[0] for row in ROWS for line in row.settings}
    assert {name for name in settings if f"`{name}" not in text} == {"NoSuchSetting"}
    sources = "".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text)) - {"test_matrix"}
    assert named
    assert named <= set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    table = text.split("## Errors and exit codes")[1]
    named = set(re.findall(r"`([A-Z]\w+)`[^|]*\|$", table, re.MULTILINE))
    assert named
    assert [name for name in named if not hasattr(errors, name)] == []
