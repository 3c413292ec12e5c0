"""What docker and a registry say when they refuse an image, by what a person would do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from jlremote.errors import Authentication, JlrError, NotFound, Usage
from jlremote.host.contract import Completed
from jlremote.images import image_names
from jlremote.images.build_log import BuildLog
from jlremote.images.image_names import ImageName
from jlremote.images.registry_hints import network_hint, reach_hint
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import EngineUnusable, engine_error
from jlremote.text import one_line

_REFUSED = (
    "invalid username/password",
    "unauthorized",
    "no basic auth credentials",
    "forbidden",
    "denied",
)
# Docker Hub says `denied` of what does not exist, too.
_AMBIGUOUS = "repository does not exist or may require"
_MISSING = (
    "manifest unknown",
    "not found",
    "does not exist",
    "no such image",
    "no matching manifest",
    "name unknown",
    "image not known",
)
_OUT_OF_REACH = (
    "dial tcp",
    "no such host",
    "i/o timeout",
    "tls handshake",
    "x509",
    "http response to https client",
    "connection refused",
    "connection reset",
    "client.timeout exceeded",
    "unexpected eof",
)
# What follows is how docker is used, and not what went wrong.
_USAGE = re.compile(r"\s*Usage:")
_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*([^\s$]+)\s*(?:AS\s.*)?", re.IGNORECASE)
_PREFIXES = re.compile(r"^(?:Error response from daemon: |docker: |Error: |error: |ERROR: )+")


def reason(lines: Sequence[str]) -> str:
    """Return why docker gave up: its last words, on one line."""
    told = [line for line in takewhile(lambda line: not _USAGE.match(line), lines) if line.strip()]
    return _PREFIXES.sub("", one_line(told[-1])) if told else "it does not say why"


@dataclass(frozen=True)
class Attempt:
    """A pull or a push of an image that came to nothing.

    Attributes:
        engine: which was to do it.
        verb: `pulled` or `pushed`.
        image: as it was typed.
        name: its parts; `None` if it may also be an id.
        host: as it was typed.
    """

    engine: Engine
    verb: str
    image: str
    name: ImageName | None
    host: str

    @property
    def failed(self) -> str:
        """How a message about its failure begins."""
        return f"the image `{one_line(self.image)}` cannot be {self.verb}"

    @property
    def registry(self) -> str:
        """Where from or where to, in words."""
        return "the registry" if self.name is None else f"`{self.name.registry}`"


def transfer_error(attempt: Attempt, lines: Sequence[str], status: int) -> JlrError:
    """Return why an image was not pulled or pushed: docker's lines and its exit status tell."""
    if general := _engine_fails(attempt.engine, lines, status):
        return general
    why, complaint = reason(lines), "\n".join(lines).lower()
    if any(phrase in complaint for phrase in _MISSING) and _AMBIGUOUS not in complaint:
        return NotFound(f"{attempt.failed}: {why}", hint=_missing_hint(attempt))
    if any(phrase in complaint for phrase in _REFUSED):
        return _refused(attempt, why, ambiguous=_AMBIGUOUS in complaint)
    if "no space left" in complaint:
        return no_space(attempt.engine, attempt.host, why)
    if "toomanyrequests" in complaint:
        more = f"{attempt.registry} gives more to whoever logs in"
        return JlrError(f"{attempt.failed}: {why}", hint=more)
    if any(phrase in complaint for phrase in _OUT_OF_REACH):
        return _out_of_reach(attempt, why, complaint)
    return JlrError(f"{attempt.failed}: {why}")


def _refused(attempt: Attempt, why: str, *, ambiguous: bool) -> JlrError:
    name = attempt.name
    login = f"jlr login {attempt.host}" + ("" if name is None else f" {name.registry}")
    cause = NotFound if ambiguous else Authentication
    return cause(
        f"{attempt.failed}: {attempt.registry} refuses it: {why}",
        hint=f"check the name; if it is private, or the key has changed: `{login}`",
    )


