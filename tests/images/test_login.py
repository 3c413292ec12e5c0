"""`jlr image login` (rows A3, E3): the key is tried, kept here, and never left there unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pexpect
import pytest

from tests.images.parts import CLOUD_USER, USER, Registry, keys_on_host, log_in, login_words
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer


@pytest.fixture
def laptop(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    """A laptop whose keychain has nothing."""
    with new_laptop(sshd, account, keys) as fresh:
        yield fresh


def test_a_key_is_asked_for_without_echo_tried_and_kept(
    laptop: Laptop, registry: Registry, keychain: None, account: Account
) -> None:
    words = ("jlr", "image", "login", "lab", registry.name, "--username", USER)
    with laptop.terminal(*words) as terminal:
        terminal.expect_exact(f"Password or API key of {USER} at {registry.name}: ")
        terminal.sendline(registry.key)
        terminal.expect_exact(f"{registry.name} accepts the key of {USER}; it is kept in ")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    assert terminal.exitstatus == 0
    assert registry.key not in str(terminal.before)
    assert not (account.home / ".docker" / "config.json").exists()
    wait_until(lambda: keys_on_host(account) == [], "the end of the key on the host")


def test_a_key_from_stdin_is_kept_and_pulls_also_with_windows_line_ends(
    laptop: Laptop, registry: Registry, keychain: None
) -> None:
    """As `aws ecr get-login-password | jlr image login … --username AWS` gives it."""
    words = login_words(registry.name, user=CLOUD_USER)
    done = laptop.jlr(*words, stdin=f"{registry.key}\r\n")
    assert done.status == 0, done
    assert "accepts the key of AWS; it is kept in " in done.stdout
    image = registry.push_small("me/cloud:1")
    assert laptop.jlr("image", "pull", "lab", image).status == 0, "the key from the keychain"


def test_a_wrong_key_is_refused_and_not_kept(
    laptop: Laptop, registry: Registry, keychain: None
) -> None:
    done = laptop.jlr(*login_words(registry.name), stdin="wrong")
    assert done.status == 4, done
    assert f"`{registry.name}` refuses this key of `{USER}`" in done.stderr
    image = registry.push_small("me/none:1")
    assert laptop.jlr("image", "pull", "lab", image).status == 4


def test_with_keep_the_key_is_stored_on_the_host_alone(
    laptop: Laptop, registry: Registry, account: Account
) -> None:
    done = laptop.jlr(*login_words(registry.name, "--keep"), stdin=registry.key)
    assert done.status == 0, done
    settings = account.home / ".docker" / "config.json"
    try:
        assert registry.name in json.loads(settings.read_text())["auths"]
        image = registry.push_small("me/kept:1")
        assert laptop.jlr("image", "pull", "lab", image).status == 0
        forgotten = laptop.jlr("image", "login", "lab", registry.name, "--forget")
        assert "which was kept in the settings on lab\n" in forgotten.stdout, forgotten
        assert registry.name not in json.loads(settings.read_text())["auths"]
    finally:
        settings.unlink(missing_ok=True)


def test_a_key_goes_to_no_other_host_and_a_forgotten_one_is_gone(
    laptop: Laptop, registry: Registry, keychain: None
) -> None:
    log_in(laptop, registry)
    image = registry.push_small("me/forgotten:1")
    config = laptop.ssh_config.read_text()
    laptop.ssh_config.write_text(config + config.replace("Host lab\n", "Host other\n"))
    assert laptop.jlr("image", "pull", "other", image).status == 4
    forgotten = laptop.jlr("image", "login", "lab", registry.name, "--forget")
    where = "which was kept in this machine's keychain"
    assert forgotten.stdout == f"forgot the key of {registry.name} for lab, {where}\n"
    assert laptop.jlr("image", "pull", "lab", image).status == 4
    again = laptop.jlr("image", "login", "lab", registry.name, "--forget")
    assert again.stdout == f"no key of {registry.name} is kept for lab\n"


def test_without_a_keychain_no_key_is_asked_for(laptop: Laptop, registry: Registry) -> None:
    done = laptop.jlr(*login_words(registry.name), stdin=registry.key)
    assert done.status == 1, done
    assert "this machine has no keychain" in done.stderr
    named = f"`jlr image login lab {registry.name} --username '{USER}' --keep`"
    assert named in done.stderr


def test_only_nvidias_registry_has_a_default_user_name(laptop: Laptop, keychain: None) -> None:
    done = laptop.jlr("image", "login", "lab", "registry.lab.org")
    assert done.status == 2, done
    assert "`jlr image login lab registry.lab.org --username NAME`" in done.stderr
    done = laptop.jlr("image", "login", "lab", "--password-stdin", stdin="a-key")
    assert done.status == 1, done
    assert "`lab` cannot reach `nvcr.io`" in done.stderr
