"""Spans of time as people write them: `90s`, `30m`, `2h`, `1d12h`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from jlremote.errors import Usage

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = re.compile("".join(rf"(?:(\d{{1,6}}){unit})?" for unit in UNITS))


def seconds_of(text: str, place: str) -> int:
    """Return the seconds of a span, 0 for `off`.

    Args:
        text: what a person wrote.
        place: where, for the message.

    Raises:
        Usage: it is no span of time.
    """
    if text.strip().lower() == "off":
        return 0
    found = _SPAN.fullmatch(text.strip().lower())
    counts = found.groups(default="0") if found else ()
    seconds = sum(int(count) * size for count, size in zip(counts, UNITS.values(), strict=False))
    if not seconds:
        raise Usage(f"{place} is no span of time: `{text}`", hint="as `30m`, `2h`, `1d` or `off`")
    return seconds


def in_words(seconds: int) -> str:
    """Return a span as a person would write it, such as `1h30m`."""
    parts = []
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def utc(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
