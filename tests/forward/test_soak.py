"""Megabytes each way come whole, across many exchanges of keys."""

from __future__ import annotations

import pytest

from tests.bench.soak import soak


@pytest.mark.usefixtures("sshd")
def test_sixty_megabytes_each_way_have_equal_checksums() -> None:
    passed = soak(60, rekey_megabytes=10)
    assert passed.intact
    assert passed.new_keys >= 6
