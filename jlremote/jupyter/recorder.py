"""Scripts that run the recorder and read its state, and its part of Jupyter's configuration.

In the session's folder `recorder` has the pids of the recorder and of its server, each with the
start time of its process, or `off`; it is deleted where recording ends with the server.
`output/running` has the cells that run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from jlremote.place.host.contract import PRINT_FIELD as FIELD
from jlremote.place.host.contract import PRINT_RECORD as RECORD
from jlremote.remote import sending
from jlremote.untrusted import document, number

PROGRAM, PROGRAM_FILE = "jlremote.remote.recorder_program", "jlr_recorder.py"

# Runs the recorder again if a signal ended it, as where memory ran out.
_AGAIN = 'while :; do "$@"; [ "$?" -gt 128 ] || exit; sleep 1; done'

# Part of Jupyter's configuration. Its own process session keeps Ctrl-C from it.
BEGIN = f"""\
import os
import subprocess
import sys
try:
    runtime = os.environ["JUPYTER_RUNTIME_DIR"]
    session = os.path.dirname(runtime)
    os.makedirs(session + "/output", 0o700, exist_ok=True)
    recorder = os.path.join(os.path.dirname(__file__), "{PROGRAM_FILE}")
    argv = [sys.executable, recorder, str(os.getpid()), runtime, session]
    with open(session + "/output/log", "w") as log:
        subprocess.Popen(
            ["sh", "-c", {_AGAIN!r}, "sh", *argv],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )
except (OSError, LookupError):
    pass
"""
OFF = 'echo off >"$directory/recorder"\n'

# Prints the record for `read`; needs `$directory`.
LOOK = f"""\
own=; {{ read -r own <"$directory/recorder"; }} 2>/dev/null
printf 'recorder{FIELD}%s{FIELD}%s{FIELD}%s{FIELD}%s{FIELD}%s{RECORD}' "$own" \\
  "$(cat "/proc/${{own%% *}}/stat" 2>/dev/null)" "$(date +%s)" \\
  "$(cat "$directory/output/running" 2>/dev/null)" \\
  "$(server=${{own#* * }}; cat "/proc/${{server% *}}/stat" 2>/dev/null)"
"""


def beside(files: str, pid: int, called: str) -> str:
    """Return the script that runs the recorder beside a server that runs, until that ends.

    `files` is shell text, the patterns of runtime files among which the server's is, and `called`
    the interpreter as the server's process names it.
    """
    return f"""\
umask 077
mkdir -p "$directory/output" || exit
runtime=
for file in {files}; do
  case $file in *-{pid}.json) [ ! -r "$file" ] || runtime=${{file%/*}};; esac
done
[ -n "$runtime" ] || exit
cat >"$directory/output/{PROGRAM_FILE}" <<'END' || exit
{sending.program(PROGRAM)}END
for python in {shlex.quote(called or "python3")} "$(readlink /proc/{pid}/exe)" python3; do
  "$python" -c 'import zmq' && break
done 2>/dev/null
exec sh -c '{_AGAIN}' sh "$python" "$directory/output/{PROGRAM_FILE}" {pid} "$runtime" \\
  "$directory" >"$directory/output/log" 2>&1 </dev/null
"""


@dataclass(frozen=True)
class Recording:
    """The state of a session's recorder."""

    state: str = "none"  # `on`, `off` (asked for), `dead`, or `none`: it was not started
    running: Mapping[str, float] = field(default_factory=dict)  # seconds of cells, by kernel
    served: bool | None = None  # whether the recorded server is there, `None` if unknown


NOT_RECORDED = Recording()


def read(fields: list[str]) -> Recording:
    """Read the record that `LOOK` prints."""
    own, stat, now, running, server = fields[1:6] if len(fields) > 5 else [""] * 5
    words = own.split()
    if len(words) != 4:
        return Recording("off") if words == ["off"] else NOT_RECORDED
    alive = _is_alive(stat, words[1])
    since: dict[str, float] = {}
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        cells = document(running or "{}") if alive else {}
        since = {kernel: number(now) - number(one["since"]) for kernel, one in cells.items()}
    return Recording("on" if alive else "dead", since, _is_alive(server, words[3]))


def _is_alive(stat: str, start: str) -> bool:
    """Return whether `/proc/PID/stat` is of a live process with that start time."""
    state, *rest = stat.rpartition(")")[2].split() or ("",)
    return state not in ("Z", "X") and rest[18:19] == [start]
