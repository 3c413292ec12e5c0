"""Jobs that are processes of the host: a folder keeps their output and exit code.

Each has its own folder (0700) beside those of the sessions: `stdout` and `stderr` are its output,
`process` identifies it, `signal` is a script that signals it, and `exit` has its exit code and end.
`.variables` has its variables until it has read them. With `-i` `stdin` is a named pipe until
that is opened and the command begins. With a terminal `keeper` is the program that keeps it, and
`socket` leads to it. Room for what the job writes at its end is taken beforehand:
it fills the disk, perhaps.
In a session's container the process is the engine's client, so the output outlasts the container.

Only `sh`, `cat`, `date`, `mkdir`, `mv`, `rm`, `sed`, `tail`, `uname` and `/proc` are needed; for
`-i` also `mkfifo` and `dd`, for a terminal Python, and for a job that waits for GPUs, too (see
`gpus.waiting`). That one is the waiter's process until it becomes its command; `waiting` says
meanwhile how it waits.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jlremote.gpus.waiting import archive
from jlremote.gpus.waiting.placeholders import first_words
from jlremote.host.answers import (
    PRINT_FIELD,
    PRINT_FILE,
    PRINT_GROUP,
    PRINT_RECORD,
    records,
    understood,
)
from jlremote.host.process_mark import LIST, STAYS, VARIABLE, sweep_argv
from jlremote.host.shell_text import command_line, pause, stdin_of, until_hang_up, wait_while
from jlremote.host.sudo import KEEP
from jlremote.jobs import terminal
from jlremote.jobs.job import Job, last_lines, show, watch
from jlremote.jobs.orphans import ADOPTING_SHELL, AWAIT_TERM, END_REST
from jlremote.runtimes import bare
from jlremote.text import is_name, one_line
from jlremote.untrusted import document, moment, whole_number

NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
_ROOM = " " * 120  # longer than what is written over it
GIVEN = 65  # sysexits.h: EX_DATAERR
TAKEN = 75  # sysexits.h: EX_TEMPFAIL
_FILES = (
    *("command", "container", "gpus", "rm", "interactive", "terminal", "waiting"),
    *("mark", "began", "exit"),
)
_ROOT = '"${XDG_STATE_HOME:-$HOME/.local/state}/jlr/jobs/$(uname -n)"'

# Identified by pid and start: a pid alone may belong to another process by now. After the end of
# the job the shell that waits for it still has to write its exit code.
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

# The job has its own group, so that not even SIGKILL hits this shell; SIGTERM to it means a stop
# (see `orphans`). The job's output is redirected in a subshell, because dash would otherwise write
# `Killed` there.
_RUN = f"""\
{KEEP}{AWAIT_TERM}date +%s 1<>"$directory/began"
if command -v setsid >/dev/null; then set -- setsid; else
  set -- python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])'
fi
(exec KEPT sh -c RECORD sh "$directory" $$ COMMAND \
  >"$directory/stdout" 2>"$directory/stderr" <STDIN)
