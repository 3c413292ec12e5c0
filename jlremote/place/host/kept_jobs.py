"""Jobs that are processes of the host: a folder keeps their output and exit code.

Each has its own folder (0700) beside those of the sessions: `stdout` and `stderr` are its output,
`program` is what keeps it and does what is asked of it (`remote.job_keeper`), `process` identifies
it, and `exit` has its exit code and end. Room for what the job writes at its end is taken
beforehand: it fills the disk, perhaps.
In a session's container the process is the engine's client, so the output outlasts the container.

Python 3.6 or later is needed there, and later for a job that waits for GPUs (see `gpus`).
That one is the waiter's process until it becomes its command; `waiting` says meanwhile how it
waits. What only reads the folder needs no Python.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jlremote.place.host.contract import (
    PRINT_FIELD,
    PRINT_FILE,
    PRINT_GROUP,
    PRINT_RECORD,
    records,
    understood,
)
from jlremote.place.host.job import FolderJobs, Job
from jlremote.place.host.process_mark import ADOPTER, sweep_argv
from jlremote.place.host.shell_text import command_line, pause, stdin_of, until_hang_up
from jlremote.place.host.sudo import SUDO
from jlremote.remote.sending import FIND_PYTHON, NO_PYTHON, OLDEST, find_python, program
from jlremote.text import is_name, one_line
from jlremote.untrusted import document, moment, whole_number

NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
TAKEN = 75  # sysexits.h: EX_TEMPFAIL
_FILES = ("command", "container", "gpus", "rm", "waiting", "mark", "began", "exit")
_KEEPER = "jlremote.remote.job_keeper"
WAITERS_PROGRAM = "jlremote.gpus.waiter_program"
WAITERS_PYTHON = (3, 8)  # the oldest that its modules run on
_ROOT = '"${XDG_STATE_HOME:-$HOME/.local/state}/jlr/jobs/$(uname -n)"'

# Identified by pid and start: a pid alone may belong to another process by now. After the end of
# the job its keeper still has to write its exit code.
_ALIVE = """\
same() {
  case "$(cat "/proc/$1/stat" 2>/dev/null)" in *') Z '*) return 1;; *' '"$2"' '*) return 0;; esac
  return 1
}
alive() {
  [ ! -e "$directory/exit" ] &&
    read -r pid start boot keeper began <"$directory/process" 2>/dev/null &&
    [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] &&
    { same "$pid" "$start" || same "$keeper" "$began"; }
}
"""

_TELL = f"""\
{PRINT_FILE}for directory in FOLDERS; do
  [ -e "$directory/command" ] || continue
  printf %s "${{directory##*/}}"
  for file in {" ".join(_FILES)}; do printf '{PRINT_FIELD}'; print_file "$directory/$file"; done
  printf '{PRINT_FIELD}'; alive && printf yes
  printf '{PRINT_RECORD}'
done 2>/dev/null
"""
_WAITING = f"""\
last=
while alive && now=$(cat "$directory/waiting" 2>/dev/null); do
  [ "$now" = "$last" ] || printf '%s{PRINT_GROUP}' "$now"
  last=$now; {pause(1)}
