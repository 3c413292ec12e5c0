"""The programs of a conda that only login shells have on their PATH."""

from __future__ import annotations

# Patterns for the folders of a conda: the person's own first, then one of the image or host.
PLACES = "~/*conda* ~/mini* ~/mamba* /opt/*conda* /opt/mini*"

# One on the PATH, as an activated environment, takes precedence; so does Jupyter of any other kind.
ON_PATH = f"""\
if ! command -v jupyter-lab >/dev/null && ! command -v jupyter-notebook >/dev/null; then
  for folder in {PLACES}; do
    [ ! -x "$folder/bin/jupyter-lab" ] && [ ! -x "$folder/bin/jupyter-notebook" ] ||
      {{ PATH=$folder/bin:$PATH; break; }}
  done
fi
"""
