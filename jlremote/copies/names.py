"""The sources and the target of a copy, as they are typed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from jlremote.errors import JlrError, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, is_connected, link_of, link_on
from jlremote.laptop.typed_place import resolved, with_path
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import IN_FOLDER, command_line
from jlremote.place.runtimes.place import Place, of_record
from jlremote.place.runtimes.runtime import Attachment
from jlremote.text import one_line, without_controls
from jlremote.untrusted import Refused, path_part

_PATTERN = frozenset("*?[")
_NAMELESS = (".", "..", "~")


@dataclass(frozen=True)
class RemotePath:
    """A path of a session, container or host."""

    where: str  # a session, `HOST/CONTAINER` or `HOST`
    path: str  # relative to the folder in which shells begin there, or absolute

    def __str__(self) -> str:
        return f"{self.where}:{self.path}"

    @property
    def is_pattern(self) -> bool:
        return bool(_PATTERN & set(self.path))

    def name_of(self, path: str) -> str:
        """Return the local name for a path that the place reports for this one.

        It is empty for `.`, `..`, `~` and `/`. Raise `Refused` if it is not what was typed, and
        does not match it.
        """
        own = "" if self.path == "~" else self.path.removeprefix("~/")
        typed, parts = ([part for part in each.split("/") if part] for each in (own, path))
        if len(typed) != len(parts) or not all(map(_is_meant, parts, typed)):
            raise Refused(f"`{one_line(path)}` was not asked for, but `{self.path}`")
        last = parts[-1] if parts else ""
        return "" if last in _NAMELESS else last


def _is_meant(part: str, typed: str) -> bool:
    if part == typed:
        return True
    if not _PATTERN & set(typed) or (part.startswith(".") and not typed.startswith(".")):
        return False
    return fnmatchcase(path_part(part), typed)


def parsed(text: str) -> Path | RemotePath:
    """Return a path of this machine (also `./a:b`, or a drive's), or of another: `WHERE:PATH`."""
    parts = with_path(text)
    return Path(text).expanduser() if parts is None else RemotePath(parts[0], parts[1] or ".")


def one_place(sources: list[RemotePath]) -> str:
    """Return the one place of all remote sources (`Usage`: they are in several)."""
    places = {source.where for source in sources}
    if len(places) > 1:
        what = f"sources in several places: {', '.join(f'`{place}`' for place in sorted(places))}"
        raise Usage(what, hint="copy from each with a command of its own")
    return places.pop()


_SECONDS = 3.0


def remote_paths(begun: RemotePath, context: Context) -> list[str]:
    """Complete a path there by a link that is up, so nothing is asked; folders end with `/`."""
    folder, slash, name = begun.path.rpartition("/")
    list_names = ("sh", "-c", f"{IN_FOLDER} && ls -1Ap 2>/dev/null", "sh", folder + slash or ".")
    try:
        context = replace(context, asker=ASKS_NOTHING)
        typed = resolved(begun.where, context.ssh_config)
        if typed.session is not None:
            link, place = link_of(typed.session, context), of_record(typed.session)
        else:
            link, place = link_on(typed.host or begun.where, context), Place("none", begun.where)
        if not is_connected(link):
            return []
        argv = place.runtime.attached(place.name, list_names, Attachment(), {})
        listed = run_script(link, command_line(argv), timeout=_SECONDS).stdout
    except JlrError:
        return []
    hidden = name.startswith(".")
    return [
        f"{folder}{slash}{entry}"
        for entry in listed.split("\n")
        if entry.startswith(name)
        and (hidden or not entry.startswith("."))
        and entry.removesuffix("/") not in ("", ".", "..")
        and "/" not in entry.removesuffix("/")
        and without_controls(entry) == entry
    ]
