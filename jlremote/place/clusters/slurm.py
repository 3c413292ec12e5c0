"""Slurm: its commands as text for `sh`, and what they print. Nothing here has effects."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jlremote.errors import JlrError, Usage
from jlremote.place.clusters import slurm_lists
from jlremote.place.clusters.scheduler import INDEX, Resources, SchedulerFacts, SchedulerSilent
from jlremote.place.host.contract import FIELD, GROUP, PRINT_GROUP, Completed
from jlremote.place.host.process_mark import CARRIER, STAYS
from jlremote.place.host.shell_text import bounded, command_line, pause
from jlremote.text import one_line

# Sites put Slurm on the PATH of login shells only; what those print on the way is left out, and
# startup files that hang are not waited for.
_LOOK = "command -v sbatch >/dev/null 2>&1"
_ON_PATH = f"""\
{_LOOK} || PATH=$PATH:$(
  $(command -v timeout >/dev/null && echo timeout 5) \\
    bash -lc 'printf "\\n%s" "$PATH"' 2>/dev/null </dev/null | tail -n 1)
"""
_SECONDS = 30  # Slurm's own MessageTimeout is 10 s, and some commands try three times
_ENVIRONMENT = "HOME,USER,LOGNAME,LANG"
_FLAGS = ("partition", "account", "qos", "nodes", "ntasks", "gres", "time", "mem", "array")
# They would break what jlr relies on: one job, its folder, its name and its environment.
_OURS = re.compile(
    r"--(wrap|output|error|input|job-name|export|export-file|parsable|test-only|wait|quiet"
    r"|help|version|clusters|ignore-pbs)(=.*)?|-[oeiJWQhVM].*"
)
_ARRAY = re.compile(r"(?:--array|-a).*")  # no other argument of sbatch begins so
_SILENT = re.compile(
    r"Socket timed out|Unable to contact slurm controller|Zero Bytes were transmitted"
    r"|Slurm backup controller in standby|Connection refused|Connection timed out",
    re.IGNORECASE,
)
# `12` or `12;cluster` and nothing else is the id. Among words of the site's, any number may be
# another job's, so the job is looked for by its name.
_ID = r"""
jlr_id=${jlr_said%%;*}
case $jlr_id in
  ''|*[!0-9]*) jlr_id=$(
SEARCH
  ) || jlr_id=;;
esac
printf '%s\n' "$jlr_id" | tail -n 1
"""
_SHOWN = r"s/^.* JobState=\([A-Z_]*\) .* ExitCode=\([0-9:]*\) .* EndTime=\([0-9]*\) .*$/\1|\3|\2/p"
_ACCOUNTED = rf"""
export SLURM_TIME_FORMAT=%s
jlr_bound=$(command -v timeout >/dev/null && echo timeout 20)
jlr_end=$($jlr_bound sacct -nPX -j "$1" -o State,End,ExitCode 2>/dev/null | tail -n 1)
[ -n "$jlr_end" ] || jlr_end=$(
  $jlr_bound scontrol show job "$1" --oneliner 2>/dev/null | tail -n 1 | sed -n '{_SHOWN}'
)
case $jlr_end in
  'CANCELLED by '*)
    jlr_uid=${{jlr_end#CANCELLED by }}; jlr_uid=${{jlr_uid%%|*}}
    jlr_end="CANCELLED by $(id -nu "$jlr_uid" 2>/dev/null || echo "$jlr_uid")|${{jlr_end#*|}}";;
esac
printf '%s\n' "$jlr_end"
"""
_BEGINS = r"""
sed -n '/ Flags=[^ ]*MAINT/s/^.* StartTime=\([0-9]*\) .*$/\1/p' | while read -r jlr_start; do
  echo $((jlr_start - $(date +%s)))
done
"""
_PLAIN = r"""
for jlr_name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
  case $jlr_name in
    SLURM_CONF|SLURM_JOB_ID|SLURM_JOB_GPUS|SLURM_GPUS_ON_NODE) ;;
    *) unset "$jlr_name";;
  esac
