"""The algorithms that we offer: only safe ones, the fastest first, within the ssh config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jlremote.errors import NoCommonAlgorithm
from jlremote.ssh.config.destination import Algorithms
from jlremote.ssh.trust.host_certificates import CERTIFICATE_SUFFIX

# AES-GCM is three times as fast as CTR with a MAC here; no CBC, no 3DES.
_SEALING = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
CIPHERS = (*_SEALING, "aes128-ctr", "aes192-ctr", "aes256-ctr")
# For CTR only; no MD5, no SHA-1.
MACS = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
)
KEY_EXCHANGE = (
    "mlkem768x25519-sha256",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group14-sha256",
)
HOST_KEYS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


@dataclass(frozen=True)
class Offer:
    """The algorithms that one connection offers, in order of preference."""

    ciphers: tuple[str, ...] = CIPHERS
    macs: tuple[str, ...] = MACS
    key_exchange: tuple[str, ...] = KEY_EXCHANGE
    host_keys: tuple[str, ...] = HOST_KEYS
    compression: bool = False


def offer(allowed: Algorithms, known: Sequence[str], *, compression: bool) -> Offer:
    """Return the algorithms to offer to a server.

    The host key algorithms in `known`, which the known_hosts files can check, go first, as in ssh.
    The certificate suffix among them means certificates of every type. `NoCommonAlgorithm` if the
    settings allow nothing that jlr has.
    """
    ciphers = _within(CIPHERS, allowed.ciphers, "Ciphers")
    sealing = tuple(name for name in ciphers if name in _SEALING)
    if sealing and allowed.macs is not None and not set(MACS) & set(allowed.macs):
        ciphers, allowed = sealing, replace(allowed, macs=None)  # no MAC will be used
    host_keys = tuple(sorted(HOST_KEYS, key=lambda name: name not in known))
    if CERTIFICATE_SUFFIX in known:
        host_keys = (*(name + CERTIFICATE_SUFFIX for name in host_keys), *host_keys)
    return Offer(
        ciphers=ciphers,
        macs=_within(MACS, allowed.macs, "MACs"),
        key_exchange=_within(KEY_EXCHANGE, allowed.key_exchange, "KexAlgorithms"),
        host_keys=_within(host_keys, allowed.host_keys, "HostKeyAlgorithms"),
        compression=compression,
    )


def is_sealed(ciphers: Sequence[str], server: Mapping[str, Sequence[str]]) -> bool:
    """Return whether both directions get a cipher that needs no MAC."""
    lists = (server["client_encrypt_algo_list"], server["server_encrypt_algo_list"])
    agreed = [next((name for name in ciphers if name in names), None) for names in lists]
    return all(name in _SEALING for name in agreed)


def _within(
    ours: tuple[str, ...], allowed: tuple[str, ...] | None, setting: str
) -> tuple[str, ...]:
    if allowed is None:
        return ours
    both = tuple(name for name in ours if name in allowed)
    if not both:
        message = f"`{setting}` of your ssh config allows nothing that jlr has"
        raise NoCommonAlgorithm(message, hint=f"allow one of {', '.join(ours)}")
    return both
