"""Images that are files or folders of a host, as Apptainer takes them."""

from __future__ import annotations

import re
import shlex

from jlremote.errors import NotFound
from jlremote.host.contract import Host, run_script
from jlremote.text import one_line

# Unless the setting `image-folder` names another one, as in a workspace with more room.
DEFAULT_FOLDER = "${XDG_DATA_HOME:-$HOME/.local/share}/jlr/images"
SUFFIX = ".sif"


def on_host(host: Host, typed: str) -> str:
    """Return the absolute path of an image on the host, from what a person typed.

    Raises:
        NotFound: there is no such file or folder.
    """
    where = _quoted(typed)
    found = run_script(
        host,
        f"image={where}\n"
        '[ -e "$image" ] || exit 66\n'
        'cd "$(dirname "$image")" && printf "%s/%s" "$(pwd -P)" "$(basename "$image")"\n',
    )
    if found.status != 0:
        raise NotFound(
            f"there is no image `{one_line(typed)}` on `{host.name}`",
            hint=f"a `{SUFFIX}` file or folder is named by its path there, from your home on; "
            "`docker://NAME` is pulled",
        )
    return found.stdout


def file_name(typed: str) -> str:
    """Return the name of the file that an image is pulled into."""
    _, _, reference = typed.rpartition("://")
    return re.sub(r"[^A-Za-z0-9._-]+", "_", reference) + SUFFIX


def _quoted(path: str) -> str:
    if path.startswith("~/"):
        return f'"$HOME"/{shlex.quote(path[2:])}'
    return shlex.quote(path)
