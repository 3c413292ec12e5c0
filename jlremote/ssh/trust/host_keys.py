"""The verification of a host's key, on every hop before any credential is offered."""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import HostKey, HostKeyChanged, Usage
from jlremote.questions import Asker, Question
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.trust import host_certificates
from jlremote.ssh.trust.host_certificates import CERTIFICATE_SUFFIX, Certificate
from jlremote.ssh.trust.known_hosts import KnownKey, append, format_line, read_files
from jlremote.ssh.wire_format import decode_key, fingerprint, key_type
from jlremote.text import reason_of

_LOG = logging.getLogger("jlremote.ssh")
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class KnownHost:
    """The lines of the known_hosts files about one destination."""

    name: str  # the host's name in the files, with the port where it is not 22
    keys: tuple[KnownKey, ...]  # the lines that match the name
    # without HostKeyAlias and on another port: the lines of the bare name, which ssh accepts too
    # if they hold the same key
    portless: tuple[KnownKey, ...] = ()

    def algorithms(self) -> tuple[str, ...]:
        """Return the host key algorithms to offer first: those of the known keys."""
        certified = any(known.marker == "@cert-authority" for known in self.keys)
        types = [known.type for known in self.keys if known.marker == ""]
        plain = [_RSA_SIGNATURES if name == "ssh-rsa" else (name,) for name in dict.fromkeys(types)]
        return (*((CERTIFICATE_SUFFIX,) if certified else ()), *itertools.chain(*plain))


def look_up(destination: Destination) -> KnownHost:
    """Return the lines of the known_hosts files about a destination."""
    rules = destination.host_key
    name = rules.alias or destination.place
    bare = destination.hostname.lower()
    lines = tuple(read_files((*rules.user_files, *rules.global_files)))
    keys = tuple(known for known in lines if known.matches(name))
    if name == bare or rules.alias:
        return KnownHost(name, keys)
    return KnownHost(name, keys, tuple(known for known in lines if known.matches(bare)))


def verify(destination: Destination, blob: bytes, asker: Asker, address: str = "") -> None:
    """Check that the server's key is known, or ask the person to accept it.

    `address` is the server's, `""` where a jump host or a proxy command reaches it.

    As in ssh, a key of another type than the known ones has changed too: with a question, or
    with `accept-new`, a man in the middle would only need a key of a type that is not known.
    Raise `HostKeyChanged` if another key is known, `HostKey` if none is or the key is revoked,
    `NeedsAuthentication` if a person must decide and cannot be asked.
    """
    known = look_up(destination)
    certificate = _certificate(destination, blob)
    _refuse_revoked(destination, known, blob, certificate)
    is_loopback = address.startswith("127.") or address == "::1"
    if is_loopback and destination.host_key.trusts_loopback and not destination.host_key.alias:
        return
    if certificate is not None:
        problem = _certificate_problem(destination, known, certificate)
        if problem is None:
            return
        _LOG.warning("the certificate of %s is not valid: %s", destination.place, problem)
        blob = certificate.plain_key  # which may be known, as in ssh
    plain = [line for line in known.keys if line.marker == ""]
    if any(line.blob == blob for line in plain):
        return
    if plain:
        same_type = [line for line in plain if line.type == key_type(blob)]
        raise _changed(destination, known, (same_type or plain)[0], blob)
    if any(line.marker == "" and line.blob == blob for line in known.portless):
        return
    _accept_new(destination, known, blob, asker)


def _certificate(destination: Destination, blob: bytes) -> Certificate | None:
    if not host_certificates.is_certificate(blob):
        return None
    try:
        return host_certificates.read_certificate(blob)
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
        key = f"the key of `{destination.place}` ({fingerprint(blob)})"
        hint = "do not connect: ask the host's administrator for its new key"
        raise HostKey(f"{key} is revoked by {where[0]}", hint=hint)


def _revoked_lines(path: Path, suspects: set[bytes]) -> list[str]:
    """Return the lines of RevokedHostKeys that revoke a key; an unreadable file revokes all."""
    try:
        content = path.read_bytes()
    except OSError as error:
        hint = "make the file readable or remove the setting; ssh refuses every host key too"
        message = f"cannot read the `RevokedHostKeys` file `{path}`: {reason_of(error)}"
        raise Usage(message, hint=hint) from error
    if content.startswith(b"SSHKRL\n"):
        hint = "write the revoked public keys as text, a line each"
        raise Usage(f"`{path}` is a binary key revocation list, which jlr cannot read", hint=hint)
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
    return host_certificates.why_invalid(certificate, name, destination.algorithms.authorities)


def _changed(
    destination: Destination, known: KnownHost, line: KnownKey, blob: bytes
) -> HostKeyChanged:
    kind = "" if line.type == key_type(blob) else f"the {_kind(line.blob)} key "
    return HostKeyChanged(
        f"the key of `{destination.place}` has changed: its {_shown(blob)}, and {line.where} has"
        f" {kind}{fingerprint(line.blob)}",
        hint=f'`ssh-keygen -f "{line.path}" -R "{known.name}"` once the administrator has confirmed'
        " the new key; until then the connection may be intercepted",
    )


def _accept_new(destination: Destination, known: KnownHost, blob: bytes, asker: Asker) -> None:
    strict = destination.host_key.strict
    if strict == "yes":
        raise _unknown(destination, blob, "`StrictHostKeyChecking` is `yes`")
    if strict == "ask":
        if destination.login.batch:
            raise _unknown(destination, blob, "`BatchMode` is `yes`")
        question = (
            f"the authenticity of host '{destination.place}' cannot be established\n"
            f"its {_shown(blob)}\nconnect, and remember this key"
        )
        answer = asker.ask(Question("host-key", question, echo=True))
        if answer.strip().lower() != "yes" and answer.strip() != fingerprint(blob):
            raise _unknown(destination, blob, "it was not accepted")
    path = next(iter(destination.host_key.user_files), None)
    if path is None:
        return
    try:
        append(path, format_line(known.name, blob, hashed=destination.host_key.hash_names))
    except OSError as error:  # this does not end the connection, as in ssh
        _LOG.warning("the key of %s could not be added to %s: %s", known.name, path, error)


def _unknown(destination: Destination, blob: bytes, reason: str) -> HostKey:
    options = (
        "-o StrictHostKeyChecking=ask " * (destination.host_key.strict == "yes"),
        "-o BatchMode=no " * destination.login.batch,
    )
    return HostKey(
        f"the key of `{destination.place}` is not known ({_shown(blob)}), and {reason}",
        hint=f"`ssh {''.join(options)}{destination.host}` asks whether to accept it; compare the"
        " fingerprint with the administrator's first",
    )


def _shown(blob: bytes) -> str:
    return f"{_kind(blob)} key is {fingerprint(blob)}"


def _kind(blob: bytes) -> str:
    return key_type(blob).removeprefix("ssh-").partition("-")[0].upper()
