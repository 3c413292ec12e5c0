"""`sudo` on the host: how its password gets to it, and to nothing else.

Standard input is often taken (a folder that is built, a registry's key, a terminal), and sudo reads
its password there only if it wants one; else the command would find it. So sudo asks a program:
`cat`, and for its prompt gets the file that is to be shown. That file has no name any more when the
password is written into it, and is in memory: whoever inherits the descriptor's number finds it,
at any depth of shells, any number of times, and it is gone with the script. Tickets are neither
used nor left (`-k`): without a terminal they hold for the children of one shell only, if at all.
"""

from __future__ import annotations

import re
import shlex

from jlremote.host.shell_text import command_line

# `-A` never asks by itself: without a program that was named it fails.
SUDO = ("sudo", "-A", "-k")
# The same, for what is no reason to ask a person: it is given the password where that is known.
SUDO_IF_KNOWN = ("sudo", "-k", "-A")
# The same, but for trying what happens without a password.
SUDO_ALONE = ("sudo", "-n", "-k")
# For a shell that is about to run `"$@"`: where no password was given it is the latter, for the
# host may have a program of its own that would ask, and an attempt that fails counts.
ALONE_UNLESS_KNOWN = (
    "case ${SUDO_PROMPT-} in /proc/*) ;; *) case $* in "
    f"'{' '.join(SUDO_IF_KNOWN)} '*) shift {len(SUDO_IF_KNOWN)}; "
    f'set -- {" ".join(SUDO_ALONE)} "$@";; esac;; esac'
)

# `printf` must be the shell's own, or the password would be an argument.
_HAND_OVER = """\
for jlr_folder in /dev/shm "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}" /run/shm; do
  [ "$(command -v printf)" = printf ] && grep -q " $jlr_folder tmpfs " /proc/mounts || continue
  jlr_file=$(umask 077; mktemp "$jlr_folder/jlr-XXXXXXXXXX" 2>/dev/null) || continue
  exec 9<>"$jlr_file"; rm -f "$jlr_file"
  WRITE >&9
  SUDO_ASKPASS=$(command -v cat) SUDO_PROMPT=/proc/$$/fd/9 LANGUAGE=C
  export SUDO_ASKPASS SUDO_PROMPT LANGUAGE
  break
done </dev/null
"""
# Nobody sees what comes from there: the terminal's echo is off by the time that it is asked for.
_ASK = """\
stty -echo || exit
printf %s MARKER; IFS= read -r jlr_typed; stty echo
"""
_FORGET = "unset jlr_typed\n"

# For a shell that goes on when the one that was given the password has ended.
KEEP = 'case ${SUDO_PROMPT-} in /proc/*) SUDO_PROMPT="/proc/$$/fd/9";; esac\n'


def endable(argv: tuple[str, ...]) -> str:
    """Return shell text that runs a command which its user may end, behind `sudo` too.

    What is root's takes signals from nobody else, and an older sudo (1.9.5, of Debian 11) passes
    none on that come from its own process group. But a terminal that goes away ends whatever runs
    on it. So the command gets one, beside streams that stay its own; it goes with `script`, which
    is the user's. Hosts without that are left as they are.
    """
    plain = command_line(argv)
    if argv[:1] != SUDO[:1]:
        return plain
    kept = f"{plain} <&6 >&7 2>&8 6<&- 7>&- 8>&-"
    on_terminal = command_line(("env", "SHELL=/bin/sh", "script", "-qec", kept, "/dev/null"))
    return (
        "( if script --version 2>/dev/null | grep -q util-linux; then exec 6<&0 7>&1 8>&2; "
        f"exec {on_terminal} </dev/null >/dev/null 2>&1; else exec {plain}; fi )"
    )


def programs(script: str, by: tuple[str, ...] = SUDO) -> frozenset[str]:
    """Return what a script runs by `sudo`."""
    return frozenset(re.findall(rf"\b{' '.join(by)} (?:[A-Z_]+=\S+ )*([\w.-]+)", script))


def by_hand(script: str) -> str:
    """Return a script as a person would type it, whom `sudo` asks at the terminal."""
    for words in (SUDO, SUDO_IF_KNOWN):
        script = script.replace(f"{' '.join(words)} ", "sudo ")
    return script


def given(script: str, password: str) -> str:
    """Return a script for `sh -s` in which `sudo` is given its password."""
    return _HAND_OVER.replace("WRITE", f"printf '%s\\n' {shlex.quote(password)}") + script


def asking(script: str, marker: str) -> str:
    """Return a script for a terminal in which `sudo` is given what is typed when `marker` comes.

    It may be seen by others, as it is on a command line.
    """
    write = _HAND_OVER.replace("WRITE", "printf '%b\\n' \"$jlr_typed\"")
    return _ASK.replace("MARKER", marker) + write + _FORGET + script


def typed(password: str) -> bytes:
    """Return the line that such a script reads: no byte of it means anything to a terminal."""
    octal = "".join(f"\\0{byte:03o}" for byte in password.encode("utf-8", "surrogateescape"))
    return f"{octal}\n".encode("ascii")


def trial(program: str) -> str:
    """Return the script that tells whether `sudo` runs a program without a password."""
    return f"LC_ALL=C {' '.join(SUDO_ALONE)} {program} --version </dev/null"


def trial_with(program: str, password: str) -> str:
    """Return the script that tries a password, once: some hosts lock out whoever fails thrice."""
    return (
        '[ "$(command -v printf)" = printf ] || exit\n'
        f"printf '%s\\n' {shlex.quote(password)} | "
        f"LC_ALL=C sudo -S -k -p '' {program} --version"
    )
