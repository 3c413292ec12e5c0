"""The demo's host as a whole: a server, and the ssh configuration that leads to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jlremote.demo import engine
from jlremote.demo.keys import Keys, write_configuration
from jlremote.demo.login import current_login
from jlremote.demo.server import running_server
from jlremote.storage import paths


@contextmanager
def loopback_host(name: str, config: Path) -> Iterator[None]:
    """Run a host for the time of a `with` block.

    Args:
        name: what it is called in the configuration.
        config: the ssh configuration to write. Its folder is the host's own: whatever is in it is
            deleted before, and it is deleted afterwards.

    Raises:
        JlrError: the folder cannot be made or written.
    """
    keys, login = Keys(), current_login()
    shutil.rmtree(config.parent, ignore_errors=True)
    paths.private_directory(config.parent)
    try:
        with running_server(keys, login, engine.addresses) as port:
            write_configuration(config, keys, name, login.user, port)
            yield
    finally:
        shutil.rmtree(config.parent, ignore_errors=True)
