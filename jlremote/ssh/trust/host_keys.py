"""Is the server who it says it is? Decided before any credential is offered, on every hop."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import HostKeyChanged, HostKeyRevoked, HostKeyUnknown, Usage
from jlremote.questions import Asker, Question
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.trust.host_certificates import (
    CERTIFICATE_SUFFIX,
    Certificate,
    is_certificate,
    read_certificate,
    why_invalid,
)
from jlremote.ssh.trust.known_hosts import KnownKey, append, format_line, read_files
from jlremote.ssh.wire_format import decode_key, fingerprint, key_type

_LOG = logging.getLogger("jlremote.ssh")
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class KnownHost:
    """What the known_hosts files say about one destination.

    Attributes:
        name: how the files name the host, the port included where it is not 22.
        keys: the lines that match the name.
        portless: without HostKeyAlias and on another port: the lines of the name alone, which ssh
            takes as well when they hold the very key.
    """

    name: str
    keys: tuple[KnownKey, ...]
    portless: tuple[KnownKey, ...] = ()

    def algorithms(self) -> tuple[str, ...]:
        """Return the host key algorithms to ask for first: those that can be checked.

        ssh does the same, so that a server with several keys shows the one that is known.
        """
        certified = any(known.marker == "@cert-authority" for known in self.keys)
        types = [known.type for known in self.keys if known.marker == ""]
        plain = [name for found in dict.fromkeys(types) for name in _signatures(found)]
        return (*((CERTIFICATE_SUFFIX,) if certified else ()), *plain)


def _signatures(found: str) -> tuple[str, ...]:
    return _RSA_SIGNATURES if found == "ssh-rsa" else (found,)


def look_up(destination: Destination) -> KnownHost:
    """Return what the known_hosts files of a destination say about it."""
    rules = destination.host_key
    name = rules.alias or destination.place
    bare = destination.hostname.lower()
    lines = tuple(read_files((*rules.user_files, *rules.global_files)))
    keys = tuple(known for known in lines if known.matches(name))
    if name == bare or rules.alias:
        return KnownHost(name, keys)
    return KnownHost(name, keys, tuple(known for known in lines if known.matches(bare)))


def verify(destination: Destination, blob: bytes, asker: Asker) -> None:
    """Return if the server's key is known or was accepted now.

    Raises:
        HostKeyUnknown: nobody vouches for the key.
        HostKeyChanged: another key is known.
        HostKeyRevoked: the key is marked as revoked.
        NeedsAuthentication: a person would have to decide, and nobody is there.
    """
    known = look_up(destination)
    certificate = _certificate(destination, blob)
    _refuse_revoked(destination, known, blob, certificate)
    if certificate is not None:
        problem = _certificate_problem(destination, known, certificate)
        if problem is None:
            return
        _LOG.warning("the certificate of %s does not count: %s", destination.place, problem)
        blob = certificate.plain_key  # which may be known by itself, as in ssh
    plain = [line for line in known.keys if line.marker == ""]
    if any(line.blob == blob for line in plain):
        return
    same_type = [line for line in plain if line.type == key_type(blob)]
    if same_type:
        raise _changed(destination, known, same_type, blob)
    if any(line.marker == "" and line.blob == blob for line in known.portless):
        return
    _accept_new(destination, known, blob, asker)


def _certificate(destination: Destination, blob: bytes) -> Certificate | None:
    if not is_certificate(blob):
        return None
    try:
        return read_certificate(blob)
    except ValueError as error:
        raise _unknown(destination, blob, f"its certificate cannot be read: {error}") from error


def _refuse_revoked(
    destination: Destination, known: KnownHost, blob: bytes, certificate: Certificate | None
) -> None:
    suspects = {blob}
    if certificate is not None:
        suspects |= {certificate.plain_key, certificate.authority}
    where = [
        line.where
        for line in (*known.keys, *known.portless)
        if line.marker == "@revoked" and line.blob in suspects
    ]
    if destination.host_key.revoked is not None:
        where += _revoked_lines(destination.host_key.revoked, suspects)
    if where:
        raise HostKeyRevoked(
            f"the key of `{destination.place}` ({fingerprint(blob)}) is revoked by {where[0]}",
            hint="do not connect: ask the host's administrator for its new key",
        )


def _revoked_lines(path: Path, suspects: set[bytes]) -> list[str]:
    """Read RevokedHostKeys; a file that cannot be read refuses every key, as in ssh."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Usage(
            f"the `RevokedHostKeys` file `{path}` cannot be read: {error.strerror}",
            hint="ssh refuses every host key then; make the file readable or remove the setting",
        ) from error
    if content.startswith(b"SSHKRL\n"):
        raise Usage(
            f"`{path}` is a binary key revocation list, which jlr cannot read",
            hint="write the revoked public keys as text, a line each",
        )
    return [
        f"{path}:{number}"
        for number, line in enumerate(content.split(b"\n"), start=1)
        if suspects & {decode_key(field) for field in line.split()}
    ]


