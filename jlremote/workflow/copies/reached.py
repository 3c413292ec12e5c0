"""The place of a copy, and a client of its files from the moment that one is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import TypeVar

from jlremote.link.client.link import ShellCommand
from jlremote.link.wire.protocol import Unproved
from jlremote.runtimes.scripts import sftp
from jlremote.workflow.copies.sftp_client import SftpClient
from jlremote.workflow.host.context import Context
from jlremote.workflow.session.shell import ShellPlace, place_of, recorded, recorded_place

T = TypeVar("T")


class Reached:
    """A place; as with `jlr shell`, a session that the link knows to run is not looked at first.

    `stack` ends the client.
    """

    def __init__(
        self, where: str | None, context: Context, stack: ExitStack, *, recursive: bool
    ) -> None:
        self._where = where
        self._context = context
        self._stack = stack
        # Our own server takes many small files at once, and OpenSSH's is faster with a large one.
        self._server = sftp.tree_server_argv() if recursive else sftp.server_argv()
        record = recorded(where)
        self._checked = record is None
        self.place = place_of(where, context) if record is None else recorded_place(record, context)

    def run(self, act: Callable[[ShellPlace, bool], T]) -> T:
        """Return what `act` does with the place; it is told whether that was looked at.

        It is called again after a look, if it raises `Unproved`.
        """
        if not self._checked:
            with suppress(Unproved):
                result = act(self.place, False)
                self._checked = True
                return result
            self.place = place_of(self._where, self._context)
            self._checked = True
        return act(self.place, True)

    @cached_property
    def client(self) -> SftpClient:
        """A client of the place's files, which begins at the first use."""
        return self.run(self._begun)

    def _begun(self, place: ShellPlace, checked: bool) -> SftpClient:
        server = ShellCommand(self._server, copies=True)
        with ExitStack() as begun:
            process = begun.enter_context(
                place.host.shell(place.served, server, None, checked=checked)
            )
            process.wait_connected()
            client = SftpClient(process)
            client.greet()
            begun.push(lambda failure, *_: client.end() if failure is None else None)
            self._stack.push(begun.pop_all())
        return client
