"""The rules of a `.dockerignore` file, as docker reads them (moby/patternmatcher)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jlremote.errors import Usage
from jlremote.text import one_line

# A step of a pattern is a letter, a set of letters, or one of these.
_NO_SLASH, _NAME, _ALL, _FOLDERS = "[^/]", "[^/]*", ".*", "(?:.*/)?"
Step = str | re.Pattern[str]


@dataclass(frozen=True)
class Rule:
    """One line: what it matches, and whether it is an exception (`!`)."""

    pattern: str
    steps: tuple[Step, ...]
    exception: bool


@dataclass(frozen=True)
class IgnoreRules:
    """All rules, of which the last one that matches a path decides."""

    rules: tuple[Rule, ...] = ()

    def ignores(self, path: str) -> bool:
        """Return whether `path`, relative and with `/`, is left out.

        A rule for a folder applies to all that is in it.
        """
        places = _places(path)
        ends = places.get("/", 0) | 1 << len(path)
        ignored = False
        for rule in self.rules:
            if rule.exception == ignored and _reached(rule.steps, places, len(path)) & ends:
                ignored = not rule.exception
        return ignored

    def may_keep_some_of(self, folder: str) -> bool:
        """Return whether an exception may apply to something in a folder that is left out.

        As in BuildKit, an exception with a wildcard may apply to any folder.
        """
        exceptions = [rule.pattern for rule in self.rules if rule.exception]
        wild = any(re.search(r"[*?\[\\]", pattern) for pattern in exceptions)
        return wild or any(f"{pattern}/".startswith(f"{folder}/") for pattern in exceptions)


def read_rules(text: str) -> IgnoreRules:
    """Return the rules of a `.dockerignore` file's text.

    Raises:
        Usage: a line is not a pattern; the message says which.
    """
    lines = enumerate(text.removeprefix("\ufeff").splitlines(), start=1)
    return IgnoreRules(tuple(rule for number, line in lines for rule in _rules(number, line)))


def _rules(number: int, line: str) -> Iterator[Rule]:
    if line.startswith("#") or not line.strip():
        return
    exception = line.strip().startswith("!")
    pattern = line.strip().removeprefix("!").strip()
    if not pattern:
        raise Usage(f"line {number} of `.dockerignore` is only `!`")
    cleaned = posixpath.normpath(pattern)
    if cleaned != "/":
        cleaned = cleaned.lstrip("/")
    try:
        yield Rule(cleaned, tuple(_steps(cleaned)), exception)
    except re.error as error:
        raise Usage(
            f"line {number} of `.dockerignore` is not a pattern: `{one_line(line)}`",
            hint="write `\\[` for a literal `[`",
        ) from error


# After a leading `**` without a slash docker compares only ends: `**.py` is any `*.py`.
_PIECE = re.compile(r"\*\*/?|\*|\?|\[\^?\]?[^\]]*\]|\[|\\.|.", re.DOTALL)


def _steps(pattern: str) -> Iterator[Step]:
    pieces = _PIECE.findall(pattern)
    if pattern.startswith("**") and not any(piece[0] in "*?[\\" for piece in pieces[1:]):
        rest = pattern.removeprefix("**")
        yield _FOLDERS if rest[:1] == "/" else _ALL
        yield from rest.removeprefix("/")
        return
    last = len(pieces) - 1
    for number, piece in enumerate(pieces):
        yield _step(piece, last=number == last)


def _step(piece: str, *, last: bool) -> Step:
    if piece.startswith("**"):
        return _ALL if last else _FOLDERS
    if piece == "*":
        return _NAME
    if piece == "?":
        return _NO_SLASH
    if piece[0] == "[":
        return re.compile(_set(piece))
    return piece[-1]  # behind a backslash


def _places(path: str) -> dict[str, int]:
    """Return for each letter of a path its places in it, as bits."""
    found: dict[str, int] = {}
    for at, letter in enumerate(path):
        found[letter] = found.get(letter, 0) | 1 << at
    return found


def _reached(steps: Iterable[Step], places: Mapping[str, int], length: int) -> int:
    """Return all places, as bits, to which a pattern matches a path from its beginning.

    All ways are followed at once: a regular expression would try them one after the other, which
    takes for ever with forty stars. `+` carries a bit through all set bits above it.
    """
    reached, every = 1, (1 << length) - 1
    slashes = places.get("/", 0)
    names = every & ~slashes
    for step in steps:
        if step == _NAME:
            reached |= ((reached & names) + names) ^ names
        elif step in (_ALL, _FOLDERS):
            beyond = reached | ((reached & every) + every) ^ every
            reached = beyond if step == _ALL else reached | (beyond & slashes) << 1
        elif isinstance(step, str):
            reached = (reached & (names if step == _NO_SLASH else places.get(step, 0))) << 1
        else:
            fitting = (bits for letter, bits in places.items() if step.fullmatch(letter))
            reached = (reached & sum(fitting)) << 1
    return reached


def _set(piece: str) -> str:
    """Translate a set of characters, and escape what only Python treats as special in one."""
    if len(piece) == 1:
        raise re.error("a set has no end")
    inner = re.sub(r"[\[&|~]", r"\\\g<0>", piece[1:-1]).replace("--", r"-\-")
    return f"[{inner}]"
