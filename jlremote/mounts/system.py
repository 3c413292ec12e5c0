"""The operating system's part in a mount: what is mounted where, and which programs use it.

Nothing here looks into a mount: even `stat` may hang where the other side is gone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from typing import Any

from jlremote.errors import JlrError, Usage
from jlremote.laptop.sessions import MOUNTS
from jlremote.place.host import installation
from jlremote.text import one_line

_DEVICE = Path("/dev/fuse")
_OS_RELEASE = Path("/etc/os-release")
_PROCESSES = Path("/proc")
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_MOST_LINKS = 40  # Linux's own limit
_UNMOUNT_SECONDS = 10.0

# The file system types of macFUSE, its predecessor and FUSE-T.
_KINDS = ("macfuse", "osxfuse", "fuse-t")
_MACFUSE = (
    "install macFUSE: `brew install --cask macfuse && brew install gromgit/fuse/sshfs-mac`; "
    "or, without a kernel extension, FUSE-T: "
    "`brew install macos-fuse-t/cask/fuse-t macos-fuse-t/cask/fuse-t-sshfs`"
)
_WINDOWS = (
    "`winget install -e WinFsp.WinFsp SSHFS-Win.SSHFS-Win` installs it; "
    "without it, `jlr cp` and `jlr sync` copy files"
)


class Linux:
    """Linux: FUSE 3, `fusermount3`, and `/proc`, where a look at a mount cannot hang."""

    options: tuple[str, ...] = ()  # further ones of sshfs
    winfsp = False  # whether WinFsp mounts: it makes the folder itself, and is never read-only

    def sshfs(self) -> str:
        """Return the path of sshfs (`JlrError`: it or FUSE is missing; how to install it)."""
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=_install_hint())
        if not _DEVICE.exists():
            hint = "`sudo modprobe fuse`; a container needs `--device /dev/fuse`"
            raise JlrError(f"this machine has no FUSE: `{_DEVICE}` is missing", hint=hint)
        return program

    def mounted(self) -> list[str]:
        """Return the paths where an sshfs is mounted, from `/proc/self/mountinfo`."""
        return read_mountinfo(Path("/proc/self/mountinfo").read_bytes())

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Unmount, `lazily` although it is used, without root; return why not, `None` if done."""
        program = shutil.which("fusermount3") or shutil.which("fusermount")
        if program is None:
            return "`fusermount3` is not installed"
        return refusal((program, "-u", *(("-z",) if lazily else ()), "--", path))

    def holders(self, path: str) -> list[str]:
        """Return in words which programs use a mount, as far as the user may see them."""
        holders = []
        for process in _PROCESSES.iterdir():
            if not process.name.isdigit() or process.name == str(os.getpid()):
                continue
            if (how := _use(process, path)) is not None:
                name = "a program"
                with suppress(OSError):
                    name = (process / "comm").read_text("utf-8", "replace").strip()
                holders.append(f"{name} (process {process.name}) {how} it")
        return holders


class MacOS:
    """macOS, with macFUSE or FUSE-T."""

    options: tuple[str, ...] = ("noappledouble",)
    winfsp = False

    def sshfs(self) -> str:
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=_MACFUSE)
        return program

    def mounted(self) -> list[str]:
        """Read the table of getfsstat(2), which does not ask the file systems."""
        import psutil

        return [
            partition.mountpoint
            for partition in psutil.disk_partitions(all=True)
            if partition.fstype.startswith(_KINDS)
        ]

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Run `umount`, with force where Linux would unmount lazily."""
        return refusal(("/sbin/umount", *(("-f",) if lazily else ()), "--", path))

    def holders(self, path: str) -> list[str]:
        """Return the programs that work in a mount, as far as the system shows them."""
        return _working_in(path)


class Windows:
    """Windows, with SSHFS-Win and WinFsp: a mount is a drive or a folder, and goes with its sshfs.

    All in it is this user's, and closed to others; what is made gets the host's usual modes.
    """

    options: tuple[str, ...] = (
        *("uid=-1", "gid=-1", "umask=077"),
        *("create_umask=022", "create_file_umask=133"),
    )
    winfsp = True

    def sshfs(self) -> str:
        installed = rf"{os.environ.get('PROGRAMFILES', '')}\SSHFS-Win\bin"
        path = os.pathsep.join([installed, os.environ.get("PATH", "")])
        program = shutil.which("sshfs.exe", path=path)
        if program is None:
            raise JlrError("`sshfs.exe` of SSHFS-Win is not installed", hint=_WINDOWS)
        return program

    def mounted(self) -> list[str]:
        """Return all drives, and the folders of known mounts that lead elsewhere."""
        from jlremote.laptop.windows import drives

        known = (record.local for record in MOUNTS.load_all() if Path(record.local).name)
        return [*drives(), *filter(_leads_elsewhere, known)]

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Permit it, if no program works there; the end of sshfs then unmounts."""
        return "it is busy" if not lazily and self.holders(path) else None

    def holders(self, path: str) -> list[str]:
        return _working_in(path)


System = Linux | MacOS | Windows


def this_system() -> System:
    """Return the system of this machine."""
    if sys.platform == "win32":
        return Windows()
    return MacOS() if sys.platform == "darwin" else Linux()


def _install_hint() -> str:
    text = ""
    with suppress(OSError):
        text = _OS_RELEASE.read_text("utf-8")
    distribution = installation.distribution_of(installation.os_release(text))
    [line] = installation.commands("sshfs", distribution)
    if line.startswith("https://"):
        return f"{line} says how; the package is called `sshfs` or `fuse-sshfs`"
    return f"`{line}` installs it"


def _working_in(path: str) -> list[str]:
    import psutil

    holders = []
    for process in psutil.process_iter(["name", "cwd"]):
        folder = process.info["cwd"] or ""
        if folder == path or folder.startswith((f"{path}/", f"{path}\\")):
            name = process.info["name"] or "a program"
            holders.append(f"{name} (process {process.pid}) works in it")
    return holders


def _leads_elsewhere(path: str) -> bool:
    with suppress(OSError):
        return bool(os.readlink(path))  # noqa: PTH115 - of a mount point; a path's would be opened
    return False


def _use(process: Path, mount: str) -> str | None:
    files: list[Path] = []
    with suppress(OSError):  # it has ended, or is another user's
        files = list((process / "fd").iterdir())
    ways = {
        "works in": [process / "cwd", process / "root"],
        "has a file open in": files,
        "runs from": [process / "exe"],
    }
    for how, links in ways.items():
        for link in links:
            with suppress(OSError):
                if f"{link.readlink()}/".startswith(f"{mount}/"):
                    return how
    return None


def read_mountinfo(content: bytes) -> list[str]:
    """Return where `mountinfo`, proc(5) with octal blanks, has an sshfs; the latest last."""
    points = []
    for line in content.splitlines():
        before, _, after = line.partition(b" - ")
        if after.startswith(b"fuse.sshfs "):
            path = _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), before.split()[4])
            points.append(os.fsdecode(path))
    return points


def resolved(path: str, mounted: Collection[str]) -> str:
    """Return `path` as `realpath` does, but not below a `mounted` one (`Usage`: a circle)."""
    if sys.platform == "win32":
        drive = PureWindowsPath(path)
        alone = drive.drive[1:] == ":" and not drive.name
        return drive.drive.upper() if alone else str(Path(os.path.abspath(path)))  # noqa: PTH100
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
            raise Usage(f"`{path}` is a symbolic link that leads back to itself")
        waiting += _names(target)
        done = "/" if target.startswith("/") else os.path.dirname(done)  # noqa: PTH120
    return done


def _names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


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
