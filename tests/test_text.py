"""Remote text reaches the terminal only after it was made harmless."""

import errno
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.text import listed, one_line, printable, reason_of

_PIECES = st.sampled_from([*"\x1b[]m\x07\\\x9b\x9d\x9cP(aé ", "0;", "31"])
HOSTILE = st.one_of(st.text(), st.lists(_PIECES).map("".join))


@given(HOSTILE)
def test_printable_text_cannot_drive_a_terminal(text: str) -> None:
    for character in printable(text):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_ordinary_text_in_any_language_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(HOSTILE)
def test_printable_text_can_be_encoded(text: str) -> None:
    assert printable(text).encode().decode() == printable(text) == printable(printable(text))
    assert one_line(text).splitlines() in ([], [one_line(text)])


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r\x1b\\after", "after"),
        ("\x1b(Bafter", "after"),
        ("\x1b]52;c;never ended\nnext line", "52;c;never ended\nnext line"),
        ("10%\r20%\r\ndone", "10%\n20%\ndone"),
        ("a\tb\nc", "a\tb\nc"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("\x1b\x1b[0m[2J", "[2J"),
    ],
)
def test_escape_sequences_are_removed_whole(hostile: str, harmless: str) -> None:
    assert printable(hostile) == harmless


def test_a_long_list_ends_with_how_many_more_there_are() -> None:
    assert listed([], 2) == ""
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"


def test_the_systems_reason_is_part_of_a_sentence() -> None:
    for odd in (OSError(errno.ENOENT, "Odd"), OSError("Odd")):
        assert reason_of(odd) == "odd"


def test_a_byte_that_is_not_utf_8_is_shown() -> None:
    assert one_line("ux-\udcfc\ud800") == r"ux-\xfc"
