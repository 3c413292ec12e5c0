"""The rules of a `.dockerignore` file, as docker reads them (moby/patternmatcher)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jlremote.errors import Usage
from jlremote.text import one_line


@dataclass(frozen=True)
class Rule:
    """One line: what it matches, and whether it is an exception (`!`)."""

    pattern: str
    matches: re.Pattern[str]
    exception: bool


@dataclass(frozen=True)
class IgnoreRules:
    """All rules, of which the last one that matches a path decides."""

    rules: tuple[Rule, ...] = ()

    def ignores(self, path: str) -> bool:
        """Return whether `path`, relative and with `/`, is left out.

        A rule for a folder applies to all that is in it.
        """
        ends = [at for at, letter in enumerate(path) if letter == "/"]
        candidates = [path, *(path[:end] for end in ends)] if self.rules else []
        ignored = False
        for rule in self.rules:
            if rule.exception == ignored and any(map(rule.matches.fullmatch, candidates)):
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
        yield Rule(cleaned, re.compile(_expression(cleaned), re.DOTALL), exception)
    except re.error as error:
        raise Usage(
            f"line {number} of `.dockerignore` is not a pattern: `{one_line(line)}`",
            hint="write `\\[` for a literal `[`",
        ) from error


# After a leading `**` without a slash docker compares only ends: `**.py` is any `*.py`.
_PIECE = re.compile(r"\*\*/?|\*|\?|\[\^?\]?[^\]]*\]|\[|\\.|.", re.DOTALL)


def _expression(pattern: str) -> str:
    pieces = _PIECE.findall(pattern)
    if pattern.startswith("**") and not any(piece[0] in "*?[\\" for piece in pieces[1:]):
        rest = pattern.removeprefix("**")
        return rf"(?:.*/)?{re.escape(rest[1:])}" if rest[:1] == "/" else f".*{re.escape(rest)}"
    last = len(pieces) - 1
    return "".join(_translated(piece, last=i == last) for i, piece in enumerate(pieces))


def _translated(piece: str, *, last: bool) -> str:
    if piece.startswith("**"):
        return ".*" if last else "(?:.*/)?"
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if piece[0] == "[":
        return _set(piece)
    if piece[0] == "\\" and len(piece) > 1:
        return re.escape(piece[1])
    return re.escape(piece)


def _set(piece: str) -> str:
    """Translate a set of characters, and escape what only Python treats as special in one."""
    if len(piece) == 1:
        raise re.error("a set has no end")
    inner = re.sub(r"[\[&|~]", r"\\\g<0>", piece[1:-1]).replace("--", r"-\-")
    return f"[{inner}]"
