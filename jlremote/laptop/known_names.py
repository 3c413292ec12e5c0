"""Names for completion: of sessions, jobs and hosts, and of sessions for ssh.

The names of sessions and jobs are part of the records' file names, so that no file is opened, and
those of hosts are in ssh's configuration.

A session is `NAME.jlr` for ssh, which needs no line for a name: one pattern has all of them. But
shells complete the names of `Host` lines, and editors list them. So once `jlr config ssh install`
has made a file that ssh reads, it begins with such lines, which follow the records.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

from jlremote.errors import JlrError
from jlremote.laptop import paths
from jlremote.text import is_host, is_name

SUFFIX = ".jlr"
PATTERN = f"Host *{SUFFIX}\n"  # begins what is the same for all names

_USER_CONFIG, _SYSTEM_CONFIG = Path("~/.ssh/config"), Path("/etc/ssh/ssh_config")
_DEPTH = 16  # as in ssh's readconf.c: a deeper Include counts as a loop
_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')


def session_names(kind: str = "sessions") -> list[tuple[str, str]]:
    """Return the host and the name of each session, or of each of the `jobs`, the latest first."""
    try:
        with os.scandir(paths.unchecked_state_directory() / kind) as entries:
            dated = [(entry.stat().st_mtime, entry.name) for entry in entries]
    except (OSError, JlrError):
        return []
    names = [name for _, name in sorted(dated, reverse=True) if name.endswith(".json")]
    parts = (name.removesuffix(".json").split("+") for name in names)
    known = [tuple(map(unquote, two)) for two in parts if len(two) == 2]
    return [(host, name) for host, name in known if is_host(host) and is_name(name)]


def ssh_names() -> list[str]:
    """Return the names of sessions for ssh, the latest first, and then those of their hosts."""
    known = [(host.rpartition("@")[2], name) for host, name in session_names()]
    times = Counter(name for _, name in known)
    names = [name if times[name] == 1 else f"{name}.{host}" for host, name in known]
    return [f"{name}{SUFFIX}" for name in dict.fromkeys((*names, *(host for host, _ in known)))]


def config_file() -> Path:
    """Return the file that `~/.ssh/config` includes."""
    return paths.data_directory() / "ssh_config"


def with_names(config: str) -> str:
    """Return a configuration with a new `Host` line for each known name before the pattern."""
    begin = config.find(PATTERN)
    names = "".join(f"Host {name}\n" for name in sorted(ssh_names()))
    return names + config[max(begin, 0) :]


def refresh() -> None:
    """Write the known names to ssh's file, if that exists; a failure leaves the old names."""
    with suppress(JlrError, OSError, UnicodeDecodeError):
        file = config_file()
        if not file.exists():
            return
        before = file.read_text(encoding="utf-8")
        if (after := with_names(before)) != before:
            paths.write_whole(file, after)


def host_names(file: str | None = None) -> list[str]:
    """Return the names of `Host` lines without wildcards, in the order of the files.

    Those below `.jlr` are left out: they lead to this program itself. `file` is ssh's `-F`, `None`
    the user's own file and the system's. ssh itself reads the settings of a host.
    """
    files = [Path(file)] if file else [_USER_CONFIG.expanduser(), _SYSTEM_CONFIG]
    names = [name for path in files for name in _names(path, path == _SYSTEM_CONFIG, 0)]
    return list(dict.fromkeys(name for name in names if not name.endswith(SUFFIX)))


def _names(path: Path, system: bool, depth: int) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        keyword, _, rest = line.strip().replace("\t", " ").replace("=", " ", 1).partition(" ")
        every = (quoted or plain for quoted, plain in _WORD.findall(rest))
        words = [*takewhile(lambda word: not word.startswith("#"), every)]
        if keyword.lower() == "host":
            yield from (word for word in words if not set(word) & set("*?!"))
        elif keyword.lower() == "include" and depth < _DEPTH:
            folder = _SYSTEM_CONFIG.parent if system else _USER_CONFIG.parent.expanduser()
            for pattern in words:
                whole = str(folder / Path(pattern).expanduser())
                for included in sorted(glob.glob(whole)):  # noqa: PTH207 - it may be absolute
                    yield from _names(Path(included), system, depth + 1)
