"""The output of scripts: bounded, and without the noise before the marker."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.host.output import FromMarker, OutputTooLong, run_steps

MARKER = "jlr-0123456789abcdef"


def test_more_output_than_allowed_ends_it_at_once() -> None:
    pieces = 0

    def execute(script: str, output: Callable[[str, bytes], None]) -> None:
        nonlocal pieces
        while True:
            output("stdout" if pieces % 2 else "stderr", b"x" * 100_000)
            pieces += 1

    with pytest.raises(OutputTooLong, match="more than 1 MiB"):
        run_steps({"flood": "yes"}, 1 << 20, execute)
    assert pieces == 10


@given(
    noise=st.binary(max_size=50),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_a_stream_begins_behind_its_marker_however_it_is_cut(
    noise: bytes, text: str, cuts: list[int]
) -> None:
    whole = noise + f"{MARKER}\n{text}".encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    stream = FromMarker(MARKER)
    taken = [stream.take(whole[a:b]) for a, b in itertools.pairwise(edges)]
    assert b"".join(taken).decode() == text
    assert stream.begun


def test_a_stream_without_marker_is_noise_of_which_the_end_is_kept() -> None:
    stream = FromMarker(MARKER)
    for _ in range(100):
        assert stream.take(b"noise " * 1000) == b""
    stream.take(b"the last words")
    assert not stream.begun
    assert stream.noise.endswith("the last words")
    assert len(stream.noise) < 10_000
