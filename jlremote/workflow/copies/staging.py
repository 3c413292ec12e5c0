"""A private folder here into which a copy arrives, and the way from there to the final names.

Nothing in it is a link that leads anywhere: a link that arrives gets `UNUSABLE` before its text, as
rsync's `--munge-links` writes it. So whatever order names come in, none is written through a link.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jlremote.errors import JlrError, NotFound
from jlremote.text import one_line, reason_of
from jlremote.workflow.copies.report import CopyReport

UNUSABLE = "/rsyncd-munged/"


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Make a private folder, in `target` if that is one, else beside it; remove it at the end."""
    folder = target if target.is_dir() else target.parent
    if not folder.is_dir():
        raise NotFound(f"there is no folder `{folder}`")
    try:
        made = Path(tempfile.mkdtemp(prefix=".jlr-", suffix=".part", dir=folder))
    except OSError as failure:
        raise JlrError(f"cannot write into `{folder}`: {reason_of(failure)}") from failure
    try:
        yield made
    finally:
        with suppress(RecursionError):  # of folders a thousand deep, which rsync has made
            for above, names, _ in os.walk(made):
                for name in names:
                    (Path(above) / name).chmod(0o700)
            shutil.rmtree(made, ignore_errors=True)


def leads_out(text: str, folder: Path, top: Path) -> bool:
    """Return whether a link in `folder` of a tree leads out of that, now or after a later copy.

    A `..` after a name counts as well: the folder of that name may become a link.
    """
    parts = PurePosixPath(text).parts
    ups = parts.count("..")
    if (
        not text
        or text.startswith("/")
        or ".." in parts[ups:]
        or ups > len(folder.relative_to(top).parts)
    ):
        return True
    if os.name == "nt" and set("\\:") & set(text):
        return True
    found = Path(os.path.realpath(folder / text))
    return not found.is_relative_to(os.path.realpath(top))


def settle(staged: Path, target: Path, report: CopyReport, *, preserve: bool) -> None:
    """Give what has arrived its final name; files in a folder that is there are replaced.

    Raises:
        JlrError: something else is in the way.
    """
    if not staged.is_dir():
        if target.is_dir():
            raise JlrError(f"`{one_line(str(target))}` is in the way: it is a folder")
        staged.replace(target)
        return
    _Settling(staged, target, report, preserve).run()


@dataclass(frozen=True)
class _Settling:
    staged: Path
    target: Path
    report: CopyReport
    preserve: bool

    def run(self) -> None:
        folders = [self.staged]
        links: list[Path] = []
        after: list[tuple[Path, os.stat_result]] = []
        for folder in folders:  # which grows
            after.append((self._final(folder), self._make_folder(folder)))
            for path in list(folder.iterdir()):
                if path.is_symlink():
                    links.append(path)
                elif path.is_dir():
                    folders.append(path)
                else:
                    self._replace(path)
        for link in links:
            self._make_link(link)
        for path, facts in reversed(after):  # the inner folders first
            if self.preserve:
                path.chmod(stat.S_IMODE(facts.st_mode) & 0o777)
            os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))

    def _final(self, staged: Path) -> Path:
        return self.target / staged.relative_to(self.staged)

    def _make_folder(self, staged: Path) -> os.stat_result:
        """Make the folder there is to be, unless it is there, and return what it was like."""
        facts, path = staged.stat(), self._final(staged)
        staged.chmod(0o700)
        with suppress(FileExistsError):
            path.mkdir(stat.S_IMODE(facts.st_mode) & 0o777 | 0o700)
        if path.is_symlink() and staged != self.staged:
            raise JlrError(f"`{one_line(str(path))}` is in the way: it is a symbolic link")
        if not path.is_dir():
            raise JlrError(f"`{one_line(str(path))}` is in the way: it is not a folder")
        return facts

    def _replace(self, staged: Path) -> None:
        path = self._final(staged)
        if not path.is_symlink() and path.is_dir():
            raise JlrError(f"`{one_line(str(path))}` is in the way: it is a folder")
        staged.replace(path)

    def _make_link(self, staged: Path) -> None:
        path = self._final(staged)
        text = os.readlink(staged).removeprefix(UNUSABLE)  # noqa: PTH115 - a Path is not that text
        if leads_out(text, path.parent, self.target):
            shown = one_line(str(path.relative_to(self.target)))
            self.report.leave_out(f"left out the link `{shown}`: it leads out of the folder")
            return
        staged.unlink()
        staged.symlink_to(text)
        self._replace(staged)
