from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.untrusted import (
    Refused,
    absolute_path,
    argument,
    document,
    local_name,
    number,
    path_part,
    whole_number,
)


@given(st.text(), st.sampled_from(["", ".ipynb", ".png"]))
def test_a_local_name_is_one_visible_component_with_the_suffix(text: str, suffix: str) -> None:
    name = local_name(text, suffix)
    assert name.endswith(suffix)
    assert name[0] not in ".-~ "
    assert not set(name) & set('/\\:*?"<>|\0\r\n')
    assert 0 < len(name.encode()) <= 200


@pytest.mark.parametrize(
    ("far", "local"),
    [
        (".bash_profile", "bash_profile.ipynb"),
        ("../../.ssh/authorized_keys", "_.._.ssh_authorized_keys.ipynb"),
        ("analysis.ipynb", "analysis.ipynb"),
        ("Übung 1.ipynb", "Übung 1.ipynb"),
        ("con.ipynb", "_con.ipynb"),
        ("...", "unnamed.ipynb"),
        ("--help", "help.ipynb"),
    ],
)
def test_a_far_name_becomes_a_harmless_notebook(far: str, local: str) -> None:
    assert local_name(far, ".ipynb") == local


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0b"])
def test_a_listed_name_that_is_a_path_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        path_part(name)
    assert path_part(".hidden") == ".hidden"


@pytest.mark.parametrize("text", ["", "-rf", "--gpu-launcher=x", "a\nb", "a\0b", "a\x1bb"])
def test_an_option_or_controls_are_no_argument(text: str) -> None:
    with pytest.raises(Refused):
        argument(text)
    assert argument("/data/a b") == "/data/a b"


@pytest.mark.parametrize("text", ["", "relative", "~", ".evil.example.com", "/a\nb"])
def test_a_folder_that_does_not_begin_with_a_slash_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        absolute_path(text)
    assert absolute_path("/data") == "/data"


@pytest.mark.parametrize("text", ["", "-1", "1.5", "9" * 400, "٣", "1e3", "18446744073709551616"])
def test_only_ascii_digits_in_range_are_a_whole_number(text: str) -> None:
    with pytest.raises(Refused):
        whole_number(text)
    assert whole_number("42\n") == 42
    assert whole_number("-3", least=-5) == -3


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "x", "", None, [1], 10**400])
def test_a_number_is_finite(value: object) -> None:
    with pytest.raises(Refused):
        number(value)
    assert number("1.5") == 1.5


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "[" * 101 + "]" * 101, '{"a":' * 500, b"\xff", "nothing", ""],
)
def test_a_document_that_would_break_its_readers_is_refused(text: str | bytes) -> None:
    with pytest.raises(Refused):
        document(text)


def test_what_json_lacks_becomes_nothing_and_lone_surrogates_a_question_mark() -> None:
    assert document("[NaN, 1e999, 2]") == [None, None, 2]
    assert document("1" + "0" * 400) is None
    assert document("[18446744073709551616]") == [2.0**64]
    assert document(r'["\ud800", "\ud83d\ude00"]') == ["?", "😀"]
    assert document('["\udc80"]') == ["?"]
    assert document(b'["\xed\xa0\x80"]') == ["?"]


_TEXT = st.text(st.characters(codec="utf-8"))
_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _TEXT


@given(st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner)))
def test_a_plain_document_is_parsed_as_by_json(value: object) -> None:
    assert document(json.dumps(value)) == value