status=$? full=
{END_REST}printf '%04096d' 0 | cat 2>/dev/null >"$directory/.room" || full=full
rm -f "$directory/.room"
printf '%s %s %s\\n' "$status" "$(date +%s)" "$full" 1<>"$directory/.exit"
mv -f "$directory/.exit" "$directory/exit"
"""
_RECORD = """\
directory=$1 keeper=$2; shift 2
start_of() { set -- $(sed 's/.*) //' "/proc/$1/stat"); shift 19; echo "$1"; }
boot=$(cat /proc/sys/kernel/random/boot_id)
echo $$ "$(start_of $$)" "$boot" "$keeper" "$(start_of $keeper)" 1<>"$directory/.process"
mv -f "$directory/.process" "$directory/process"
BEGIN
"""

_BEGIN = 'rm -f "$directory/.variables"\nexec "$@"'
_BEGIN_WITH_STDIN = 'exec <"$directory/stdin"; rm -f "$directory/stdin"; exec "$@"'
_WAIT_FIRST = f'rm -f "$directory/.variables"\n{archive.BECOME}"$@"'
_TAKE_STDIN = f"sh -c 'directory=$1; shift; {_BEGIN_WITH_STDIN}' sh"
_WAIT_WITH_STDIN = f'{archive.BECOME}{_TAKE_STDIN} "$directory" "$@"'
# Nothing of it holds the connection once the job has ended, not even while `cat` waits.
_FEED = f"""\
[ -p "$directory/stdin" ] || exit {GIVEN}
exec 3<&0 4>&1
{{
  cat "$directory/.variables" && rm -f "$directory/.variables"
  cat <&3 4>&-
  echo >&4
}} 2>/dev/null >"$directory/stdin" &
feeding=$!
exec 3<&-
while alive && kill -0 $feeding 2>/dev/null; do {pause(0.2)}; done
kill $feeding 2>/dev/null
exit 0
"""

_TELL = f"""\
{PRINT_FILE}for directory in FOLDERS; do
  [ -e "$directory/command" ] || continue
  printf %s "${{directory##*/}}"
  SHOW
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
_STOP = f"""\
ended() {{
{wait_while("alive", "$1", every=0.2, too_long="return 1")}}}
send() {{ . "$directory/signal"; }}
# What left the process group is ended, too, and after the job's own end.
sweep() {{
  [ -e "$directory/sweep" ] || return 0
  set -- "$1 $family"; . "$directory/sweep"; [ $? != {STAYS} ]
}}
family=
# Note what is known by its parent only, as long as that lives.
know() {{
  family=$({{
    alive || exit
    ! same "$keeper" "$began" || adopter=$keeper
    sweep {LIST}
  }} 2>/dev/null)
}}
tell_keeper() {{ ! same "$keeper" "$began" || kill -s TERM "$keeper"; }}
kill_it() {{ ! alive || {{ know; send KILL; }}; ended 5; }}
[ FORCE = no ] || {{ kill_it; sweep KILL; exit; }}
know
# A command that stays is swept first, while what adopts its orphans lives.
! alive || {{ tell_keeper; send TERM; ended 10; }} || {{ sweep TERM; kill_it; }} || exit
sweep TERM
"""


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
    interactive: bool = False  # whether it gets stdin, behind its variables
    terminal: bool = False  # whether it has one, in which it asks for its variables by `mark`
    # with an argument appended: `Runtime.sweep`, for what is no process of the host; else empty
    sweep: tuple[str, ...] = ()
    # what `gpus.waiting.waiter_program` is to do before the command begins, `None` for nothing
    wait: Mapping[str, Any] | None = None


def _folder(name: str) -> str:
    return f"directory={_ROOT}/{shlex.quote(name)}\n"


