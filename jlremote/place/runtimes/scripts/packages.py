"""Python packages for a new container (`--install`), by the image's own Python and pip."""

from __future__ import annotations

import shlex

from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.scripts import variables
from jlremote.place.runtimes.scripts.waiting import AS_MAIN_USER

_FOLDER = f"{variables.ROOT}/.packages"  # no session or job has this name
_NO_PYTHON = 69  # sysexits.h: EX_UNAVAILABLE
GONE = 66  # sysexits.h: EX_NOINPUT

_IS_OPEN = """\
import os, sys, sysconfig
marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
managed = sys.prefix == sys.base_prefix and os.path.exists(marker)
sys.exit(managed or not os.access(sysconfig.get_path("purelib"), os.W_OK))
"""
_WHERE_ITS_OWN_ARE = (
    'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\\n")'
)

# Debian without python3-venv makes only environments without pip; then the image's pip serves.
_INSTALL = f"""\
export PYTHONUNBUFFERED=1 PIP_ROOT_USER_ACTION=ignore
{variables.CONDA_ON_PATH}python=$(command -v python3 || command -v python) ||
  {{ echo 'there is no Python in the image'; exit {_NO_PYTHON}; }}
if ! "$python" -m pip --version >/dev/null 2>&1 || ! "$python" -c {shlex.quote(_IS_OPEN)}; then
  {variables.PRIVATE} || exit {variables.NO_FOLDER}
  folder={_FOLDER}
  said=$("$python" -m venv --system-site-packages "$folder" 2>&1) ||
    "$python" -m venv --system-site-packages --without-pip --clear "$folder" || exit
  for site in "$folder"/lib/python*/site-packages; do
    "$python" -c {shlex.quote(_WHERE_ITS_OWN_ARE)} >"$site/image.pth"
  done
  python=$folder/bin/python
  "$python" -m pip --version >/dev/null 2>&1 || {{ printf '%s\\n' "$said"; exit {_NO_PYTHON}; }}
fi
exec "$python" -m pip install --no-input --no-cache-dir --disable-pip-version-check \\
  --progress-bar off -- """

# Makes the environment's programs and packages visible; a job's own variables stay.
USE = f"""\
jlr_packages={_FOLDER}
if [ -x "$jlr_packages/bin/python" ]; then
  {variables.PRIVATE} || exit {variables.NO_FOLDER}
  PATH=$jlr_packages/bin:$PATH
  for jlr_site in "$jlr_packages"/lib/python*/site-packages; do
    PYTHONPATH=$jlr_site${{PYTHONPATH:+:$PYTHONPATH}}
  done
  export PATH PYTHONPATH
fi
"""

# Checked by name only: another version may have been installed on purpose.
_ARE_THERE = f"""\
import re, sys
try:
    from importlib.metadata import PackageNotFoundError, distribution
except ImportError:  # before Python 3.8 there is no way to ask
    sys.exit()
for wanted in sys.argv[1:]:
    named = re.fullmatch(r"([a-zA-Z0-9][\\w.-]*)\\s*([\\[ <>=!~;@].*)?", wanted)
    try:
        named and distribution(named[1])
    except PackageNotFoundError:
        sys.exit({GONE})
"""

SHARED = "/opt/jlr"
# Runs as root; `$1` has the id of the container's user and the home folder. In /tmp others may not
# read, and a session's home is another one each time. Links need no room in the image.
_SHARE = f"""\
uid=${{1%% *}} home=${{1#* }}
python=$(command -v python3 || command -v python) || exit 0
share() {{
  for site in "$1"/lib/python*/site-packages; do
    [ -d "$site" ] || continue
    to={SHARED}/lib/${{site#"$1"/lib/}}
    mkdir -p "$to" {SHARED}/bin || exit
    cp -alf "$site/." "$to" 2>/dev/null || cp -af "$site/." "$to" || exit
    rm -f "$to/image.pth"
  done
  for program in "$1"/bin/*; do
    case ${{program##*/}} in python*|pip*|[Aa]ctivate*|'*') continue;; esac
    if [ "$(head -c 2 "$program")" = '#!' ]; then
      sed "1s|^#!$1/bin/python.*|#!$python|" "$program" >{SHARED}/bin/"${{program##*/}}"
      chmod 755 {SHARED}/bin/"${{program##*/}}"
    else cp -af "$program" {SHARED}/bin; fi
  done
}}
# A folder of the host is not part of the image.
[ "$(stat -c %d "$home/.local" 2>/dev/null)" != "$(stat -c %d /)" ] || share "$home/.local"
own=/tmp/jlr-$uid  # another user of the container may have taken that name
if [ ! -L "$own" ] && [ "$(stat -c %u "$own" 2>/dev/null)" = "$uid" ]; then
  for folder in "$own"/*/home/.local "$own"/.packages; do share "$folder"; done
fi
[ -d {SHARED} ] || exit 0
chmod -R a+rX {SHARED}
ls -d {SHARED}/bin {SHARED}/lib/python*/site-packages
"""


def share(engine: Engine, name: str, *, fresh: bool) -> str:
    """Return the script that makes the user's own packages in a container part of its image.

    They are linked below `SHARED`, and their folders printed; with `fresh`, without what is gone.
    """
    who = ("sh", "-c", 'printf "%s %s" "$(id -u)" "$HOME"')
    ask = command_line(engine("exec", name, *AS_MAIN_USER, *who))
    text = (f"rm -rf {SHARED}\n" if fresh else "") + _SHARE
    link = command_line(engine("exec", "--user=0", name, "sh", "-c", text, "sh"))
    return f'own=$({ask}) && {link} "$own"'


def install(packages: tuple[str, ...]) -> str:
    """Return the script that installs packages, e.g. `torch==2.3`, and prints pip's output."""
    return f"exec 2>&1\n{_INSTALL}{shlex.join(packages)}\n"


def are_there(packages: tuple[str, ...]) -> str:
    """Return the script that ends with `GONE` if a container no longer has all packages."""
    return (
        f"{variables.CONDA_ON_PATH}python={_FOLDER}/bin/python\n"
        f'if [ -x "$python" ]; then\n{variables.PRIVATE} || exit {variables.NO_FOLDER}\n'
        "else python=$(command -v python3 || command -v python); fi\n"
        f'exec "$python" -c {shlex.quote(_ARE_THERE)} {shlex.join(packages)}\n'
    )


def before_job(packages: tuple[str, ...]) -> str:
    """Return shell text that installs packages for the command of a job, which follows."""
    return f"""\
(
export PIP_QUIET=1
{install(packages)}) </dev/null >&2 ||
  {{ status=$?; echo 'not started: its packages were not installed' >&2; exit "$status"; }}
{USE}"""
