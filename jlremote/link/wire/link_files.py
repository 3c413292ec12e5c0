"""The files by which commands find a host's link."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jlremote.laptop import paths
from jlremote.link.wire.protocol import pipe_name


@dataclass(frozen=True)
class LinkFiles:
    """The files of one link, all in a folder that only its user can enter."""

    host: str  # the destination as typed after `ssh`
    ssh_config: Path | None  # ssh's `-F`; another configuration is another link
    lock: Path  # held by the link for as long as it lives. A pid is never trusted
    starting: Path  # held by the command that starts the link, or restores what the last one held
    restoring: Path  # exists until that is restored
    socket: Path  # at which the link listens, but on Windows: see `address`
    key: Path  # the secret with which both sides authenticate; each link makes its own
    mount_socket: Path  # the socket for sshfs; its name outlives the link
    log: Path
    destination: Path  # host and configuration, written when the link is started
    login: Path  # exists while the host needs what only its login shell has
    disconnected: Path  # from `jlr disconnect` until the next start, also after a reboot

    def address(self, secret: bytes) -> str:
        """Return the address at which `multiprocessing.connection` listens."""
        return pipe_name(secret) if os.name == "nt" else str(self.socket)


def link_files(host: str, ssh_config: Path | None) -> LinkFiles:
    """Return the files of the link to `host`; names are short because socket paths are limited."""
    config = "" if ssh_config is None else str(ssh_config.resolve())
    # Arguments may hold bytes that are no UTF-8; the link refuses such a host by its name.
    digest = hashlib.sha256(os.fsencode(f"{host}\0{config}")).hexdigest()[:16]
    folder = paths.runtime_directory()
    sockets = paths.socket_directory(len(f"{digest}.socket"))
    return LinkFiles(
        host,
        ssh_config,
        lock=folder / f"{digest}.lock",
        starting=folder / f"{digest}.starting",
        restoring=folder / f"{digest}.restoring",
        socket=sockets / f"{digest}.socket",
        key=folder / f"{digest}.key",
        mount_socket=sockets / f"{digest}.sftp",
        log=paths.log_directory() / f"link-{digest}.log",
        destination=folder / f"{digest}.destination",
        login=paths.state_directory() / f"{digest}.login",
        disconnected=paths.state_directory() / f"{digest}.disconnected",
    )


def write_destination(files: LinkFiles) -> None:
    """Record the host that a link's files belong to, for `destinations`."""
    config = None if files.ssh_config is None else str(files.ssh_config.resolve())
    paths.write_whole(files.destination, json.dumps([files.host, config]))


def destinations() -> list[tuple[str, Path | None]]:
    """Return host and configuration of each link that was started since this machine's start."""
    links = []
    for path in paths.runtime_directory().glob("*.destination"):
        with suppress(OSError, ValueError):
            host, config = json.loads(path.read_bytes())
            if isinstance(host, str) and isinstance(config, str | None):
                links.append((host, None if config is None else Path(config)))
    return links
