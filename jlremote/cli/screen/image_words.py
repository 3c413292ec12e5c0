"""Images in short words for a person."""

from __future__ import annotations

from collections.abc import Sequence

from jlremote.text import size_in_words

_ID_DIGITS = 12


def short_id(image_id: str) -> str:
    """Return the beginning of an image's id, as engines show it."""
    return image_id.removeprefix("sha256:")[:_ID_DIGITS]


def in_short(names: Sequence[str], image_id: str, size: int) -> str:
    """Return an image's names, id and size (bytes) in one line."""
    return f"{', '.join(names)}: {short_id(image_id)}, {size_in_words(size)}"
