"""The folder of a user's files in a container, a writable HOME, and programs of a conda.

Any user can write a container's `/tmp`, and with `-v /tmp:/tmp` the host's users, too. A uid
without a passwd entry gets `HOME=/`, which it cannot write, and many programs fail without a HOME.
"""

from __future__ import annotations

import shlex

ROOT = "/tmp/jlr-$(id -u)"  # noqa: S108
NOT_PRIVATE = "is not a folder of this user alone"
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT

# Makes the folder, and fails if another user could have planted or written what is in it. `-O`
# follows a link, which `ls` shows as one. Where it cannot be made at all, nothing is there to use.
PRIVATE = f"""\
jlr_private() {{
  (umask 077; mkdir "$1") 2>/dev/null
  [ -e "$1" ] || [ -L "$1" ] || return 0
  [ -O "$1" ] && case $(ls -ld "$1") in drwx--[-S]---*) return 0;; esac
  printf '%s {NOT_PRIVATE}, with mode 0700 and no link\\n' "$1" >&2
  return 1
}}
jlr_private "{ROOT}\""""

# Without variables of its own: the environment is that of the person's command.
_HOME = f"""\
[ -w "${{HOME:-/nonexistent}}" ] || ! {{
{PRIVATE}; }} || ! (umask 077; mkdir -p "{ROOT}"/NAME/home) 2>/dev/null ||
  export HOME="{ROOT}"/NAME/home
"""


def writable_home(name: str) -> str:
    """Return shell text that sets HOME to a folder of the session or job if it is not writable."""
    return _HOME.replace("NAME", shlex.quote(name))


# Patterns for the folders of a conda: the person's own first, then one of the image or host.
CONDA_PLACES = "~/*conda* ~/mini* ~/mamba* /opt/*conda* /opt/mini*"

# One on the PATH, as an activated environment, takes precedence; so does Jupyter of any other kind.
CONDA_ON_PATH = f"""\
if ! command -v jupyter-lab >/dev/null && ! command -v jupyter-notebook >/dev/null; then
  for folder in {CONDA_PLACES}; do
    [ ! -x "$folder/bin/jupyter-lab" ] && [ ! -x "$folder/bin/jupyter-notebook" ] ||
      {{ PATH=$folder/bin:$PATH; break; }}
  done
fi
"""