done
"""
# Acts on a job that has begun; the action is to follow.
_ACT = f"""\
[ -e "$directory/process" ] || exit 0
{FIND_PYTHON}[ -n "$python" ] || {{ echo "no Python is there any more" >&2; exit {NO_PYTHON}; }}
"$python" -IS "$directory/program" """


@dataclass(frozen=True)
class ProcessPlan:
    """A process job that is about to begin."""

    name: str
    argv: tuple[str, ...]  # the command that the host runs
    shown: str  # the command as it was typed, quoted for a shell
    container: str | None = None  # the session's container, `None` for the host itself
    gpus: str = ""  # the GPUs as they were requested, empty for none
    exports: str = ""  # shell text that sets its variables
    signal: tuple[str, ...] = ()  # with a signal appended: signals it in a container; else empty
    variables: str = ""  # shell text with its variables, which it reads from its stdin
    mark: str = ""  # unique to this job; `take_back` removes no other
    remove: bool = False  # whether it is deleted once its output and exit code were read
    sweep: tuple[str, ...] = ()  # `Runtime.sweep`, for what is no process of the host; else empty
    wait: Mapping[str, Any] | None = None  # what `gpus.waiter_program` does before it begins


def launch(plan: ProcessPlan) -> str:
    """Return the script that begins a job and prints its pid and start.

    It fails with `TAKEN` (a job has that name), `NO_FOLDER` or `NO_PYTHON`.
    """
    no_folder = f'{{ rm -rf -- "$directory"; exit {NO_FOLDER}; }}'
    find = find_python(OLDEST if plan.wait is None else WAITERS_PYTHON)
    python = f'{find}[ -n "$python" ] || exit {NO_PYTHON}\n'
    # The link gives `sudo` its password where a script names that.
    by_sudo = f"# {one_line(' '.join(plan.argv[:8]))}\n" if plan.argv[:1] == SUDO[:1] else ""
    return (
        f"{by_sudo}{python}{JOBS.folder(plan.name)}"
        f'(umask 077; mkdir -p "${{directory%/*}}") || exit {NO_FOLDER}\n'
        f'(umask 077; mkdir "$directory") ||\n'
        f'  {{ [ ! -e "$directory" ] || exit {TAKEN}; exit {NO_FOLDER}; }}\n'
        f'cat >"$directory/program" {stdin_of(program(_KEEPER))}[ $? = 0 ] || {no_folder}\n'
        f"{plan.exports}"
        f'"$python" -IS "$directory/program" begin "$directory" {stdin_of(_told(plan))}'
        'status=$?; [ $status = 0 ] || { rm -rf -- "$directory"; exit $status; }\n'
    )


def _told(plan: ProcessPlan) -> str:
    ending = plan.sweep or (sweep_argv(plan.mark) if plan.mark else ())
    files = {
        "command": plan.shown,
        "container": plan.container or "",
        "gpus": plan.gpus,
        "mark": plan.mark,
        "rm": "yes" if plan.remove else "",
        "ways": json.dumps(
            {"signal": plan.signal, "sweep": ending, "in_container": bool(plan.sweep)}
        ),
    }
    if plan.wait is not None:
        files["waiting"] = json.dumps(plan.wait["first"])
        files |= {".waiter": program(WAITERS_PROGRAM), ".wait": json.dumps(plan.wait)}
    names = ("argv", "mark", "variables")
    return json.dumps({name: getattr(plan, name) for name in names} | {"files": files}) + "\n"


def take_back(name: str, word: str, file: str = "mark") -> str:
    """Return the script that ends a job and deletes its folder, if its `file` has a word.

    A mark is the whole line of its file, so that no mark takes back the job of another start.
    """
    flags = "-qsxF" if file == "mark" else "-qsF"
    kill = f"(\n{JOBS.signal(name, 'KILL')})\n{pause(0.3)}\n"
    ours = f'grep {flags} {shlex.quote(word)} "$directory/{file}" || exit 0\n'
    return f"{JOBS.folder(name)}{ours}{kill}{JOBS.remove(name)}"


def look(name: str) -> str:
    """Return the script that prints how a job waits, and fails if it has ended."""
    return f'{JOBS.folder(name)}{_ALIVE}cat "$directory/waiting" 2>/dev/null; alive'


def adopting() -> str:
    """Return shell text for a container that runs its arguments and adopts their orphans."""
    adopter = command_line(("-IS", "-c", program("jlremote.remote.orphans"), ADOPTER))
    return f"""\
jlr_python=$(
{FIND_PYTHON}printf %s "$python")
[ -z "$jlr_python" ] || exec "$jlr_python" {adopter} "$@"
exec "$@"
"""


class ProcessJobs(FolderJobs):
    """The jobs in folders of the host."""

    root = _ROOT
    _known = _ALIVE

    def tell(self, name: str | None = None) -> str:
        which = "*" if name is None else shlex.quote(name)
        return f"{_ALIVE}{_TELL}".replace("FOLDERS", f"{_ROOT}/{which}")

    def waiting(self, key: str) -> str:
        """Return the script that prints how a job waits, and a group separator, at each change."""
        loop = f"{self.folder(key)}{_ALIVE}{_WAITING}"
        return until_hang_up(command_line(("sh", "-c", loop)))

    def signal(self, key: str, signal: str) -> str:
        return self._act(key, "signal", signal)

    def stop(self, key: str, *, force: bool) -> str:
        return self._act(key, "stop", "yes" if force else "no")

    def _act(self, key: str, action: str, *arguments: str) -> str:
        return f'{self.folder(key)}{_ACT}{action} "$directory" {" ".join(arguments)}\n'

    def _until_over(self) -> str:
        return f"while alive; do {pause(0.2)}; done\n"


JOBS = ProcessJobs()


_FULL = "the host's disk was full, so some of its output may be missing"
_NOT_BEGUN = "stopped: it waited for GPUs"
_LOST = "it was killed from outside, or the host was restarted"


def waits(printed: str) -> str:
    """Return in words how a job waits, from what the script of `waiting` printed."""
    told = _document(printed)
    place = f"number {told['place']} in the queue: " if "place" in told else ""
    return place + one_line(str(told.get("why", "")))


def _document(text: str) -> dict[str, Any]:
    with suppress(ValueError):
        if isinstance(told := document(text or "{}"), dict):
            return told
    return {}


@understood("the shell")
def read(printed: str) -> list[Job]:
    """Return the jobs that the script of `tell` printed."""
    return [_job(fields) for fields in records(printed) if is_name(fields[0])]


def _job(fields: list[str]) -> Job:
    name, command, container, gpus, remove, waiting, *rest = fields
    mark, began, ending, alive = rest
    code, ended, full = (*ending.split(), "", "", "")[:3]
    queued, told = bool(alive and waiting), _document(waiting)
    detail = _FULL if full else None if code or alive else _LOST
    if code and waiting:
        detail = one_line(str(told.get("end", _NOT_BEGUN)))
    place = told.get("place")
    return Job(
        name=name,
        state="ended" if code else "waiting" if queued else "running" if alive else "lost",
        command=command,
        exit_code=whole_number(code) if code else None,
        since=moment(began) if not (code and waiting) else None,
        ended=moment(ended),
        container=container or None,
        gpus=gpus or None,
        remove=bool(remove),
        place=place if queued and isinstance(place, int) else None,
        reason=one_line(str(told.get("why", ""))) if queued else None,
        detail=waits(waiting) if queued else detail,
        mark=mark,
    )
