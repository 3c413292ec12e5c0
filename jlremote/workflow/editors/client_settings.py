"""The settings of ssh for names below `.jlr`, whatever the user's own `Host *` says.

A `Host *` is written for other servers: its algorithms, checks and time limits may not suit ours,
and a terminal or command that it forces breaks what runs over ssh. So the block sets each such
option, to OpenSSH's default where ours needs nothing else. What does no harm stays the user's:
their agent, forwards, variables and keys, which ssh adds to those that it has found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

_SETTINGS = (
    # ssh takes ChaCha20 first, which costs the link's server twice the processor's time.
    "Ciphers aes128-gcm@openssh.com,chacha20-poly1305@openssh.com",
    "KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256",
    "WarnWeakCrypto no",  # nothing leaves this machine
    "HostKeyAlgorithms ssh-ed25519",
    "StrictHostKeyChecking yes",
    "CheckHostIP no",
    "KnownHostsCommand none",
    "UpdateHostKeys no",
    "VerifyHostKeyDNS no",
    "IdentitiesOnly yes",
    "PKCS11Provider none",  # it may ask for a PIN
    "AddKeysToAgent no",
    "PubkeyAuthentication yes",
    "PubkeyAcceptedKeyTypes ssh-ed25519",  # the name that old versions know, too
    "PreferredAuthentications publickey",
    "CanonicalizeHostname no",
    "ConnectTimeout 0",  # a password or code may have to be typed first
    "ServerAliveInterval 0",
    "RequestTTY auto",
    "RemoteCommand none",
    "SessionType default",
    "StdinNull no",
    "ForkAfterAuthentication no",
    "PermitLocalCommand no",  # its output would be among that of `rsync` and `git`
    "ClearAllForwardings no",
    "ExitOnForwardFailure no",
    "ForwardX11 no",
    "Tunnel no",
    "ControlMaster no",
    "ControlPersist no",  # it sends what `jlr proxy` has to say to /dev/null
)
_REFUSED = re.compile(r"line (\d+): ")


def client_settings() -> list[str]:
    """Return the settings that this machine's ssh knows: one unknown to ssh spoils the file."""
    lines = list(_SETTINGS)
    # An environment may bring an ssh of its own, and an editor take the system's.
    for program in filter(None, {shutil.which("ssh"), shutil.which("ssh", path=os.defpath)}):
        while (known := _known_to(program, lines)) != lines:
            lines = known
    return lines


def _known_to(program: str, lines: list[str]) -> list[str]:
    """Return the lines without those of which an ssh complains."""
    asked = subprocess.run(
        (program, "-F", "/dev/stdin", "-G", "--", "jlr"),
        input="\n".join(lines), capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused = {*_REFUSED.findall(asked.stderr)}
    return [line for number, line in enumerate(lines, 1) if str(number) not in refused]
