"""Host certificates: keys signed by an authority of the known_hosts files."""

from __future__ import annotations

import base64
import fnmatch
import time
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.hazmat.primitives.serialization.ssh import (
    SSHCertificate,
    SSHCertificateType,
    SSHCertPublicKeyTypes,
    load_ssh_public_identity,
)

from jlremote.ssh.wire_format import key_type, take_string

CERTIFICATE_SUFFIX = "-cert-v01@openssh.com"


@dataclass(frozen=True)
class Certificate:
    """A parsed certificate; its signature is not verified yet.

    `plain_key` and `authority` are the blobs of the certified key and of the one that signed it,
    `signed_with` is the signature's algorithm.
    """

    parsed: SSHCertificate
    plain_key: bytes
    authority: bytes
    signed_with: str


def is_certificate(blob: bytes) -> bool:
    """Return whether a blob is a certificate and not a bare key."""
    return key_type(blob).endswith(CERTIFICATE_SUFFIX)


def read_certificate(blob: bytes) -> Certificate:
    """Parse a certificate's blob; `ValueError` if it is not a readable certificate."""
    line = key_type(blob).encode() + b" " + base64.b64encode(blob)
    try:
        parsed = load_ssh_public_identity(line)
        if not isinstance(parsed, SSHCertificate):
            raise ValueError("a bare key is not a certificate")
        keys = public_blob(parsed.public_key()), public_blob(parsed.signature_key())
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    signature = _last_string(blob)
    return Certificate(parsed, *keys, take_string(signature)[0].decode("ascii", "replace"))


def why_invalid(
    certificate: Certificate, name: str, signatures: tuple[str, ...] | None
) -> str | None:
    """Return why a host certificate of a known authority does not prove `name`, `None` if it does.

    `name` is without a port. `signatures` are CASignatureAlgorithms, `None` for any.
    """
    parsed = certificate.parsed
    if parsed.type is not SSHCertificateType.HOST:
        return "it is a certificate of a user, not of a host"
    if not parsed.valid_after <= time.time() < parsed.valid_before:
        return "it has expired or is not valid yet"
    principals = [principal.decode("utf-8", "replace") for principal in parsed.valid_principals]
    if principals and not any(fnmatch.fnmatchcase(name, principal) for principal in principals):
        return f"it is for {', '.join(principals)}, not for {name}"
    if parsed.critical_options:
        return "it has critical options, which a host certificate cannot have"
    if signatures is not None and certificate.signed_with not in signatures:
        return f"its signature is {certificate.signed_with}, which CASignatureAlgorithms leaves out"
    try:
        parsed.verify_cert_signature()
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return "its signature is wrong"
    return None


def public_blob(key: SSHCertPublicKeyTypes) -> bytes:
    """Return a public key in the wire's format."""
    line = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def _last_string(blob: bytes) -> bytes:
    """Return the last field, the signature, whose position is found from the end."""
    for size_at in range(len(blob) - 4, -1, -1):
        if int.from_bytes(blob[size_at : size_at + 4], "big") == len(blob) - size_at - 4:
            candidate = blob[size_at + 4 :]
            if key_type(candidate):
                return candidate
    raise ValueError("a certificate has no signature")
