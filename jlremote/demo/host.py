"""The demo's host: an SSH server, and the ssh configuration that leads to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jlremote.demo import engine
from jlremote.demo.account import current_account
from jlremote.demo.keys import DemoKeys, write_configuration
from jlremote.demo.server import running_server
from jlremote.storage import paths


@contextmanager
def loopback_host(name: str, config: Path) -> Iterator[None]:
    """Run a host for the time of a `with` block.

    Args:
        name: its name in the configuration.
        config: the ssh configuration to write. Its folder belongs to the host alone: it is deleted
            before and afterwards.

    Raises:
        JlrError: the folder cannot be made or written.
    """
    keys, account = DemoKeys(), current_account()
    shutil.rmtree(config.parent, ignore_errors=True)
    paths.private_directory(config.parent)
    try:
        with running_server(keys, account, engine.addresses) as port:
            write_configuration(config, keys, name, account.user, port)
            yield
    finally:
        shutil.rmtree(config.parent, ignore_errors=True)
