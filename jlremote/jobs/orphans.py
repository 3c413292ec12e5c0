"""The orphans of a job: processes that outlive their parent become children of the job's own.

Without it the kernel gives them to process 1, and one that also left the job's group and mark
could not be told from other programs. Linux has "subreapers" for it (prctl(2)), which only a
program can ask for, so it needs a Python where the job runs; without one the job runs all the same.
"""

from __future__ import annotations

import shlex

from jlremote.host.process_mark import ADOPTER
from jlremote.host.shell_text import pause

_SUBREAPER = """\
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
except (ImportError, OSError, AttributeError):
    pass
for each in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(each, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""
_PROGRAM = f"-IS -c {shlex.quote(_SUBREAPER)}"

# Becomes the shell with a script, its first argument, which adopts the orphans of what it runs. The
# system's own Python, as one in `PATH` may be a shim that does not run.
ADOPTING_SHELL = f"""\
set -- sh -c "$1"
[ ! -x /usr/bin/python3 ] || set -- /usr/bin/python3 {_PROGRAM} "$@"
exec "$@"
"""

# The traps keep the shell that adopts alive when its group is signalled; its command does not
# inherit them. SIGTERM tells it that all is to end: after its command it ends what that has left.
# All of it is a child of this shell, or becomes one with the end of its parent, so also what the
# command began in its last moment is found. SIGKILL follows after two seconds.
AWAIT_TERM = "all=; trap : INT HUP QUIT; trap all=yes TERM\n"
END_REST = f"""\
turns=0
while [ -n "$all" ]; do
  signal=TERM rest=
  [ "$turns" -lt 10 ] || signal=KILL
  for stat in /proc/[0-9]*/stat; do
    {{ read -r line <"$stat"; }} 2>/dev/null || continue
    set -- ${{line##*) }}
    [ "$2" = $$ ] && [ "$1" != Z ] || continue
    one=${{stat#/proc/}}; rest="$rest ${{one%/stat}}"
  done
  [ -n "$rest" ] && [ "$turns" -lt 40 ] || break
  kill -s $signal $rest 2>/dev/null
  turns=$((turns + 1)); {pause(0.2)}
done
"""
# Its own stderr is nowhere, because dash would write `Killed` there.
_WAIT = f"""\
{AWAIT_TERM}exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
status=$?
{END_REST}exit $status
"""

# Runs the command that the arguments are, in a container, and ends as it does. Images have their
# Python anywhere, so each is tried before it is relied on.
ADOPT = f"""\
for _python in /usr/bin/python3 python3; do
  "$_python" -IS -c 'import ctypes' 2>/dev/null || continue
  exec "$_python" {_PROGRAM} sh -c {shlex.quote(_WAIT)} {ADOPTER} "$@"
done
exec "$@"
"""
