"""The folders for jlr's files, chosen by platformdirs, and how files are written there.

Only this user can enter such a folder. That is checked on every use: in a shared `/tmp` another
user may have made the folder first, because its name can be predicted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from jlremote.errors import JlrError, Usage
from jlremote.text import reason_of

_Result = TypeVar("_Result")

_NAME = "jlr"
_READ_SECONDS = 1.0  # in which every program that reads a record has closed it
# A socket's path ends with a null byte: unix(7), and <sys/un.h> of macOS and the BSDs.
SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103


def socket_directory(longest: int) -> Path:
    """Return the runtime folder, or one below `/tmp` where names of `longest` bytes do not fit."""
    usual = runtime_directory()
    if sys.platform == "win32" or len(os.fsencode(usual)) + 1 + longest <= SOCKET_PATH_BYTES:
        return usual
    import hashlib  # like platformdirs, a completion must not pay for it

    digest = hashlib.sha256(os.fsencode(usual)).hexdigest()[:8]
    return private_directory(Path(f"/tmp/{_NAME}-{os.getuid()}-{digest}"))  # noqa: S108  # checked


def config_directory() -> Path:
    """Return the folder of `config.toml`; the user makes it, so it may be missing."""
    return _place("user_config_path")


def _place(kind: str) -> Path:
    import platformdirs  # 10 ms that `--version` and `--help` do not need

    try:
        # It warns when it ignores XDG_RUNTIME_DIR; the user cannot do anything about that.
        with warnings.catch_warnings(action="ignore"):
            path: Path = getattr(platformdirs, kind)(_NAME, appauthor=False)
    except (PermissionError, RuntimeError) as refusal:
        hint = "set `HOME`, or `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `XDG_RUNTIME_DIR`"
        raise JlrError(f"no folder for jlr's files: {refusal}", hint=hint) from refusal
    return path


def unchecked_state_directory() -> Path:
    """Return the records' folder, maybe missing, on Linux without the 10 ms of platformdirs."""
    if sys.platform != "linux":
        return _place("user_state_path")
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (home if home.is_absolute() else Path("~/.local/state").expanduser()) / _NAME


def private_directory(path: Path) -> Path:
    """Return `path` as a folder that only this user can enter, made if need be; else `JlrError`."""
    hint = "set `XDG_STATE_HOME` and `XDG_RUNTIME_DIR` to folders with write access"
    with _explained(path, hint):
        for folder in reversed([one for one in (path, *path.parents) if not one.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
            if sys.platform == "win32":
                from jlremote.laptop.windows import keep_private

                keep_private(folder)
        _verify(path)
    return path


def _private(kind: str) -> Path:
    return private_directory(_place(kind))


# Each returns a folder that only this user can enter, as `private_directory` does.
state_directory = partial(_private, "user_state_path")  # records, which outlive a reboot
log_directory = partial(_private, "user_log_path")
data_directory = partial(_private, "user_data_path")  # what is made once and kept: keys
runtime_directory = partial(_private, "user_runtime_path")  # sockets, locks, browser redirects


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o600) -> None:
    """Write a file: readers see the old or the new, never a part. The umask takes from `mode`."""
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    with _explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _write_new(draft, content, mode)
            past_others(lambda: draft.replace(path))
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()


def past_others(change: Callable[[], _Result]) -> _Result:
    """Replace or delete a file, or open a pipe: Windows refuses both while others use them."""
    limit = time.monotonic() + (_READ_SECONDS if sys.platform == "win32" else 0)
    while True:
        try:
            return change()
        except OSError as busy:
            if busy.errno not in (errno.EACCES, errno.EINVAL) or time.monotonic() >= limit:
                raise
            time.sleep(0.01)


def write_new(path: Path, content: str | bytes) -> None:
    """Write a user's file where nothing is, nor a broken link (`Usage`), whole or not at all."""
    with _explained(path):
        try:
            _write_new(path, content, 0o666)
        except FileExistsError as taken:
            raise Usage(f"`{path}` exists", hint="name another file") from taken


def _write_new(path: Path, content: str | bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _verify(path: Path) -> None:
    if sys.platform == "win32":
        return  # a person's folders there have an access list of their own
    us, root = os.getuid(), 0
    above = path.parent.stat()
    if above.st_uid not in (us, root):
        raise _untrusted(path, f"`{path.parent}` belongs to user {above.st_uid}")
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        raise _untrusted(path, f"all users can rename files in `{path.parent}`")
    # In the sticky /tmp another user's symbolic link can lead to a folder of this user.
    for facts in (path.lstat(), path.stat()):
        if facts.st_uid != us:
            raise _untrusted(path, f"it belongs to user {facts.st_uid}")
    if not stat.S_ISDIR(facts.st_mode):
        raise _untrusted(path, "it is not a folder")
    if facts.st_mode & 0o077:
        mode = stat.S_IMODE(facts.st_mode)
        remedy = f"`chmod 700 {shlex.quote(str(path))}`"
        raise _untrusted(path, f"others have access to it (mode {mode:o})", remedy)


def _untrusted(
    path: Path, reason: str, hint: str = "remove it, or set `XDG_STATE_HOME` and `XDG_RUNTIME_DIR`"
) -> JlrError:
    return JlrError(f"refusing to use `{path}`: {reason}", hint=hint)


@contextlib.contextmanager
def _explained(path: Path, hint: str | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space there and try again"
        raise JlrError(f"cannot write `{path}`: {reason_of(failure)}", hint=hint) from failure
