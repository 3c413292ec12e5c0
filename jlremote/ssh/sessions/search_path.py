"""The search path of scripts on the host, which startup files may have broken."""

from __future__ import annotations

# What has neither folder lacks `id`, `cat` and the engines; sshd's own default has all three.
_MEND = b"""\
case ":$PATH:" in
*:/usr/bin:*|*:/bin:*) ;;
*) PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin; export PATH;;
esac
"""


def with_search_path(script: bytes) -> bytes:
    """Return a script that finds the system's programs, after those of the user's own `PATH`."""
    return _MEND + script
