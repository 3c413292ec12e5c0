"""The shell of each script, and what startup files may have broken, mended at its head."""

from __future__ import annotations

# Without `exec`, which a `ForceCommand exec $SSH_ORIGINAL_COMMAND` has already.
SHELL = "/bin/sh -s"
# zsh splits no words, and takes the place of `sh` where a startup file of bash ends in `exec zsh`.
# It reads a line at a time, so what follows is left to `sh`. With TMOUT, which hardened hosts set,
# `read` gives up after so many seconds. A path without these two programs lacks the engines, too;
# the folders are sshd's own default.
_MEND = b"""\
[ -z "${ZSH_VERSION-}" ] || exec /bin/sh -s
unset TMOUT
command -v cat >/dev/null 2>&1 && command -v id >/dev/null 2>&1 || {
  PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin; export PATH
}
"""


def mended(script: bytes) -> bytes:
    """Return a script that `sh` reads without a time limit, and that finds the system's programs.

    Those of the user's own `PATH` come first.
    """
    return _MEND + script