def launch(plan: ProcessPlan) -> str:
    """Return the script that begins a job and prints its pid and start.

    It fails with `TAKEN` if there is a job of that name, with `NO_FOLDER` if no folder can be
    created, with `archive.NO_PYTHON` or `terminal.NO_PYTHON` if it is to wait, or to have a
    terminal, and the host has no Python for that.
    """
    early = plan.variables and not plan.interactive and not plan.terminal
    stdin = '"$directory/.variables"' if early else "/dev/null"
    begin = _BEGIN_WITH_STDIN if plan.interactive else _BEGIN
    if plan.wait is not None:
        begin = _WAIT_WITH_STDIN if plan.interactive else _WAIT_FIRST
    record = _RECORD.replace("BEGIN", begin)
    run = _RUN.replace("RECORD", shlex.quote(record)).replace("STDIN", stdin)
    kept = terminal.kept(plan.mark if plan.variables else "") if plan.terminal else '"$@"'
    run = run.replace("KEPT", kept).replace("COMMAND", command_line(plan.argv))
    marked = f"export {VARIABLE}={shlex.quote(plan.mark)}\n" if plan.mark else ""
    adopting = () if plan.sweep else (ADOPTING_SHELL, "sh")  # a container has one of its own
    text = _folder(plan.name) + plan.exports + marked + run
    detached = bare.detached(("sh", "-c", *adopting, text))
    way = f'{command_line(plan.signal)} "$1" </dev/null' if plan.signal else _SIGNAL_GROUP
    if plan.signal and (plan.interactive or plan.wait):  # nothing of it is in the container yet
        waits = '[ -p "$directory/stdin" ] || [ -e "$directory/waiting" ]'
        way = f"if {waits}; then {_SIGNAL_GROUP}; else {way}; fi"
    facts = {
        "command": plan.shown,
        "container": plan.container or "",
        "gpus": plan.gpus,
        "signal": way,
        "mark": plan.mark,
        "rm": "yes" if plan.remove else "",
        "interactive": "yes" if plan.interactive else "",
        "terminal": "yes" if plan.terminal else "",
        terminal.FILE: terminal.PROGRAM if plan.terminal else "",
    } | dict.fromkeys((".process", ".exit", "began"), _ROOM)
    if plan.wait is not None:
        facts["waiting"] = json.dumps(first_words(plan.wait))
    if plan.mark:  # an empty one would be in everything
        end_all = plan.sweep or sweep_argv(plan.mark)
        known = "$1" if plan.sweep else "$1 $adopter"
        facts["sweep"] = f'{command_line(end_all)} "{known}" </dev/null'
        if plan.sweep and not plan.signal:  # the client would die without a word to the other side
            facts["signal"] = f'[ "$1" != KILL ] || . "$directory/sweep"\n{way}'
    notes = " &&\n".join(
        f'printf %s {shlex.quote(text)} | cat >"$directory/{file}"' for file, text in facts.items()
    )
    # No argument has them, not even that of the shell which waits for the job.
    pipe = f'mkfifo -m 600 "$directory/stdin" || exit {NO_FOLDER}\n' if plan.interactive else ""
    given = f'cat >"$directory/.variables" {stdin_of(plan.variables)}' if plan.variables else ""
    fails = f'{{ rm -rf -- "$directory"; exit {NO_FOLDER}; }}'
    waiter = "" if plan.wait is None else f"(set -e\n{archive.put(plan.wait)}) || {fails}\n"
    check = "" if plan.wait is None else archive.FIND_PYTHON
    check += terminal.CHECK if plan.terminal else ""
    return (
        f"{check}{_folder(plan.name)}"
        f'(umask 077; mkdir -p "${{directory%/*}}") || exit {NO_FOLDER}\n'
        f'(umask 077; mkdir "$directory") ||\n'
        f'  {{ [ ! -e "$directory" ] || exit {TAKEN}; exit {NO_FOLDER}; }}\n'
        f"{{ {notes}; }} || {fails}\n"
        f"{waiter}{pipe}{given}{detached}\n"
        f'{_WAIT}cat "$directory/process"\n'
    )


def take_back(name: str, mark: str) -> str:
    """Return the script that ends a job that has just begun, and deletes its folder."""
    ours = f'[ "$(cat "$directory/mark" 2>/dev/null)" = {shlex.quote(mark)} ] || exit 0\n'
    jobs = ProcessJobs()
    ending = f"(\n{jobs.signal(name, 'KILL')})\n{pause(0.3)}\n"
    return f"{_folder(name)}{ours}{ending}{jobs.remove(name)}"


def take_back_if(name: str, word: str) -> str:
    """Return the script that ends a waiting job and deletes its folder, if it tells that word."""
    ours = f'grep -qsF {shlex.quote(word)} "$directory/waiting" || exit 0\n'
    jobs = ProcessJobs()
    return (
        f"{_folder(name)}{ours}(\n{jobs.signal(name, 'KILL')})\n{pause(0.3)}\n{jobs.remove(name)}"
    )


def look(name: str) -> str:
    """Return the script that prints how a job waits, and fails if it has ended."""
    return f'{_folder(name)}{_ALIVE}cat "$directory/waiting" 2>/dev/null; alive'


