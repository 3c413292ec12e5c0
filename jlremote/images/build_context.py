"""The context of a build: a folder without what `.dockerignore` names, as a tar archive."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.laptop import tar_archive
from jlremote.text import reason_of

IGNORE_FILE = ".dockerignore"
# A file, folder or symbolic link: its name in the context, its path, and what it is.
Entry = tuple[str, Path, os.stat_result]
_LEAVE_OUT = "leave it out in `.dockerignore`, or make it readable"


@dataclass(frozen=True)
class BuildContext:
    """The context of a build."""

    dockerfile: str  # the Dockerfile's name in the context
    recipe: str  # the Dockerfile's text
    entries: tuple[Entry, ...]  # what is sent of the folder; none of one of the host
    added: tuple[tuple[str, bytes], ...] = ()  # further files of the archive, name and content

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(s.st_size for _, _, s in self.entries if stat.S_ISREG(s.st_mode))

    def archive(self) -> Iterator[bytes]:
        """Yield the tar archive in pieces (`JlrError`: a file became shorter, or is unreadable)."""
        return tar_archive.in_large_pieces(self._blocks())

    def _blocks(self) -> Iterator[bytes]:
        # Docker recognizes an archive by its first 512 bytes, which a long name would fill.
        yield tar_archive.header(".", stat.S_IFDIR | 0o755)
        for entry in self.entries:
            yield from _packed(*entry)
        for name, text in self.added:
            yield tar_archive.header(name, stat.S_IFREG | 0o600, len(text))
            yield text + tar_archive.padding(len(text))
        yield tar_archive.END


def read_context(folder: Path, dockerfile: Path | None) -> BuildContext:
    """Read a build's folder; `None`: its `Dockerfile` (`NotFound`; `Usage`: in `.dockerignore`)."""
    if not folder.is_dir():
        raise NotFound(f"there is no folder `{folder}`", hint="name the folder of the Dockerfile")
    path = dockerfile or folder / "Dockerfile"
    recipe = _text(path, "name it with `-f FILE`")
    root, file = folder.resolve(), path.resolve()
    inside = file.relative_to(root).as_posix() if file.is_relative_to(root) else None
    # As in BuildKit, an ignore file that is named after the Dockerfile comes first.
    own = path.with_name(f"{path.name}{IGNORE_FILE}")
    ignore = next((each for each in (own, folder / IGNORE_FILE) if each.is_file()), None)
    rules = _text(ignore) if ignore else ""
    needed = {inside, IGNORE_FILE}
    entries = tuple(_entries(folder, "", read_rules(rules), needed))
    if inside is not None:
        return BuildContext(inside, recipe, entries)
    # A Dockerfile from outside the folder is added under a name that no `COPY` sees.
    name = f".dockerfile.{secrets.token_hex(8)}"
    texts = {name: recipe, IGNORE_FILE: f"{rules if ignore else IGNORE_FILE}\n{name}\n"}
    added = tuple((file, text.encode("utf-8", "surrogateescape")) for file, text in texts.items())
    others = tuple(entry for entry in entries if entry[0] != IGNORE_FILE)
    return BuildContext(name, recipe, others, added)


def _text(path: Path, hint: str | None = None) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise NotFound(f"no `{path.name}` in {path.absolute().parent}", hint=hint) from None
    except OSError as error:
        raise Usage(f"cannot read `{path}`: {reason_of(error)}") from error


def _entries(
    folder: Path, prefix: str, rules: Sequence[Rule], needed: set[str | None]
) -> Iterator[Entry]:
    """Yield what is below a folder, sorted by name; docker's own files are never left out."""
    try:
        with os.scandir(folder) as listing:
            children = sorted(listing, key=lambda child: child.name)
    except OSError as error:
        what = f"cannot read the folder `{folder}`: {reason_of(error)}"
        raise JlrError(what, hint=_LEAVE_OUT) from error
    for child in children:
        name = f"{prefix}{child.name}"
        status = child.stat(follow_symlinks=False)
        ignored = ignores(rules, name) and name not in needed
        if not ignored and not stat.S_ISSOCK(status.st_mode):
            yield name, Path(child.path), status
        holds_needed = any(str(each).startswith(f"{name}/") for each in needed)
        kept = not ignored or holds_needed or _may_keep_some_of(rules, name)
        if kept and stat.S_ISDIR(status.st_mode):
            yield from _entries(Path(child.path), f"{name}/", rules, needed)


