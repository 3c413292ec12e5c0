"""Errors of engines and registries about images, by what the user can do about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile

from jlremote.errors import Authentication, JlrError, NotFound, Usage
from jlremote.images import image_names
from jlremote.images.image_names import NVIDIA
from jlremote.place.host.contract import ENGINES_ERROR, Completed, error_lines
from jlremote.place.runtimes.engine.engine_errors import EngineUnusable, engine_error
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import one_line

REFUSED = re.compile(
    "invalid username|authentication required|unauthorized|no basic auth credentials|forbidden"
    "|denied"
)
# Docker Hub also answers `denied` for what does not exist.
_AMBIGUOUS = "repository does not exist or may require"
MISSING_THERE = re.compile(
    "manifest unknown|not found|does not exist|no such image|no matching manifest|name unknown"
    "|image not known"
)
# As docker and podman say it of the host itself.
_NOT_THERE = re.compile("does not exist locally|image not known")
_OUT_OF_REACH = re.compile(
    "dial tcp|no such host|i/o timeout|tls handshake|x509|http response to https client"
    r"|connection refused|connection reset|client\.timeout exceeded|unexpected eof"
)
_NO_REGISTRY = re.compile("no unqualified-search registries|short-name resolution enforced")
_UNKNOWN_SIGNER = "signed by unknown authority"
_NO_TLS = "http response to https client"
# Behind this follows the help text and not the reason.
_USAGE = re.compile(r"\s*Usage:")


def reason(lines: Sequence[str]) -> str:
    """Return the engine's reason for a failure: its last error, else its last line."""
    said = [line for line in takewhile(lambda line: not _USAGE.match(line), lines) if line.strip()]
    # A step of a build that goes on may have printed others.
    last = max((at for at, line in enumerate(said) if ENGINES_ERROR.match(line)), default=0)
    return Completed(1, "", "\n".join(said[last:])).complaint if said else "no reason given"


def _classified(lines: Sequence[str]) -> str:
    """Return the lines with the cause: a warning may have the words of another one."""
    return "\n".join(error_lines("\n".join(lines))).lower()


@dataclass(frozen=True)
class FailedTransfer:
    """A failed pull or push (`verb`) of an image."""

    engine: Engine
    verb: str
    image: str
    host: str

    @property
    def message(self) -> str:
        return f"cannot {self.verb} `{one_line(self.image)}`"

    @property
    def registry_name(self) -> str | None:
        """The name of the registry, `None` if the host's settings choose it, as podman's do."""
        chosen = not (self.engine.kind.short_names or image_names.has_registry(self.image))
        return None if chosen else image_names.parse(self.image).registry

    @property
    def login(self) -> str:
        return image_names.login_command(self.host, self.registry_name)

    @property
    def registry(self) -> str:
        return "the registry" if self.registry_name is None else f"`{self.registry_name}`"


def transfer_error(failed: FailedTransfer, lines: Sequence[str], status: int) -> JlrError:
    """Return the error of a pull or push, by the engine's output and exit status."""
    if general := _general(failed.engine, failed.host, lines, status):
        return general
    why, complaint = reason(lines), _classified(lines)
    if _NO_REGISTRY.search(complaint):
        return NotFound(
            f"{failed.message}: it names no registry, and `{failed.host}` has no default: {why}",
            hint="write it with its registry: Docker Hub's is "
            f"`{image_names.parse(failed.image)}`; or set "
            "`unqualified-search-registries` in /etc/containers/registries.conf there",
        )
    if failed.verb == "push" and _NOT_THERE.search(complaint):
        listing = f"`jlr image list {failed.host}` lists the images"
        return NotFound(f"{failed.message}: `{failed.host}` has no such image", hint=listing)
    ambiguous = _AMBIGUOUS in complaint
    if MISSING_THERE.search(complaint) and not ambiguous:
        hint = "check its name and tag, and whether it is made for the host's architecture"
        return NotFound(f"{failed.message}: {why}", hint=hint)
    if REFUSED.search(complaint):
        login = f"`{failed.login}`, if it is private or the key has changed; else check the name"
        cause = NotFound if ambiguous else Authentication
        return cause(f"{failed.message}: {failed.registry} refuses it: {why}", hint=login)
    if "toomanyrequests" in complaint:
        more = f"`{failed.login}`: {failed.registry} allows more after a login"
        return JlrError(f"{failed.message}: {why}", hint=more)
    if _OUT_OF_REACH.search(complaint):
        return _out_of_reach(failed, why, complaint)
    return JlrError(f"{failed.message}: {why}")