def attach(name: str, keys: str | None, *, whole: bool = False) -> str:
    """Return the script that connects its terminal to the job's, which the keys leave.

    It first shows the `whole` output, or the last of what was missed.
    """
    return f"{_folder(name)}{_ALIVE}{terminal.attach(keys, whole=whole)}"


_SIGNAL_GROUP = 'kill -s "$1" -- "-$pid"'
_LATE = '{ echo "it does not begin" >&2; exit 1; }'
_WAIT = wait_while('[ ! -e "$directory/process" ]', 20, every=0.05, too_long=_LATE)


class ProcessJobs:
    """The jobs in folders of the host, as `JobBackend` wants them."""

    def tell(self, name: str | None = None) -> str:
        which = "*" if name is None else shlex.quote(name)
        files = " ".join(_FILES)
        show = (
            f"for file in {files}; do printf '{PRINT_FIELD}'; print_file \"$directory/$file\"; done"
        )
        return f"{_ALIVE}{_TELL}".replace("FOLDERS", f"{_ROOT}/{which}").replace("SHOW", show)

    def follow(self, key: str, stdout: int, stderr: int) -> str:
        return _watch(key, f"-c +{stdout + 1}", f"-c +{stderr + 1}")

    def feed(self, key: str) -> str:
        """Return the script that gives it the script's own stdin, and prints a line at its end."""
        return f"{_folder(key)}{_ALIVE}{_FEED}"

    def waiting(self, key: str) -> str:
        """Return the script that prints how a job waits, and a group separator, at each change."""
        loop = f"{_folder(key)}{_ALIVE}{_WAITING}"
        return until_hang_up(command_line(("sh", "-c", loop)))

    def attach(self, job: Job, keys: str | None) -> str:
        return attach(job.name, keys)

    def rest(self, key: str, stdout: int, stderr: int) -> str:
        return show(_folder(key), f"-c +{stdout + 1}", f"-c +{stderr + 1}")

    def log(self, key: str, lines: int | None, *, follow: bool, since: int | None = None) -> str:
        last = last_lines(key, lines, since)
        return _watch(key, last, last) if follow else show(_folder(key), last, last)

    def signal(self, key: str, signal: str) -> str:
        return f'{_folder(key)}{_ALIVE}alive || exit 0\nset -- {signal}\n. "$directory/signal"\n'

    def stop(self, key: str, *, force: bool) -> str:
        return f"{_folder(key)}{_ALIVE}{_STOP.replace('FORCE', 'yes' if force else 'no')}"

    def remove(self, key: str) -> str:
        return f'{_folder(key)}rm -rf -- "$directory"\n'


def _watch(name: str, stdout: str, stderr: str) -> str:
    wait = f"while alive; do {pause(0.2)}; done\n"
    return watch(f"{_folder(name)}{_ALIVE}", stdout, stderr, wait)


_FULL = "the host's disk was full, so some of its output may be missing"
_NOT_BEGUN = "stopped: it waited for GPUs"
_LOST = "it was killed from outside, or the host was restarted"


def waits(printed: str) -> str:
    """Return in words how a job waits, from what the script of `waiting` printed."""
    told = _told(printed)
    place = f"number {told['place']} in the queue: " if "place" in told else ""
    return place + one_line(str(told.get("why", "")))


def _told(text: str) -> dict[str, Any]:
    try:
        told = document(text or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


@understood("the shell")
def read(printed: str) -> list[Job]:
    """Return the jobs that the script of `tell` printed."""
    return [_job(fields) for fields in records(printed) if is_name(fields[0])]


def _job(fields: list[str]) -> Job:
    name, command, container, gpus, remove, interactive, has_terminal, waiting, *rest = fields
    mark, began, ending, alive = rest
    code, ended, full = (*ending.split(), "", "", "")[:3]
    queued, told = bool(alive and waiting), _told(waiting)
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
        interactive=bool(interactive),
        terminal=bool(has_terminal),
        place=place if queued and isinstance(place, int) else None,
        reason=one_line(str(told.get("why", ""))) if queued else None,
        detail=waits(waiting) if queued else detail,
        mark=mark,
    )
