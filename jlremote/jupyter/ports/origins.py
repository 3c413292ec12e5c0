"""The names of forwards on this machine: an origin of its own for each in a browser.

Browsers share cookies between all ports of 127.0.0.1, so a page of one session would make them send
another's. They resolve `*.localhost` themselves (RFC 6761, section 6.3), to loopback only.

One label, and not `cont1.dgx.localhost`: pages below the same `dgx.localhost` are one site, whose
requests carry each other's cookies in spite of `SameSite`, and one may set cookies for all of it.
"""

from __future__ import annotations

import hashlib
import re

LONGEST_LABEL = 63  # RFC 1035, section 2.3.4
DIGITS = 12

# Names of these forms stand in a label as they are, and no two pairs of them make the same label.
_SESSION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_HOST = re.compile(r"[a-z][a-z0-9]*")


def hostname(host: str, session: str, port: int | None = None) -> str:
    """Return the name of a session's forward in a browser, as `cont1-dgx.localhost`.

    `host` is what was typed after `ssh`; `port` is a further port, `None` for Jupyter.
    """
    words = (*(() if port is None else (str(port),)), session, host)
    label = "-".join(words)
    plain = _SESSION.fullmatch(session) and _HOST.fullmatch(host)
    if not plain or len(label) > LONGEST_LABEL:
        label = _shortened(words)
    return f"{label}.localhost"


def _shortened(words: tuple[str, ...]) -> str:
    """Return a label that only these words have; its last part, unlike a host, begins with 0."""
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()
    begin = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
    begin = begin[: LONGEST_LABEL - DIGITS - 2].rstrip("-")
    return f"{begin}-0{digest[:DIGITS]}".removeprefix("-")
