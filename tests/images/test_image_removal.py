"""What a removal takes, by the engine's own words."""

from __future__ import annotations

import pytest

from jlremote.errors import NotFound, Usage
from jlremote.images.removal import StoredImage, find


def image(number: str, *names: str) -> StoredImage:
    return StoredImage(f"sha256:{number * 64}", names, "2026-01-01", 10)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("me/x", "me/x:latest"),
        ("docker.io/me/x:latest", "me/x:latest"),
        ("built", "localhost/built:latest"),
        ("cc", "me/y:1"),
        ("sha256:dd", None),
        ("fade", "fade:latest"),  # a name that could be an id
    ],
)
def test_a_name_or_the_begin_of_an_id_is_resolved_exactly(typed: str, name: str | None) -> None:
    stored = [
        image("a", "me/x:latest", "me/x:2"),
        image("b", "localhost/built:latest"),
        image("c", "me/y:1"),
        image("d"),
        image("e", "fade:latest"),
    ]
    assert find("dgx", stored, typed)[1] == name


def test_what_is_missing_or_uncertain_is_refused() -> None:
    stored = [image("a", "x:1", "x:2"), image("b"), StoredImage(f"b{'c' * 63}", (), "", 0)]
    for typed, error in (("y", NotFound), ("b", Usage), ("aaaa", Usage), ("x:3", NotFound)):
        with pytest.raises(error):
            find("dgx", stored, typed)
