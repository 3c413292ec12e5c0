"""The files with a session's records, of which the oldest go first."""
# ruff: noqa: T201 - it is a program; what it prints is its log

import json
import os
import re
import sys
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional

PIECES = 20  # that many make the whole; the oldest go first
SMALL_BYTES = 4096  # a kernel that says little keeps its only piece
PIECE = re.compile(r"(.+?)(?:\.(\d+))?\.jsonl")


class Store:
    """The files of a session's records, with a limit on their total size."""

    def __init__(self, folder: str, most: int) -> None:
        self.folder = folder
        self.most = most
        self.part = most // 100  # signs of a text; as JSON they may be six times as many
        self.waiting: Dict[str, List[bytes]] = {}
        self.failing: Dict[str, float] = {}  # kernels whose records cannot be written, since when
        self.sizes = {path: os.path.getsize(path) for path in self.pieces()}

    def pieces(self) -> List[str]:
        """Return the paths of all files, the oldest first."""
        matches = (PIECE.fullmatch(name) for name in os.listdir(self.folder))
        paths = ((os.path.join(self.folder, each[0]), each[2]) for each in matches if each)
        # A kernel's file that is still written to has no number.
        aged = sorted((changed_at(path), float(number or "inf"), path) for path, number in paths)
        return [path for _, _, path in aged]

    def path(self, kernel: str) -> str:
        """Return the file that a kernel's records go to."""
        return os.path.join(self.folder, kernel + ".jsonl")

    def add(self, record: Dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        if len(data) > self.most // 4:
            now = record["time"]
            why = f"an output of {len(data)} bytes is too large"
            self.lose(record["kernel"], now, now, why, record)
        else:
            self.waiting.setdefault(record["kernel"], []).append(data)

    def lose(
        self,
        kernel: str,
        since: Optional[float],
        until: float,
        why: str,
        like: Optional[Dict[str, Any]] = None,
    ) -> None:
        place = {key: (like or {}).get(key) for key in ("notebook", "cell", "request")}
        content = {"from": since, "until": until, "why": why}
        about = {"time": time.time(), "kernel": kernel, "kind": "lost", "content": content}
        self.add(dict(place, **about))

    def write(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for kernel, lines in waiting.items():
            for data in parted(lines, self.most // PIECES):
                try:
                    self.append(kernel, data)
                except OSError as failure:
                    self.failing.setdefault(kernel, time.time())
                    print("cannot write records:", failure, file=sys.stderr, flush=True)
                    break
                while sum(self.sizes.values()) > self.most and self.drop_oldest():
                    pass
            else:
                if kernel in self.failing:
                    why = "they could not be written"
                    self.lose(kernel, self.failing.pop(kernel), time.time(), why)
        if self.waiting:  # what was lost
            self.write()

    def append(self, kernel: str, data: bytes) -> None:
        """Append whole lines to a kernel's file; begin another piece where it is full."""
        path = self.path(kernel)
        size = self.sizes.get(path, 0)
        if size and size + len(data) > self.most // PIECES:
            numbers = [PIECE.fullmatch(os.path.basename(own)) for own in self.sizes]
            own = [int(each[2] or 0) for each in numbers if each and each[1] == kernel]
            older = os.path.join(self.folder, f"{kernel}.{max(own) + 1}.jsonl")
            os.rename(path, older)
            self.sizes[older], size = self.sizes.pop(path), 0
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            left = data
            while left:
                left = left[os.write(file, left) :]
        except OSError:
            os.ftruncate(file, size)
            raise
        finally:
            os.close(file)
        self.sizes[path] = size + len(data)

    def drop_oldest(self) -> bool:
        """Delete the oldest large piece and older ones of its kernel, and record the loss."""
        pieces = self.pieces()
        large = [path for path in pieces if self.sizes.get(path, 0) > SMALL_BYTES]
        if len(large) < 2:
            return False
        kernel = kernel_of(large[0])
        older = [path for path in pieces[: pieces.index(large[0]) + 1] if kernel_of(path) == kernel]
        first, last = ends(older[0]), ends(large[0]).get("last", time.time())
        for path in older:
            with suppress(OSError):
                os.unlink(path)
            self.sizes.pop(path, None)
        why = f"more than {self.most >> 20} MB of the session were recorded"
        self.lose(kernel, first.get("time"), last, why, first)
        return True


def kernel_of(path: str) -> str:
    """Return the kernel of a file, by its name."""
    named = PIECE.fullmatch(os.path.basename(path))
    return named[1] if named else ""


def ends(path: str) -> Dict[str, Any]:
    """Return the first record of a file; `last` is the time of the last record."""
    try:
        with open(path, "rb") as file:
            first = json.loads(file.readline().decode("utf-8"))
            if first["kind"] == "lost":
                first["time"] = first["content"]["from"]
            first["last"] = max(first["time"], os.path.getmtime(path))  # whose clock is coarse
            return dict(first)
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def parted(lines: List[bytes], size: int) -> List[bytes]:
    """Join lines to parts of at most `size` bytes; a longer line is a part of its own."""
    parts: List[List[bytes]] = [[]]
    length = 0
    for line in lines:
        if parts[-1] and length + len(line) > size:
            parts.append([])
            length = 0
        parts[-1].append(line)
        length += len(line)
    return [b"".join(part) for part in parts]


def changed_at(path: str) -> float:
    """Return when a file was written last, 0 if it is gone."""
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0
