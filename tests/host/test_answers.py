"""An answer that no reader understands is an error about the host, not a bug of jlr."""

from __future__ import annotations

import json

import pytest

from jlremote.errors import NotFound
from jlremote.host.answers import OddAnswer, understood


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


def test_a_right_answer_is_read() -> None:
    assert read('[{"size": 7}]') == 7


def test_what_is_quoted_of_it_cannot_drive_a_terminal() -> None:
    with pytest.raises(OddAnswer) as caught:
        read('[{"size": "\\u001b[2J7"}]')
    assert "\x1b" not in caught.value.message


def test_errors_of_ours_pass() -> None:
    with pytest.raises(NotFound), understood("the engine"):
        raise NotFound("no such thing")
