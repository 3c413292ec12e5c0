"""What a container that we create does by itself: launch a server, and then wait.

The image's entrypoint runs as for `docker run IMAGE COMMAND`, for it may set up what the image
needs: a user, links to CUDA's libraries, variables. Then it is to run our command, which stays
whatever happens to Jupyter. What the entrypoint has exported belongs to that command's process
alone; a Jupyter that is launched later, by `exec`, takes it over from there.
"""

from __future__ import annotations

import shlex

from jlremote.host.shell_text import wait_while

ENTRYPOINT_SECONDS = 20
ANOTHER_USER = 77  # sysexits.h: EX_NOPERM
# Where the container's own process leaves its number. By the container's own name, so that it means
# nothing in a container of an image that was made of this one.
_NOTE = "/tmp/.jlr-waits-$(uname -n)"  # noqa: S108
_BEGINNING = "jlr_note="

# Waits until the entrypoint has come to our command.
_UNTIL_IT_RUNS = f"""\
note="{_NOTE}"
runs() {{
  case $(tr '\\0' ' ' <"/proc/$(cat "$note")/cmdline") in
  'sleep infinity '*|'sh -c {_BEGINNING}'*) ;; *) false;; esac
}} 2>/dev/null
{wait_while("! runs", ENTRYPOINT_SECONDS, every=0.05, meanwhile="OTHERWISE")}"""

# Of bash's own variables some cannot be set; the others are the process's own.
_NOT_TAKEN = ("PWD", "OLDPWD", "SHLVL", "_", "UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS")
_AS_EXPORTS = " ".join(
    f"-e {shlex.quote(rule)}"
    for rule in (
        "/^[A-Za-z_][A-Za-z0-9_]*=/!d",  # bash exports functions under other names
        *(f"/^{name}=/d" for name in _NOT_TAKEN),
        "s/'/'\\\\''/g",
        "s/=\\(.*\\)/='\\1'/",
        "s/^/export /",
        "s/$/\\n/",
    )
)
# Only from a process of the user that Jupyter runs as: root must not take orders from others.
_TAKE_OVER = f"""\
if [ -O "{_NOTE}" ]; then
{_UNTIL_IT_RUNS.replace("OTHERWISE", ":")}
  eval "$(sed -z {_AS_EXPORTS} "/proc/$(cat "$note")/environ" 2>/dev/null | tr -d '\\0')"
fi
"""


def command(script: str) -> tuple[str, ...]:
    """Return what a container is to run: a shell that runs a script, and then waits."""
    note = f'{_BEGINNING}{_NOTE}; (umask 077; echo $$ >"$jlr_note")\n'
    return ("sh", "-c", f"{note}{script}exec sleep infinity")


def until_ready(otherwise: str) -> str:
    """Return the script that waits in a new container until its entrypoint runs our command.

    Its exit status tells whether it does within `ENTRYPOINT_SECONDS`, and is `ANOTHER_USER` if it
    runs as another user than the `exec`s to come.

    Args:
        otherwise: shell text that is run again and again meanwhile; it may `exit 1`.
    """
    return (
        f"{_UNTIL_IT_RUNS.replace('OTHERWISE', otherwise)}"
        f'runs || exit 1; [ -O "$note" ] || exit {ANOTHER_USER}\n'
    )


def beside(script: str) -> str:
    """Return the script that runs `script` with the variables of the container's own process."""
    return _TAKE_OVER + script
