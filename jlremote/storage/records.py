"""Records: what the laptop remembers, a JSON file each.

A record is written whole or not at all, for us alone. What is read is taken only if it is one of
ours in every field: a file may be cut short, edited by hand, or left by another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints
from urllib.parse import quote

from jlremote.storage import paths

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)

FORMAT = 1
LONGEST_STEM = 200  # a file's name has 255 bytes at most, and a draft's is longer than the file's


def folder(kind: str) -> Path:
    """Return the folder of all records of a kind, such as `jobs`.

    Raises:
        JlrError: it cannot be made, or it is not ours alone.
    """
    return paths.private_directory(paths.state_directory() / kind)


def file_name(host: str, name: str) -> str:
    """Return the name of the file about `name` on `host`, whatever characters they have."""
    stem = f"{quote(host, safe='')}+{quote(name, safe='')}"
    if len(stem) > LONGEST_STEM:
        digest = hashlib.sha256(stem.encode()).hexdigest()
        stem = f"{stem[: LONGEST_STEM - len(digest)]}{digest}"
    return f"{stem}.json"


def save(file: Path, record: DataclassInstance) -> None:
    """Write a record, whole.

    Raises:
        JlrError: it cannot be written.
    """
    document = {"format": FORMAT} | asdict(record)
    paths.write_whole(file, json.dumps(document, indent=2) + "\n")


def load_all(folder: Path, kind: type[Record], **parts: Callable[[Any], object]) -> list[Record]:
    """Return all records of a folder; what is no record of ours is passed over (see `load`)."""
    found = (load(file, kind, **parts) for file in folder.glob("*.json"))
    return [record for record in found if record is not None]


def load(file: Path, kind: type[Record], **parts: Callable[[Any], object]) -> Record | None:
    """Return the record in a file, `None` if that is no record of ours.

    Args:
        file: where it is, or is not.
        kind: its dataclass.
        parts: for a field with more to it than its type: what makes its value of what JSON has,
            and `None` of what cannot be.
    """
    document = _document(file)
    if document is None:
        return None
    wanted = get_type_hints(kind)
    if document.keys() != wanted.keys():
        return None
    for field, part in parts.items():
        document[field] = part(document[field])
        if document[field] is None:
            return None
    plain = wanted.keys() - parts.keys()
    if not all(isinstance(document[field], wanted[field]) for field in plain):
        return None
    return kind(**document)


def _document(file: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):  # the last one for a thousand brackets
        return None
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        return None
    return document
