"""The names of images, by the rules that every engine shares (distribution/reference)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jlremote.errors import Usage
from jlremote.text import printable

DOCKER_HUB = "docker.io"
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
    """An image's name in its parts.

    Attributes:
        registry: `nvcr.io`, `127.0.0.1:5000`, …; `docker.io` where the name has none.
        repository: the path in the registry, `nvidia/pytorch`; of Docker Hub's own images with
            the `library/` that they have there.
        tag: `None` where there is a digest and no tag; else `latest` if the name has none.
        digest: `sha256:…`, if the name has one.
    """

    registry: str
    repository: str
    tag: str | None
    digest: str | None

    def __str__(self) -> str:
        """Return the name in full, the same for every way to write it."""
        tag = "" if self.tag is None else f":{self.tag}"
        digest = "" if self.digest is None else f"@{self.digest}"
        return f"{self.registry}/{self.repository}{tag}{digest}"


def parse(text: str) -> ImageName:
    """Return the parts of `[REGISTRY/]NAME[:TAG][@DIGEST]`.

    Raises:
        Usage: no engine takes such a name; the message says which part is wrong.
    """
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
        raise _refused(text, "it is too long" if len(repository) > _LONGEST else "it is an id")
    if registry == DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    default = None if at else "latest"
    return ImageName(registry, repository, tag if colon else default, digest if at else None)


def parse_new(text: str) -> ImageName:
    """Return the parts of a name that an image is to be given, which can have no digest.

    Raises:
        Usage: no engine takes it.
    """
    name = parse(text)
    if name.digest is not None:
        raise _refused(text, "a digest is found, not given")
    return name


def may_be_id(text: str) -> bool:
    """Return whether `text` can be (the beginning of) an image's id."""
    return _BEGINNING_OF_ID.fullmatch(text) is not None


def same(one: str, other: str) -> bool:
    """Return whether two ways to write a name mean the same image."""
    if one == other:
        return True
    try:
        return parse(one) == parse(other)
    except Usage:
        return False


def surely_differ(asked: str, there: str) -> bool:
    """Return whether two images differ; an id and a name are not compared.

    Podman finds what was built on the host, as `localhost/NAME`, by its name alone.
    """
    compared = same(asked, there) or same(f"{LOCAL}/{asked}", there)
    return not (may_be_id(asked) or may_be_id(there) or compared)


def _split_registry(text: str) -> tuple[str, str]:
    """Docker's rule: what has no dot and no colon before the first slash is no registry."""
    first, slash, rest = text.partition("/")
    if slash and (first == LOCAL or "." in first or ":" in first):
        return first, rest
    return DOCKER_HUB, text


def _check(text: str, part: str, rule: re.Pattern[str], value: str) -> None:
    if not rule.fullmatch(value):
        raise _refused(text, f"{part} is `{_shown(value)}`" if value else f"{part} is empty")


def _refused(text: str, why: str) -> Usage:
    return Usage(
        f"`{_shown(text)}` cannot be an image's name: {why}",
        hint="write `[REGISTRY/]NAME[:TAG]`; a name is in lower case, with `.`, `_`, `-` and `/` "
        "only between letters and digits, and a tag has at most 128 letters, digits, `.`, `_`, `-`",
    )


def _shown(text: str) -> str:
    return printable(text).encode("unicode_escape").decode("ascii")
