"""The program sshfs: its command line, its processes, and versions with known security holes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jlremote.laptop.sessions import MountRecord
from jlremote.link.client.call import detached
from jlremote.mounts.connector import DOOR_VARIABLE
from jlremote.mounts.system import refusal

if TYPE_CHECKING:
    import psutil

CONNECTOR = "jlremote.mounts.connector"
START_SECONDS = 60.0
END_SECONDS = 3.0
ANSWER_SECONDS = 10.0

# https://github.com/libfuse/sshfs/releases: 3.7.6 closed both holes. Distributions have repaired
# older versions, which then know this option.
SAFE_VERSION = (3, 7, 6)
CONTAINMENT = "contain_symlinks"


def argv(program: str, mount: MountRecord, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the command that mounts; `extra` are further options on this system.

    `reconnect` keeps sshfs alive when its connection ends. Set-user-id files and devices of the
    host mean nothing here, and the remote user's files appear as the local user's. As is FUSE's
    default, no other user may look into the mount.
    """
    # sshfs splits this at blanks and knows no quotes; paths travel in the environment.
    connector = f"{Path(sys.executable).name} -P -m {CONNECTOR} {mount.name}"
    # For libfuse a comma begins the next option.
    source = f"{mount.host}:{mount.remote}".replace("\\", "\\\\").replace(",", "\\,")
    options = [
        f"ssh_command={connector}",
        f"fsname={source}",
        *("reconnect", "idmap=user", "nosuid", "nodev"),
        *(("ro",) if mount.read_only else ()),
        # It refuses every link with `..`; the link judges them, see `ssh.forward.sftp_links`.
        *((f"no_{CONTAINMENT}",) if is_repaired(program) else ()),
        *extra,
    ]
    # SSHFS-Win takes no backslash for a separator.
    local = Path(mount.local).as_posix()
    return (program, "-o", ",".join(options), f"jlr:{mount.remote}", local)


def start(program: str, mount: MountRecord, door: Path, extra: tuple[str, ...]) -> str | None:
    """Mount by sshfs, over the link's socket `door`; return its complaint, `None` for none."""
    python = str(Path(sys.executable).parent)
    path = os.pathsep.join([python, os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path, DOOR_VARIABLE: str(door)}
    command = argv(program, mount, extra)
    return refusal(command, START_SECONDS, env=environment, cwd="/", **detached())


def processes(name: str) -> list[psutil.Process]:
    """Return the sshfs processes of the mount `name`; empty if it has ended."""
    import psutil

    running, argument = [], f"-m {CONNECTOR} {name},"
    # Arguments are only read if the name fits: reading them may hang with the process.
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if process.info["name"] in ("sshfs", "sshfs.exe") and any(
                argument in part for part in process.cmdline()
            ):
                running.append(process)
    return running


def end(name: str, *, patience: float = END_SECONDS) -> None:
    """End the mount's sshfs, by force after `patience` seconds; its end also unmounts."""
    left = _left_after(patience, processes(name))
    for process in left:
        process.terminate()
    left = _left_after(END_SECONDS, left)
    for process in left:
        process.kill()
    _left_after(END_SECONDS, left)


def _left_after(seconds: float, waited_for: list[psutil.Process]) -> list[psutil.Process]:
    """Wait until processes have ended, and return those that run on; a zombie has ended."""
    limit = time.monotonic() + seconds
    while (left := [each for each in waited_for if _runs(each)]) and time.monotonic() < limit:
        time.sleep(0.02)
    return left


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def warning(program: str) -> str | None:
    """Return a warning about known holes in this sshfs, `None` if it has none."""
    match = re.search(r"SSHFS version (\d+(?:\.\d+)*)", output(program, "--version"))
    version = match[1] if match else "of an unknown version"
    if match and tuple(map(int, version.split("."))) >= SAFE_VERSION:
        return None
    if is_repaired(program):
        return None
    holes = "CVE-2026-47187 (symbolic links that lead out of the mount) and CVE-2026-48711"
    return (
        f"sshfs {version} has the security bugs {holes}; "
        "mount only hosts that you trust, or update it to 3.7.6 or later"
    )


def is_repaired(program: str) -> bool:
    """Return whether the distribution has closed the holes of an older version."""
    return CONTAINMENT in output(program, "--help")


def output(*command: str) -> str:
    """Return what a command prints, empty if it cannot be run."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode("utf-8", "replace")
