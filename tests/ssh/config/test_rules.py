"""The rules that settings make: host keys, credentials, algorithms, and what is not honoured."""

from __future__ import annotations

import pytest

from jlremote.errors import Usage
from jlremote.ssh.config.rules import (
    algorithms,
    host_key_rules,
    number,
)
from jlremote.ssh.config.ssh_settings import SshSettings
from jlremote.ssh.config.tokens import TokenValues

NAMES = TokenValues("lab", "lab.example.org", 2222, "me")


def settings(**values: str | tuple[str, ...]) -> SshSettings:
    return SshSettings(
        {name: (value,) if isinstance(value, str) else value for name, value in values.items()}
    )


@pytest.mark.parametrize(
    ("value", "strict"),
    [
        ("yes", "yes"),
        ("true", "yes"),
        ("no", "no"),
        ("off", "no"),
        ("false", "no"),
        ("accept-new", "accept-new"),
        ("ask", "ask"),
        ("", "ask"),
    ],
)
def test_every_form_of_strict_host_key_checking_is_known(value: str, strict: str) -> None:
    assert host_key_rules(settings(stricthostkeychecking=value), NAMES).strict == strict


def test_algorithms_are_none_unless_they_are_named() -> None:
    found = algorithms(settings(ciphers="a,b", macs=""))
    assert found.ciphers == ("a", "b")
    assert found.macs is None
    assert found.host_keys is None


def test_a_wrong_number_is_a_usage_error_with_its_setting() -> None:
    assert number("22", "Port") == 22
    with pytest.raises(Usage, match="`Port x22` in your ssh config is not a number"):
        number("x22", "Port")
