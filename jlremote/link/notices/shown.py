"""A notice that is shown on the desktop, or logged where there is none."""

from __future__ import annotations

import logging

from jlremote import desktop
from jlremote.errors import JlrError

log = logging.getLogger(__name__)


def show(title: str, text: str) -> bool:
    """Show a notice on the desktop; return whether there is one."""
    try:
        desktop.show(title, text)
    except JlrError as none:
        log.info("no notice: %s", none)
        return False
    return True
