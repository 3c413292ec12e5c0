"""What is mounted where, without touching any of it.

Whoever looks at a mount whose other side is gone may hang, and `stat` is already a look. So paths
are followed by hand, one name at a time, and not into a mount of sshfs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass

from jlremote.errors import Usage

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_MOST_LINKS = 40  # Linux's own limit


@dataclass(frozen=True)
class MountPoint:
    """A mounted file system.

    Attributes:
        path: where it is.
        kind: its type, `fuse.sshfs` for ours.
        source: what it calls itself.
    """

    path: str
    kind: str
    source: str


def read_mountinfo(content: bytes) -> list[MountPoint]:
    """Return the mounts that a `mountinfo` tells of, proc(5), the latest last."""
    points = []
    for line in content.splitlines():
        before, _, after = line.partition(b" - ")
        path, (kind, source) = before.split()[4], after.split()[:2]
        points.append(MountPoint(_text(path), _text(kind), _text(source)))
    return points


def _text(field: bytes) -> str:
    """Return a field, in which the kernel writes blanks and backslashes as octal numbers."""
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field)
    return os.fsdecode(plain)


def resolved(path: str, mounted: Collection[str]) -> str:
    """Return `path` as `realpath` would, stopping in front of what is `mounted`.

    What lies in a mount is not looked at: from there on the path is taken as it is written.

    Raises:
        Usage: it leads in a circle.
    """
    done, waiting = "/", _names(os.path.abspath(path))  # noqa: PTH100 - pathlib would resolve it
    links = 0
    while waiting:
        done = os.path.normpath(os.path.join(done, waiting.pop()))  # noqa: PTH118
        if done in mounted:
            return os.path.join(done, *reversed(waiting))  # noqa: PTH118
        try:
            target = os.readlink(done)  # noqa: PTH115
        except OSError:  # no link, or nothing at all
            continue
        links += 1
        if links > _MOST_LINKS:
            raise Usage(f"`{path}` leads in a circle of symbolic links")
        waiting += _names(target)
        done = "/" if target.startswith("/") else os.path.dirname(done)  # noqa: PTH120
    return done


def _names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
