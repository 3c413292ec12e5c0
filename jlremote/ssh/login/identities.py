"""The keys to offer to a server, in the order of OpenSSH's pubkey_prepare, and their files."""

from __future__ import annotations

import base64
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

from jlremote.ssh.config.destination import LoginRules
from jlremote.ssh.login.agent import USUAL_PLACE, Agent, UnusableKey
from jlremote.ssh.trust.host_certificates import (
    CERTIFICATE_SUFFIX,
    is_certificate,
    read_certificate,
)
from jlremote.ssh.wire_format import decode_key, key_type, number, string, take_string
from jlremote.text import reason_of

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_OPENSSH = b"openssh-key-v1\0"
_ARMOUR = re.compile(rb"-----BEGIN ([A-Z ]+)-----(.*?)-----END", re.DOTALL)
_RSA_HASHES = {"rsa-sha2-256": hashes.SHA256(), "rsa-sha2-512": hashes.SHA512()}
_CURVE_HASHES = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
# The signature algorithms of a type of key, where they have other names.
_NAMES: dict[str, tuple[str, ...]] = {"ssh-dss": (), "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
_NAMES[f"ssh-rsa{CERTIFICATE_SUFFIX}"] = tuple(
    name + CERTIFICATE_SUFFIX for name in _NAMES["ssh-rsa"]
)


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
    path = rules.identity_agent
    if path is None or path == "SSH_AUTH_SOCK":
        path = agent_socket or USUAL_PLACE
    elif path.startswith("$"):
        path = os.environ.get(path.strip("${}"))
    elif path.lower() == "none":
        path = None
    return Agent(path) if path else None


def gather(rules: LoginRules, agent: Agent | None) -> tuple[Identity, ...]:
    """Return the keys to offer: certificates, keys that an agent holds, then files."""
    keys = agent.keys() if agent else {}
    files = tuple(_from_files(rules.identity_files))
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
    usable = [name for name in _NAMES.get(kind, (kind,)) if accepted is None or name in accepted]
    if server is not None:
        forms = {name: {name, name.removesuffix(CERTIFICATE_SUFFIX)} for name in usable}
        both = [name for name in usable if not forms[name].isdisjoint(server)]
        usable = both or (usable if "rsa" not in kind else [])
    return usable[0] if usable else None


def _from_files(paths: Sequence[Path]) -> Iterator[Identity]:
    for path in paths:
        if not (path.exists() or _public_file(path).exists()):
            continue
        yield Identity(public_half(path), str(path), path=path)
        certificate = _attempt(_public_line, path.with_name(f"{path.name}-cert.pub"))
        if certificate is not None and is_certificate(certificate):
            yield Identity(certificate, f"{path}-cert.pub", path=path)


def _certified(
    paths: Sequence[Path], listed: Mapping[bytes | None, Identity]
) -> Iterator[Identity]:
    """Yield the certificate in each CertificateFile, with the file of its key if it is listed."""
    for path in paths:
        blob = _attempt(_public_line, path)
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


class PassphraseNeeded(UnusableKey):
    """A key is encrypted, and no passphrase or a wrong one was given."""


def public_half(path: Path) -> bytes | None:
    """Return the public blob of a key's file, `None` where the key must be decrypted first.

    As in ssh it comes from the file itself or from `FILE.pub`, and the file may hold only a public
    key, whose private half an agent holds.
    """
    candidates = ((path, _embedded), (path, _public_line), (_public_file(path), _public_line))
    return next((blob for file, read in candidates if (blob := _attempt(read, file))), None)


def load(path: Path, passphrase: str | None) -> PrivateKey:
    """Return the private key in a file.

    Raise `PassphraseNeeded` if it is encrypted and `passphrase` is not the right one; `UnusableKey`
    if it is missing, readable by others, broken or of an unsupported type.
    """
    secret = passphrase.encode() if passphrase else None
    try:
        _check_private(path)
        content = path.read_bytes()
        loader = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in content else load_pem_private_key
        key = loader(content, secret)
    except TypeError:
        # cryptography raises this when the key is encrypted, or when it is not.
        if secret is not None:
            return load(path, None)
        raise PassphraseNeeded(f"`{path}` is encrypted") from None
    except UnsupportedAlgorithm as error:
        raise UnusableKey(f"`{path}` is of an unsupported kind: {error}") from error
    except OSError as error:
        raise UnusableKey(f"`{path}` cannot be read: {reason_of(error)}") from error
    except ValueError as error:
        if secret is not None:
            raise PassphraseNeeded(f"the passphrase of `{path}` is wrong") from error
        raise UnusableKey(f"`{path}` is not a private key that can be read") from error
    if not isinstance(key, PrivateKey):
        raise UnusableKey(f"`{path}` is of an unsupported kind")
    return key


def sign(key: PrivateKey, data: bytes, algorithm: str) -> bytes:
    """Return a signature blob (RFC 4253, 5656, 8332 or 8709)."""
    name = algorithm.removesuffix("-cert-v01@openssh.com")
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(data, padding.PKCS1v15(), _RSA_HASHES[name])
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        digest = ec.ECDSA(_CURVE_HASHES[key.curve.key_size])
        r, s = decode_dss_signature(key.sign(data, digest))
        signature = number(r) + number(s)
    else:
        signature = key.sign(data)
    return string(name.encode()) + string(signature)


def _check_private(path: Path) -> None:
    status = path.stat()
    if sys.platform != "win32" and status.st_uid == os.getuid() and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        mend = f"chmod 600 {shlex.quote(str(path))}"
        raise UnusableKey(f"other users may read `{path}` (mode {mode:04o}): `{mend}`")


def _public_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def _attempt(read: Callable[[Path], bytes | None], path: Path) -> bytes | None:
    try:
        return read(path)
    except (OSError, ValueError):
        return None


def _embedded(path: Path) -> bytes | None:
    armour = _ARMOUR.search(path.read_bytes())
    if armour is None or armour[1] != b"OPENSSH PRIVATE KEY":
        return None
    content = base64.b64decode(armour[2])
    if not content.startswith(_OPENSSH):
        return None
    rest = content[len(_OPENSSH) :]
    for _ in range(3):  # cipher, key derivation, its options
        _, rest = take_string(rest)
    return take_string(rest[4:])[0]


def _public_line(path: Path) -> bytes | None:
    fields = path.read_bytes().split()
    return decode_key(fields[1]) if len(fields) >= 2 else None
