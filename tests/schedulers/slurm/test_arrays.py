"""The indices of an array, as Slurm writes them."""

from __future__ import annotations

import pytest

from jlremote.errors import Usage
from jlremote.schedulers.slurm.launchers import indices


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        ("0-3", (0, 1, 2, 3)),
        ("7", (7,)),
        ("5-9:2,1,3", (1, 3, 5, 7, 9)),
        ("0-99%4", tuple(range(100))),
        ("1,1-2", (1, 2)),
    ],
)
def test_indices_are_read(array: str, wanted: tuple[int, ...]) -> None:
    assert indices(array, "") == wanted


@pytest.mark.parametrize("array", ["", "a", "3-1", "1-9:0", "1,", "0-3%", "0-3%x", "-1", "$(id)"])
def test_what_slurm_would_not_take_is_refused(array: str) -> None:
    with pytest.raises(Usage, match="names no indices"):
        indices(array, "")


@pytest.mark.parametrize(
    ("limit", "last"), [("", 4_000_000), ("1001\n", 1000), ("a banner\n", 4_000_000)]
)
def test_indices_above_the_limit_are_refused_at_once(limit: str, last: int) -> None:
    assert indices(f"0,{last}", limit) == (0, last)
    with pytest.raises(Usage, match=f"takes indices up to {last} there"):
        indices("0-999999999", limit)
