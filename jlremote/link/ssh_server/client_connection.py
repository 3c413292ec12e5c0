"""One client's connection: its login, and what it may ask for."""

from __future__ import annotations

import logging

import asyncssh

from jlremote.link.ssh_server.command_channel import CommandChannel
from jlremote.link.ssh_server.remote_command import Connect
from jlremote.link.ssh_server.served_place import ServedPlace

for _name in ("asyncssh", "asyncio"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # a line for each channel, with its command


class EditorConnection(asyncssh.SSHServer):
    """The server's side of one client; it lets the laptop's own key in, and nothing else."""

    def __init__(self, place: ServedPlace, connect: Connect, key: asyncssh.SSHKey) -> None:
        self._place = place
        self._connect = connect
        self._key = key

    def public_key_auth_supported(self) -> bool:
        """Accept keys, and nothing else."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Accept the one key, whatever user is named."""
        return key == self._key

    def session_requested(self) -> CommandChannel:
        return CommandChannel(self._place, self._connect)
