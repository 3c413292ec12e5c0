"""`sudo` on the host: how the password reaches it, and nothing else.

stdin is often taken: by a build context, a registry's key, a terminal. So `sudo -A` asks a program:
`cat`, with the path `/proc/PID/fd/9` as prompt, a file in memory that lost its name before the
password was written. No argument, variable or named file holds that, and only shells that inherit
the descriptor read it. Tickets (`sudo -v`) hold on some hosts not at all; `-k` neither uses nor
leaves any. On a terminal the script is on the command line, so the link types the password there.
"""

from __future__ import annotations

import re
import shlex

from jlremote.place.host.shell_text import APART, command_line

# `-A` fails if no program is named; it never asks at a terminal.
SUDO = ("sudo", "-A", "-k")
# The same for commands that are no reason to ask a person: they get the password if it is known.
SUDO_IF_KNOWN = ("sudo", "-k", "-A")
# The same without a password.
SUDO_ALONE = ("sudo", "-n", "-k")
# For a shell that is about to run `"$@"`: without a known password it runs `SUDO_ALONE`, as the
# host may have an askpass program of its own, and a failed attempt counts.
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
# The terminal's echo is off before the password is asked for.
_ASK = """\
stty -echo || exit
printf %s MARKER; IFS= read -r jlr_typed; stty echo
"""


def endable(argv: tuple[str, ...]) -> str:
    """Return shell text that runs a command which its user can end, also behind `sudo`."""
    # Sudo 1.9.5 passes on no signals from its own process group, so the command runs on a terminal
    # of util-linux's `script`, where the host has that: when `script` ends, the kernel hangs up on
    # it.
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
    """Return the programs that a script runs by `sudo`."""
    return frozenset(re.findall(rf"\b{' '.join(by)} (?:[A-Z_]+=\S+ )*([\w.-]+)", script))


def by_hand(script: str) -> str:
    """Return a script as a person would type it, with a `sudo` that asks at the terminal."""
    for words in (SUDO, SUDO_IF_KNOWN):
        script = script.replace(f"{' '.join(words)} ", "sudo ")
    return script.replace(APART, "")


def given(script: str, password: str) -> str:
    """Return a script for `sh -s` that gives `sudo` its password."""
    return _HAND_OVER.replace("WRITE", f"printf '%s\\n' {shlex.quote(password)}") + script


def asking(script: str, marker: str) -> str:
    """Return a script for a terminal that gives `sudo` the line typed when `marker` comes."""
    # It may be seen by others, as it is on a command line.
    write = _HAND_OVER.replace("WRITE", "printf '%b\\n' \"$jlr_typed\"")
    return _ASK.replace("MARKER", marker) + write + "unset jlr_typed\n" + script


def typed(password: str) -> bytes:
    """Return the line that the script of `asking` reads, encoded for a terminal."""
    octal = "".join(f"\\0{byte:03o}" for byte in password.encode("utf-8", "surrogateescape"))
    return f"{octal}\n".encode("ascii")


def trial(program: str) -> str:
    """Return the script that tries `sudo` without a password."""
    return f"LC_ALL=C {' '.join(SUDO_ALONE)} {program} --version </dev/null"


def trial_with(program: str, password: str) -> str:
    """Return the script that tries a password once: some hosts lock a user out after three."""
    return (
        '[ "$(command -v printf)" = printf ] || exit\n'
        f"printf '%s\\n' {shlex.quote(password)} | "
        f"LC_ALL=C sudo -S -k -p '' {program} --version"
    )
