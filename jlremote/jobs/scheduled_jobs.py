"""Jobs that a scheduler runs: a folder in the user's home keeps their output and exit codes.

The home is shared by all machines of a cluster, so any login node finds the folder (0700). In it
`command`, `mark` and `asked` are notes of the submission, `id` is the scheduler's, `log` has the
scheduler's own messages, `stdout` and `stderr` are the output. The job itself writes `claimed`,
`began` (when, and on which node) and `exit` (its code, and when). See
`place.clusters.last_states` for ends that it cannot write.
`.variables` has the job's variables until it has read them, `.key` a registry's until its image is
pulled, and `modules` what those have changed. A session's `plan` is that of its job, from which a
successor is made: that one waits in a folder of its own, and takes the place of the session's when
it runs.

The job's name at the scheduler ends with the mark, by which a submission whose answer was lost is
found. Of two with one mark the first that runs claims the folder, and the other one ends at once.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jlremote.jobs.scheduled_script import ScheduledPlan, job_script
from jlremote.place.clusters import last_states
from jlremote.place.clusters.last_states import JobEnding, read_ending
from jlremote.place.clusters.scheduler import FOLLOWS, INDEX, KEY, QueuedJob, SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import explain, read_queue, unfinished_code
from jlremote.place.host import contract
from jlremote.place.host.contract import PRINT_FIELD, PRINT_GROUP, PRINT_RECORD, TAKE_OUT
from jlremote.place.host.job import FolderJobs, Job
from jlremote.place.host.kept_jobs import NO_FOLDER, TAKEN
from jlremote.place.host.shell_text import command_line, pause, stdin_of, until_hang_up, wait_while
from jlremote.text import is_name
from jlremote.untrusted import moment, whole_number

UNKNOWN = 69  # sysexits.h: EX_UNAVAILABLE; whether a job was submitted could not be asked
_ID = '"$id"'  # shell text
_CANCEL = f"(\n{SLURM.cancel(_ID)}\n)"
ROOT = '"${XDG_STATE_HOME:-$HOME/.local/state}"/jlr/scheduled'
_FILES = ("command", "asked", "rm", "mark", "id", "submitted", "began", "exit", "ending")
# Prints something once a job must be in the queue, unless its submission was cut off.
_OLD = 'find "$directory/mark" -mmin +3'
_STOP_SECONDS = 60  # longer than KillWait, which is 30 s unless the site changed it

_OVER = """\
over() { [ -e "$directory/exit" ] || [ -e "$directory/ending" ] || [ ! -d "$directory" ]; }
begun() { [ -e "$directory/began" ] || over; }
"""
# Tells the folder that could not be written to, and deletes the one that was made in it.
_NO_FOLDER = f"""\
no_folder() {{
  [ $# = 0 ] || rm -rf -- "$1"
  printf %s "${{directory%/*}}"; exit {NO_FOLDER}
}}
"""
# After 2 s, 4 s, 8 s, up to once a minute; a turn takes half a second.
_LATER = """\
next=$((turns * 2)); [ $((next - turns)) -le 120 ] || next=$((turns + 120))
"""
# Where no end can be written down, none is seen.
_TOO_LATE = """{
  late="the scheduler has not ended it yet"
  [ "$whole" ] || late="it was cancelled, and the scheduler does not say whether it has ended"
  echo | cat >"$directory/.try" && rm -f "$directory/.try" ||
    late="it was cancelled, and its end cannot be seen: nothing can be written in $directory"
  printf '%s\\n' "$late" >&2; exit 1
}"""
_NOW_AND_THEN = "case $jlr_turns in 4|10|20|40|80) asks;; esac"


@dataclass(frozen=True)
class ScheduledJobs(FolderJobs):
    """The jobs that a scheduler runs."""

    root: str = ROOT  # shell text: the folder of their folders
    followed: bool = False  # whether they may have successors
    _known = _OVER

    def submit(self, plan: ScheduledPlan) -> str:
        """Return the script that submits a job once, however often it is run, and prints its id.

        The first folder of an array stands for all of it, and gets its id last. The script fails
        with `TAKEN` if there is a job of that name, with `NO_FOLDER` and the folder's path if its
        files cannot be written, with `UNKNOWN` if a former run may have submitted it and the
        scheduler does not answer.
        """
        return (
            f"base={self.root}/{shlex.quote(plan.name)} id=\n{self.folder(plan.names[0])}"
            f'umask 077\n{_NO_FOLDER}mkdir -p "${{directory%/*}}" || no_folder\n'
            'if complaint=$(mkdir "$directory" 2>&1); then\n'
            f'{_files(plan)}: >"$directory/stdout"; : >"$directory/stderr"\n'
            'elif [ ! -e "$directory" ]; then printf "%s\\n" "$complaint" >&2; no_folder\n'
            f'elif [ "$(cat "$directory/mark" 2>/dev/null)" != {shlex.quote(plan.mark)} ]; then\n'
            f"exit {TAKEN}\n"
            'elif [ -s "$directory/id" ]; then cat "$directory/id"; exit 0\n'
            f"else\nid=$(\n{SLURM.search(plan.full_name)}) || exit {UNKNOWN}\n"
            'id=$(printf "%s\\n" "$id" | head -n 1)\nfi\n'
            f'{_others(plan)}if [ -z "$id" ]; then\n{self._send(plan)}[ -n "$id" ] || exit 0\nfi\n'
            f"{_identified(plan)}"
        )

    def _send(self, plan: ScheduledPlan) -> str:
        run, end = job_script(plan), f"end-{plan.mark}"
        log = f'"$base{"-" + INDEX if plan.indices else ""}/log"'
        begin = "directory=%s-$SLURM_ARRAY_TASK_ID" if plan.indices else "directory=%s"
        return (
            "quoted=$(printf %s \"$base\" | sed \"s/'/'\\\\\\\\''/g\")\n"
            f"id=$({{ printf '#!/bin/bash -l\\n{begin}\\n' \"'$quoted'\"\n"
            f"cat <<'{end}'\n{run}{end}\n}} | {{\n"
            f"{SLURM.submit(plan.full_name, log, plan.resources)}}}) || exit\n"
        )

    def take_back(self, plan: ScheduledPlan) -> str:
        """Return the script that cancels a job that was just submitted, and deletes its folder."""
        mark = shlex.quote(plan.mark)
        return (
            f"{self.folder(plan.names[0])}"
            f'ours() {{ [ "$(cat "$directory/mark" 2>/dev/null)" = {mark} ]; }}\nours || exit 0\n'
            f"found=$(\n{SLURM.search(plan.full_name)}) || exit\n"
            f"for id in $found; do {_CANCEL}\ndone\n"
            f"for name in {shlex.join(plan.names)}; do\n"
            f'directory={self.root}/$name; ! ours || rm -rf -- "$directory"\ndone\n'
        )

    def tell(self, name: str | None = None) -> str:
        which = f"{self.root}/{'*' if name is None else shlex.quote(name)}"
        # The successor first, as it may take the session's folder meanwhile.
        folders = f"{which}{FOLLOWS} {which}" if self.followed else which
        return f"""\
date +%s; printf '{PRINT_GROUP}'
{contract.PRINT_FILE}{_OVER}{last_states.account()}opened=
for directory in {folders}; do
  [ -e "$directory/command" ] || continue
  account
  printf %s "${{directory##*/}}"
  for file in {" ".join(_FILES)}; do printf '{PRINT_FIELD}'; print_file "$directory/$file"; done
  printf '{PRINT_FIELD}'; [ ! -s "$directory/log" ] || tail -c 2000 "$directory/log" | {TAKE_OUT}
  printf '{PRINT_FIELD}'; over || {_OLD}
  printf '{PRINT_RECORD}'
  over || opened="$opened $(print_file "$directory/id")"
done 2>/dev/null
printf '{PRINT_GROUP}'
[ -n "$opened" ] || exit 0
asked=$(
{last_states.ask(self.root)})
printf '%s\\n{PRINT_GROUP}' "$asked"
separator=$(printf '{PRINT_FIELD}')
whole=$(printf '%s\\n' "$asked" | {SLURM.answer})
for id in $opened; do
  case $whole in ''|*"
$id$separator"*) continue;; esac
  printf '%s{PRINT_FIELD}' "$id"
  (
{SLURM.accounted(_ID)}  ) | tr -d '\\n'
  printf '{PRINT_RECORD}'
done
"""

    def waiting(self, key: str) -> str:
        """Return the script that prints the queue now and then, until the job begins or ends.

        Each print ends with a group separator. See `schedulers` for the pauses.
        """
        body = f"{self.folder(key)}{_OVER}" + self.wait(
            "! begun", then=f"printf '%s{PRINT_GROUP}' \"$asked\"\n", first=4
        )
        return until_hang_up(command_line(("sh", "-c", body)))

    def limited(self, key: str, seconds: float) -> str:
        """Return the script that waits until a job has ended, for `seconds` at most."""
        late = f'[ "$(date +%s)" -lt "$((begun + {seconds:.0f}))" ]'
        body = f"{self.folder(key)}{_OVER}begun=$(date +%s)\n{self.wait(f'! over && {late}')}"
        return until_hang_up(command_line(("sh", "-c", body)))

    def wait(self, condition: str, *, then: str = "", first: int = 10) -> str:
        """Return shell text that waits while a condition holds and the scheduler has the job.

        That is asked after `first` turns, and less and less; `then` runs each time. The folder may
        say nothing of an end, as of a node's, or by a startup file.
        """
        return f"""\
turns=0; next={first}; separator=$(printf '{PRINT_FIELD}')
while {condition}; do
  if [ "$turns" -ge "$next" ]; then
    id=$(cat "$directory/id" 2>/dev/null)
    asked=$(
{last_states.ask(self.root)})
{then}    case $(printf '%s\\n' "$asked" | {SLURM.answer}) in
    ''|*"
$id$separator"*) ;;
    *) [ -z "$({_OLD})" ] || break;;
    esac
    {_LATER}  fi
  {pause(0.5)}; turns=$((turns + 1))
