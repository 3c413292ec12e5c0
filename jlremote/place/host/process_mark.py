"""A mark in the environment of processes that jlr starts in a container.

Signals end at the client of an engine's `exec` (moby issue 9098). So the shell that begins such a
process adds its own id to the variable `JLR_MARK`, then becomes the command by `exec`, which keeps
the id. Its children inherit the variable; only one process has its own id in the mark.
"""

from __future__ import annotations

from jlremote.place.host.shell_text import pause

VARIABLE = "JLR_MARK"
# The word before the command of a program that waits for it, behind Python's own three; see
# `remote.orphans`.
ADOPTER = "jlr-adopter"
# The name of one that carries the bytes of a command below it; see `Slurm.step`.
CARRIER = "jlr-carrier"
MARK_ITSELF = f'export {VARIABLE}="${VARIABLE}:$$"\n'

# One program finds those that may be meant: a host has thousands of processes.
_WITH_WORD = "$(grep -lsF WORD /proc/[0-9]*/environ)"
_SIGNAL = f"""\
for file in {_WITH_WORD}; do
  pid=${{file#/proc/}}; pid=${{pid%/environ}}
  {{ tr '\\0' '\\n' <"$file"; }} 2>/dev/null | grep -qx "{VARIABLE}=WORD:$pid" || continue
  kill -s "$1" -- "-$pid"
  exit
done
"""


STAYS = 9  # the exit status of a sweep that leaves a process running
LIST = "LIST"  # in place of a signal
_SWEEP = (
    """\
set -- $1
signal=$1; shift; known=$*
marked() {
  for file in WITH_WORD; do
    process=${file%/environ}
    [ -O "$process" ] || continue
    { tr '\\0' '\\n' <"$file"; } 2>/dev/null | grep -q '^VARIABLE=.*WORD' &&
      echo "${process#/proc/}"
  done
}
# Prints `PID:START` of the marked processes, of those known and of all that they began.
family() {
  table=$(for process in /proc/[0-9]*; do
    [ -O "$process" ] && { read -r stat <"$process/stat"; } 2>/dev/null || continue
    set -- ${stat##*) }
    [ "$1" = Z ] || echo "${process#/proc/} $2 ${20}"
  done)
  found=" $(marked | tr '\\n' ' ')" before=
  until [ "$found" = "$before" ]; do
    before=$found
    while read -r pid parent start; do
      case $found in *" $pid "*) continue;; esac
      case "$found $known " in *" $parent "*|*" $pid:$start "*) found="$found$pid ";; esac
    done <<TABLE
$table
TABLE
  done
  while read -r pid parent start; do
    case $found in *" $pid "*) echo "$pid:$start";; esac
  done <<TABLE
$table
TABLE
}
[ "$signal" != LIST ] || { family; exit; }
turns=0
while known=$(echo $(family)); [ -n "$known" ]; do
  [ "$turns" -lt 10 ] || signal=KILL
  [ "$turns" -lt 40 ] || exit STAYS
  for one in $known; do kill -s "$signal" "${one%:*}" 2>/dev/null; done
  turns=$((turns + 1)); PAUSE
done
:
""".replace("WITH_WORD", _WITH_WORD)
    .replace("VARIABLE", VARIABLE)
    .replace("STAYS", str(STAYS))
    .replace("PAUSE", pause(0.2))
)


def sweep_argv(mark: str) -> tuple[str, ...]:
    """Return the argv that ends all of one's processes that inherited a mark, and their children.

    The signal is to follow as the last argument; SIGKILL comes after two seconds. `LIST` in its
    place prints the processes; those that follow the signal in the same argument are ended even if
    they have lost the mark, as a program does that writes its title over its environment.
    """
    return ("sh", "-c", _SWEEP.replace("WORD", mark), "sh")


def signal_argv(mark: str, *signal: str) -> tuple[str, ...]:
    """Return the argv that signals the group of a marked process; the signal may follow."""
    return ("sh", "-c", _SIGNAL.replace("WORD", mark), "sh", *signal)
