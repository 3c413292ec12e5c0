"""Sessions are named by templates, and chosen before any host is asked."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from jlremote.errors import NotFound
from jlremote.hosts.requests import StartRequest
from jlremote.jobs.known_jobs import find
from jlremote.laptop import job_records, sessions
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.sessions import SessionRecord
from jlremote.selection.naming import names, session_of
from jlremote.selection.session_selection import chosen, running
from tests.stories.parts import FakeHost, Notes, context

RECORD = SessionRecord("dgx", "cont1", "docker", 8888)


@pytest.mark.parametrize("selector", [None, "cont1", "dgx/cont1"])
def test_a_known_session_is_used_without_its_host(selector: str | None) -> None:
    sessions.save(RECORD)
    assert chosen(selector, context()).name == "cont1"
    assert running(selector, context()).local_port == 8888


def test_a_host_stands_for_its_only_session_where_none_must_be_named() -> None:
    sessions.save(RECORD)
    told = Notes()
    assert chosen("dgx", context(told)) == RECORD
    assert told.notes == ["`dgx` is a host; `dgx/cont1` is its only session here"]
    sessions.save(replace(RECORD, name="cont2"))
    for by_name in (True, False):
        with pytest.raises(NotFound, match="`dgx` is a host and not a session") as caught:
            chosen("dgx", context(), by_name=by_name)
        assert set(re.findall("`(.*?)`", caught.value.hint or "")) == {"dgx/cont1", "dgx/cont2"}
    sessions.delete(RECORD)
    with pytest.raises(NotFound, match="`dgx` is a host and not a session"):
        chosen("dgx", context(), by_name=True)


def test_a_missing_name_is_told_with_jobs_only_where_jobs_are_taken() -> None:
    with pytest.raises(NotFound, match="there is no session `other`"):
        chosen("other", context())
    with pytest.raises(NotFound, match="neither a session nor a job `other`") as caught:
        chosen("other", context(), or_job=True)
    assert caught.value.hint == "`jlr list` and `jlr job list` show all; what was removed is gone"


def test_a_host_of_the_ssh_configuration_is_no_session(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host box other\n  Port 22\n")
    desk = replace(context(), ssh_config=config)
    for or_job in (True, False):
        with pytest.raises(NotFound, match="`box` is a host and not a session") as caught:
            chosen("box", desk, or_job=or_job)
        assert caught.value.hint == "`jlr list box` shows its sessions"
    with pytest.raises(NotFound, match="`box` is a host and not a job"):
        find("box", desk)


def test_a_job_in_the_place_of_a_session_is_told_as_one_and_the_other_way() -> None:
    sessions.save(RECORD)
    job_records.save(JobRecord("dgx", "train", "docker", None))
    with pytest.raises(NotFound, match="`train` is a job and not a session") as caught:
        running("train", context())
    assert caught.value.hint == "`jlr job attach dgx/train` shows its output"
    for name in ("cont1", "dgx/cont1"):
        with pytest.raises(NotFound, match=f"`{name}` is a session and not a job") as caught:
            find(name, context())
        assert caught.value.hint == "`jlr open dgx/cont1` opens it"


def test_no_other_session_is_named_to_a_command_that_deletes() -> None:
    sessions.save(RECORD)
    for guess, or_job in itertools.product((True, False), repeat=2):
        with pytest.raises(NotFound) as caught:
            chosen("cont2", context(), or_job=or_job, guess=guess)
        assert ("did you mean `dgx/cont1`? `jlr list`" in (caught.value.hint or "")) is guess


def record(name: str, typed: str | None, host: str = "dgx") -> None:
    sessions.save(SessionRecord(host, name, "docker", 8888, typed))


@pytest.mark.parametrize("user", ["CORP\\anna", "corp+anna", "_corp anna"])
def test_characters_that_engines_refuse_are_replaced_in_the_users_name(user: str) -> None:
    [name] = names(
        StartRequest("dgx", "tf", "{user}_{name}", image="x"),
        FakeHost("dgx", {"script": f"{user}\n"}),
    )
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
