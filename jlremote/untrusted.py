"""The doors for values from the far side: each returns a safe value, or refuses.

What a host, a container or Jupyter says is data. Before a word of it becomes a local file name, an
argument of a local program, a number or a parsed document, it passes one of these functions. All of
them raise `Refused`, a `ValueError`, so `understood` in `place.host.contract` explains it like
any odd answer.
"""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
from typing import Any

from jlremote.text import one_line

# Longest name in bytes of UTF-8. File systems take 255; a draft's name adds some 20.
_LONGEST_NAME = 200
# Not allowed in names on Windows, with `/` and `:` the separators of all systems.
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
# Windows opens a device under these names, with any suffix.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
# A document that is nested deeper is not parsed: its readers call themselves for each level.
_DEEPEST = 100
# A date in seconds since the epoch that every platform can write, and wait for.
_LATEST = 1 << 33
# Digits of the largest number of 64 bits.
_MOST_DIGITS = 19


class Refused(ValueError):
    """A value from the far side is not one that jlr uses."""


def local_name(text: str, suffix: str = "", *, default: str = "unnamed") -> str:
    """Return a name for a new local file, made from a far one: one path component, never hidden.

    The name ends with `suffix`, whatever the far one ends with. Where no letter or digit of the far
    one can be kept, the name is `default`.
    """
    name = _NOT_IN_NAMES.sub("_", one_line(unicodedata.normalize("NFC", text)))
    name = name.removesuffix(suffix) if suffix else name
    name = name.lstrip(" .-~").rstrip(" .")
    room = _LONGEST_NAME - len(suffix.encode())
    name = name.encode("utf-8", "replace")[:room].decode("utf-8", "ignore").rstrip(" .")
    if not any(character.isalnum() for character in name):
        name = default
    if _DEVICE.fullmatch(name):
        name = f"_{name}"
    return name + suffix


def fits_here(name: str) -> bool:
    """Return whether a new local file can have a far file's name; Windows takes some for others."""
    if sys.platform != "win32":
        return True
    return not (_NOT_IN_NAMES.search(name) or _DEVICE.fullmatch(name) or name.endswith((" ", ".")))


def path_part(name: str) -> str:
    """Return a listed name if it is one component of a path, and neither empty nor a dot folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Refused(f"`{one_line(name)}` is not the name of a file")
    return name


def argument(text: str) -> str:
    """Return a word for a local program: not empty, no option, without control characters."""
    if not text or text.startswith("-") or _controls(text):
        raise Refused(f"`{one_line(text)}` cannot be an argument")
    return text


def absolute_path(text: str) -> str:
    """Return a far path that begins with `/`, and has no control characters."""
    if not text.startswith("/") or _controls(text):
        raise Refused(f"`{one_line(text)}` is no absolute path without control characters")
    return text


def _controls(text: str) -> bool:
    return any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text)


def whole_number(text: str, *, least: int = 0, most: int = 2**63 - 1) -> int:
    """Return a number in range from ASCII digits, with a minus sign where `least` is negative."""
    text = text.strip()
    digits = text[1:] if least < 0 and text.startswith("-") else text  # also for Python 3.8
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise Refused(f"`{one_line(text)[:40]}` is not a whole number")
    number = int(text)
    if not least <= number <= most:
        raise Refused(f"{number} is not between {least} and {most}")
    return number


def count(text: str) -> int | None:
    """Return a whole number as `whole_number`, `None` for a text that is none."""
    try:
        return whole_number(text)
    except Refused:
        return None


def number(value: object) -> float:
    """Return a finite number from a text or from a value of a document."""
    try:
        known = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        parsed = float(value) if known else math.nan  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        parsed = math.nan
    if not math.isfinite(parsed):
        shown = value[:40] if isinstance(value, str) else type(value).__name__
        raise Refused(f"`{one_line(shown)}` is not a number")
    return parsed


def moment(value: object) -> float | None:
    """Return seconds since the epoch, `None` for what is no moment up to the year 2242."""
    try:
        seconds = number(value)
    except Refused:
        return None
    return seconds if 0 <= seconds < _LATEST else None


def document(text: str | bytes) -> Any:
    """Return a parsed JSON document in UTF-8, with lone surrogates replaced by `?`.

    Numbers are as in JavaScript: one of over 64 bits has a fraction, and one that is not finite
    (`NaN`, `Infinity`, `1e999`) is `None`.
    """
    try:
        value = json.loads(text, parse_int=_int, parse_float=_float, parse_constant=lambda _: None)
        _refuse_deep(value)
        return _encodable(value, text)
    except RecursionError as error:
        raise Refused("the document is nested too deep") from error
    except ValueError as error:
        raise Refused(str(error)[:200]) from error


def _int(digits: str) -> int | float | None:
    number = int(digits) if len(digits) <= _MOST_DIGITS + 1 else 2**64
    return number if -(2**63) <= number < 2**64 else _float(digits)


def _float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _refuse_deep(value: object) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [one for each in inner for one in each if isinstance(one, (dict, list))]
    if level:
        raise Refused("the document is nested too deep")


def _encodable(value: Any, text: str | bytes) -> Any:
    mark = "\\u" if isinstance(text, str) else b"\\u"
    if text.isascii() and mark not in text:  # type: ignore[operator]
        return value
    plain = json.dumps(value, ensure_ascii=False)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return json.loads(plain.encode("utf-8", "replace"))
    return value
