"""A job that is about to be submitted to a scheduler, and the script that runs on its node."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from jlremote.place.clusters.launchers import launched
from jlremote.place.clusters.scheduler import Ranks, Resources
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.host.kept_jobs import NO_FOLDER
from jlremote.place.host.shell_text import command_line, typed_path, wait_while

# Runs on the compute node. `set -C` lets one job alone make the file, also on NFS. The traps keep
# this shell alive when the job is signalled; the command does not inherit them. A Slurm that tracks
# processes by cgroups sends signals to this shell alone, which passes them on: so the command gets
# a process group (`set -m`), and does not ignore SIGINT as one that `&` starts would. What comes
# before the command is there counts as the command's end. A claim that says nothing was cut off by
# a full disk.
_BEGIN = """\
[ "$(cat "$directory/mark" 2>/dev/null)" = MARK ] || exit 0
claim=$( (set -C; echo "$SLURM_JOB_ID" | cat >"$directory/claimed") 2>&1) ||
  case $(cat "$directory/claimed" 2>/dev/null) in
    "$SLURM_JOB_ID") ;;
    "") printf '%s\\n' "$claim" >&2; exit NO_FOLDER;;
    *) exit 0;;
  esac
early=
trap : HUP QUIT USR1 USR2; trap early=130 INT; trap early=143 TERM
export SLURM_EXPORT_ENV=ALL
rm -f "$directory/exit" "$directory/ending" "$directory/accounted"
printf '%s %s\\n' "$(date +%s)" "$(uname -n)" >"$directory/began"
if [ -e "$directory/.variables" ]; then
  . "$directory/.variables"
fi
ONCE
work() {
exec >"$directory/stdout" 2>"$directory/stderr" </dev/null
"""
_END = """
}
if [ -n "$early" ]; then
  (exit "$early")
elif grep -q "^[0-9]*:\\(freezer\\)*:.*/job_$SLURM_JOB_ID/" /proc/self/cgroup 2>/dev/null; then
  set -m; work & set +m
  for signal in INT TERM HUP QUIT USR1 USR2; do trap "kill -$signal -- -$!" "$signal"; done
  [ -z "$early" ] || kill "-$((early - 128))" -- "-$!"
  while wait "$!"; kill -0 "$!" 2>/dev/null; do :; done
  wait "$!"
else
  (work)
fi
status=$?
# Another job may have the name, and so the folder, by now.
[ "$(cat "$directory/claimed" 2>/dev/null)" = "$SLURM_JOB_ID" ] || exit "$status"
OVER
printf '%s %s\\n' "$status" "$(date +%s)" >"$directory/.exit" &&
  mv -f "$directory/.exit" "$directory/exit"
exit "$status"
"""
_REMOVE = 'rm -f "$directory/.variables"\n'
# A job that is put back into the queue has not ended, and needs its variables again.
_MESSAGES = 'messages=$(wc -l <"$directory/log")\n'
_PUT_BACK = f"""\
if tail -n "+$((messages + 1))" "$directory/log" | PUT_BACK; then
  rm -f "$directory/began" "$directory/probe" "$directory/until"
  exit "$status"
fi
{_REMOVE}"""
# What the modules change is kept for those who enter the job later. Names such as those of exported
# functions are none of `sh`. Of all others of before there are two and more, and nothing is kept.
_BEFORE = "exec 9< <(env -0)\n"
_CHANGED = r"""
{ sed -z p <&9; env -0; } | sort -z | uniq -zu | while IFS= read -rd '' changed; do
  case ${changed%%=*} in SHLVL|_|*[!A-Za-z0-9_]*) continue;; esac
  printf "export %s='%s'\n" "${changed%%=*}" "$(sed "s/'/'\\\\''/g" <<<"${changed#*=}")"
done >"$directory/modules"
exec 9<&-
"""


@dataclass(frozen=True)
class ScheduledPlan:
    """A job that is about to be submitted."""

    name: str
    mark: str  # unique to this job
    argv: tuple[str, ...]
    shown: str  # the command as it was typed, quoted for a shell
    resources: Resources
    ranks: Ranks | None = None  # `None` runs the command once, on the first node
    workdir: str | None = None
    modules: tuple[str, ...] = ()  # to be loaded by the site's `module`
    variables: str = ""  # shell text with its variables
    first: str = ""  # shell text that the job runs before its command
    key: str = ""  # lines that `first` finds in the file `KEY`, which it deletes
    remove: bool = False  # whether it is deleted once its output and exit code were read
    indices: tuple[int, ...] = ()  # those of an array's jobs, `()` for one job alone
    record: str = ""  # text that its folder keeps as `plan`
    replaces: str | None = None  # the job whose folder becomes its own when it runs

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{index}" for index in self.indices) or (self.name,)

    @property
    def full_name(self) -> str:
        return f"{self.name}.jlr{self.mark}"


def job_script(plan: ScheduledPlan) -> str:
    """Return the script that runs a job's command in its folder, `$directory`."""
    once, over = _REMOVE, ""
    if SLURM.requeues(plan.resources):
        once, over = _MESSAGES, _PUT_BACK.replace("PUT_BACK", SLURM.put_back)
    before = [plan.first]
    if plan.modules:
        load = f"module load {shlex.join(plan.modules)}"
        failed = shlex.quote(f"jlr: `{load}` failed")
        failed = f'{{ status=$?; echo {failed} >&2; exit "$status"; }}'
        before.insert(0, f"{_BEFORE}{load} || {failed}{_CHANGED}")
    if plan.workdir is not None:
        before.append(f"cd -- {typed_path(plan.workdir)} || exit")
    run = f"exec {command_line(plan.argv)}"
    command = run if plan.ranks is None else launched(plan.argv, plan.ranks)
    begin = _BEGIN.replace("ONCE\n", once).replace("MARK", shlex.quote(plan.mark))
    begin = begin.replace("NO_FOLDER", str(NO_FOLDER))
    end = _END.replace("OVER\n", over)
    return "".join((_replacing(plan), begin, *(f"{line}\n" for line in before), command, end))


def _replacing(plan: ScheduledPlan) -> str:
    """Return shell text that takes another job's folder, unless a requeued job has done so."""
    if plan.replaces is None:
        return ""
    name = shlex.quote(plan.replaces)
    # The other job may end just then, before the submission is done.
    written = wait_while('[ ! -s "$new/id" ]', 60, every=1)
    return (
        f"new=$directory; directory=${{directory%/*}}/{name} old=${{directory%/*}}/.{name}\n"
        f'if [ -d "$new" ]; then\n{written}rm -rf "$old"; mv "$directory" "$old"\n'
        'mv "$new" "$directory" || exit; rm -rf "$old"\nfi\n'
    )
