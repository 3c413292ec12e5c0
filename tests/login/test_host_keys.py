"""Who the host is, as a person decides it at the terminal; afterwards known_hosts knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import run
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.servers import HostServers
from tests.login.parts import connections, disconnect, start, started, starting
from tests.long import LONG
from tests.sessions.parts import failed

OTHERS = "# mine\nelsewhere ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFnotakey"  # no end of line
QUESTION = "connect, and remember this key (yes/no/[fingerprint])? "


@pytest.fixture
def stranger(
    laptop: Laptop, sshd: SSHServer, account: Account, keys: Keys, session: HostServers
) -> str:
    """A host that is not known yet; returns its fingerprints as ssh-keygen has them."""
    laptop.add_host("stranger", sshd, account, key=keys.private, known=False)
    laptop.known_hosts.write_text(OTHERS)
    return "".join(run("ssh-keygen", "-lf", str(key)) for key in sshd.host_keys)


@pytest.mark.parametrize("answer", [LONG("yes"), "the fingerprint"])
def test_an_unknown_key_is_shown_and_asked_about_and_becomes_one_more_line(
    laptop: Laptop, sshd: SSHServer, stranger: str, answer: str
) -> None:
    with starting(laptop, "stranger") as terminal:
        terminal.sees(QUESTION)
        shown = re.findall(r"SHA256:\S+", terminal.text)
        assert len(shown) == 1
        assert shown[0] in stranger
        terminal.answers("", shown[0] if answer != "yes" else "yes")
        assert terminal.ends() == 0
    lines = laptop.known_hosts.read_text().splitlines()
    assert "\n".join(lines[:-1]) == OTHERS
    assert lines[-1] in sshd.known_hosts(f"[127.0.0.1]:{sshd.port}")
    disconnect(laptop, "stranger")
    started(laptop, "stranger")
    assert laptop.known_hosts.read_text().splitlines() == lines


def test_without_a_terminal_it_is_refused_with_the_fingerprint(
    laptop: Laptop, sshd: SSHServer, stranger: str
) -> None:
    before = connections(sshd)
    message = failed(start(laptop, "stranger"), 4, "the host's key is unknown", "in a terminal")
    assert re.findall(r"SHA256:[^\s)]+", message)[0] in stranger
    assert laptop.known_hosts.read_text() == OTHERS
    assert connections(sshd) == before + 1


def test_a_changed_key_is_refused_with_the_line_and_the_command_that_removes_it(
    laptop: Laptop, sshd: SSHServer, stranger: str, tmp_path: Path
) -> None:
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "old"))
    kind, key = (tmp_path / "old.pub").read_text().split()[:2]
    laptop.known_hosts.write_text(f"{OTHERS}\n[127.0.0.1]:{sshd.port} {kind} {key}\n")
    with starting(laptop, "stranger") as terminal:
        assert terminal.ends() == 4
    shown = " ".join(terminal.text.split())
    assert f"{laptop.known_hosts}:3 has" in shown
    (command,) = re.findall(r"`(ssh-keygen -f [^`]*)`", shown)
    assert laptop.run("sh", "-c", command).status == 0
    with starting(laptop, "stranger") as terminal:
        terminal.answers(QUESTION, "yes")
        assert terminal.ends() == 0
