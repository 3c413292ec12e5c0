"""What is in a folder of this machine, for a sync without what its rules leave out."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from jlremote.errors import JlrError, Usage
from jlremote.remote.synced_folder import OWN, State
from jlremote.text import one_line, reason_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".jlrignore")  # the later one decides
NEVER = (".git", OWN)
_LEAVE_OUT = "make it readable, or leave it out (`jlr sync` does what `.jlrignore` says)"

# The rules of a folder and of those above it, each with the length of its name with a slash.
_Rules = tuple[tuple[int, "GitIgnoreSpec"], ...]


def read_tree(
    folder: Path, leave_out: Callable[[str], None], *, whole: bool = False
) -> dict[str, State]:
    """Return the state of each file, link and folder by its name; what is in a folder follows it.

    With `whole`, no rules apply. `leave_out` is told of links that lead out of the folder, and of
    what is no file. Raise `JlrError` if something cannot be read (then it is not known what is
    there), and `Usage` if an ignore file has a line that is no pattern.
    """
    found: dict[str, State] = {}
    waiting = [*_children(folder, "", (), whole=whole)]
    while waiting:
        name, entry, rules = waiting.pop()
        if state := _state(folder, entry, name, leave_out):
            found[name] = state
        if state == ["d"]:
            waiting += _children(folder, f"{name}/", rules, whole=whole)
    return found


def _children(
    folder: Path, above: str, rules: _Rules, *, whole: bool
) -> Iterator[tuple[str, os.DirEntry[str], _Rules]]:
    try:
        with os.scandir(folder / above) as listing:
            entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
    except OSError as error:
        where = one_line(str(folder / above))
        raise JlrError(f"cannot read `{where}`: {reason_of(error)}", hint=_LEAVE_OUT) from error
    if not whole:
        rules += _rules_of(folder, above, {entry.name for entry in entries})
    for entry in entries:
        name = f"{above}{entry.name}"
        if not whole:
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in NEVER or _is_ignored(rules, name, is_folder=is_folder):
                continue
        yield name, entry, rules


def _rules_of(folder: Path, above: str, names: set[str]) -> _Rules:
    files = [folder / above / name for name in IGNORE_FILES if name in names]
    if not files:
        return ()
    from pathspec import GitIgnoreSpec  # loads slowly

    path = files[0]
    try:
        lines = [line for path in files for line in path.read_text("utf-8", "replace").splitlines()]
        return ((len(above), GitIgnoreSpec.from_lines(lines)),)
    except OSError as error:
        raise JlrError(f"cannot read `{path}`: {reason_of(error)}") from error
    except ValueError as error:
        raise Usage(f"`{path}`: {one_line(str(error))}", hint="mend the line") from error


def _is_ignored(rules: _Rules, name: str, *, is_folder: bool) -> bool:
    end = "/" * is_folder
    told = (spec.check_file(name[start:] + end).include for start, spec in reversed(rules))
    return next((ignored for ignored in told if ignored is not None), False)


def _state(
    folder: Path, entry: os.DirEntry[str], name: str, leave_out: Callable[[str], None]
) -> State | None:
    try:
        facts = entry.stat(follow_symlinks=False)
        text = os.readlink(entry.path) if entry.is_symlink() else ""  # noqa: PTH115 - not that text
    except FileNotFoundError:  # a moment ago
        return None
    if stat.S_ISDIR(facts.st_mode):
        return ["d"]
    if stat.S_ISREG(facts.st_mode):
        executable = sys.platform != "win32" and bool(facts.st_mode & stat.S_IXUSR)
        return ["f", facts.st_size, facts.st_mtime_ns, executable]
    if not text:
        leave_out(f"left out `{one_line(name)}`: it is neither file, folder nor link")
    elif leads_out(text, Path(entry.path).parent, folder):
        leave_out(f"left out the link `{one_line(name)}`: it leads out of the folder")
    else:
        return ["l", text]
    return None


def leads_out(text: str, folder: Path, top: Path) -> bool:
    """Return whether a link in `folder` leads out of the tree `top`, now or after a later copy.

    A `..` after a name counts as well: the folder of that name may become a link.
    """
    parts = PurePosixPath(text).parts
    ups = parts.count("..")
    deep = len(folder.relative_to(top).parts)
    if not text or text.startswith("/") or ".." in parts[ups:] or ups > deep:
        return True
    if os.name == "nt" and set("\\:") & set(text):
        return True
    target = Path(os.path.realpath(folder / text))
    return not target.is_relative_to(os.path.realpath(top))
