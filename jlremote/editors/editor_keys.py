"""The keys by which ssh clients of this laptop and the link's SSH server trust each other.

One pair of each kind is made once. Only this user can read them, so another user of the laptop can
neither log in nor pose as the server.
"""

from __future__ import annotations

from pathlib import Path

from jlremote.laptop import paths

HOST_ALIAS = "jlr"  # stands for every name below `.jlr` in `known_hosts`


class EditorKeys:
    """The files of the keys: OpenSSH's formats, mode 0600."""

    def __init__(self, folder: Path) -> None:
        self.client = folder / "client_key"  # the private key that the client logs in with
        self.client_public = folder / "client_key.pub"
        self.host = folder / "host_key"  # the private key of the server
        self.known_hosts = folder / "known_hosts"  # its public key, as the client looks it up


def editor_keys() -> EditorKeys:
    """Return the keys; the first call makes them.

    Raise `JlrError` if they cannot be written, or others have access to their folder.
    """
    folder = paths.private_directory(paths.data_directory() / "ssh")
    keys = EditorKeys(folder)
    if not keys.known_hosts.exists():
        from filelock import FileLock

        with FileLock(folder / "lock", mode=0o600):
            if not keys.known_hosts.exists():
                private, public = _new_pair()
                paths.write_whole(keys.client, private)
                paths.write_whole(keys.client_public, public + b" jlr\n")
                private, public = _new_pair()
                paths.write_whole(keys.host, private)
                # The last file: it tells that all are there.
                paths.write_whole(keys.known_hosts, HOST_ALIAS.encode() + b" " + public + b"\n")
    return keys


def _new_pair() -> tuple[bytes, bytes]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private, public
