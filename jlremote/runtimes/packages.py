"""Python packages that a new container is given, with the image's own Python and its pip.

They go where the image keeps its own. Where that may not be written, belongs to a distribution
(PEP 668) or has no pip, they go into a virtual environment of ours, which sees the image's own.
A home folder is no place: it may be the person's own, on the host, and serve many images.
"""

from __future__ import annotations

import shlex

# Beside the sessions' folders, see `jupyter.scripts.session_directory`.
_FOLDER = "/tmp/jlr-$(id -u)-packages"  # noqa: S108
_NO_PYTHON = 69  # sysexits.h: EX_UNAVAILABLE

_IS_OPEN = """\
import os, sys, sysconfig
marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
managed = sys.prefix == sys.base_prefix and os.path.exists(marker)
sys.exit(managed or not os.access(sysconfig.get_path("purelib"), os.W_OK))
"""
_WHERE_ITS_OWN_ARE = (
    'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\\n")'
)

# A Debian without python3-venv makes environments without pip only; the image's own then serves.
_INSTALL = f"""\
export PYTHONUNBUFFERED=1 PIP_ROOT_USER_ACTION=ignore
python=$(command -v python3 || command -v python) ||
  {{ echo 'there is no Python in the image'; exit {_NO_PYTHON}; }}
if ! "$python" -m pip --version >/dev/null 2>&1 || ! "$python" -c {shlex.quote(_IS_OPEN)}; then
  folder={_FOLDER}
  "$python" -m venv --system-site-packages "$folder" >"$folder.log" 2>&1 ||
    "$python" -m venv --system-site-packages --without-pip --clear "$folder" || exit
  for site in "$folder"/lib/python*/site-packages; do
    "$python" -c {shlex.quote(_WHERE_ITS_OWN_ARE)} >"$site/image.pth"
  done
  python=$folder/bin/python
fi
exec "$python" -m pip install --no-input --no-cache-dir --disable-pip-version-check \\
  --progress-bar off -- """

# In a script that has set `$directory`, the session's folder: lets programs find what is there.
USE = """\
packages=${directory%/*}-packages
if [ -O "$packages" ] && [ -x "$packages/bin/python" ]; then
  PATH=$packages/bin:$PATH
  for site in "$packages"/lib/python*/site-packages; do
    PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
  done
  export PATH PYTHONPATH
fi
"""


def install(packages: tuple[str, ...]) -> str:
    """Return the script that installs packages in a container, and tells how it gets on.

    Args:
        packages: as pip takes them, such as `keras` or `torch==2.3`.
    """
    return f"exec 2>&1\n{_INSTALL}{shlex.join(packages)}\n"
