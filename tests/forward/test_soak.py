"""Hundreds of megabytes each way come whole, across many exchanges of keys."""

from __future__ import annotations

import pytest

from tests.bench.soak import soak


@pytest.mark.usefixtures("sshd")
def test_three_hundred_megabytes_each_way_have_equal_checksums() -> None:
    passed = soak(300, rekey_megabytes=50)
    assert passed.intact
    assert passed.new_keys >= 6