def _out_of_reach(failed: FailedTransfer, why: str, complaint: str) -> JlrError:
    # `proxies` in the client's config.json is for containers alone; with those in dockerd's
    # daemon.json a dockerd before 23.0 does not start.
    proxy = "set `HTTPS_PROXY` there"
    if failed.engine.kind.daemon:
        proxy = (
            "`sudo systemctl edit docker` there, with the lines `[Service]` and "
            "`Environment=HTTPS_PROXY=URL`, and `sudo systemctl restart docker`"
        )
    network = f"check the network of `{failed.host}`; if it needs a proxy, {proxy}"
    # An image that cannot be pulled is missing, whatever the registry has.
    unreachable = NotFound if failed.verb == "pull" else JlrError
    hint = _reach_hint(failed.engine, failed.registry_name or "REGISTRY", complaint) or network
    what = f"{failed.message}: `{failed.host}` cannot reach {failed.registry}: {why}"
    return unreachable(what, hint=hint)


def login_error(
    engine: Engine | None, registry: str, user: str, host: str, failed: Completed
) -> JlrError:
    """Return why a registry refused a key, which no output has; without engine: of image files."""
    lines = failed.stderr.splitlines()
    if engine and (general := _general(engine, host, lines, failed.status)):
        return general
    why, complaint = reason(lines), _classified(lines)
    if REFUSED.search(complaint):
        literally = "; for nvcr.io that is literally `$oauthtoken`" * (registry == NVIDIA)
        what = f"`{registry}` refuses this key of `{user}`: {why}"
        return Authentication(what, hint=f"check the key and `--username`{literally}")
    if _OUT_OF_REACH.search(complaint):
        mend = (engine and _reach_hint(engine, registry, complaint)) or "check its name"
        return JlrError(f"`{host}` cannot reach `{registry}`: {why}", hint=mend)
    return JlrError(f"cannot log in to `{registry}`: {why}")


def build_error(
    engine: Engine, lines: Sequence[str], bases: Sequence[str], host: str, status: int
) -> JlrError:
    """Return why a build failed, by its last lines; `bases` are the images that it builds on."""
    if general := _general(engine, host, lines, status):
        return general
    why = reason(lines)
    if "buildx component is missing" in why:
        mend = f"install docker's `docker-buildx-plugin` on `{host}`, or Debian's `docker-buildx`"
        return JlrError(f"cannot build the image: {why.rstrip('.')}", hint=mend)
    for image in bases:
        with suppress(Usage):  # the build reports the line
            name = image_names.parse(image)
            if name.repository in why or name.registry in why:
                error = transfer_error(FailedTransfer(engine, "pull", image, host), [why], 1)
                if isinstance(error, (NotFound, Authentication)):
                    return error
    return JlrError(f"cannot build the image: {why}")


def commit_error(
    engine: Engine, session: str, image: str, host: str, failed: Completed
) -> JlrError:
    """Return why a container was not saved as an image."""
    lines = failed.stderr.splitlines()
    general = _general(engine, host, lines, failed.status)
    return general or JlrError(f"cannot save `{session}` as `{image}`: {reason(lines)}")


def _general(engine: Engine, host: str, lines: Sequence[str], status: int) -> JlrError | None:
    """Return the error of an engine that cannot be used, or of a full disk."""
    general = engine_error(engine, Completed(status, "", "\n".join(lines)))
    if isinstance(general, EngineUnusable):
        return general
    if "no space left" not in _classified(lines):
        return None
    hint = f"`{engine.shown('system', 'df')}` on the host shows what the engine takes"
    return JlrError(f"no space is left on `{host}`: {reason(lines)}", hint=hint)


def _reach_hint(engine: Engine, registry: str, complaint: str) -> str | None:
    if _UNKNOWN_SIGNER in complaint:
        folder = "/etc/docker/certs.d"
        if not engine.kind.daemon:
            folder = f"{'/etc' if engine.behind_sudo else '~/.config'}/containers/certs.d"
        return (
            "its certificate is signed by an authority that the host does not know: put that "
            f"authority's certificate into `{folder}/{registry}/ca.crt`"
        )
    if _NO_TLS in complaint:
        mend = (
            f'put `[[registry]]` with `location = "{registry}"` and `insecure = true` into a file '
            "in `/etc/containers/registries.conf.d` there"
        )
        if engine.kind.daemon:
            line = f'"insecure-registries": ["{registry}"]'
            mend = f"put `{line}` into `/etc/docker/daemon.json` there and restart docker"
        return f"it has no TLS, which {engine.kind.program} requires: {mend}"
    if "x509" in complaint:
        return "its certificate is invalid: ask the owner of the registry to renew it"
    return None
