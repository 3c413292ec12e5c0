"""The names of known sessions and jobs, for shell completion.

They are part of the records' file names, so no file is opened. The modules that read a record are
not imported: that would take longer than the rest of a completion.
"""

from __future__ import annotations

import os
import sys

from jlremote.text import is_host, is_name


def session_names() -> list[tuple[str, str]]:
    """Return the host and the name of each session, the latest first."""
    return _names("sessions")


def job_names() -> list[tuple[str, str]]:
    """Return the host and the name of each job likewise."""
    return _names("jobs")


def _names(kind: str) -> list[tuple[str, str]]:
    try:
        with os.scandir(_folder(kind)) as entries:
            dated = [(entry.stat().st_mtime, entry.name) for entry in entries]
    except (OSError, RuntimeError):
        return []
    names = [name for _, name in sorted(dated, reverse=True) if name.endswith(".json")]
    known = [_parsed(name) for name in names if name.count("+") == 1]
    return [(host, name) for host, name in known if is_host(host) and is_name(name)]


def _folder(kind: str) -> str:
    """Return the folder of the records as platformdirs would, without its 10 ms on Linux."""
    if sys.platform != "linux":
        import platformdirs

        return os.path.join(platformdirs.user_state_dir("jlr", appauthor=False), kind)  # noqa: PTH118
    home = os.environ.get("XDG_STATE_HOME", "")
    if not home.startswith("/"):
        home = os.path.expanduser("~/.local/state")  # noqa: PTH111 - pathlib takes 5 ms
    return f"{home}/jlr/{kind}"


def _parsed(file: str) -> tuple[str, str]:
    host, _, name = file.removesuffix(".json").partition("+")
    if "%" in file:
        from urllib.parse import unquote

        return unquote(host), unquote(name)
    return host, name
