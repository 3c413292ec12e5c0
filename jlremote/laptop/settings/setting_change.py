"""Change one setting in `config.toml`, and leave its other lines and comments as they are."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jlremote.errors import JlrError, Usage
from jlremote.laptop import paths
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import KINDS, LISTS, checked, parsed
from jlremote.text import did_you_mean


def change(table: Sequence[str], option: str, values: Sequence[str]) -> Path:
    """Set an option in a table, as `("hosts", "dgx")`; drop it without values (else `Usage`)."""
    if option not in KINDS:
        near = did_you_mean(option.rpartition(".")[2], KINDS)
        raise Usage(f"no setting `{option}`", hint=near or "`jlr config` lists the settings")
    value = _value(option, values) if values else None
    settings.load()  # a file that is wrong is mended by a person
    path = settings.config_file().resolve()  # it may be a link into a person's other settings
    text = path.read_text("utf-8") if path.exists() else ""
    document = _with(tomllib.loads(text), table, option, value)
    line = "" if value is None else f"{option} = {_toml(value)}\n"
    heading = f"[{'.'.join(map(_key, table))}]\n"
    tried = _candidates(text.splitlines(keepends=True), heading, option, line)
    changed = next((each for each in tried if _meaning(each) == document), None)
    if changed is None:
        what = f"cannot change `{option}` in `{path}` without changing other lines"
        raise JlrError(what, hint="`jlr config --edit`")
    settings.interpreted(path, document)
    paths.write_whole(path, changed)
    return path


def _value(option: str, values: Sequence[str]) -> Any:
    if KINDS[option] in LISTS:
        value: Any = list(values)
    elif len(values) > 1:
        raise Usage(f"`{option}` takes one value", hint="quote a value with spaces")
    else:
        value = parsed(option, values[0])
    checked(option, value, f"`{option}`")
    return value


def _with(
    document: dict[str, Any], table: Sequence[str], option: str, value: Any
) -> dict[str, Any]:
    inner = document
    for name in table:
        inner = inner.setdefault(name, {})
    inner[option] = value
    if value is None:
        del inner[option]
    return document


def _candidates(lines: list[str], heading: str, option: str, new: str) -> Iterator[str]:
    """Yield texts with a new line in place of an option's, at a table's end, or in a new table."""
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for at, line in enumerate(lines):
        if re.match(rf"\s*[\"']?{re.escape(option)}[\"']?\s*=", line):
            # A value may be an array of several lines.
            for end in range(at + 1, len(lines) + 1):
                yield "".join((*lines[:at], new, *lines[end:]))
    for at in range(len(lines), 0, -1):
        if lines[at - 1].strip():
            yield "".join((*lines[:at], new, *lines[at:]))
    yield "".join((*lines, *(["\n"] if lines else []), heading, new))


def _meaning(text: str) -> dict[str, Any] | None:
    with suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(text)
    return None


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _toml(name)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
