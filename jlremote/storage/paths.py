"""The folders where files go, as platformdirs says, and how files are written there.

A folder of ours is readable by us alone. It is checked each time it is asked for: in a shared
`/tmp` somebody else may have made it first, and a name that we can predict is a name that they can
predict.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from jlremote.errors import JlrError

_NAME = "jlr"


def state_directory() -> Path:
    """Return the folder of what outlives a reboot: the sessions' records.

    Raises:
        JlrError: it cannot be made, or it is not ours alone.
    """
    return private_directory(_place("user_state_path"))


def log_directory() -> Path:
    """Return the folder of the log files.

    Raises:
        JlrError: it cannot be made, or it is not ours alone.
    """
    return private_directory(_place("user_log_path"))


def runtime_directory() -> Path:
    """Return the folder of what a reboot may take: sockets, locks, the browser's redirects.

    Raises:
        JlrError: it cannot be made, or it is not ours alone.
    """
    return private_directory(_place("user_runtime_path"))


def config_directory() -> Path:
    """Return the folder of `config.toml`, which a person makes: it may be missing.

    Raises:
        JlrError: there is no home folder.
    """
    return _place("user_config_path")


def _place(kind: str) -> Path:
    import platformdirs  # 10 ms that `--version` and `--help` do not need

    try:
        # It warns when it passes over XDG_RUNTIME_DIR; a person without one cannot use that.
        with warnings.catch_warnings(action="ignore"):
            path: Path = getattr(platformdirs, kind)(_NAME, appauthor=False)
    except (PermissionError, RuntimeError) as refusal:
        raise JlrError(
            f"there is no folder to keep files in: {refusal}",
            hint="set `HOME`, or `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `XDG_RUNTIME_DIR`",
        ) from refusal
    return path


def private_directory(path: Path) -> Path:
    """Make `path` a folder that only we can enter, and return it.

    Raises:
        JlrError: it cannot be made, somebody else owns it or the folder above it, or others have
            access to it.
    """
    with _explained(path):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        _verify(path)
    return path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `path` so that a reader sees the old content or the new, never a part; mode 0600.

    Raises:
        JlrError: it cannot be written; nothing is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    with _explained(path):
        try:
            _write_new(draft, data)
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _verify(path: Path) -> None:
    """Raise unless `path` is a folder of ours that nobody else can enter, replace or redirect."""
    if sys.platform == "win32":
        return  # a person's folders there have an access list of their own
    us, root = os.getuid(), 0
    above = path.parent.stat()
    if above.st_uid not in (us, root):
        raise _untrusted(path, f"`{path.parent}` belongs to user {above.st_uid}")
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        raise _untrusted(path, f"anybody can rename files in `{path.parent}`")
    # A link in the sticky /tmp can be somebody else's and lead to a folder that is ours indeed.
    for facts in (path.lstat(), path.stat()):
        if facts.st_uid != us:
            raise _untrusted(path, f"it belongs to user {facts.st_uid}")
    if not stat.S_ISDIR(facts.st_mode):
        raise _untrusted(path, "it is not a folder")
    if facts.st_mode & 0o077:
        mode = stat.S_IMODE(facts.st_mode)
        raise _untrusted(
            path,
            f"others have access to it (mode {mode:o})",
            hint=f"chmod 700 {shlex.quote(str(path))}",
        )


def _untrusted(path: Path, reason: str, hint: str | None = None) -> JlrError:
    remedy = f"`{hint}`" if hint else "remove it, or set `XDG_STATE_HOME` and `XDG_RUNTIME_DIR`"
    return JlrError(f"refusing to use `{path}`: {reason}", hint=remedy)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the file system says into one clear error."""
    try:
        yield
    except OSError as failure:
        reason = (failure.strerror or str(failure)).lower()
        hint = "set `XDG_STATE_HOME` and `XDG_RUNTIME_DIR` to folders that you can write to"
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space there and try again"
        raise JlrError(f"cannot write `{path}`: {reason}", hint=hint) from failure