done
"""
# With `--unbuffered` srun waits for no end of a line, but gives a task a terminal as its stdout. So
# that one is told to change no byte, and the command gets a pipe.
_UNCHANGED = """\
exec 3>&1
stty raw <&3 2>/dev/null
trap : HUP INT TERM
status=$(
  trap : HUP INT TERM
  {
    { trap : HUP INT TERM; "$@" 3>&- 4>&-; echo $? >&4; } |
      { trap "" HUP INT TERM; exec cat >&3 4>&-; }
  } 4>&1
)
exit "${status:-143}"
"""
_END_STEPS = f"""\
turns=0
while :; do
  jlr_said=$(squeue --noheader --steps --jobs="JOB" --format='%i %j' 2>&1) || {{
    case $jlr_said in *'Invalid job id'*) exit 0;; esac
    printf '%s\\n' "$jlr_said" >&2; exit {STAYS}
  }}
  jlr_steps=$(printf '%s\\n' "$jlr_said" | sed -n 's/^\\([0-9_]*[.][^ ]*\\) NAME$/\\1/p')
  [ -n "$jlr_steps" ] || exit 0
  [ "$turns" -lt 40 ] || exit {STAYS}
  scancel $jlr_steps
  turns=$((turns + 1)); {pause(0.5)}