done
"""

    def _until_over(self) -> str:
        # A node that fails writes no end, so the scheduler is asked now and then, too.
        return f"{self.wait('! over')}{pause(0.3)}\n"

    def signal(self, key: str, signal: str) -> str:
        send = SLURM.signal(_ID, signal)
        return f'{self.folder(key)}{_OVER}over && exit 0\nid=$(cat "$directory/id")\n{send}\n'

    def stop(self, key: str, *, force: bool) -> str:
        """Cancel a job and wait; the site decides when SIGKILL follows, unless `force` sends it."""
        kill = f"(\n{SLURM.signal(_ID, 'KILL')}\n)\n" if force else ""
        ask = last_states.ask(self.root, last_states.SHORT_SECONDS)
        ask = f"whole=$( (\n{ask}) | {SLURM.answer})"
        wait = wait_while(
            "! over", _STOP_SECONDS, every=0.5, meanwhile=_NOW_AND_THEN, too_long=_TOO_LATE
        )
        return (
            f'{self.folder(key)}{_OVER}over && exit 0\nid=$(cat "$directory/id")\n'
            '[ -n "$id" ] || { echo "it is just being submitted" >&2; exit 1; }\n'
            f"asks() {{\n{ask}\n}}\n{kill}{_CANCEL} || exit\nasks\n{wait}"
            f'rm -f "$directory/.variables" {KEY}\n'
        )

    def read(self, printed: str) -> list[Job]:
        """Return the jobs as their folders, the queue and the accounting tell them together."""
        with contract.understood("the shell"):
            now, _, rest = printed.partition(contract.GROUP)
            folders, _, rest = rest.partition(contract.GROUP)
            asked, _, accounted = rest.partition(contract.GROUP)
            queue: Mapping[str, QueuedJob] = {}
            silence = None
            try:
                queue = read_queue(asked)
            except SchedulerSilent as silent:
                silence = silent.message
            ends = {
                id_: words
                for id_, words in contract.records(accounted)
                if words and not words.startswith(SLURM.live_states)
            }
            jobs = [
                _job(fields, queue, ends, silence)
                for fields in contract.records(folders)
                if is_name(fields[0].removesuffix(FOLLOWS))
            ]
        clock = moment(now)
        return [job.by_our_clock(clock) for job in jobs]


def _files(plan: ScheduledPlan) -> str:
    # `cat` says why a file cannot be written, where a shell's own `printf` may not.
    facts = {"command": plan.shown, "asked": plan.resources.gres or "", "mark": plan.mark}
    facts["rm"] = "yes" if plan.remove else ""
    texts = [
        f'printf %s {shlex.quote(text)} | cat >"$directory/{file}" || no_folder "$directory"\n'
        for file, text in facts.items()
    ]
    private = {
        '"$directory/.variables"': plan.variables,
        KEY: plan.key,
        '"$directory/plan"': plan.record,
    }
    texts += [
        f'{{ cat >{file} || no_folder "$directory"; }} {stdin_of(text)}'
        for file, text in private.items()
        if text
    ]
    return "".join(texts)


def _others(plan: ScheduledPlan) -> str:
    return f"""\
