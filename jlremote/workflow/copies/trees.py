"""Folders with what is in them, either way: links that lead out of them are left out."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jlremote.errors import JlrError
from jlremote.workflow.copies import files
from jlremote.workflow.copies.sftp_answers import attributes, text
from jlremote.workflow.copies.sftp_client import SftpClient, done
from jlremote.workflow.copies.small_files import SMALL, Act, Fetched, Gathered, Sent

# Small files wait for answers most of the time.
_AT_ONCE = 12


class FoundFiles(Protocol):
    """Gets the size of a file before it is copied, or of several."""

    def __call__(self, size: int, files: int = 1) -> None: ...


@dataclass(frozen=True)
class CopyReport:
    """Gets what a copy has found, how many bytes have `moved`, and what it `skipped` and why."""

    found: FoundFiles
    moved: files.Moved
    advance: Callable[[str], None]  # gets a text that says how far the copy is
    skipped: Callable[[str], None]


@dataclass(frozen=True)
class TreeCopy(CopyReport):
    """A copy by SFTP."""

    client: SftpClient


def send_tree(copied: TreeCopy, local: Path, remote: str) -> None:
    """Copy a folder of this machine with all that is in it."""
    after: list[Act] = []
    _run(_sending(copied, local, remote, local, after), after)


def fetch_tree(copied: TreeCopy, remote: str, local: Path) -> None:
    """Copy a folder there with all that is in it."""
    after: list[Act] = []
    _run(_fetching(copied, remote, local, remote, after), after)


def _run(acts: Iterator[Act], after: list[Act]) -> None:
    """Run acts, several at once, and then those of `after`; the first failure ends the copy."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        under_way = []
        try:
            for act in acts:
                under_way.append(pool.submit(act))
                if len(under_way) >= 4 * _AT_ONCE:
                    under_way.pop(0).result()
            for one in under_way:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for act in reversed(after):  # the inner folders first
        act()


def make_folder(client: SftpClient, remote: str, *, follow: bool = True) -> None:
    """Make a folder there, unless there is one."""
    there = client.facts(remote, follow=follow)
    if there is None:
        client.make_folder(remote)
    elif not there.is_folder:
        raise JlrError(f"`{remote}` is in the way: it is not a folder")


def leads_out(target: str, folder: str, top: str) -> bool:
    """Return whether a link in `folder` leads out of `top`, both as POSIX paths."""
    if target.startswith("/"):
        return True
    there = posixpath.normpath(posixpath.join(folder, target))
    return there != top and not there.startswith(f"{top.rstrip('/')}/")


def _sending(
    copied: TreeCopy, local: Path, remote: str, top: Path, after: list[Act]
) -> Iterator[Act]:
    client = copied.client
    make_folder(client, remote, follow=local == top)
    small = Gathered(Sent(client, local, remote, copied.moved).send)
    with os.scandir(local) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path, target = Path(entry.path), posixpath.join(remote, entry.name)
        if entry.is_symlink():
            lead = str(path.readlink())
            if leads_out(lead, path.parent.as_posix(), top.as_posix()):
                copied.skipped(f"left out the link `{path}`: it leads out of the folder")
            else:
                client.link(lead, target)
        elif entry.is_dir():
            yield from _sending(copied, path, target, top, after)
        elif entry.is_file():
            size = entry.stat().st_size
            copied.found(size)
            if client.takes_many and size <= SMALL:
                yield from small.add(entry.name, size)
                continue
            yield lambda path=path, target=target: files.send(  # type: ignore[misc]
                client, path, target, copied.moved
            )
        else:
            copied.skipped(f"left out `{path}`: it is neither file, folder nor link")
    yield from small.rest()
    own = local.stat()
    given = attributes(mode=stat.S_IMODE(own.st_mode), modified=int(own.st_mtime))
    after.append(lambda: done(client.ask(9, text(remote), given)))


def _fetching(
    copied: TreeCopy, remote: str, local: Path, top: str, after: list[Act]
) -> Iterator[Act]:
    client = copied.client
    if local.is_symlink() and remote != top:
        raise JlrError(f"`{local}` is in the way: it is a symbolic link")
    local.mkdir(exist_ok=True, mode=0o700)
    small = Gathered(Fetched(client, remote, local, copied.moved).fetch)
    for name, facts in client.names(remote):
        path, target = posixpath.join(remote, name), local / name
        if facts.is_link:
            _fetch_link(copied, path, target, top)
        elif facts.is_folder:
            yield from _fetching(copied, path, target, top, after)
        elif facts.is_file:
            copied.found(facts.size)
            if client.takes_many and facts.size <= SMALL:
                yield from small.add((name, facts), facts.size)
                continue
            yield lambda path=path, facts=facts, target=target: files.fetch(  # type: ignore[misc]
                client, path, facts, target, copied.moved
            )
        else:
            copied.skipped(f"left out `{path}`: it is neither file, folder nor link")
    yield from small.rest()
    if (own := client.facts(remote)) is not None:
        after.append(lambda: local.chmod(stat.S_IMODE(own.mode)))
        after.append(lambda: os.utime(local, (own.modified, own.modified)))


def _fetch_link(copied: TreeCopy, path: str, local: Path, top: str) -> None:
    lead = copied.client.target(path)
    if leads_out(lead, posixpath.dirname(path), top):
        copied.skipped(f"left out the link `{path}`: it leads out of the folder")
        return
    if local.is_symlink():
        local.unlink()
    local.symlink_to(lead)
