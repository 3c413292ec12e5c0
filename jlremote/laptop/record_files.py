"""Records: what the laptop remembers, a JSON file each.

A record is written as a whole, for this user alone. A file that was cut short, edited by hand or
left by another version does not match the record's fields and is passed over.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, get_type_hints
from urllib.parse import quote

from jlremote.errors import Usage
from jlremote.laptop import paths
from jlremote.text import closest, is_host, is_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)
else:
    Record = TypeVar("Record")

FORMAT = 1
MOST_BYTES = 1 << 20  # no record comes near it
LONGEST_STEM = 200  # a file's name has 255 bytes at most, and a draft's is longer than the file's


# The `parts` of records whose names reach hints and completion, whatever wrote the file.
NAMES: Mapping[str, Callable[[Any], str | None]] = MappingProxyType(
    {
        "host": lambda value: value if isinstance(value, str) and is_host(value) else None,
        "name": lambda value: value if isinstance(value, str) and is_name(value) else None,
    }
)


class Named(Protocol):
    """A record of something on a host that has a name."""

    @property
    def host(self) -> str: ...  # what was typed after `ssh`
    @property
    def name(self) -> str: ...  # in full
    @property
    def typed(self) -> str | None: ...  # the short name, if a naming template made another of it


NamedRecord = TypeVar("NamedRecord", bound=Named)


@dataclass(frozen=True)
class Records(Generic[Record]):
    """All records of one dataclass, in a folder of their own.

    `parts` convert fields whose values need more than a check of their type: from JSON's value to
    the field's, or to `None` if that is wrong.
    """

    place: str  # the folder's name
    kind: type[Record]
    key: Sequence[str]  # the fields that make a file's name
    parts: Mapping[str, Callable[[Any], object]]
    order: Callable[[Record], Any] = lambda _: 0  # the value that they are sorted by

    def folder(self) -> Path:
        """Return the folder; raise `JlrError` if it cannot be made, or others have access to it."""
        return paths.private_directory(paths.state_directory() / self.place)

    def save(self, record: Record) -> None:
        """Write a record, whole."""
        document = {"format": FORMAT} | asdict(record)
        paths.write_whole(self._file(*self._key_of(record)), json.dumps(document, indent=2) + "\n")

    def delete(self, record: Record) -> None:
        """Delete a record; one that is gone already is fine."""
        self.delete_key(*self._key_of(record))

    def delete_key(self, *key: str) -> None:
        """Delete the record of a key; none is fine."""
        file = self._file(*key)
        paths.past_others(lambda: file.unlink(missing_ok=True))

    def find(self, *key: str) -> Record | None:
        return self._load(self._file(*key))

    def load_all(self) -> list[Record]:
        """Return all records in their order; files that hold none are passed over."""
        loaded = map(self._load, self.folder().glob("*.json"))
        return sorted((record for record in loaded if record is not None), key=self.order)

    def unreadable(self) -> list[Path]:
        """Return the files that hold no record: cut short, or another program's."""
        return [path for path in self.folder().glob("*.json") if self._load(path) is None]

    def _file(self, *key: str) -> Path:
        return self.folder() / file_name(*key)

    def _key_of(self, record: Record) -> list[str]:
        return [str(getattr(record, field)) for field in self.key]

    def _load(self, file: Path) -> Record | None:
        document, kinds = _document(file), _kinds(self.kind)
        if document is None or document.keys() != kinds.keys():
            return None
        for field, kind in kinds.items():
            value, part = document[field], self.parts.get(field)
            if isinstance(value, str) and "\0" in value:  # no path or argument has one
                return None
            document[field] = part(value) if part else value
            if document[field] is None if part else not isinstance(value, kind):
                return None
        return self.kind(**document)


_kinds: Callable[[type], dict[str, Any]] = cache(get_type_hints)


def file_name(*key: str) -> str:
    """Return the name of the file about `key`, as `HOST, NAME`, whatever characters that has."""
    stem = "+".join(quote(word, safe="") for word in key)
    if len(stem) > LONGEST_STEM:
        digest = hashlib.sha256(stem.encode()).hexdigest()
        stem = f"{stem[: LONGEST_STEM - len(digest)]}{digest}"
    return f"{stem}.json"


def tcp_port(value: Any) -> int | None:
    """Return a record's value if it is a TCP port, else `None`: a `part` of records."""
    return value if type(value) is int and 0 < value < 65536 else None


def matching(known: Sequence[NamedRecord], selector: str) -> list[NamedRecord]:
    """Return the records that are called `NAME` or `HOST/NAME`; full names take precedence."""
    full = [r for r in known if selector in (r.name, f"{r.host}/{r.name}")]
    return full or [r for r in known if r.typed and selector in (r.typed, f"{r.host}/{r.typed}")]


def selected(known: Sequence[NamedRecord], selector: str, kind: str) -> NamedRecord | None:
    """Return the record called `NAME` or `HOST/NAME`, `None` for none (`Usage`: several `kind`)."""
    matches = matching(known, selector)
    if len({record.host for record in matches}) > 1:
        places = ", ".join(f"`{record.host}/{record.name}`" for record in matches)
        raise Usage(f"`{selector}` is the name of several {kind}", hint=f"name one: {places}")
    return next(iter(matches), None)


def hint_of_missing(known: Sequence[Named], selector: str, hint: str) -> str:
    """Return `hint`, after the name of the record that `NAME` or `HOST/NAME` is spelled like."""
    names = {name: record for record in known for name in (record.name, record.typed) if name}
    host, slash, typed = selector.rpartition("/")
    if slash:
        names = {name: record for name, record in names.items() if record.host == host}
    near = closest(typed, names)
    if near == typed:
        return hint
    return f"did you mean `{names[near].host}/{near}`? {hint}" if near else hint


def _document(file: Path) -> dict[str, Any] | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a FIFO may have no end
                return None
            document = json.loads(opened.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):  # the last one for a thousand brackets
        return None
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        return None
    return document
