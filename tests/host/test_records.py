"""Records in a script's output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jlremote.host.answers import (
    FIELD,
    GROUP,
    PRINT_FIELD,
    PRINT_GROUP,
    PRINT_RECORD,
    RECORD,
    records,
)
from tests.host.shells import run_sh

TEXT = st.text(st.characters(exclude_characters=FIELD + RECORD + GROUP))


@given(st.lists(st.lists(TEXT, min_size=1)), TEXT)
def test_the_fields_of_each_record_come_back(fields: list[list[str]], rest: str) -> None:
    output = "".join(FIELD.join(record) + RECORD for record in fields)
    assert records(output + rest) == fields


def test_a_shell_prints_the_same_separators() -> None:
    assert run_sh("sh", f"printf '{PRINT_FIELD}{PRINT_RECORD}{PRINT_GROUP}'").stdout == (
        FIELD + RECORD + GROUP
    )
