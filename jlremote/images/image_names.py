"""Names of images, by the rules that all engines share (distribution/reference)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jlremote.errors import Usage
from jlremote.place.host.shell_text import command_line
from jlremote.text import one_line

DOCKER_HUB = "docker.io"
NVIDIA = "nvcr.io"  # all its users have one user name; the key alone tells who it is
LOCAL = "localhost"

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_LONGEST = 255
_WHOLE_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_BEGINNING_OF_ID = re.compile(r"(?:sha256:)?[0-9a-f]{1,64}")


@dataclass(frozen=True)
class ImageName:
    """The parts of an image's name."""

    registry: str  # `nvcr.io`, `127.0.0.1:5000`, …; `docker.io` by default
    repository: str  # `nvidia/pytorch`; with `library/` for Docker Hub's own images
    tag: str | None  # `latest` by default; `None` where there is a digest and no tag
    digest: str | None  # `sha256:…`, if the name has one

    def __str__(self) -> str:
        """Return the full name, the same for each way to write it."""
        tag = "" if self.tag is None else f":{self.tag}"
        digest = "" if self.digest is None else f"@{self.digest}"
        return f"{self.registry}/{self.repository}{tag}{digest}"


def parse(text: str) -> ImageName:
    """Return the parts of `[REGISTRY/]NAME[:TAG][@DIGEST]` (`Usage`: which part is invalid)."""
    rest, at, digest = text.partition("@")
    registry, repository = _split_registry(rest)
    repository, colon, tag = repository.partition(":")
    _check(text, "its registry", _REGISTRY, registry)
    _check(text, "its name", _REPOSITORY, repository)
    if colon:
        _check(text, "its tag", _TAG, tag)
    if at:
        _check(text, "its digest", _DIGEST, digest)
    if len(repository) > _LONGEST or _WHOLE_ID.fullmatch(rest):
        raise _refused(text, ": it is too long" if len(repository) > _LONGEST else ": it is an id")
    if registry == DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    default = None if at else "latest"
    return ImageName(registry, repository, tag if colon else default, digest if at else None)


def parse_new(text: str) -> ImageName:
    """Return the parts of a new name for an image (`Usage`: it is invalid, or has a digest)."""
    name = parse(text)
    if name.digest is not None:
        raise _refused(text, ": a new name cannot have a digest")
    return name


def may_be_id(text: str) -> bool:
    """Return whether `text` can be an image's id, or its beginning."""
    return _BEGINNING_OF_ID.fullmatch(text) is not None


def check(text: str) -> None:
    """Check that a text can mean an image, by its name or id (`Usage`: which part cannot)."""
    if not may_be_id(text):
        parse(text)


def same(one: str, other: str) -> bool:
    """Return whether two names mean the same image."""
    if one == other:
        return True
    try:
        return parse(one) == parse(other)
    except Usage:
        return False


def surely_differ(asked: str, there: str) -> bool:
    """Return whether two names mean different images; an id and a name are not compared.

    Podman gives what was asked for without a registry one of its own choice: `localhost` to what
    was built on the host, else one of the host's settings.
    """
    chosen = f"{_split_registry(there)[0]}/{asked}"
    compared = same(asked, there) or (not has_registry(asked) and same(chosen, there))
    return not (may_be_id(asked) or may_be_id(there) or compared)


def has_registry(text: str) -> bool:
    """Return whether a name says which registry it is of."""
    return text.startswith(f"{_split_registry(text)[0]}/")


def _split_registry(text: str) -> tuple[str, str]:
    """Split off the registry: only a part with a dot or colon before the first slash is one."""
    first, slash, rest = text.partition("/")
    if slash and (first == LOCAL or "." in first or ":" in first):
        return first, rest
    return DOCKER_HUB, text


def _check(text: str, part: str, rule: re.Pattern[str], value: str) -> None:
    if not rule.fullmatch(value):
        why = f": {part} is `{one_line(value)}`" if value != text else ""
        raise _refused(text, why if value else f": {part} is empty")


def _refused(text: str, why: str) -> Usage:
    return Usage(
        f"invalid image name `{one_line(text)}`{why}",
        hint="write `[REGISTRY/]NAME[:TAG]`; a name is in lower case, with `.`, `_`, `-` and `/` "
        "only between letters and digits, and a tag has at most 128 letters, digits, `.`, `_`, `-`",
    )


def login_command(host: str, registry: str | None, *options: str) -> str:
    """Return the command that keeps a key for a registry, `None` if that is not known."""
    user = () if registry == NVIDIA else ("--username", "NAME")
    return command_line(("jlr", "image", "login", host, registry or "REGISTRY", *user, *options))
