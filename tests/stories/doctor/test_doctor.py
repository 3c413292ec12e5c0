"""Parts of `jlr doctor` that need no host: trials and what is asked."""

from __future__ import annotations

from jlremote.doctor.doctor import _RecordingAsker
from jlremote.questions import Question


def test_the_kind_of_the_last_question_is_remembered() -> None:
    class Answers:
        def ask(self, question: Question) -> str:
            return "yes"

    asker = _RecordingAsker(Answers())
    assert asker.last is None
    assert asker.ask(Question("host-key", "trust it?")) == "yes"
    assert asker.last == "host-key"
