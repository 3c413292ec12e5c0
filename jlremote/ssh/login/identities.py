"""Which keys are offered to a server, and in which order: the order of OpenSSH's pubkey_prepare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jlremote.ssh.config.rules import LoginRules
from jlremote.ssh.login.agent import Agent, AgentKey
from jlremote.ssh.login.key_files import find, read_public
from jlremote.ssh.trust.host_certificates import is_certificate, read_certificate
from jlremote.ssh.wire_format import key_type

_RSA = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class Identity:
    """One key or certificate to offer.

    Attributes:
        blob: what the server is asked about; `None` where only the decrypted file tells.
        label: how people know it.
        agent: the agent that signs, else `path` is read.
        path: the private key's file.
        held: how the agent knows the key that signs; a certificate may come from a file.
    """

    blob: bytes | None
    label: str
    agent: Agent | None = None
    path: Path | None = None
    held: bytes = b""


def agent_of(rules: LoginRules, agent_socket: str | None) -> Agent | None:
    """Return the agent that IdentityAgent names, or that of the calling shell."""
    named = rules.identity_agent
    if named is None or named == "SSH_AUTH_SOCK":
        path = agent_socket
    elif named.lower() == "none":
        path = None
    elif named.startswith("$"):
        path = os.environ.get(named.strip("${}"))
    else:
        path = str(Path(named).expanduser())
    return Agent(path) if path else None


def gather(rules: LoginRules, agent: Agent | None) -> tuple[Identity, ...]:
    """Return what may be offered: certificates, keys that an agent holds, then files."""
    held = agent.keys() if agent else ()
    files = _from_files(rules.identity_files)
    listed = {identity.blob for identity in files}
    known = [_held(key, agent, files) for key in held if key.blob in listed]
    others = [
        Identity(key.blob, key.comment or key_type(key.blob), agent, held=key.blob)
        for key in held
        if key.blob not in listed and not rules.identities_only
    ]
    in_agent = {key.blob for key in held}
    rest = [identity for identity in files if identity.blob not in in_agent]
    certified = [
        identity
        for path in rules.certificate_files
        if (identity := _certified(path, files, held, agent)) is not None
    ]
    ordered = [*certified, *known, *others, *(_signed_by_agent(one, held, agent) for one in rest)]
    return tuple(_once(ordered))


def algorithms_for(
    blob: bytes, accepted: Sequence[str] | None, server: Sequence[str] | None
) -> str | None:
    """Return the algorithm to sign with, `None` where the key must not be offered.

    Args:
        blob: the key or certificate.
        accepted: PubkeyAcceptedAlgorithms, `None` for all.
        server: what the server says that it takes (RFC 8308), `None` where it is silent.
    """
    kind = key_type(blob)
    names = [kind]
    if kind == "ssh-rsa":
        names = list(_RSA)
    elif kind == "ssh-rsa-cert-v01@openssh.com":
        names = [f"{name}-cert-v01@openssh.com" for name in _RSA]
    elif kind == "ssh-dss":
        names = []
    wanted = [name for name in names if accepted is None or name in accepted]
    if server is not None:
        both = [name for name in wanted if name in server or _bare(name) in server]
        wanted = both or (wanted if "rsa" not in kind else [])
    return wanted[0] if wanted else None


def _bare(name: str) -> str:
    return name.removesuffix("-cert-v01@openssh.com")


def _from_files(paths: Sequence[Path]) -> list[Identity]:
    found: list[Identity] = []
    for path in paths:
        key = find(path)
        if key is None:
            continue
        found.append(Identity(key.public, str(path), path=path))
        certificate = read_public(path.with_name(f"{path.name}-cert.pub"))
        if certificate is not None and is_certificate(certificate):
            found.append(Identity(certificate, f"{path}-cert.pub", path=path))
    return found


def _held(key: AgentKey, agent: Agent | None, files: Sequence[Identity]) -> Identity:
    listed = next(identity for identity in files if identity.blob == key.blob)
    return Identity(key.blob, listed.label, agent, listed.path, held=key.blob)


def _certified(
    path: Path, files: Sequence[Identity], held: Sequence[AgentKey], agent: Agent | None
) -> Identity | None:
    """Find the key that a CertificateFile speaks of."""
    blob = read_public(path)
    if blob is None or not is_certificate(blob):
        return None
    plain = _certified_key(blob)
    if any(key.blob == plain for key in held):
        return Identity(blob, str(path), agent, held=plain)
    for identity in files:
        if identity.blob == plain:
            return Identity(blob, str(path), path=identity.path)
    return None


def _signed_by_agent(identity: Identity, held: Sequence[AgentKey], agent: Agent | None) -> Identity:
    """Let the agent sign for a certificate whose bare key it holds: no passphrase is needed."""
    blob = identity.blob
    if blob is None or not is_certificate(blob):
        return identity
    plain = _certified_key(blob)
    if all(key.blob != plain for key in held):
        return identity
    return Identity(blob, identity.label, agent, identity.path, held=plain)


def _certified_key(blob: bytes) -> bytes:
    """Return the bare key of a certificate, nothing where it is of a kind that is not known."""
    try:
        return read_certificate(blob).plain_key
    except ValueError:
        return b""


def _once(identities: Sequence[Identity]) -> list[Identity]:
    """Leave out a key that comes twice: each offer counts against the server's MaxAuthTries."""
    seen: set[bytes] = set()
    kept = []
    for identity in identities:
        if identity.blob is None or identity.blob not in seen:
            kept.append(identity)
        if identity.blob is not None:
            seen.add(identity.blob)
    return kept
