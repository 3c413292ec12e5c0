"""Mounts on Linux: FUSE 3, `fusermount3`, and `/proc`, where a look at a mount cannot hang."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.host import installation
from jlremote.mounts.points import Holder, MountPoint, read_mountinfo, refusal

_DEVICE = Path("/dev/fuse")
_OS_RELEASE = Path("/etc/os-release")
_PROCESSES = Path("/proc")


class Linux:
    """Linux, as `System` wants it."""

    options: tuple[str, ...] = ()

    def sshfs(self) -> str:
        """Find sshfs, and check that the kernel has FUSE."""
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=_install_hint())
        if not _DEVICE.exists():
            raise JlrError(
                f"this machine has no FUSE: `{_DEVICE}` is missing",
                hint="`sudo modprobe fuse`; a container needs `--device /dev/fuse`",
            )
        return program

    def mounted(self) -> list[MountPoint]:
        """Read `/proc/self/mountinfo`."""
        points = read_mountinfo(Path("/proc/self/mountinfo").read_bytes())
        return [point for point in points if point.kind == "fuse.sshfs"]

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Run `fusermount3`, which needs no root and does not look into the mount."""
        program = shutil.which("fusermount3") or shutil.which("fusermount")
        if program is None:
            return "`fusermount3` is not installed"
        return refusal((program, "-u", *(("-z",) if lazily else ()), "--", path))

    def holders(self, path: str) -> list[Holder]:
        """Read the links of all processes in `/proc`, as far as the user may see them."""
        found = []
        for process in _PROCESSES.iterdir():
            if process.name.isdigit() and process.name != str(os.getpid()):
                how = _use(process, path)
                if how is not None:
                    found.append(Holder(int(process.name), _name(process), how))
        return found


def _install_hint() -> str:
    text = ""
    with suppress(OSError):
        text = _OS_RELEASE.read_text("utf-8")
    [line] = installation.commands(
        "sshfs", installation.distribution_of(installation.os_release(text))
    )
    if line.startswith("https://"):
        return f"{line} says how; the package is called `sshfs` or `fuse-sshfs`"
    return f"`{line}` installs it"


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
    """Return whether the process has mapped a file of the mount, for example a library."""
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
