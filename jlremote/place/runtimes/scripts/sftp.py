"""The SFTP server of a container or host: OpenSSH's own, or a program of ours on its Python."""

from __future__ import annotations

from jlremote.remote.sending import RUN_PYTHON, program

_OPENSSH = """\
for folder in /usr/lib/openssh /usr/libexec/openssh /usr/libexec /usr/lib/ssh /usr/lib; do
  [ ! -x "$folder/sftp-server" ] || exec "$folder/sftp-server"
done
"""


def server_argv() -> tuple[str, ...]:
    """Return the argv that serves files on stdin and stdout."""
    return ("sh", "-c", _OPENSSH + RUN_PYTHON, "sh", "-c", program("jlremote.remote.sftp"))
