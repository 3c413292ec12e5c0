"""A place as a person types it, in any command: the one grammar, and what a word stands for here.

`HOST/NAME` is a session, container or job of a host, and `HOST/` the host itself. A word alone is
looked up: as a session that is known here, and as a host. `@POOL` stands where a host may. With a
path, `PLACE:PATH`, the first colon comes before a second slash, as `./a:b` is a file of this
machine.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import JlrError, Usage
from jlremote.laptop import known_names, sessions
from jlremote.laptop.record_files import matching, selected
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import is_pool

LEASH = "JLR_LEASH"  # the variable with the only session that commands of this process may use

_URI = "ssh://"
# Characters that ssh refuses too: in `user@host`, and in the host alone. The user's last may not
# be a backslash either.
_FOR_A_SHELL = frozenset("'`\";&<>|(){}")
_NOT_IN_A_NAME = frozenset("$\\,")


@dataclass(frozen=True)
class TypedPlace:
    """What a typed word stands for."""

    host: str | None  # a host or pool; `None` for a word that is nothing known here
    name: str | None  # of a session, container or job; `None` for the host itself
    session: SessionRecord | None = None  # if the name is that of one that is known here


def resolved(
    word: str,
    ssh_config: Path | None,
    tell: Callable[[str], None] | None = None,
    *,
    host_first: bool = False,
) -> TypedPlace:
    """Return what a word stands for: of a session and a host of that name, the session.

    With `host_first` it is the host, as where a command asks for a host. `tell` is told which of
    the two was taken, and how to type the other one. Raise `JlrError` if the process is leashed to
    another session, `Usage` if sessions on several hosts are called so.
    """
    place, only = _looked_up(word, ssh_config, tell, host_first), leash()
    if only is not None and (place.host, place.name) != (only.host, only.name):
        raise off_leash(f"`{word}` is not that session", only)
    return place


def _looked_up(
    word: str, ssh_config: Path | None, tell: Callable[[str], None] | None, host_first: bool
) -> TypedPlace:
    host, name = _parts(word)
    if host is not None:
        return _place_of(_session_of(host, name), host, name)
    found = matching(sessions.load_all(), word)
    is_host = is_known_host(word, ssh_config)
    if is_host and (host_first or not found):
        if others := " and ".join(f"`{each.selector}`" for each in found):
            _tell_once(tell, f"`{word}` is taken as the host; the session is {others}")
        return TypedPlace(word, None)
    record = selected(found, word, "sessions")
    if record is not None and is_host:
        taken = f"`{word}` is taken as the session `{record.selector}`; `{word}/` is the host"
        _tell_once(tell, taken)
    return _place_of(record, None, word)


def leash() -> TypedPlace | None:
    """Return the only session that this process may use, `None` for any; else `JlrError`."""
    typed = os.environ.get(LEASH)
    if typed is None:
        return None
    host, name = _parts(typed)
    known = sessions.load_all()
    record = _session_of(host, name) if host else selected(known, typed, "sessions")
    place = _place_of(record, host, name)
    theirs = record is not None and record.shared
    if theirs or not place.host or not place.name or is_pool(place.host):
        raise JlrError(f"the leash `{typed}` is no session of yours", hint=_ASK)
    return place


def take_leash(typed: str) -> None:
    """Leash this process, and those that it starts, to a session; to no other than before."""
    before = leash()
    os.environ[LEASH] = typed
    if before is not None and before != leash():
        raise off_leash(f"`--leash {typed}` is another one", before)


def off_leash(what: str, only: TypedPlace) -> JlrError:
    """Return the error that refuses what is not for the leashed session."""
    return JlrError(f"this `jlr` is leashed to `{only.host}/{only.name}`: {what}", hint=_ASK)


_ASK = "ask the person who set the leash to run it, or to change `JLR_LEASH` or `--leash`"
_told: set[str] = set()  # a command may resolve its word twice


def _tell_once(tell: Callable[[str], None] | None, note: str) -> None:
    if tell and note not in _told:
        _told.add(note)
        tell(note)


def with_path(text: str) -> tuple[str, str] | None:
    """Return the place and the path of `PLACE:PATH`, `None` for a path of this machine."""
    place, colon, path = text.partition(":")
    is_drive = os.name == "nt" and len(place) == 1
    if not colon or is_drive or place.count("/") > 1 or place[:1] in ("", ".", "/", "~", "-"):
        return None
    return place, path


def host_word(host: str) -> str:
    """Return how a host is typed where commands ask for a session: `HOST/` beside one so called."""
    return f"{host}/" if matching(sessions.load_all(), host) else host


def is_known_host(word: str, ssh_config: Path | None) -> bool:
    """Return whether `HOST` or `USER@HOST` is known here; ssh may know others."""
    return bool({word, word.rpartition("@")[2]} & {*known_hosts(ssh_config)})


def known_hosts(ssh_config: Path | None) -> list[str]:
    """Return the hosts of the ssh configuration, of the settings, and those with sessions."""
    names = known_names.host_names(None if ssh_config is None else str(ssh_config))
    with suppress(JlrError):  # wrong settings, which a command that needs them reports
        chosen = settings.load()
        names += [*chosen.hosts, *(each for pool in chosen.pools.values() for each in pool)]
        names += [str(host) for host in (chosen.chosen(None, {}).get("host"),) if host]
    for record in sessions.load_all():
        names += [record.host.rpartition("@")[2], record.host]
    return list(dict.fromkeys(names))


def _place_of(record: SessionRecord | None, host: str | None, name: str | None) -> TypedPlace:
    return TypedPlace(record.host, record.name, record) if record else TypedPlace(host, name)


def _parts(word: str) -> tuple[str | None, str | None]:
    scheme = _URI if word.startswith(_URI) else ""
    host, slash, name = word.removeprefix(scheme).partition("/")
    if slash or scheme or is_pool(word):
        return scheme + host, name or None
    return None, word


def _session_of(host: str, name: str | None) -> SessionRecord | None:
    if name is None:
        return None
    known = sessions.load_all()
    if not is_pool(host):
        return selected(known, f"{host}/{name}", "sessions")
    hosts = settings.load().pool(host)
    return selected([each for each in known if each.host in hosts], name, f"sessions of `{host}`")


def check_host(host: str) -> None:
    """Raise `Usage` for a host that can be taken for an option, or cannot be shown.

    It is empty, begins with `-`, or holds blanks, control characters or what a shell would act on
    in a `ProxyCommand`, as ssh has it.
    """
    hint = "give a name, an address, `user@host`, or a `Host` of your ssh config"
    user, _, name = host.rpartition("@")
    if not name:
        raise Usage("no host was given", hint=hint)
    wrong = (_FOR_A_SHELL & {*host}) | (_NOT_IN_A_NAME & {*name}) | {*user[-1:]} & {"\\"}
    why = f"it holds `{min(wrong)}`" if wrong else ""
    if any(unicodedata.category(letter)[0] in "CZ" for letter in host):
        why = "it holds blanks or control characters"
    if host.startswith("-") or name.startswith("-"):
        why = "it begins with `-`"
    if why:
        shown = "".join(x if x.isprintable() else ascii(x)[1:-1] for x in host)
        raise Usage(f"`{shown}` is not a host: {why}", hint=hint)
