"""The keys to offer to a server, in the order of OpenSSH's pubkey_prepare."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jlremote.ssh.config.destination import LoginRules
from jlremote.ssh.login.agent import USUAL_PLACE, Agent
from jlremote.ssh.login.key_files import exists, public_half, read_public
from jlremote.ssh.trust.host_certificates import (
    CERTIFICATE_SUFFIX,
    is_certificate,
    read_certificate,
)
from jlremote.ssh.wire_format import key_type

_RSA = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class Identity:
    """One key or certificate to offer."""

    blob: bytes | None  # the public blob to offer; `None` where the file must be decrypted first
    label: str  # its name, for people
    agent: Agent | None = None  # signs; without one `path` is read
    path: Path | None = None  # the private key's file
    held: bytes = b""  # the agent's blob of the key that signs; a certificate may come from a file


def agent_of(rules: LoginRules, agent_socket: str | None) -> Agent | None:
    """Return the agent of IdentityAgent, or that of the calling shell."""
    named = rules.identity_agent
    if named is None or named == "SSH_AUTH_SOCK":
        path = agent_socket or USUAL_PLACE
    elif named.lower() == "none":
        path = None
    elif named.startswith("$"):
        path = os.environ.get(named.strip("${}"))
    else:
        path = named
    return Agent(path) if path else None


def gather(rules: LoginRules, agent: Agent | None) -> tuple[Identity, ...]:
    """Return the keys to offer: certificates, keys that an agent holds, then files."""
    keys = agent.keys() if agent else {}
    files = _from_files(rules.identity_files)
    listed = {identity.blob: identity for identity in reversed(files)}

    def signed(identity: Identity) -> Identity:
        """Let the agent sign if it holds the key, so that no passphrase is needed."""
        plain = _plain_key(identity.blob)
        return replace(identity, agent=agent, held=plain) if plain in keys else identity

    certified = [signed(one) for one in _certified(rules.certificate_files, listed)]
    certified = [identity for identity in certified if identity.agent or identity.path]
    known = [signed(listed[blob]) for blob in keys if blob in listed]
    others = [
        Identity(blob, comment or key_type(blob), agent, held=blob)
        for blob, comment in keys.items()
        if blob not in listed and not rules.identities_only
    ]
    rest = [signed(identity) for identity in files if identity.blob not in keys]
    # Each once, for each offer counts against the server's MaxAuthTries.
    kept: dict[object, Identity] = {}
    for identity in (*certified, *known, *others, *rest):
        kept.setdefault(object() if identity.blob is None else identity.blob, identity)
    return tuple(kept.values())


def algorithms_for(
    blob: bytes, accepted: Sequence[str] | None, server: Sequence[str] | None
) -> str | None:
    """Return the signature algorithm of a key, `None` where it must not be offered.

    `accepted` are PubkeyAcceptedAlgorithms, `None` for all; `server` are those that the server
    accepts (RFC 8308), `None` if it names none.
    """
    kind = key_type(blob)
    names = [kind]
    if kind == "ssh-rsa":
        names = list(_RSA)
    elif kind == f"ssh-rsa{CERTIFICATE_SUFFIX}":
        names = [name + CERTIFICATE_SUFFIX for name in _RSA]
    elif kind == "ssh-dss":
        names = []
    usable = [name for name in names if accepted is None or name in accepted]
    if server is not None:
        forms = {name: {name, name.removesuffix(CERTIFICATE_SUFFIX)} for name in usable}
        both = [name for name in usable if not forms[name].isdisjoint(server)]
        usable = both or (usable if "rsa" not in kind else [])
    return usable[0] if usable else None


def _from_files(paths: Sequence[Path]) -> list[Identity]:
    identities: list[Identity] = []
    for path in paths:
        if not exists(path):
            continue
        identities.append(Identity(public_half(path), str(path), path=path))
        certificate = read_public(path.with_name(f"{path.name}-cert.pub"))
        if certificate is not None and is_certificate(certificate):
            identities.append(Identity(certificate, f"{path}-cert.pub", path=path))
    return identities


def _certified(
    paths: Sequence[Path], listed: Mapping[bytes | None, Identity]
) -> Iterator[Identity]:
    """Yield the certificate in each CertificateFile, with the file of its key if it is listed."""
    for path in paths:
        blob = read_public(path)
        if blob is not None and is_certificate(blob):
            source = listed.get(_plain_key(blob))
            yield Identity(blob, str(path), path=source.path if source else None)


def _plain_key(blob: bytes | None) -> bytes:
    if blob is None or not is_certificate(blob):
        return blob or b""
    try:
        return read_certificate(blob).plain_key
    except ValueError:
        return b""
