"""Mount points, the programs that use them, and paths resolved without a look into any mount.

Even `stat` may hang on a mount whose other side is gone.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from jlremote.errors import Usage
from jlremote.text import one_line

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_MOST_LINKS = 40  # Linux's own limit
_UNMOUNT_SECONDS = 10.0


@dataclass(frozen=True)
class MountPoint:
    """A mounted file system."""

    path: str  # where it is mounted
    kind: str  # its type, `fuse.sshfs` for ours
    source: str  # the name that it gives itself


def read_mountinfo(content: bytes) -> list[MountPoint]:
    """Return the mounts of a `mountinfo` file, proc(5), the latest last."""
    points = []
    for line in content.splitlines():
        before, _, after = line.partition(b" - ")
        path, (kind, source) = before.split()[4], after.split()[:2]
        points.append(MountPoint(_text(path), _text(kind), _text(source)))
    return points


def _text(field: bytes) -> str:
    """Decode a field, in which the kernel writes blanks and backslashes as octal numbers."""
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field)
    return os.fsdecode(plain)


def resolved(path: str, mounted: Collection[str]) -> str:
    """Return `path` as `realpath` would, but leave what lies below a `mounted` path as written.

    Raises:
        Usage: its symbolic links form a circle.
    """
    done, waiting = "/", _names(os.path.abspath(path))  # noqa: PTH100 - pathlib would resolve it
    links = 0
    while waiting:
        done = os.path.normpath(os.path.join(done, waiting.pop()))  # noqa: PTH118
        if done in mounted:
            return os.path.join(done, *reversed(waiting))  # noqa: PTH118
        try:
            target = os.readlink(done)  # noqa: PTH115
        except OSError:  # not a link, or missing
            continue
        links += 1
        if links > _MOST_LINKS:
            raise Usage(f"`{path}` is a circle of symbolic links")
        waiting += _names(target)
        done = "/" if target.startswith("/") else os.path.dirname(done)  # noqa: PTH120
    return done


def _names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


@dataclass(frozen=True)
class Holder:
    """A program that `works in`, `has a file open in` or `runs from` a mount (`how`)."""

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}) {self.how} it"


def refusal(
    command: tuple[str, ...], seconds: float = _UNMOUNT_SECONDS, **options: Any
) -> str | None:
    """Run a program that mounts or unmounts; return why it fails, `None` if it has done it."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired:
        return f"`{command[0]}` did not end within {seconds:g} s"
    if done.returncode == 0:
        return None
    complaint = one_line(done.stderr.decode("utf-8", "replace"))
    return complaint or f"exit status {done.returncode}"
