"""The SFTP server of a container or host: OpenSSH's own, or a program of ours on its Python."""

from __future__ import annotations

import importlib.resources

_OPENSSH = """\
for folder in /usr/lib/openssh /usr/libexec/openssh /usr/libexec /usr/lib/ssh /usr/lib; do
  [ ! -x "$folder/sftp-server" ] || exec "$folder/sftp-server"
done
"""
# For `jlr cp -r`: our program first, which takes many files at once. An old Python ends with 99.
_OURS_FIRST = """\
for python in python3 /opt/conda/bin/python /usr/libexec/platform-python; do
  command -v "$python" >/dev/null || continue
  "$python" -I -S -c "$1" "$2"
  case $? in 99 | 126 | 127) ;; *) exit;; esac
done
"""
_OLD_OR_RUN = "import sys; sys.version_info < (3, 6) and sys.exit(99); exec(sys.argv[1])"
# Runs the interpreter that is there, with the arguments that follow.
_PYTHON = """\
for python in python3 python /opt/conda/bin/python /usr/libexec/platform-python; do
  ! command -v "$python" >/dev/null || exec "$python" "$@"
done
"""
_NONE = """\
echo 'no Python is there' >&2
exit 127
"""
PYTHON = ("sh", "-c", _PYTHON + _NONE, "sh")
_PROGRAM = (importlib.resources.files(__package__) / "sftp_program.py").read_text("utf-8")


def server_argv() -> tuple[str, ...]:
    """Return the argv that serves files on stdin and stdout."""
    return ("sh", "-c", _OPENSSH + _PYTHON + _NONE, "sh", "-c", _PROGRAM)


def tree_server_argv() -> tuple[str, ...]:
    """Return the argv that serves files to `jlr cp -r`."""
    return ("sh", "-c", _OURS_FIRST + _OPENSSH + _NONE, "sh", _OLD_OR_RUN, _PROGRAM)
