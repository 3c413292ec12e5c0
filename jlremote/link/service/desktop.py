"""Notices on the desktop, by the program that each system has for them."""

from __future__ import annotations

import logging
import subprocess
import sys

log = logging.getLogger(__name__)

_SECONDS = 10
_APPLE_SCRIPT = """\
on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run"""


def show(title: str, text: str) -> None:
    """Show a notice, which on Linux stays until it is dismissed; log that there is no desktop."""
    argv = command(sys.platform, title, text)
    if argv is None:
        log.info("no notice on the desktop: `%s` has no program for it", sys.platform)
        return
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as failure:
        log.info("no notice on the desktop: %s", failure)
    else:
        if done.returncode != 0:
            log.info("no notice on the desktop: `%s` failed: %r", argv[0], done.stderr)


def command(system: str, title: str, text: str) -> tuple[str, ...] | None:
    """Return the command for a system as `sys.platform` names it, `None` where there is none."""
    if system == "linux":
        return ("notify-send", "--app-name=jlr", "--urgency=critical", "--", title, text)
    if system == "darwin":
        return ("osascript", "-e", _APPLE_SCRIPT, title, text)
    return None
