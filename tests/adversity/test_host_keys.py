"""A man in the middle who shows a host key of his own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import HostKeyChanged
from jlremote.ssh.config.destination import Destination, HostKeyRules
from jlremote.ssh.connect import connect
from jlremote.ssh.trust.known_hosts import append, format_line
from tests.adversity.ssh_peer import HostileServer
from tests.ssh.certificates import new_key, wire_blob
from tests.ssh.laptop import Person


@pytest.mark.parametrize("strict", ["yes", "no", "ask", "accept-new"])
def test_a_host_key_of_another_type_gets_no_password(strict: Any, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    middle, person = HostileServer(), Person(["yes", "secret", "secret"])
    with middle.listening():
        place = f"[127.0.0.1]:{middle.port}"
        append(known, format_line(place, wire_blob(new_key()), hashed=strict == "no"))
        before = known.read_bytes()
        rules = HostKeyRules(user_files=(known,), strict=strict)
        destination = Destination("lab", "127.0.0.1", middle.port, "me", host_key=rules)
        with pytest.raises(HostKeyChanged, match=f"{known}:1 has the ED25519 key SHA256:"):
            connect(destination, person, agent_socket=None)
    assert middle.account.secrets == []
    assert person.asked == []
    assert known.read_bytes() == before, "the attacker's key was remembered"
