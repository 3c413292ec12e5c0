"""A mark in the environment of processes that jlr starts in a container.

Signals end at the client of an engine's `exec` (moby issue 9098). So the shell that begins such a
process adds its own id to the variable `JLR_MARK`, then becomes the command by `exec`, which keeps
the id. Its children inherit the variable; only one process has its own id in the mark.
"""

from __future__ import annotations

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


def signal_argv(word: str, *signal: str) -> tuple[str, ...]:
    """Return the argv that sends a signal to the process group of the process marked with `word`.

    Without `signal` its name is to follow as the last argument.
    """
    return ("sh", "-c", _SIGNAL.replace("WORD", word), "sh", *signal)
