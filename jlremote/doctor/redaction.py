"""Text without the secrets that logs and errors may hold."""

from __future__ import annotations

import re

_NAME = r"""(?ix)
    ( (?: (?: token | passw(?:or)?d | passphrase | secret | api[_-]?key | xsrf ) [\w-]{0,40}
      | authorization ) ["']? \s{0,9} [=:] \s{0,9}
"""
_SCHEME = r"(?: (?:bearer|token|basic) \s+ )? )"
_QUOTED = re.compile(rf"""{_NAME} (["']) {_SCHEME} (?: (?! \2 ) [^\n] )+""")
_PLAIN = re.compile(rf"""{_NAME} {_SCHEME} [^\s&"',;)}}\]]+""")
# By their own form: private keys, passwords in addresses, keys of well-known services, and long
# hexadecimal numbers such as Jupyter's tokens.
_FORMS = (
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL),
    re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)"),
    re.compile(r"()\b(?:gh[opsu]_|github_pat_|glpat-|hf_|nvapi-|sk-|xox[a-z]-|eyJ)[\w.-]{16,}"),
    re.compile(r"()\b[0-9a-f]{40,}\b"),
)


def redacted(text: str) -> str:
    """Return `text` with `***` in place of values that look like secrets."""
    for form in (*_FORMS, _QUOTED, _PLAIN):
        text = form.sub(r"\1***", text)
    return text
