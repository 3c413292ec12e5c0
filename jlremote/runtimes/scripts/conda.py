"""The programs of a conda that only login shells have on their PATH."""

from __future__ import annotations

# The person's own first, then one of the image or host. One on the PATH, as an activated
# environment, takes precedence; so does Jupyter of any other kind.
ON_PATH = """\
if ! command -v jupyter-lab >/dev/null && ! command -v jupyter-notebook >/dev/null; then
  for folder in ~/*conda*/bin ~/mini*/bin ~/mamba*/bin /opt/*conda*/bin /opt/mini*/bin; do
    [ ! -x "$folder/jupyter-lab" ] && [ ! -x "$folder/jupyter-notebook" ] ||
      { PATH=$folder:$PATH; break; }
  done
fi
"""
