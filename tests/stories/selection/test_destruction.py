"""What destroys needs a certain target and a yes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.errors import JlrError, Usage
from jlremote.hosts.requests import StopRequest, stop_command
from jlremote.laptop.sessions import SessionRecord, StopRecord
from jlremote.questions import NeverAsks
from jlremote.selection.destruction import LISTED, Destruction, confirm, default_session
from tests.stories.parts import Notes, Person, context

LATEST = SessionRecord("lab", "ux-a", "docker", 8901, last_used=20.0)
OLDER = SessionRecord("lab", "ux-b", "docker", 8902, last_used=10.0)
STOPPED = replace(LATEST, forwarded=False)
BARE, REMOVE = StopRequest(), StopRequest(remove=True)
PLANNED = Destruction("Stop and delete it?", ("a kernel", "its files"))


@pytest.mark.parametrize(
    ("known", "last_stop", "request_", "expected"),
    [
        ((), None, REMOVE, None),
        ((LATEST,), None, REMOVE, LATEST),
        ((STOPPED,), StopRecord("lab", "ux-a", 30.0), REMOVE, STOPPED),
        ((STOPPED,), StopRecord("lab", "ux-a", 30.0), BARE, STOPPED),
        ((LATEST, OLDER), None, BARE, LATEST),
        # it was used again since the other one was stopped
        ((LATEST, replace(OLDER, forwarded=False)), StopRecord("lab", "ux-b", 15.0), BARE, LATEST),
    ],
)
def test_the_only_session_or_the_latest_one_needs_no_name(
    known: tuple[SessionRecord, ...],
    last_stop: StopRecord | None,
    request_: StopRequest,
    expected: SessionRecord | None,
) -> None:
    assert default_session(known, last_stop, request_) == expected


@pytest.mark.parametrize(
    ("known", "last_stop", "request_"),
    [
        ((LATEST, OLDER), None, REMOVE),
        ((LATEST, OLDER), None, StopRequest(container=True)),
        ((LATEST, OLDER), None, StopRequest(force=True)),
        # `jlr stop` twice, and `jlr stop; jlr rm`
        ((STOPPED, OLDER), StopRecord("lab", "ux-a", 30.0), BARE),
        ((STOPPED, OLDER), StopRecord("lab", "ux-a", 30.0), REMOVE),
        # the latest one was removed, and its record with it
        ((OLDER,), StopRecord("lab", "ux-a", 30.0), BARE),
        ((OLDER,), StopRecord("lab", "ux-a", 30.0), REMOVE),
        # an older one was stopped by its name: a bare `jlr stop` goes on with no other
        ((LATEST, replace(OLDER, forwarded=False)), StopRecord("lab", "ux-b", 30.0), BARE),
    ],
)
def test_another_session_than_the_last_is_stopped_only_by_its_name(
    known: tuple[SessionRecord, ...], last_stop: StopRecord | None, request_: StopRequest
) -> None:
    with pytest.raises(Usage) as refused:
        default_session(known, last_stop, request_)
    for record in known:
        assert f"`{stop_command('lab', record.name, request_)}`" in str(refused.value.hint)


def test_a_person_is_told_what_is_lost_and_only_a_yes_goes_on() -> None:
    person = Person("yes")
    confirm(PLANNED, context(asker=person), yes=False)
    assert person.asked.splitlines() == [
        "This will be lost:",
        "  a kernel",
        "  its files",
        "Stop and delete it?",
    ]
    with pytest.raises(JlrError, match="nothing was changed"):
        confirm(PLANNED, context(asker=Person("no")), yes=False)


@pytest.mark.parametrize("never", [None, NeverAsks("run it without `--no-input`")])
def test_without_a_terminal_nothing_is_lost_without_a_yes(never: NeverAsks | None) -> None:
    notes = Notes()
    silent = replace(context(notes), asker=never) if never else context(notes)
    confirm(PLANNED, silent, yes=True)
    assert notes.notes == []
    with pytest.raises(JlrError, match="would be lost: a kernel; its files") as refused:
        confirm(PLANNED, silent, yes=False)
    assert "`--yes`" in str(refused.value.hint)


def test_a_long_list_does_not_push_the_question_off_the_screen() -> None:
    person = Person("yes")
    many = replace(PLANNED, losses=tuple(f"file {number}" for number in range(50)))
    confirm(many, context(asker=person), yes=False)
    assert len(person.asked.splitlines()) == LISTED + 3
    assert f"and {50 - LISTED} more" in person.asked