def _certificate_problem(
    destination: Destination, known: KnownHost, certificate: Certificate
) -> str | None:
    trusted = [line for line in known.keys if line.marker == "@cert-authority"]
    if all(line.blob != certificate.authority for line in trusted):
        return "no @cert-authority line names its authority"
    name = destination.host_key.alias or destination.hostname.lower()
    return why_invalid(certificate, name, destination.algorithms.authorities)


def _changed(
    destination: Destination, known: KnownHost, lines: list[KnownKey], blob: bytes
) -> HostKeyChanged:
    line = lines[0]
    return HostKeyChanged(
        f"the key of `{destination.place}` has changed: its {_shown(blob)}, and {line.where} has"
        f" {fingerprint(line.blob)}",
        hint="somebody may be listening in. Once the administrator has confirmed the new key:"
        f' `ssh-keygen -f "{line.path}" -R "{known.name}"`',
    )


def _accept_new(destination: Destination, known: KnownHost, blob: bytes, asker: Asker) -> None:
    strict = destination.host_key.strict
    if strict == "yes":
        raise _unknown(destination, blob, "`StrictHostKeyChecking` is `yes`")
    if strict == "ask":
        if destination.login.batch:
            raise _unknown(destination, blob, "`BatchMode` is `yes`")
        answer = asker.ask(Question("host-key", _question(destination, known, blob), echo=True))
        if answer.strip().lower() != "yes" and answer.strip() != fingerprint(blob):
            raise _unknown(destination, blob, "it was not accepted")
    _remember(destination, known, blob)


def _unknown(destination: Destination, blob: bytes, reason: str) -> HostKeyUnknown:
    return HostKeyUnknown(
        f"the key of `{destination.place}` is not known ({_shown(blob)}), and {reason}",
        hint="compare the fingerprint with the administrator's; `ssh"
        f" {destination.host}` asks whether to accept it",
    )


def _question(destination: Destination, known: KnownHost, blob: bytes) -> str:
    others = [line.where for line in known.keys if line.marker == ""]
    also = f"\nkeys of another type are known for it: {', '.join(others)}" if others else ""
    return (
        f"the authenticity of host '{destination.place}' cannot be established\n"
        f"its {_shown(blob)}{also}\n"
        "connect, and remember this key"
    )


def _shown(blob: bytes) -> str:
    name = key_type(blob).removeprefix("ssh-").partition("-")[0].upper()
    return f"{name} key is {fingerprint(blob)}"


def _remember(destination: Destination, known: KnownHost, blob: bytes) -> None:
    """Append the key as ssh would; failing that the connection goes on, as ssh's does."""
    if not destination.host_key.user_files:
        return
    path = destination.host_key.user_files[0]
    try:
        append(path, format_line(known.name, blob, hashed=destination.host_key.hash_names))
    except OSError as error:
        _LOG.warning("the key of %s could not be added to %s: %s", known.name, path, error)
