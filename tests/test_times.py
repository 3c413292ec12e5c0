"""Spans of time are read and told as people write them."""

from __future__ import annotations

import pytest

from jlremote.durations import in_words, seconds_of
from jlremote.errors import Usage


@pytest.mark.parametrize(
    ("text", "seconds", "words"),
    [
        ("90s", 90, "1m30s"),
        ("30m", 1800, "30m"),
        ("2h", 7200, "2h"),
        ("1H30M", 5400, "1h30m"),
        (" 1d12h ", 129600, "1d12h"),
        ("off", 0, "0s"),
    ],
)
def test_a_span_is_read_and_told(text: str, seconds: int, words: str) -> None:
    assert seconds_of(text, "`--idle-stop`") == seconds
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    "text", ["", "2", "h", "0h", "2 h", "1h2d", "-1h", "two", "1.5h", "9999999d"]
)
def test_what_is_no_span_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Usage, match="is no span of time"):
        seconds_of(text, "`idle-stop`")
