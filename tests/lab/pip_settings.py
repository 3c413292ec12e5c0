"""The settings of this machine's pip, for the pip inside an image."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path

from tests.lab.programs import run

LOCAL = ("/", "~", "file:")
DEBIAN_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


@cache
def pip_settings() -> dict[str, str]:
    """Return pip's options by name, the environment's over those of the files."""
    listed = run(sys.executable, "-m", "pip", "config", "list")
    found = re.findall(r"^(global|install|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    order = ("global", "install", ":env:")
    return {name: text for _, name, text in sorted(found, key=lambda each: order.index(each[0]))}


def certificates() -> Path:
    """Return the bundle of authorities that this machine's pip trusts."""
    told = (
        pip_settings().get("cert"),
        *map(os.environ.get, ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")),
    )
    return next((Path(path) for path in told if path), DEBIAN_BUNDLE)


def pip_conf() -> str:
    """Return a `pip.conf` with this machine's settings, less those that only hold here.

    Folders and `file:` indexes of this machine are not in a container, and its bundle of
    authorities lies at Debian's place there.
    """
    lines = ["[global]", f"cert = {DEBIAN_BUNDLE}"]
    for name, text in pip_settings().items():
        words = [word for word in text.replace("\\n", " ").split() if not word.startswith(LOCAL)]
        if words and name != "cert":
            lines.append(f"{name} = {' '.join(words)}")
    return "\n".join(lines) + "\n"
