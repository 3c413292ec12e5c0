"""A private folder here into which a copy arrives, and the way from there to the final names.

Nothing in it is a link that leads anywhere: a link that arrives gets `UNUSABLE` before its text. So
whatever order names come in, none is written through a link.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jlremote.copies.exchange import CopyReport
from jlremote.copies.local_tree import leads_out
from jlremote.errors import JlrError, NotFound
from jlremote.text import one_line, reason_of

UNUSABLE = "/no-link-of-jlr/"


def folder_of(target: Path) -> Path:
    """Return `target` if that is a folder, else the one that it is in (or raise `NotFound`)."""
    folder = target if target.is_dir() else target.parent
    if not folder.is_dir():
        raise NotFound(f"there is no folder `{folder}`")
    return folder


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Make a private folder, in `target` if that is one, else beside it; remove it at the end."""
    folder = folder_of(target)
    try:
        made = Path(tempfile.mkdtemp(prefix=".jlr-", suffix=".part", dir=folder))
    except OSError as failure:
        raise JlrError(f"cannot write into `{folder}`: {reason_of(failure)}") from failure
    try:
        yield made
    finally:
        with suppress(RecursionError):  # of folders a thousand deep
            for above, names, _ in os.walk(made):
                for name in names:
                    (Path(above) / name).chmod(0o700)
            shutil.rmtree(made, ignore_errors=True)


def settle(staged: Path, target: Path, report: CopyReport, *, preserve: bool) -> None:
    """Move what has arrived to its final name, over files (`JlrError`: something else is there)."""
    if not staged.is_dir():
        _replace(staged, target)
        return
    folders, links = [staged], []
    after: list[tuple[Path, os.stat_result]] = []
    for folder in folders:  # which grows
        final = target / folder.relative_to(staged)
        after.append((final, _make_folder(folder, final, may_be_link=folder == staged)))
        for path in list(folder.iterdir()):
            if path.is_symlink():
                links.append(path)
            elif path.is_dir():
                folders.append(path)
            else:
                _replace(path, final / path.name)
    for link in links:
        shown = link.relative_to(staged)
        final = target / shown
        text = os.readlink(link).removeprefix(UNUSABLE)  # noqa: PTH115 - a Path is not that text
        if leads_out(text, final.parent, target):
            why = "it leads out of the folder"
            report.leave_out(f"left out the link `{one_line(str(shown))}`: {why}")
            continue
        link.unlink()
        link.symlink_to(text)
        _replace(link, final)
    for path, facts in reversed(after):  # the inner folders first
        if preserve:
            path.chmod(stat.S_IMODE(facts.st_mode) & 0o777)
        os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))


def _make_folder(staged: Path, final: Path, *, may_be_link: bool) -> os.stat_result:
    facts = staged.stat()
    staged.chmod(0o700)
    with suppress(FileExistsError):
        final.mkdir(stat.S_IMODE(facts.st_mode) & 0o777 | 0o700)
    if final.is_symlink() and not may_be_link:
        raise _in_the_way(final, "a symbolic link")
    if not final.is_dir():
        raise _in_the_way(final, "not a folder")
    return facts


def _replace(staged: Path, final: Path) -> None:
    if not final.is_symlink() and final.is_dir():
        raise _in_the_way(final, "a folder")
    staged.replace(final)


def _in_the_way(path: Path, what: str) -> JlrError:
    return JlrError(f"`{one_line(str(path))}` is in the way: it is {what}")
