"""Each forward has a name of its own for browsers: one label, of at most 63 characters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.jupyter.endpoint import hostname

NAMES = st.text("aA1-._@é", min_size=1, max_size=100)


@pytest.mark.parametrize(
    ("host", "session", "port", "name"),
    [
        ("dgx", "cont1", None, "cont1-dgx.localhost"),
        ("dgx", "torch-train", None, "torch-train-dgx.localhost"),
        ("dgx", "cont1", 6006, "6006-cont1-dgx.localhost"),
    ],
)
def test_usual_names_are_read_at_a_glance(
    host: str, session: str, port: int | None, name: str
) -> None:
    assert hostname(host, session, port) == name


@pytest.mark.parametrize(
    ("host", "session"),
    [("me@gpu1.example.org", "cont1"), ("dgx", "Cont1"), ("gpu-1", "a"), ("dgx", "xn--a")],
)
def test_other_names_are_completed_by_a_digest(host: str, session: str) -> None:
    begin = re.sub("[^a-z0-9]+", "-", f"{session}-{host}".lower())
    assert re.fullmatch(f"{begin}-0[0-9a-f]{{12}}\\.localhost", hostname(host, session))


@given(NAMES, NAMES, st.none() | st.integers(1, 65535))
def test_every_name_is_one_label_that_a_browser_takes(
    host: str, session: str, port: int | None
) -> None:
    label, _, suffix = hostname(host, session, port).partition(".")
    assert suffix == "localhost"
    assert re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label)


@given(st.lists(st.tuples(NAMES, NAMES, st.none() | st.just(6006)), unique=True))
def test_no_two_forwards_have_the_same_name(forwards: list[tuple[str, str, int | None]]) -> None:
    assert len({hostname(*forward) for forward in forwards}) == len(forwards)


def test_words_that_meet_in_another_place_make_another_name() -> None:
    assert hostname("c", "a-b") != hostname("b-c", "a")
    assert hostname("c", "6006-a") != hostname("c", "a", 6006)
