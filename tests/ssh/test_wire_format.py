"""Strings, numbers and key blobs of the SSH wire."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.ssh.wire_format import (
    decode_key,
    key_type,
    number,
    string,
    take_string,
)


@given(st.binary(max_size=300), st.binary(max_size=50))
def test_a_string_is_read_back_with_the_rest_behind_it(value: bytes, rest: bytes) -> None:
    assert take_string(string(value) + rest) == (value, rest)


@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_cut_string_is_an_error(value: bytes, data: st.DataObject) -> None:
    whole = string(value)
    kept = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match="ends too early"):
        take_string(whole[:kept])


def test_the_numbers_of_rfc_4251_are_written_as_there() -> None:
    assert number(0) == bytes.fromhex("00000000")
    assert number(0x9A378F9B2E332A7) == bytes.fromhex("0000000809a378f9b2e332a7")
    assert number(0x80) == bytes.fromhex("000000020080")


@given(st.binary(max_size=60))
def test_any_bytes_have_a_key_type_or_none(blob: bytes) -> None:
    assert isinstance(key_type(blob), str)


def test_a_key_is_decoded_only_from_whole_base64_with_a_type() -> None:
    blob = string(b"ssh-ed25519") + string(bytes(32))
    text = base64.b64encode(blob)
    assert decode_key(text) == blob
    assert key_type(blob) == "ssh-ed25519"
    assert decode_key(text + b"!") is None
    assert decode_key(b"AAAA") is None
    assert decode_key("ä".encode()) is None
