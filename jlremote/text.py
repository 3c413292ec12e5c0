"""Text for the terminal: control characters removed, sizes in words, checks of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

# Escape sequences are removed whole, so that no `[31m` stays behind: CSI (colours, cursor), then
# the string sequences OSC, DCS, SOS, PM and APC (titles, hyperlinks, clipboard) up to their BEL or
# ST, then any other two- or three-byte escape. Each also begins with its 8-bit form. A string that
# is not ended stops at the next one's beginning, so that a thousand of them take no thousand looks
# at the whole text. The other controls: C0, C1 and DEL, lone surrogates (they cannot be encoded),
# and characters that change the order of a line ("trojan source", CVE-2021-42574).
_HOSTILE = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [\x30-\x3f]* [\x20-\x2f]* [\x40-\x7e]
    | (?: \x1b[\]PX^_] | [\x9d\x90\x98\x9e\x9f] ) [^\x07\x1b\x9c\n\x9d\x90\x98\x9e\x9f]*
      (?: \x07 | \x1b\\ | \x9c )
    | \x1b [\x20-\x2f]* [\x30-\x7e]
    | [\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]
    | [\ud800-\udfff]
    """,
    re.VERBOSE,
)
_BEGUN = re.compile(r"\x1b(?:[\x20-\x2f]*|\[[\x20-\x3f]*|[\]PX^_][^\x07\x1b\x9c\n]*)\Z")
_LONGEST_SEQUENCE = 4096
_COLOUR = re.compile(r"\x1b\[(?:[012;]|3[0-7])*m")  # those that jlr itself uses

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")
# As OpenSSH refuses them (`valid_hostname` in ssh.c), and white space, which it refuses too.
_NO_HOST = re.compile(r"\A-|[\s\x00-\x1f\x7f'`\";&<>|(){}]")

_UNITS = {1000: ("B", "kB", "MB", "GB", "TB"), 1024: ("B", "KiB", "MiB", "GiB", "TiB")}


def printable(text: str) -> str:
    """Return `text` without control characters and escape sequences; newline and tab stay.

    A carriage return before a newline goes; any other becomes a newline, so that progress bars
    stay readable and nothing overwrites what was printed before.
    """
    return without_controls(_in_lines(text))


def styled(text: str) -> str:
    """Return `text` as `printable` does, but with the colours that jlr itself has added."""
    return without_controls(_in_lines(text), _COLOUR)


def without_controls(text: str, kept: re.Pattern[str] | None = None) -> str:
    """Return `text` without control characters, newline and tab excepted, and escape sequences.

    Those that match `kept` stay. A byte that is not UTF-8, as Python decodes it from an argument or
    a file's name, is shown in hexadecimal.
    """

    def shown(match: re.Match[str]) -> str:
        if "\udc80" <= match[0] <= "\udcff":
            return f"\\x{ord(match[0]) - 0xDC00:02x}"
        return match[0] if kept is not None and kept.fullmatch(match[0]) else ""

    return _HOSTILE.sub(shown, text)


def begun_sequence(text: str) -> str:
    """Return the unfinished escape sequence at the end of a text, `""` for none."""
    begun = _BEGUN.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
    return begun[0] if begun else ""


def _in_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    """Return `text` as `printable` does, on one line: white space runs become one space."""
    return " ".join(printable(text).split())


def is_name(text: str) -> bool:
    """Return whether `text` can name a session, container or job.

    A name reaches records, hints and the completion of shells, so another one is ignored.
    """
    return _NAME.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Return whether `text` is a destination for ssh."""
    return bool(text) and _NO_HOST.search(text) is None


# As `lgos` is like `logs`, and of three letters `dxg` like `dgx`; `logout` is less so.
_LIKE, _SHORT_LIKE = 0.75, 0.66


def closest(typed: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most like the typed one, or `None`.

    `known` has names of the one kind that was asked for: a host is no guess for a session. Upper
    and lower case are alike. A name that begins with the typed one is nearer than any other, as
    `status` is to `stat`, if all names that begin so begin with it, as `image-folder` with `image`.
    """
    import difflib  # only a mistake needs it

    names = {name.casefold(): name for name in reversed(list(known))}
    typed = typed.casefold()
    longer = [name for name in names if typed and name.startswith(typed)]
    shortest = min(longer, key=len, default="")
    if longer and all(name.startswith(shortest) for name in longer):
        return names[shortest]
    like = _SHORT_LIKE if len(typed) <= 3 else _LIKE
    near = difflib.get_close_matches(typed, names, 1, like)
    return names[near[0]] if near else None


def did_you_mean(typed: str, known: Iterable[str]) -> str | None:
    """Return the hint with the closest known name, if there is one."""
    near = closest(typed, known)
    return f"did you mean `{near}`?" if near else None


def one_of(names: Sequence[str]) -> str:
    """Return names as a choice in words: `a`, `b` or `c`."""
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} or {last}" if first else last


def joined(*parts: str | None) -> str | None:
    """Return the parts that are there as one sentence, `None` for none."""
    return "; ".join(filter(None, parts)) or None


def listed(items: Sequence[str], most: int) -> str:
    """Return the first `most` items, and how many more there are: `a, b and 3 more`."""
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")


def reason_of(failure: OSError) -> str:
    """Return the system's reason for a failure, as part of a message."""
    return (failure.strerror or str(failure)).lower()


def size_in_words(size: int, step: Literal[1000, 1024] = 1000) -> str:
    """Return bytes in the unit that suits: `421 MB`, `1.2 GB`; in steps of 1024, `80 GiB`."""
    power = next((power for power in range(4) if size < (step - 0.5) * step**power), 4)
    amount = size / step**power
    digits = re.sub(r"\.0\Z", "", f"{amount:.1f}") if amount < 9.95 else f"{amount:.0f}"
    return f"{digits} {_UNITS[step][power]}"


_NAMED = r"""(?ix)
    ( (?: (?: token | passw(?:or)?d | passphrase | secret | api[_-]?key | xsrf ) [\w-]{0,40}
      | authorization ) ["']? \s{0,9} [=:] \s{0,9}
"""
_SCHEME = r"(?: (?:bearer|token|basic) \s+ )? )"
# By their own form: private keys, passwords in addresses, keys of well-known services, and long
# hexadecimal numbers such as Jupyter's tokens; then by their name. Compiled only on use.
_SECRETS = (
    r"(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)",
    r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)",
    r"()\b(?:gh[opsu]_|github_pat_|glpat-|hf_|nvapi-|sk-|xox[a-z]-|eyJ)[\w.-]{16,}",
    r"()\b[0-9a-f]{40,}\b",
    rf"""{_NAMED} (["']) {_SCHEME} (?: (?! \2 ) [^\n] )+""",
    rf"""{_NAMED} {_SCHEME} [^\s&"',;)}}\]]+""",
)


def redacted(text: str) -> str:
    """Return `text` with `***` in place of values that look like secrets."""
    for form in _SECRETS:
        text = re.sub(form, r"\1***", text)
    return text
