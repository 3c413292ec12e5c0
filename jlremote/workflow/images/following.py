"""The output of a pull or push, followed to its end and across broken connections."""

from __future__ import annotations

from collections.abc import Iterable

from jlremote.errors import LinkLost
from jlremote.images.image_files import FilePull
from jlremote.images.transfers import Transfer
from jlremote.link.client.link import Link
from jlremote.workflow.host.context import Context


def follow(
    host: Link, script: str, given: Iterable[bytes], transfer: Transfer | FilePull, context: Context
) -> int:
    """Follow a transfer to its end, and return its exit status.

    It goes on without a connection (`surviving_disconnect`), and a second one joins it. A loss
    before it has begun is raised.
    """
    while True:
        try:
            with host.stream(script, given) as output:
                for text in output:
                    transfer.take(text)
                    context.progress.advance(transfer.in_words())
        except LinkLost:
            transfer.finish()
            if not transfer.in_words():
                raise
            context.progress.note("the connection broke; the transfer goes on there; reconnecting")
        else:
            transfer.finish()
            return 1 if output.status is None else output.status
