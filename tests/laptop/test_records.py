"""A typed name selects a record by the same rules, whatever the record is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import NotFound, Usage
from jlremote.laptop import job_records
from jlremote.laptop.job_records import JobRecord
from jlremote.laptop.record_files import LONGEST_STEM, file_name, matching, selected

FULL = JobRecord("dgx", "anna_tf", "docker", None, typed="tf")
SHORT = JobRecord("dgx", "tf", "docker", None)
ELSEWHERE = JobRecord("lab", "torch", "docker", None, typed="tf")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("anna_tf", [FULL]),
        ("dgx/anna_tf", [FULL]),
        ("tf", [SHORT]),
        ("dgx/tf", [SHORT]),
        ("lab/tf", [ELSEWHERE]),
        ("lab/torch", [ELSEWHERE]),
        ("dgx", []),
        ("dgx/", []),
        ("", []),
    ],
)
def test_a_full_name_takes_precedence_over_a_typed_one(
    selector: str, found: list[JobRecord]
) -> None:
    assert matching([FULL, SHORT, ELSEWHERE], selector) == found


def test_a_typed_name_on_two_hosts_must_be_given_with_its_host() -> None:
    with pytest.raises(Usage, match="`tf` is the name of several jobs") as caught:
        selected([FULL, ELSEWHERE], "tf", "jobs")
    assert caught.value.hint == "name one: `dgx/anna_tf`, `lab/torch`"
    assert selected([FULL, ELSEWHERE], "lab/tf", "jobs") is ELSEWHERE


def test_the_latest_job_is_chosen_by_default() -> None:
    with pytest.raises(NotFound, match="no job was started here"):
        job_records.choose(None)
    job_records.save(JobRecord("dgx", "first", "docker", None, began=1.0))
    job_records.save(JobRecord("dgx", "second", "docker", None, began=2.0))
    assert [record.name for record in job_records.load_all()] == ["second", "first"]
    latest = job_records.choose(None)
    assert latest is not None
    assert latest.name == "second"
    assert job_records.choose("third") is None


@given(st.text(), st.text(), st.text(), st.text())
def test_two_records_never_share_a_file(host: str, name: str, other: str, more: str) -> None:
    same = (host, name) == (other, more)
    assert (file_name(host, name) == file_name(other, more)) == same


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_file_name_is_short_and_safe(host: str, name: str) -> None:
    name_of_file = file_name(host * 50, name * 50)
    assert len(name_of_file) <= LONGEST_STEM + len(".json")
    assert "/" not in name_of_file
    assert name_of_file.isascii()
