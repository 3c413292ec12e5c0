"""A mark in the environment of processes that jlr starts in a container.

Signals end at the client of an engine's `exec` (moby issue 9098). So the shell that begins such a
process adds its own id to the variable `JLR_MARK`, then becomes the command by `exec`, which keeps
the id. Its children inherit the variable; only one process has its own id in the mark.
"""

from __future__ import annotations

from jlremote.host.shell_text import pause

VARIABLE = "JLR_MARK"
MARK_ITSELF = f'export {VARIABLE}="${VARIABLE}:$$"\n'

_SIGNAL = """\
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  { tr '\\0' '\\n' <"$process/environ"; } 2>/dev/null | grep -qx "VARIABLE=WORD:$pid" || continue
  kill -s "$1" -- "-$pid"
  exit
done
""".replace("VARIABLE", VARIABLE)


STAYS = 9  # the exit status of a sweep that leaves a process running
_SWEEP = (
    """\
marked() {
  for process in /proc/[0-9]*; do
    [ -O "$process" ] || continue
    { tr '\\0' '\\n' <"$process/environ"; } 2>/dev/null | grep -q '^VARIABLE=.*WORD' &&
      echo "${process#/proc/}"
  done
}
signal=$1 turns=0
while pids=$(marked); [ -n "$pids" ]; do
  [ "$turns" -lt 10 ] || signal=KILL
  [ "$turns" -lt 40 ] || exit STAYS
  kill -s "$signal" $pids 2>/dev/null
  turns=$((turns + 1)); PAUSE
done
:
""".replace("VARIABLE", VARIABLE)
    .replace("STAYS", str(STAYS))
    .replace("PAUSE", pause(0.2))
)


def sweep_argv(word: str) -> tuple[str, ...]:
    """Return the argv that ends all of one's processes that inherited a mark.

    Those that left the group of the marked one, as by `setsid`, too. They get the signal whose name
    is to follow as the last argument, and SIGKILL after two seconds.
    """
    return ("sh", "-c", _SWEEP.replace("WORD", word), "sh")


def signal_argv(word: str, *signal: str) -> tuple[str, ...]:
    """Return the argv that sends a signal to the process group of the process marked with `word`.

    Without `signal` its name is to follow as the last argument.
    """
    return ("sh", "-c", _SIGNAL.replace("WORD", word), "sh", *signal)
