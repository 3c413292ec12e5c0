"""Naming templates, and the names that a typed one may stand for."""

from __future__ import annotations

import pytest

from jlremote.errors import NotFound
from jlremote.hosts.requests import StartRequest
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.contract import Completed, Steps
from jlremote.selection.naming import names, session_of
from jlremote.selection.session_selection import chosen
from tests.stories.parts import context


class FakeHost:
    """Knows its user's name."""

    name = "dgx"

    def __init__(self, user: str = "anna") -> None:
        self.user = user

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        return {name: Completed(0, f"{self.user}\n", "") for name in steps}


def record(name: str, typed: str | None, host: str = "dgx") -> None:
    sessions.save(SessionRecord(host, name, "docker", 8888, typed))


@pytest.mark.parametrize("user", ["CORP\\anna", "corp+anna", "_corp anna"])
def test_characters_that_engines_refuse_are_replaced_in_the_users_name(user: str) -> None:
    [name] = names(StartRequest("dgx", "tf", "{user}_{name}", image="x"), FakeHost(user))
    assert name.lower() == "corp-anna_tf"


def test_a_session_is_found_by_either_name_before_the_host_is_asked() -> None:
    record("anna_tf", "tf")
    record("anna_other", "tf", host="elsewhere")
    for typed in ("tf", "anna_tf", None):
        assert session_of(StartRequest("dgx", typed, "{user}_{name}"))[0] == "anna_tf"
    assert session_of(StartRequest("dgx", "new", "{user}_{name}"))[0] is None
    assert session_of(StartRequest("dgx", "new"))[0] == "new"
    assert session_of(StartRequest("dgx", "new", "{user}_{name}", "none"))[0] == "new"
    assert chosen("dgx/tf", context()).name == "anna_tf"
    assert chosen("elsewhere/tf", context()).name == "anna_other"


def test_a_full_name_comes_before_a_short_one() -> None:
    record("tf", None)
    record("anna_tf", "tf")
    assert chosen("tf", context()).name == "tf"
    assert session_of(StartRequest("dgx", "tf", "{user}_{name}"))[0] == "tf"
    with pytest.raises(NotFound):
        chosen("anna", context())
