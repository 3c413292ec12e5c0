"""Spans of time and moments, as people write and read them: `90s`, `1d12h`, `3h` ago."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import datetime, timezone

from jlremote.errors import Usage

UTC = timezone.utc  # noqa: UP017  # the waiter on the host runs in Python 3.8, too
UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = re.compile("".join(rf"(?:(\d{{1,6}}){unit})?" for unit in UNITS))


def seconds_of(text: str, place: str) -> int:
    """Return the seconds of a span, 0 for `off`; `place` is where it was written, for `Usage`."""
    if text.strip().lower() == "off":
        return 0
    span = _SPAN.fullmatch(text.strip().lower())
    counts = span.groups(default="0") if span else ()
    seconds = sum(int(count) * size for count, size in zip(counts, UNITS.values()))  # noqa: B905
    if not seconds:
        hint = "use `30m`, `2h`, `1d`, `off`"
        raise Usage(f"invalid {place}: `{text}` is not a span of time", hint=hint)
    return seconds


def since(text: str, place: str) -> int:
    """Return a moment in seconds since the epoch, or a span before now in seconds below zero.

    A moment is in ISO 8601, without a zone in this machine's; `place` is where it was written, for
    the message of `Usage`.
    """
    with suppress(ValueError, OverflowError):
        return int(datetime.fromisoformat(text).timestamp())
    try:
        return -seconds_of(text, place)
    except Usage as wrong:
        what = f"invalid {place}: `{text}` is neither a span of time nor a moment"
        raise Usage(what, hint="use `30m`, `2h`, `1d` or `2026-01-31T12:00`") from wrong


def in_words(seconds: int) -> str:
    """Return a span with all its units: `1h30m`."""
    parts = []
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def clock(seconds: float) -> str:
    """Return a span as a clock shows it: `0:07`, `12:40`, `1:00:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def age(since: float | None, now: float | None = None) -> str:
    """Return the time since a moment in its largest unit: `40s`, `5m`, `3h`, `2d`, or `?`.

    Both are seconds since the epoch; `now` is by default this machine's, `since` may be unknown.
    """
    if since is None:
        return "?"
    seconds = max(0, round((time.time() if now is None else now) - since))
    unit = next((unit for unit, size in UNITS.items() if seconds >= size), "s")
    return f"{seconds // UNITS[unit]}{unit}"


def left(until: float, now: float | None = None) -> str:
    """Return the time until a moment in words: `2h5m`, or `40s` below a minute."""
    seconds = max(0, round(until - (time.time() if now is None else now)))
    return in_words(seconds - seconds % 60 if seconds >= 60 else seconds)


def by_our_clock(moment: float | None, their_now: float | None) -> float | None:
    """Return another machine's moment by this machine's clock; `their_now` is that one's time.

    Clocks are apart by whole minutes here: an answer takes a while, too, and a moment has to be the
    same in the next one.
    """
    if moment is None or their_now is None:
        return moment
    return moment + 60 * round((time.time() - their_now) / 60)


def expected(start: float) -> str:
    """Return `estimated start: Mon 12:00`, in this machine's zone."""
    return f"estimated start: {time.strftime('%a %H:%M', time.localtime(start))}"


def ago(moment: str) -> str:
    """Return `age` of an ISO 8601 moment, which is in UTC if it names no zone."""
    try:
        then = datetime.fromisoformat(moment)
        return age(then.replace(tzinfo=then.tzinfo or UTC).timestamp())
    except (ValueError, OverflowError):
        return "?"


def utc(moment: float | str) -> str:
    """Return a moment in the one form that `--json` prints: `2026-01-02T03:04:05Z`.

    It is given in seconds since the epoch, or in ISO 8601, without a zone in UTC; what is no moment
    is returned as it is.
    """
    try:
        if isinstance(moment, str):
            then = datetime.fromisoformat(moment)
        else:
            then = datetime.fromtimestamp(moment, UTC)
        then = then.replace(tzinfo=then.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return str(moment)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")
