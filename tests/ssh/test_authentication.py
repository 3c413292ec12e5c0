"""Agents, key files, passwords and one-time codes, on real servers with real PAM."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from jlremote.errors import Authentication, NeedsAuthentication
from jlremote.ssh.config.destination import resolve
from jlremote.ssh.login.credentials import passphrase_account, password_account
from tests.lab.accounts import Account
from tests.lab.programs import load, run
from tests.lab.sshd import (
    INTERACTIVE,
    ONLY_PASSWORD,
    WITH_PASSWORDS,
    SSHServer,
    make_key,
    with_codes,
)
from tests.login.keychain import MemoryKeychain
from tests.ssh.conftest import PASSWORD, StartServer, sign
from tests.ssh.laptop import HOST, Laptop, Person, logins
from tests.ssh.servers import AgentProcess

CODES = tuple(f"{number:08}" for number in range(10000001, 10000013))


def failures(server: SSHServer) -> int:
    return sum(line.startswith("Failed") for line in logins(server))


# Agents


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_the_agent_signs_with_every_kind_of_key(
    kind: str, start: StartServer, laptop: Laptop, account: Account, agent: AgentProcess
) -> None:
    key = make_key(laptop.folder / kind, kind)
    agent.add(key)
    server = start(keys=[key])
    laptop.configure(server, account, identity=laptop.folder / "none")
    assert laptop.get_in()


def test_the_agents_key_of_an_encrypted_file_needs_no_passphrase(
    start: StartServer, laptop: Laptop, account: Account, agent: AgentProcess
) -> None:
    key = make_key(laptop.folder / "later")
    agent.add(key)
    run("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret words", "-f", str(key))
    laptop.configure(start(keys=[key]), account, identity=key)
    assert laptop.get_in()


def test_identities_only_leaves_other_agent_keys_out(
    server: SSHServer, laptop: Laptop, account: Account, agent: AgentProcess
) -> None:
    agent.add(laptop.key)
    stranger = make_key(laptop.folder / "stranger")
    laptop.configure(server, account, "IdentitiesOnly yes", identity=stranger)
    assert laptop.theirs() is not None
    error = laptop.ours()
    assert isinstance(error, Authentication)
    assert "publickey (1 key)" in error.message


@pytest.mark.parametrize("named", ["{socket}", "SSH_AUTH_SOCK", "none"])
def test_identity_agent_names_the_agent(
    named: str, server: SSHServer, laptop: Laptop, account: Account, agent: AgentProcess
) -> None:
    agent.add(laptop.key)
    if named == "{socket}":
        del laptop.environment["SSH_AUTH_SOCK"]
    line = f"IdentityAgent {named.format(socket=agent.socket)}"
    laptop.configure(server, account, line, identity=laptop.folder / "none")
    assert (laptop.theirs() is None) == (laptop.ours() is None) == (named != "none")


def test_a_missing_or_hanging_agent_does_not_prevent_the_login(
    server: SSHServer, laptop: Laptop, agent: AgentProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jlremote.ssh.login.agent._LIST_SECONDS", 0.3)
    agent.suspend()
    began = time.monotonic()
    assert laptop.ours() is None
    assert time.monotonic() - began < 5 * load()
    agent.resume()
    laptop.environment["SSH_AUTH_SOCK"] = "/nowhere/agent"
    assert laptop.ours() is None


# Key files


def test_a_certificate_beside_its_key_and_one_named_by_certificate_file_get_in(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    authority = make_key(laptop.folder / "authority")
    key = make_key(laptop.folder / "mine")
    certificate = sign(authority, key.with_suffix(".pub"), "-n", account.name)
    trusted = f"TrustedUserCAKeys {authority.with_suffix('.pub')}"
    server = start([trusted], keys=[authority])
    laptop.configure(server, account, identity=key)
    assert laptop.get_in()
    elsewhere = certificate.rename(laptop.folder / "elsewhere.pub")
    assert not laptop.get_in()
    laptop.configure(server, account, f"CertificateFile {elsewhere}", identity=key)
    assert laptop.get_in()


def test_a_server_that_requires_two_keys_gets_two(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    second = make_key(laptop.folder / "second")
    server = start(["AuthenticationMethods publickey,publickey"], keys=[laptop.key, second])
    laptop.configure(server, account, f"IdentityFile {second}")
    assert laptop.get_in()


def test_a_passphrase_is_asked_only_for_a_key_that_the_server_wants(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    locked = make_key(laptop.folder / "locked", passphrase="not needed")
    laptop.configure(start(), account, f"IdentityFile {locked}")
    person = Person()
    with laptop.connected(person=person):
        assert person.asked == []


def test_a_wrong_passphrase_is_asked_for_again_and_an_empty_one_skips_the_key(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    key = make_key(laptop.folder / "locked", passphrase="right words")
    server = start(keys=[key])
    laptop.configure(server, account, identity=key)
    assert laptop.ours("wrong words", "right words") is None
    error = laptop.ours("")
    assert isinstance(error, Authentication)
    assert "passphrase was not given" in str(error.hint)
    assert isinstance(laptop.ours(), NeedsAuthentication)


def test_a_key_that_others_may_read_is_reported_and_not_used(
    server: SSHServer, laptop: Laptop
) -> None:
    laptop.key.chmod(0o644)
    assert laptop.theirs() is not None
    error = laptop.ours()
    assert isinstance(error, Authentication)
    assert f"chmod 600 {laptop.key}" in str(error.hint)


# Passwords and codes


@pytest.fixture
def passwords(laptop: Laptop, account: Account) -> Iterator[SSHServer]:
    """A server that takes a password only."""
    with SSHServer(laptop.authorize(), pam=ONLY_PASSWORD, options=WITH_PASSWORDS) as server:
        laptop.knows(server)
        laptop.configure(server, account, "PreferredAuthentications password")
        yield server


@pytest.fixture
def interactive(laptop: Laptop, account: Account) -> Iterator[SSHServer]:
    """A server that asks for the password, and then for a code that is good once."""
    service = with_codes(laptop.folder, CODES)
    with SSHServer(laptop.authorize(), pam=service, options=INTERACTIVE) as server:
        laptop.knows(server)
        laptop.configure(server, account, "PreferredAuthentications keyboard-interactive")
        yield server


def test_a_refused_password_is_never_sent_twice_in_the_life_of_the_process(
    passwords: SSHServer, laptop: Laptop
) -> None:
    assert isinstance(laptop.ours("wrong c", "wrong c", "wrong c"), Authentication)
    assert isinstance(laptop.ours("wrong c", "wrong c"), NeedsAuthentication)
    assert failures(passwords) == 1


@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
def test_the_same_wrong_password_is_asked_for_as_often_as_by_ssh(
    method: str, passwords: SSHServer, laptop: Laptop, account: Account
) -> None:
    passwords.options = ("KbdInteractiveAuthentication yes", *passwords.options)
    passwords.restart()
    laptop.configure(passwords, account, f"PreferredAuthentications {method}")
    wrong = [f"wrong {method}"] * 9
    assert laptop.theirs(*wrong) is not None
    asked = len(wrong) - len((laptop.folder / "answers").read_text().splitlines())
    person = Person(wrong)
    with pytest.raises(Authentication), laptop.connected(person=person):
        pass
    assert len(person.asked) == asked == 3


def test_a_password_that_was_refused_by_hanging_up_is_not_sent_again_either(
    passwords: SSHServer, laptop: Laptop
) -> None:
    passwords.options = ("MaxAuthTries 1", *passwords.options)
    passwords.restart()
    assert "Too many authentication failures" in str(laptop.ours("wrong f"))
    assert isinstance(laptop.ours("wrong f", "wrong f", "wrong f"), Authentication)
    assert failures(passwords) == 1


@pytest.mark.parametrize("method", ["publickey", "password", "keyboard-interactive"])
def test_the_reason_of_an_expired_account_is_told_as_by_ssh(
    method: str, laptop: Laptop, account: Account
) -> None:
    service = (ONLY_PASSWORD[0], "account required pam_unix.so", ONLY_PASSWORD[2])
    options = ("KbdInteractiveAuthentication yes", *WITH_PASSWORDS)
    with SSHServer(laptop.authorize(), pam=service, options=options) as server:
        laptop.knows(server)
        laptop.configure(server, account, f"PreferredAuthentications {method}")
        run("chage", "-E", "0", account.name)
        try:
            assert "account has expired" in str(laptop.theirs(PASSWORD))
            error = laptop.ours(PASSWORD)
        finally:
            run("chage", "-E", "-1", account.name)
    assert isinstance(error, Authentication)
    assert "may not log in: Your account has expired" in error.message
    assert "administrator" in str(error.hint)


def test_password_and_code_are_asked_for_in_the_servers_words(
    interactive: SSHServer, laptop: Laptop
) -> None:
    assert laptop.theirs(PASSWORD, CODES[0]) is None
    person = Person([PASSWORD, CODES[1]])
    with laptop.connected(person=person):
        assert person.kinds() == ["password", "code"]
        assert "Verification code" in person.asked[1].text
        assert not any(question.echo for question in person.asked)


def test_a_key_and_a_code_together_log_in(
    interactive: SSHServer, laptop: Laptop, account: Account
) -> None:
    interactive.options = (
        "AuthenticationMethods publickey,keyboard-interactive",
        *interactive.options,
    )
    interactive.restart()
    laptop.configure(interactive, account)
    assert laptop.theirs(PASSWORD, CODES[4]) is None
    person = Person([PASSWORD, CODES[5]])
    with laptop.connected(person=person):
        assert person.kinds() == ["password", "code"]


# Remembered secrets


def test_a_stale_password_beside_a_code_is_forgotten_once_another_one_was_right(
    interactive: SSHServer, laptop: Laptop
) -> None:
    """Which of the two the server refused it does not tell; another password's success does."""
    account = password_account(resolve(HOST, laptop.config))
    drawer = MemoryKeychain(kept={account: "changed since"})
    person = Person([CODES[7], PASSWORD, CODES[8]])
    with laptop.connected(person=person, keychain=drawer, remember="ask"):
        assert person.kinds() == ["code", "password", "code", "remember"]
    assert drawer.kept == {}


def test_a_passphrase_is_kept_and_a_stale_one_forgotten(
    start: StartServer, laptop: Laptop, account: Account
) -> None:
    key = make_key(laptop.folder / "locked", passphrase="right words")
    laptop.configure(start(keys=[key]), account, identity=key)
    drawer = MemoryKeychain(kept={passphrase_account(key): "stale words"})
    with laptop.connected("right words", keychain=drawer, remember="yes"):
        pass
    assert drawer.kept == {passphrase_account(key): "right words"}
    with laptop.connected(keychain=drawer):
        pass
