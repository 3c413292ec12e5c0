"""Spans of time and moments are read and told as people write them."""

from __future__ import annotations

import datetime

import pytest

from jlremote import times
from jlremote.errors import Usage
from jlremote.times import in_words, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds", "words"),
    [
        ("90s", 90, "1m30s"),
        ("30m", 1800, "30m"),
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
def test_a_text_that_is_not_a_span_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Usage, match="is not a span of time"):
        seconds_of(text, "`idle-stop`")


@pytest.mark.parametrize(
    ("age", "words"),
    [(40.4, "40s"), (300, "5m"), (14340, "3h"), (172_800, "2d"), (-30, "0s")],
)
def test_a_time_is_told_in_its_largest_unit(age: float, words: str) -> None:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
    moment = then.strftime("%Y-%m-%dT%H:%M:%S.%f")
    assert times.ago(f"{moment}Z") == times.ago(moment) == words
    assert times.ago("yesterday") == "?"


def test_a_time_is_told_from_a_given_moment() -> None:
    since = {None: "?", 1000.0: "0s", 940.6: "59s", 940.0: "1m", 2000.0: "0s"}
    assert {moment: times.age(moment, now=1000.0) for moment in since} == since
    until = {7385.0: "2h3m", 60.0: "1m", 59.0: "59s", -5.0: "0s"}
    assert {moment: times.left(moment, now=0.0) for moment in until} == until