for index in {" ".join(map(str, plan.indices[1:]))}; do
  if complaint=$(mkdir "$base-$index" 2>&1); then :
  elif [ ! -e "$base-$index" ]; then printf '%s\\n' "$complaint" >&2; no_folder
  elif [ "$(cat "$base-$index/mark" 2>/dev/null)" != {shlex.quote(plan.mark)} ]; then exit {TAKEN}
  fi
  cp -R "$directory/." "$base-$index" || no_folder "$base-$index"
done
"""


def _identified(plan: ScheduledPlan) -> str:
    return f"""\
for index in {" ".join(map(str, reversed(plan.indices))) or "''"}; do
  directory=$base${{index:+-$index}}
  date +%s >"$directory/submitted"
  printf '%s\\n' "$id${{index:+_$index}}" | cat >"$directory/id" || no_folder
done
cat "$directory/id"
"""


def _job(
    fields: list[str], queue: Mapping[str, QueuedJob], ends: Mapping[str, str], silence: str | None
) -> Job:
    name, command, asked, remove, mark, id_, submitted, began, exit_, ending, log, old = fields
    id_ = id_.strip()
    live = queue.get(id_)
    code, _, ended = exit_.strip().partition(" ")
    known = read_ending(ending or ends.get(id_, ""))
    start, _, node = began.strip().partition(" ")
    if live and live.phase == "ended" and not known.state:
        known = JobEnding(live.last_state)
    job = Job(
        name=name,
        state="running" if start else "waiting",
        command=command,
        since=moment(start) or moment(submitted),
        gpus=asked or None,
        remove=bool(remove),
        job=id_ or None,
        node=(live.nodes if live else None) or node or None,
        mark=mark,
    )
    if code or known.state:
        how = known.how(log, written=bool(code), began=bool(start))
        status = whole_number(code) if code else None
        if how and status == 0:
            status = unfinished_code(how)
        last_seen = moment(ended) or moment(known.moment)
        return replace(job, state="ended", exit_code=status, ended=last_seen, detail=how)
    if live is None:
        return _unlisted(job, silence, is_old=bool(old.strip()))
    if live.phase == "waiting":
        reason = explain(live.reason).sentence
        return replace(job, state="waiting", node=None, reason=reason, starts=live.start)
    return replace(job, state="running", until=live.end)


def _unlisted(job: Job, silence: str | None, *, is_old: bool) -> Job:
    """Return a job that is not in the queue, and left no end.

    The answer that lacks a new one may be older: some sites keep the queue for a minute.
    """
    if silence or not is_old:
        unseen = "it is not listed yet" if job.job else "its submission is not confirmed yet"
        return replace(job, state="unknown", detail=silence or unseen)
    gone = "the scheduler no longer knows it, and it left no exit code"
    cut_off = "its submission was cut off: there is no such job"
    return replace(job, state="lost", detail=gone if job.job else cut_off)
