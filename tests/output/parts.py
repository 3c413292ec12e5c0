"""Records for the tests of this folder."""

from __future__ import annotations

import json
from typing import Any

from jlremote.output.recorded_files import Record, parsed


def line(kind: str, content: dict[str, Any], *, request: str = "r1", **other: Any) -> bytes:
    told = {"time": 1.0, "kernel": "k", "notebook": "a.ipynb", "cell": "c1", "request": request}
    return json.dumps({**told, "kind": kind, "content": content, **other}).encode() + b"\n"


def record(kind: str, content: dict[str, Any], *, request: str = "r1", **other: Any) -> Record:
    found = parsed(line(kind, content, request=request, **other))
    assert found is not None
    return found


def stream(text: str, *, name: str = "stdout", request: str = "r1", **other: Any) -> Record:
    return record("stream", {"name": name, "text": text}, request=request, **other)


def code(text: str, count: int = 1, *, request: str = "r1", **other: Any) -> Record:
    return record("code", {"code": text, "execution_count": count}, request=request, **other)


def end(*, request: str = "r1", **other: Any) -> Record:
    return record("end", {"status": "ok"}, request=request, **other)
