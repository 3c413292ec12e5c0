"""An answer that no reader understands is an error about the host, not a bug of jlr."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.place.host.contract import (
    FIELD,
    GROUP,
    RECORD,
    OddAnswer,
    records,
    understood,
)


@understood("the engine")
def read(text: str) -> int:
    (found,) = json.loads(text)
    return int(found["size"])


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, "null", "[]", "[1]", "[{}]", '[{"size": []}]', '[{"size": "x"}]'],
)
def test_an_answer_of_another_form_is_an_error_of_the_host(text: str) -> None:
    with pytest.raises(
        OddAnswer, match="cannot read the answer of the engine on the host"
    ) as caught:
        read(text)
    assert caught.value.hint


def test_what_is_quoted_of_it_cannot_drive_a_terminal() -> None:
    with pytest.raises(OddAnswer) as caught:
        read('[{"size": "\\u001b[2J7"}]')
    assert "\x1b" not in caught.value.message


TEXT = st.text(st.characters(exclude_characters=FIELD + RECORD + GROUP))


@given(st.lists(st.lists(TEXT, min_size=1)), TEXT)
def test_the_fields_of_each_record_come_back(fields: list[list[str]], rest: str) -> None:
    output = "".join(FIELD.join(record) + RECORD for record in fields)
    assert records(output + rest) == fields