done
"""
_CHOICES = f"""\
sinfo -h -o '%R (up to %l)' 2>/dev/null | sort -u
printf '{PRINT_GROUP}'
sacctmgr -nP show assoc where user="$(id -un)" format=account 2>/dev/null | sort -u
printf '{PRINT_GROUP}'
sinfo -h -o '%G (%R)' 2>/dev/null | sed '/^(null)/d; s/(S:[^)]*)//g' | sort -u
"""


@dataclass(frozen=True)
class Slurm:
    """Slurm's commands; methods return shell text, or read what such text printed."""

    name: str = "Slurm"
    waiting_states: tuple[str, ...] = slurm_lists.PENDING
    live_states: tuple[str, ...] = (*slurm_lists.PENDING, *slurm_lists.RUNNING)
    # Reads what `queue` printed and prints it from its heading on; without one, nothing.
    answer: str = f"sed -n '/^{slurm_lists.QUEUE_HEADING}{FIELD}/,$p'"
    # Succeeds if Slurm's messages on stdin say that the job is requeued or preempted.
    put_back: str = "grep -qE 'CANCELLED AT [^ ]+ DUE TO (JOB REQUEUE|PREEMPTION)'"
    # Drops `SLURM_…` but for the job's id and GPUs: with them a nested `srun` is refused.
    plain_variables: str = _PLAIN

    def submit(self, name: str, log: str, resources: Resources) -> str:
        """Submit the script on stdin by `sbatch`, and print the job's id.

        `log` is shell text with the path of Slurm's own messages, with `INDEX` in it for an array.
        """
        argv = ("sbatch", "--parsable", f"--job-name={name}", *_asked(resources))
        find = _ID.replace("SEARCH\n", self.search(name))
        # In the name of a log file `%` has a meaning.
        return (
            f"{_ON_PATH}jlr_log=$(printf %s {log} | sed 's/%/%%/g; s/{INDEX}/%a/')\n"
            f'jlr_said=$({bounded(argv, _SECONDS)} --output="$jlr_log") || exit\n{find}'
        )

    def array_limit(self) -> str:
        """Print the setting MaxArraySize, the limit for `indices`, if the site tells it."""
        return f"{_ON_PATH}scontrol show config 2>/dev/null | sed -n 's/^MaxArraySize *= *//p'"

    def search(self, name: str) -> str:
        """Print the ids of the user's jobs and arrays of a name; fail if Slurm does not answer."""
        argv = ("squeue", "--states=all", f"--name={name}", "--format=%i")
        return (
            f"{_ON_PATH}{_LOOK} || exit 0\n"
            f'jlr_found=$({bounded(argv, _SECONDS)} --user="$(id -un)") || exit\n'
            "case $jlr_found in *JOBID*) ;; *) exit 1;; esac\n"
            "printf '%s\\n' \"$jlr_found\" | sed -n '/JOBID/,$p' | sed '1d; s/_.*//' | sort -u\n"
        )

    def queue(self, seconds: int | None = None) -> str:
        """Print the user's jobs, also those that have just ended, within so many seconds."""
        columns = FIELD.join(slurm_lists.QUEUE_COLUMNS)
        argv = ("squeue", "--array", "--states=all", f"--format={columns}")
        asked = bounded(argv, seconds or _SECONDS)
        return f'{_ON_PATH}export SLURM_TIME_FORMAT=%s\n{asked} --user="$(id -un)"'

    def trial(self, script: str) -> str | None:
        """Return a script that fails if Slurm is silent; `None` if `script` asks it nothing."""
        if _LOOK not in script:
            return None
        asked = f'{bounded(("squeue", "--name=.", "--format=%i"), 1)} --user="$(id -un)" 2>&1'
        return f"{_ON_PATH}! {_LOOK} || {asked} | grep -q {slurm_lists.QUEUE_HEADING}"

    def requeues(self, resources: Resources) -> bool:
        """Return whether Slurm may put the job back into the queue."""
        return "--requeue" in resources.arguments

    def after(self, job: str) -> tuple[str, ...]:
        """Return arguments of a submission that wait until another job is over."""
        return (f"--dependency=afterany:{job}",)

    def accounted(self, job: str) -> str:
        """Print a job's last state, end and exit code, divided by `|`."""
        return f"{_ON_PATH}set -- {job}\n{_ACCOUNTED}"

    def maintenance(self) -> str:
        """Print in how many seconds each maintenance begins, which no running job may reach."""
        asked = bounded(("scontrol", "show", "reservation", "--oneliner"), _SECONDS)
        return f"{_ON_PATH}export SLURM_TIME_FORMAT=%s\n{asked} 2>/dev/null |{_BEGINS}"

    def signal(self, job: str, signal: str) -> str:
        """Signal all steps, then the batch script's processes (`--full` leaves out steps)."""
        send = f"scancel --signal={signal} {job}"
        return f"{_ON_PATH}{send} 2>/dev/null; {send} --full"

    def step(self, job: str, *, terminal: bool = False, name: str = "") -> str:
        """Run `"$@"` on the first node of a running job, beside what the job has there.

        `job` is shell text; `name` is the step's. Right after a restart slurmctld takes no steps
        for some seconds; without `--immediate` srun waits for two minutes before it asks again.
        """
        argv = (
            *("srun", "--overlap", "--immediate", "--quiet"),
            *("--nodes=1", "--ntasks=1", "--relative=0"),
            "--pty" if terminal else "--unbuffered",
            *((f"--job-name={name}",) if name else ()),
        )
        around = "" if terminal else f"{command_line(('sh', '-c', _UNCHANGED, CARRIER))} "
        return f'{_ON_PATH}exec {command_line(argv)} --jobid="{job}" {around}"$@"'

    def end_steps(self, job: str, name: str) -> str:
        """Cancel a job's steps of a name until there is none; else exit with `STAYS`."""
        return _ON_PATH + _END_STEPS.replace("JOB", job).replace("NAME", name)

    def holds(self, job: str) -> str:
        """Check whether `$process` is a job's: by its control group, else by its variable."""
        by_group = f'grep -qs "/job_{job}/" "$process/cgroup"'
        variables = "tr '\\0' '\\n' <\"$process/environ\""
        return f'{{ {by_group} || {variables} | grep -qx "SLURM_JOB_ID={job}"; }}'

    def cancel(self, job: str) -> str:
        return f"{_ON_PATH}scancel {job}"

    def estimate(self, resources: Resources) -> str:
        return f"{_ON_PATH}{bounded(('sbatch', '--test-only', *_asked(resources)), _SECONDS)}"

    def read_estimate(self, answer: Completed) -> str:
        return one_line(f"{answer.stderr}\n{answer.stdout}".replace("sbatch: ", ""))

    def presence(self) -> str:
        return (
            f"{_ON_PATH}{_LOOK} || exit 0\nsbatch --version\n"
            f"printf '{PRINT_GROUP}'; {bounded(('squeue', '--me'), _SECONDS)} 2>&1\n"
            f"printf '{PRINT_GROUP}'\n{self.choices()}"
        )

    def read_presence(self, printed: str) -> SchedulerFacts | None:
        """Return the scheduler, `None` where there is none; the list must have its heading."""
        version, _, rest = printed.partition(GROUP)
        if not version.strip():
            return None
        listed, _, choices = rest.partition(GROUP)
        answered = slurm_lists.QUEUE_HEADING in listed
        silence = None if answered else one_line(listed)[:300] or "no answer"
        return SchedulerFacts(one_line(version), silence, self.read_choices(choices))

    def choices(self) -> str:
        return f"{_ON_PATH}{_CHOICES}"

    def read_choices(self, printed: str) -> str | None:
        lists = [", ".join(one_line(line) for line in part.split("\n") if line.strip())
                 for part in printed.split(GROUP)]  # fmt: skip
        told = zip(("partitions", "your accounts", "gres of a node"), lists, strict=False)
        return "; ".join(f"{title}: {words}" for title, words in told if words) or None

    def refusal(self, answer: Completed) -> JlrError:
        """Return Slurm's own words; a lost answer may belong to a job that was submitted."""
        said = one_line(f"{answer.stderr} {answer.stdout}".replace("sbatch: error: ", ""))
        if answer.status == 0 or answer.status == 124 or _SILENT.search(said):
            why = f"Slurm did not answer: {said or 'sbatch printed no job id'}"
            hint = "`squeue --me` on the host shows whether the job is there"
            return SchedulerSilent(why, hint=hint)
        if answer.status == 127:
            hint = "`--slurm` is for the login node of a cluster; leave it out elsewhere"
            return JlrError("the host has no Slurm: `sbatch` was not found", hint=hint)
        return JlrError(f"Slurm refused the job: {said or answer.complaint}")

    def gpus(self) -> str:
        """Print the GPUs of partitions and who holds them; the status is 127 without Slurm."""
        asked = (slurm_lists.SINFO, slurm_lists.SQUEUE)
        lists = (f"{bounded(argv, _SECONDS)} 2>&1; printf '{PRINT_GROUP}'" for argv in asked)
        missing = "command -v sinfo >/dev/null 2>&1 || exit 127\n"
        return (
            f"{_ON_PATH}{missing}export SLURM_TIME_FORMAT=%s\n{'; '.join(lists)}; id -un; date +%s"
        )


SLURM = Slurm()


def _asked(resources: Resources) -> tuple[str, ...]:
    given = {name: getattr(resources, name) for name in _FLAGS}
    given["cpus-per-task"] = resources.cpus
    for argument in resources.arguments:
        if _ARRAY.fullmatch(argument):
            raise Usage(f"`{argument}` makes several jobs", hint="`--array 0-7` of `jlr run` does")
        if argument.startswith("--container"):
            raise Usage(
                f"`{argument}`: in that container the job would not find its folder",
                hint="`--image` runs the command in an image by Apptainer; where the site has "
                "pyxis, `-- srun --container-image=IMAGE COMMAND` does",
            )
        if _OURS.fullmatch(argument):
            hint = "use `--name` and `--env`; `jlr logs` shows the output"
            raise Usage(f"`jlr run` sets `{argument}` itself", hint=hint)
    asked = (f"--{name}={value}" for name, value in given.items() if value is not None)
    # Variables are read from the job's folder: accounting may keep the job's environment.
    return ("--no-requeue", f"--export={_ENVIRONMENT}", *asked, *resources.arguments)
