"""The SFTP server of a container or host: OpenSSH's own, or a program of ours on its Python."""

from __future__ import annotations

import importlib.resources

_OPENSSH = """\
for folder in /usr/lib/openssh /usr/libexec/openssh /usr/libexec /usr/lib/ssh /usr/lib; do
  [ ! -x "$folder/sftp-server" ] || exec "$folder/sftp-server"
done
"""
# Runs the interpreter that is there, with the arguments that follow.
FIND_PYTHON = """\
for python in python3 python /opt/conda/bin/python /usr/libexec/platform-python; do
  ! command -v "$python" >/dev/null || exec "$python" "$@"
done
"""
_NONE = """\
echo 'no Python is there' >&2
exit 127
"""
PYTHON = ("sh", "-c", FIND_PYTHON + _NONE, "sh")
_PROGRAM = (importlib.resources.files(__package__) / "sftp_program.py").read_text("utf-8")


def server_argv() -> tuple[str, ...]:
    """Return the argv that serves files on stdin and stdout."""
    return ("sh", "-c", _OPENSSH + FIND_PYTHON + _NONE, "sh", "-c", _PROGRAM)