def _packed(name: str, path: Path, status: os.stat_result) -> Iterator[bytes]:
    mode = status.st_mode
    if sys.platform == "win32":  # without an executable bit; docker's client does the same
        mode = stat.S_IFMT(mode) | 0o755
    link = str(path.readlink()) if stat.S_ISLNK(mode) else ""
    yield tar_archive.header(name, mode, status.st_size, status.st_mtime, link)
    if not stat.S_ISREG(mode):
        return
    try:
        yield from tar_archive.content(path, status.st_size, may_grow=True)
    except OSError as error:
        raise JlrError(f"cannot read `{path}`: {reason_of(error)}", hint=_LEAVE_OUT) from error
    yield tar_archive.padding(status.st_size)


@dataclass(frozen=True)
class Rule:
    """One line of `.dockerignore`."""

    pattern: str
    parts: tuple[re.Pattern[str] | None, ...]  # one for each folder or file, `None` for any number
    exception: bool  # whether it begins with `!`

    def matches(self, names: Sequence[str]) -> bool:
        """Return whether the rule means a path, or a folder on its way."""
        reached = {0}
        for at, part in enumerate(self.parts):
            if part is None:  # at the end, all that is below a folder and not the folder itself
                least = min(reached, default=len(names)) + (at == len(self.parts) - 1)
                reached = set(range(least, len(names) + 1))
            else:
                inner = {depth for depth in reached if depth < len(names)}
                reached = {depth + 1 for depth in inner if part.match(names[depth])}
        return bool(reached - {0})


def ignores(rules: Sequence[Rule], path: str) -> bool:
    """Return whether `path`, relative and with `/`, is left out: the last rule decides."""
    names, ignored = path.split("/"), False
    for rule in rules:
        if rule.exception == ignored and rule.matches(names):
            ignored = not rule.exception
    return ignored


def _may_keep_some_of(rules: Sequence[Rule], folder: str) -> bool:
    """Return whether an exception may mean something below it; as in BuildKit, a wildcard may."""
    exceptions = [rule.pattern for rule in rules if rule.exception]
    wild = any(re.search(r"[*?\[\\]", pattern) for pattern in exceptions)
    return wild or any(f"{pattern}/".startswith(f"{folder}/") for pattern in exceptions)


def read_rules(text: str) -> list[Rule]:
    """Return the rules of a `.dockerignore`, as docker reads them (`Usage`: a line is only `!`)."""
    rules = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        pattern = line.strip().removeprefix("!").strip()
        if line.strip() == "!":
            raise Usage(f"line {number} of `{IGNORE_FILE}` is only `!`")
        if pattern and not line.startswith("#"):
            cleaned = posixpath.normpath(pattern).lstrip("/")
            parts = tuple(part for name in cleaned.split("/") for part in _parts(name))
            rules.append(Rule(cleaned, parts, line.strip().startswith("!")))
    return rules


def _parts(name: str) -> Iterator[re.Pattern[str] | None]:
    """Yield the patterns of one name between slashes; `**.py` means any `*.py`."""
    if name.startswith("**"):
        yield None
    if name != "**":
        # `fnmatch` has other signs for a literal and for a set's opposite, and never backtracks.
        literal = re.sub(r"\\(.)", lambda sign: re.sub(r"[*?\[]", r"[\g<0>]", sign[1]), name)
        yield re.compile(fnmatch.translate(literal.replace("[^", "[!")))
