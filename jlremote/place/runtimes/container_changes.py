"""What only a container has, out of the engine's `diff`: files outside volumes, and packages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jlremote.text import listed, one_line

_PACKAGE = re.compile(r"-packages/([^/]+?)-[^/-]+\.dist-info$")
# What programs write without being asked, and what jlr has there.
_NOISE = re.compile(
    r"^/(run|proc|sys|dev|opt/jlr)(/|$)|/\.?jlr-[^/]*(/|$)|/\.(cache|ipython|jupyter|npm|bash_history)"
    r"|/\.local/share/jupyter|/__pycache__|\.pyc$|-packages/|^(/usr)?/sbin/docker-init$"
)
# Each virtual environment of jlr begins with them.
_OF_ENVIRONMENT = re.compile(r"(/\.packages|^/opt/jlr)/.*-packages/(pip|setuptools)-")
_SHOWN = 5


def told(printed: str, volumes: Sequence[str]) -> tuple[str, ...]:
    """Return in words what would be deleted with a container.

    Args:
        printed: the lines of `docker diff`, `A` for added and `C` for changed.
        volumes: the folders in the container that stay.
    """
    paths = sorted(line[2:] for line in printed.splitlines() if line[:2] in ("A ", "C "))
    kept = tuple(f"{volume.rstrip('/')}/" for volume in volumes)
    outside = [path for path in paths if not f"{path}/".startswith(kept)] if kept else paths
    installed = (path for path in outside if not _OF_ENVIRONMENT.search(path))
    packages = {found[1] for path in installed if (found := _PACKAGE.search(path))}
    parents = {path.rpartition("/")[0] for path in paths}
    files = [path for path in outside if path not in parents and not _NOISE.search(path)]
    words = []
    if packages:
        words.append(f"packages that were installed in it: {listed(sorted(packages), _SHOWN)}")
    if files:
        words.append(f"among its files: {listed(files, _SHOWN)}")
    return tuple(map(one_line, words))
