"""Certificates of web servers, as a person makes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Certificate:
    subject: x509.Name
    private: ec.EllipticCurvePrivateKey
    text: str

    @property
    def key(self) -> str:
        form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return self.private.private_bytes(*form).decode()


def certificate(name: str = "jupyter.example", by: Certificate | None = None) -> Certificate:
    """Return a new certificate, signed by another one or by itself."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    private = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(
        issuer_name=by.subject if by else subject,
        subject_name=subject,
        public_key=private.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=2),
        not_valid_after=now + timedelta(days=2),
    ).sign(by.private if by else private, SHA256())
    return Certificate(subject, private, made.public_bytes(Encoding.PEM).decode())
