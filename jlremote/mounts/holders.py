"""Which programs use a mount, read off their links in /proc, which cannot hang."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROCESSES = Path("/proc")


@dataclass(frozen=True)
class Holder:
    """A program that uses a mount.

    Attributes:
        pid: its process.
        name: what it is called.
        how: `works in`, `has a file open in` or `runs from`.
    """

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}) {self.how} it"


def holders(mount: str) -> list[Holder]:
    """Return the programs that use `mount`, as far as we may see their files."""
    found = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit() and folder.name != str(os.getpid()):
            how = _use(folder, mount)
            if how is not None:
                found.append(Holder(int(folder.name), _name(folder), how))
    return found


def _use(process: Path, mount: str) -> str | None:
    if any(_inside(target, mount) for target in _targets([process / "cwd", process / "root"])):
        return "works in"
    if any(_inside(target, mount) for target in _targets(_entries(process / "fd"))):
        return "has a file open in"
    if _inside(next(_targets([process / "exe"]), ""), mount) or _maps(process, mount):
        return "runs from"
    return None


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _targets(links: list[Path]) -> Iterator[str]:
    for link in links:
        with suppress(OSError):
            yield str(link.readlink())


def _maps(process: Path, mount: str) -> bool:
    """Tell whether a file of the mount is mapped, such as a library."""
    try:
        lines = os.fsdecode((process / "maps").read_bytes()).splitlines()
    except OSError:
        return False
    paths = (line.split(maxsplit=5)[5:] for line in lines)
    return any(_inside(path[0], mount) for path in paths if path)


def _inside(path: str, mount: str) -> bool:
    return path == mount or path.startswith(f"{mount}/")


def _name(process: Path) -> str:
    with suppress(OSError):
        return (process / "comm").read_text("utf-8", "replace").strip()
    return "a program"
