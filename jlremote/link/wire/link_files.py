"""The files by which commands find a host's link."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from jlremote.laptop import paths
from jlremote.link.wire.protocol import pipe_name


class LinkFiles:
    """The files of one link, all in folders that only its user can enter.

    Their names are short, because the paths of sockets are limited.
    """

    def __init__(self, host: str, ssh_config: Path | None) -> None:
        self.host = host  # the destination as typed after `ssh`
        self.ssh_config = ssh_config  # ssh's `-F`; another configuration is another link
        self.config = None if ssh_config is None else str(ssh_config.resolve())
        # Arguments may hold bytes that are no UTF-8; the link refuses such a host by its name.
        words = os.fsencode(f"{host}\0{self.config or ''}")
        digest = hashlib.sha256(words).hexdigest()[:16]
        folder, state = paths.runtime_directory(), paths.state_directory()
        sockets = paths.socket_directory(len(f"{digest}.socket"))
        # Held by the link for as long as it lives. A pid is never trusted.
        self.lock = folder / f"{digest}.lock"
        # Held by the command that starts the link, or restores what the last one held.
        self.starting = folder / f"{digest}.starting"
        self.restoring = folder / f"{digest}.restoring"  # exists until that is restored
        self.socket = sockets / f"{digest}.socket"  # but on Windows: see `address`
        self.key = folder / f"{digest}.key"  # the secret of both sides; each link makes its own
        self.mount_socket = sockets / f"{digest}.sftp"  # for sshfs; its name outlives the link
        self.log = paths.log_directory() / f"link-{digest}.log"
        self.destination = folder / f"{digest}.destination"  # host and configuration
        self.login = state / f"{digest}.login"  # exists while the host needs its login shell's PATH
        # From `jlr disconnect` until the next start, also after a reboot.
        self.disconnected = state / f"{digest}.disconnected"

    def address(self, secret: bytes) -> str:
        """Return the address at which `multiprocessing.connection` listens."""
        return pipe_name(secret) if os.name == "nt" else str(self.socket)

    def write_destination(self) -> None:
        """Record the host that the files belong to, for `destinations`."""
        paths.write_whole(self.destination, json.dumps([self.host, self.config]))


def destinations() -> list[tuple[str, Path | None]]:
    """Return host and configuration of each link that was started since this machine's start."""
    links = []
    for path in paths.runtime_directory().glob("*.destination"):
        with suppress(OSError, ValueError):
            host, config = json.loads(path.read_bytes())
            if isinstance(host, str) and isinstance(config, str | None):
                links.append((host, None if config is None else Path(config)))
    return links
