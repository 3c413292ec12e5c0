"""The names below `.jlr` of known sessions and their hosts, as ssh's users complete them.

ssh itself needs no line for a name: one pattern has all of them. But shells complete the names of
`Host` lines, and editors list them. So once `jlr ssh-config --install` has made a file that ssh
reads, it begins with such lines, which follow the records.

A link that has served a name listens at a control socket of that name, where the next `ssh` finds
it. When a session of such a name comes or goes the socket is removed, and the name is looked up
again.
"""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.laptop import paths
from jlremote.laptop.session_names import session_names

SUFFIX = ".jlr"
_FOLDER = "ssh"
_USUAL_BYTES = len(f"{_FOLDER}/") + 40  # of a socket's path below the runtime folder
PATTERN = f"Host *{SUFFIX}\n"  # begins what is the same for all names


def config_file() -> Path:
    """Return the file that `~/.ssh/config` includes."""
    return paths.data_directory() / "ssh_config"


def ssh_names() -> list[str]:
    """Return the names of sessions, the latest first, and then those of their hosts.

    A session has its host in its name where another one is called the same.
    """
    known = [(host.rpartition("@")[2], name) for host, name in session_names()]
    times = Counter(name for _, name in known)
    names = [name if times[name] == 1 else f"{name}.{host}" for host, name in known]
    return [f"{name}{SUFFIX}" for name in dict.fromkeys((*names, *(host for host, _ in known)))]


def with_names(config: str) -> str:
    """Return a configuration whose `Host` lines before the pattern are those of now."""
    begin = config.find(PATTERN)
    names = "".join(f"Host {name}\n" for name in sorted(ssh_names()))
    return names + config[max(begin, 0) :]


def control_folder() -> Path:
    """Return the folder of the control sockets (see `private_directory`)."""
    return paths.private_directory(paths.socket_directory(_USUAL_BYTES) / _FOLDER)


def control_socket(name: str) -> Path | None:
    """Return the path of a name's control socket; `None` if it cannot have one.

    Only Linux can: see `link/ssh_server/passed_streams`.
    """
    path = control_folder() / name
    fits = len(os.fsencode(path)) <= paths.SOCKET_PATH_BYTES and path.name == name
    return path if sys.platform == "linux" and fits else None


def refresh(*changed: str | None) -> None:
    """Write the names of now to the file, if there is one; a failure leaves the old ones.

    `changed` are the names of the session that came, went or was written anew.
    """
    with suppress(JlrError, OSError):
        for name in filter(None, changed):
            for found in control_folder().glob(f"{glob.escape(name)}*"):
                found.unlink(missing_ok=True)
    with suppress(JlrError, OSError, UnicodeDecodeError):
        file = config_file()
        if not file.exists():
            return
        before = file.read_text(encoding="utf-8")
        if (after := with_names(before)) != before:
            paths.write_whole(file, after)
