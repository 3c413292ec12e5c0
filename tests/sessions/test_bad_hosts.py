"""A host that cannot be used is told by its reason, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.sessions.parts import failed, nothing_is_left, start


def test_a_changed_host_key_is_never_accepted(
    laptop: Laptop, another_sshd: SSHServerFactory, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    other = another_sshd()
    laptop.add_host("changed", sshd, account, key=keys.private, known=False)
    laptop.known_hosts.write_text(other.known_hosts(f"[127.0.0.1]:{sshd.port}"))
    before = laptop.known_hosts.read_text()
    message = failed(start(laptop, "changed", "cont1"), 4, "changed")
    assert "known_hosts" in message
    assert laptop.known_hosts.read_text() == before
    nothing_is_left(laptop)


@pytest.mark.parametrize("name", ["-x", "--images"])
def test_a_name_that_looks_like_an_option_is_taken_for_one(
    lasting_laptop: Laptop, name: str
) -> None:
    failed(lasting_laptop.jlr("start", "lab", name, "--no-browser"), 2, "no such option", name)


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        ('image = "Bad Image"', 2, "invalid image name `Bad Image`"),
        ('volume = ["/nope:/x"]', 6, "`/nope`"),
        ('profile = "nope"', 2, "no profile `nope`"),
        ('host = "nohost.invalid"', 5, "`nohost.invalid` has no address"),
    ],
)
def test_what_fails_is_named_as_the_setting_that_chose_it(
    lines: str, status: int, words: str, laptop: Laptop
) -> None:
    image = "" if lines.startswith("image") else 'image = "lab/jupyter"\n'
    host = "" if lines.startswith("host") else 'host = "lab"\n'
    file = laptop.settle(f'[defaults]\ncontainer = "never"\n{image}{host}{lines}\n')
    option = lines.partition(" ")[0]
    chosen = f"; `{option}` of `[defaults]` in `{file}` chooses it"
    done = laptop.jlr("start", "--no-browser")
    failed(done, status, words, chosen)
    typed = {
        "image": ("--image", "lab/jupyter"),
        "volume": ("--volume", ""),
        "profile": ("--profile", "nvidia"),
        "host": (),
    }[option]
    other = laptop.jlr("start", *(("lab",) if option == "host" else ()), *typed, "--dry-run")
    assert "chooses it" not in other.stderr, other
