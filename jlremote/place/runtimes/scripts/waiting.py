"""The main process of a container that jlr creates: it launches a server, then waits."""

from __future__ import annotations

import shlex

from jlremote.place.host.shell_text import IF_MISSING, KEEP_ODD_VARIABLES, wait_while

ENTRYPOINT_SECONDS = 20
ANOTHER_USER = 77  # sysexits.h: EX_NOPERM
# The file with the main process's id. It has the container's name, so it means nothing in a
# container of an image that was saved from this one.
_NOTE = "/tmp/.jlr-waits-$(uname -n)"  # noqa: S108
_BEGINNING = "jlr_note="

# Waits until the entrypoint runs our command. A note of another user may hold anything: as a path
# out of /proc it would lead to a process that is only made up.
_WAIT = f"""\
runs() {{
  main=$(cat "$note")
  case $main in ''|*[!0-9]*) return 1;; esac
  case $(tr '\\0' ' ' <"/proc/$main/cmdline") in
  'sleep infinity '*|'sh -c {_BEGINNING}'*) ;; *) false;; esac
}} 2>/dev/null
{wait_while("! runs", ENTRYPOINT_SECONDS, every=0.05, meanwhile="OTHERWISE")}"""
_UNTIL_IT_RUNS = f'note="{_NOTE}"\n{_WAIT}'

# Variables that cannot be set or belong to the process itself.
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
# Only from a process of the same user: root must not take variables from other users.
_TAKE_OVER = f"""\
if [ -O "{_NOTE}" ]; then
{_UNTIL_IT_RUNS.replace("OTHERWISE", ":")}
  taken() {{
    jlr_exports=$(sed -z {_AS_EXPORTS} "/proc/$main/environ" | tr -d '\\0'); [ -n "$jlr_exports" ]
  }} 2>/dev/null
  # For a moment of an `exec` a process has no variables.
{wait_while("! taken", 1, every=0.05)}
  eval "$jlr_exports"
  cd -P "/proc/$main/cwd" 2>/dev/null
  jlr_main=$main
fi
"""

# A note that another user has planted counts for nothing: the container's own first process must be
# the one that waits, or have our command among its words, and the note must be of the user that it
# waits as. Where the note is the user's own, no program is started to find that out. In a container
# that a person created of jupyter/docker-stacks' image, variables name the user that it made.
_AS_MAIN_USER = f"""\
{IF_MISSING}{KEEP_ODD_VARIABLES}read -r note </proc/sys/kernel/hostname; note=/tmp/.jlr-waits-$note
if [ -f "$note" ] && [ ! -O "$note" ] && [ "$(id -u)" = 0 ] &&
  {{ [ "$(cat "$note")" = 1 ] || grep -q {_BEGINNING} /proc/1/cmdline; }} 2>/dev/null; then
{_WAIT.replace("OTHERWISE", "case $main in *[!0-9]*) break;; esac")}
  of() {{ sed -n "s/^$1:[^0-9]*\\($2\\).*/\\1/p" "/proc/$main/status" 2>/dev/null; }}
  if runs && uid=$(of Uid '[0-9]*') && [ "$(stat -c %u "$note")" = "$uid" ] &&
    command -v setpriv >/dev/null; then
    groups=$(of Groups '[0-9 ]*[0-9]' | tr ' ' ,); groups=${{groups:+--groups=$groups}}
    ! tty=$(tty) || chown "$uid" "$tty"
    set -- setpriv --reuid="$uid" --regid="$(of Gid '[0-9]*')" "${{groups:---clear-groups}}" \\
      sh -c 'HOME=$(sed -zn "s/^HOME=//p" "/proc/$0/environ" | tr -d "\\0") exec "$@"' "$main" "$@"
  fi
elif [ -n "${{NB_UID-}}" ] && [ -n "${{NB_USER-}}" ] && [ ! -e "$note" ] && [ "$(id -u)" = 0 ] &&
  [ "$(id -u "$NB_USER")" = "$NB_UID" ] && command -v setpriv >/dev/null; then
  ! tty=$(tty) || chown "$NB_UID" "$tty"
  export HOME="/home/$NB_USER"
  set -- setpriv --reuid="$NB_UID" --regid="$(id -g "$NB_USER")" --init-groups "$@"
fi 2>/dev/null
exec "$@"
"""
# Precedes a command that root runs in a container by `exec`.
AS_MAIN_USER = ("sh", "-c", _AS_MAIN_USER, "sh")


def command(script: str) -> tuple[str, ...]:
    """Return a container's main command: a shell that runs a script, then waits."""
    # Without `-C` it would follow a link that another user has put there.
    write = '(umask 077; rm -f "$jlr_note"; set -C; echo $$ >"$jlr_note")'
    note = f"{_BEGINNING}{_NOTE}; {write}\n"
    wait = f'set -- sleep infinity\n{KEEP_ODD_VARIABLES}exec "$@"'
    return ("sh", "-c", f"{note}{script}{wait}")


def until_ready(otherwise: str) -> str:
    """Return the script that waits in a new container until its entrypoint runs our command.

    It fails after `ENTRYPOINT_SECONDS`, with status `ANOTHER_USER` if our command runs as another
    user. Each turn runs `otherwise`, which may `exit 1`.
    """
    return (
        f"{_UNTIL_IT_RUNS.replace('OTHERWISE', otherwise)}"
        f'runs || exit 1; [ -O "$note" ] || exit {ANOTHER_USER}\n'
    )


def beside(script: str) -> str:
    """Return the script that runs `script` with the variables of the container's main process."""
    return _TAKE_OVER + script