def _out_of_reach(attempt: Attempt, why: str, complaint: str) -> JlrError:
    name = attempt.name.registry if attempt.name else ""
    mend = reach_hint(attempt.engine, name, complaint)
    # Whether it is there cannot be known; for whoever wants to use it, it is not.
    unreachable = NotFound if attempt.verb == "pulled" else JlrError
    return unreachable(
        f"{attempt.failed}: `{attempt.host}` cannot reach {attempt.registry}: {why}",
        hint=mend or network_hint(attempt.engine),
    )


def _missing_hint(attempt: Attempt) -> str:
    if attempt.verb == "pushed":
        return f"`jlr images {attempt.host}` shows the names that there are"
    return "check its name, its tag and whether it is made for the host's kind of processor"


def login_error(engine: Engine, registry: str, user: str, host: str, failed: Completed) -> JlrError:
    """Return why a registry did not take a key; what docker says never holds the key."""
    lines = [line for line in failed.stderr.splitlines() if not line.startswith("WARNING")]
    if general := _engine_fails(engine, lines, failed.status):
        return general
    why, complaint = reason(lines), failed.stderr.lower()
    if any(phrase in complaint for phrase in _REFUSED):
        return Authentication(
            f"`{registry}` refuses this key of `{user}`: {why}",
            hint="check the key and `--username`; of nvcr.io that is `$oauthtoken`, literally",
        )
    if any(phrase in complaint for phrase in _OUT_OF_REACH):
        mend = reach_hint(engine, registry, complaint) or "check its name"
        return JlrError(f"`{host}` cannot reach `{registry}`: {why}", hint=mend)
    return JlrError(f"`{registry}` was not asked: {why}")


def no_space(engine: Engine, host: str, why: str) -> JlrError:
    """Return that the host's disk is full."""
    return JlrError(
        f"no space is left on `{host}`: {why}",
        hint=f"`{engine.shown('system', 'df')}` there shows what takes it; "
        "the disk may also be another one's",
    )


def build_error(
    engine: Engine, log: BuildLog, recipe: str, host: str, status: int, *, shown: object
) -> JlrError:
    """Return why an image was not built, and where its Dockerfile says what failed.

    Args:
        engine: which was to do it.
        log: what docker printed.
        recipe: the Dockerfile's text.
        host: as it was typed.
        status: docker's exit status.
        shown: the Dockerfile as it was typed, `None` for the folder's own.
    """
    if general := _engine_fails(engine, log.lines, status):
        return general
    why = reason(log.lines)
    if "no space left" in why.lower():
        return no_space(engine, host, why)
    at = log.failed_at(recipe)
    if at is None:
        return JlrError(f"the image is not built: {why}")
    number, text = at
    where = f"line {number} of `{shown or 'Dockerfile'}` fails"
    if (base := _FROM.fullmatch(text)) and (missing := _base_missing(engine, base[1], host, why)):
        return type(missing)(f"{where}: {missing.message}", hint=missing.hint)
    cached = "what stands above it is in docker's cache, so the next build begins there"
    return JlrError(f"{where}: `{text}`: {why}", hint=cached if log.has_built else None)


def _base_missing(engine: Engine, image: str, host: str, why: str) -> JlrError | None:
    """Return why the image that another one is built from cannot be had, if it is that."""
    try:
        name = image_names.parse(image)
    except Usage:
        return None
    error = transfer_error(Attempt(engine, "pulled", image, name, host), [why], 1)
    return error if isinstance(error, (NotFound, Authentication)) else None


def commit_error(
    engine: Engine, session: str, image: str, host: str, failed: Completed
) -> JlrError:
    """Return why a container could not be made an image."""
    lines = failed.stderr.splitlines()
    if general := _engine_fails(engine, lines, failed.status):
        return general
    if "no space left" in failed.stderr.lower():
        return no_space(engine, host, reason(lines))
    return JlrError(f"`{session}` cannot be saved as `{image}`: {reason(lines)}")


def listing_error(engine: Engine, failed: Completed) -> JlrError:
    """Return why the images of a host cannot be told."""
    return engine_error(engine, failed)


def _engine_fails(engine: Engine, lines: Sequence[str], status: int) -> JlrError | None:
    """Return what keeps the engine from working at all; its words may also be a registry's."""
    general = engine_error(engine, Completed(status, "", "\n".join(lines)))
    return general if isinstance(general, EngineUnusable) else None
