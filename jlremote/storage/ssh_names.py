"""The names below `.jlr` of known sessions and their hosts, as ssh's users complete them.

ssh itself needs no line for a name: one pattern has all of them. But shells complete the names of
`Host` lines, and editors list them. So once `jlr ssh-config --install` has made a file that ssh
reads, it begins with such lines, which follow the records.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.storage import paths
from jlremote.storage.session_names import session_names

SUFFIX = ".jlr"
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


def refresh() -> None:
    """Write the names of now to the file, if there is one; a failure leaves the old ones."""
    with suppress(JlrError, OSError, UnicodeDecodeError):
        file = config_file()
        if not file.exists():
            return
        before = file.read_text(encoding="utf-8")
        if (after := with_names(before)) != before:
            paths.write_whole(file, after)
