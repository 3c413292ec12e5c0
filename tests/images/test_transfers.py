"""How far a pull or push has come, read from what docker 28 and 20.10 show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jlremote.images.transfers import Transfer

# As docker 28.2 writes to a terminal: cursor up, erase, the line, cursor down.
TERMINAL = (
    "2: Pulling from me/big\r\n\r\n"
    "\x1b[1A\x1b[2K\rdf6a27698cb7: Pulling fs layer \r\x1b[1B\r\n"
    "\x1b[1A\x1b[2K\ra38adbc80c9b: Pulling fs layer \r\x1b[1B\r\n"
    "\x1b[2A\x1b[2K\rdf6a27698cb7: Downloading  818.8kB/2.001MB\r\x1b[2B"
    "\x1b[1A\x1b[2K\ra38adbc80c9b: Downloading  4.849MB/12MB\r\x1b[1B"
    "\x1b[2A\x1b[2K\rdf6a27698cb7: Extracting  32.77kB/2.001MB\r\x1b[2B"
    "\x1b[2A\x1b[2K\rdf6a27698cb7: Pull complete \r\x1b[2B"
)


def after(text: str) -> Transfer:
    transfer = Transfer()
    transfer.take(text)
    transfer.finish()
    return transfer


def test_a_push_is_counted_too() -> None:
    text = (
        "af8f723a7133: Preparing\r\naf8f723a7133: Pushing  1.5MB/20MB\r\nab6bae6f3c54: Pushed\r\n"
    )
    assert after(text).in_words() == "1 of 2 layers, 1.5 MB"


def test_other_lines_are_the_reason_of_a_failure_and_safe_to_show() -> None:
    transfer = after("x: Pulling\r\n\x1b[31mError response from daemon: manifest unknown\x1b[0m")
    assert transfer.complaint[-1] == "Error response from daemon: manifest unknown"


@given(st.data())
def test_it_does_not_matter_where_the_output_is_cut(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(TERMINAL)), max_size=8)))
    transfer = Transfer()
    for begin, end in zip([0, *cuts], [*cuts, len(TERMINAL)], strict=True):
        transfer.take(TERMINAL[begin:end])
    transfer.finish()
    assert transfer.in_words() == "1 of 2 layers, 6.8 MB"


@given(st.text(max_size=300))
def test_nothing_that_a_host_prints_breaks_it(text: str) -> None:
    assert "\x1b" not in after(text).in_words()
