"""A JupyterLab on the host itself."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.accounts import Account
from tests.lab.laptop import Laptop

CONFIGURATION = "jupyter_server_config.py"
# A person's own way to Jupyter, which is not that of jlr.
OTHER_WAYS = """\
settings = get_config().ServerApp
settings.certfile, settings.sock, settings.base_url = "/no/such.pem", "/no/such.sock", "/own/"
"""


@pytest.fixture(scope="module")
def environment(file_laptop: Laptop, account: Account) -> Iterator[Path]:
    """A virtual environment of the account's that has JupyterLab, borrowed from the tests' own."""
    folder = account.home / "env"
    packages, extensions = sysconfig.get_path("purelib"), Path(sys.prefix) / "etc"
    steps = (
        "test -d env || python3 -m venv --without-pip env",
        f"ln -sfn {extensions} env/etc",
        f"echo {packages} >$(echo env/lib/python3*/site-packages)/lab.pth",
        "env/bin/python -c 'import jupyterlab, zmq'",
        f"mkdir -p .jupyter; printf %s {shlex.quote(OTHER_WAYS)} >.jupyter/{CONFIGURATION}",
    )
    made = file_laptop.ssh("lab", "; ".join(steps))
    if made.status != 0:
        pytest.skip(f"the host's Python cannot use the tests' packages: {made.stderr[-200:]}")
    yield folder
    account.end_processes()
    (account.home / ".jupyter" / CONFIGURATION).unlink()
