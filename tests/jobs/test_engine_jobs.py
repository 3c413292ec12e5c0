"""Jobs in containers: what `inspect` tells of them, and scripts that count bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.jobs.engine_jobs import _beyond
from tests.place.host.shells import run_sh


@settings(max_examples=20)
@given(st.integers(0, 20), st.integers(0, 20))
def test_the_bytes_that_were_shown_are_left_out_of_each_stream(out: int, err: int) -> None:
    show = "{ printf 0123456789 >&5; printf abcdefghij; }"
    done = run_sh("sh", _beyond(show, out, err))
    assert (done.stdout, done.stderr) == ("0123456789"[out:], "abcdefghij"[err:])
