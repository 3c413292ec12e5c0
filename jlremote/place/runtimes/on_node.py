"""Sessions as jobs of a cluster's scheduler: they run on a node, and their folders are in the home.

All machines of the cluster share the home, so any login node finds a session there: `jobs/NAME` is
the folder of its job (see `jobs.scheduled_jobs`), with what the probe found once Jupyter listened;
`servers/NAME` is Jupyter's own (see `jupyter.scripts`). So a session is described without a
question to its node, which is entered for its processes alone. Its end is what its folder says, or
else the scheduler, which is asked now and then.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from jlremote.place.clusters import last_states
from jlremote.place.clusters.scheduler import FOLLOWS
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.host.contract import FIELD, PRINT_FIELD, TAKE_OUT, Completed, Steps, understood
from jlremote.place.host.process_mark import LIST
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes import processes
from jlremote.place.runtimes.container_options import NO_OPTIONS
from jlremote.place.runtimes.engine.kinds import Argv
from jlremote.place.runtimes.processes import KEEP_PATH, Apptainer, Bare
from jlremote.place.runtimes.runtime import (
    SESSION_LABEL,
    Attachment,
    Container,
    Environment,
    Runtime,
)
from jlremote.text import one_line
from jlremote.times import by_our_clock
from jlremote.untrusted import moment

_STATE = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/slurm"
JOBS = f'"{_STATE}"/jobs'
SERVERS = f"{_STATE}/servers"
PROBE = "probe"  # the file of the job with what the probe printed

LAST_WORDS = "; its last output: "
STOPPED = "it was stopped with `jlr stop`"
IDLE = "Jupyter ended after its idle time, and its job with it"
SHUT_DOWN = "Jupyter was stopped from its page, and its job ended with it"

_FACTS = ("mark", "id", "began", "exit", "ending", "until")
_TAILS = ("log", "last", "ended", "listens", "now")
_LOG_BYTES = 2000
_SHOWN = 300  # letters of its log's last lines
_DESCRIBE = f"""\
job={JOBS}/NAME server="{SERVERS}"/NAME
[ -e "$job/command" ] || [ -e "$server/container.json" ] || exit 0
if [ -e "$job/exit" ] || [ -e "$job/ending" ]; then
  [ ! -e "$job{FOLLOWS}/id" ] || [ -e "$job{FOLLOWS}/ending" ] || job=$job{FOLLOWS}
fi
directory=$job
(
NOTE
) 2>/dev/null
for file in {" ".join(_FACTS)}; do cat "$job/$file"; printf '{PRINT_FIELD}'; done 2>/dev/null
tail -c {_LOG_BYTES} "$job/log" 2>/dev/null | {TAKE_OUT}; printf '{PRINT_FIELD}'
{{
  [ ! "$server/jupyter.log" -nt "$job/command" ] || tail -qn 1 "$server/jupyter.log"
  tail -qn 1 "$job/stderr"
}} 2>/dev/null | {TAKE_OUT}
printf '{PRINT_FIELD}'
cat "$server/ended" 2>/dev/null; printf '{PRINT_FIELD}'
[ ! -e "$job/{PROBE}" ] || printf yes; printf '{PRINT_FIELD}'
date +%s; printf '{PRINT_FIELD}'
cat "$server/container.json" 2>/dev/null || :
"""
# `$1` names a session; finds the job and node where the other arguments are to run.
_FIND = f"""
jlr_job={JOBS}/$1; shift
read -r jlr_id <"$jlr_job/id" && read -r jlr_began jlr_node <"$jlr_job/began" || exit 69
"""
# Lets the arguments run with what the job's modules have changed.
_MODULES = """\
[ ! -e "$jlr_job/modules" ] ||
  set -- sh -c '. "$0"; KEEP_PATHexec "$@"' "$jlr_job/modules" "$@"
"""
# Login shells take neither quotes nor newlines as `sh` does. A host key that is not known, or a
# question, is a refusal. Startup files that print, or that become another shell, would change the
# bytes: they run for an ssh to a node, and for no step of a job.
_SSH = "ssh -T -x -o BatchMode=yes -o ConnectTimeout=5 -o LogLevel=ERROR -o ClearAllForwardings=yes"
GPUS = "gpus"  # the file of the job with its variables for GPUs, which ssh does not have
_BY_SSH = rf"""
jlr_answer=$({_SSH} "$jlr_node" printf jlr </dev/null 2>/dev/null) || :
if [ "$jlr_answer" = jlr ]; then
  jlr_gpus=$(grep -E '^[A-Z_]+=[A-Za-z0-9_,:.-]*$' "$jlr_job/{GPUS}" 2>/dev/null | tr '\n' ' ')
  jlr_line="exec env $jlr_gpus"
  for jlr_word; do
    jlr_line="$jlr_line '$(printf %s "$jlr_word" | sed "s/'/'\\\\''/g")'"
  done
  jlr_line=$(printf %s "$jlr_line" | base64 | tr -d '\n')
  exec {_SSH} "$jlr_node" "exec /bin/sh -c 'eval \"\$(echo $jlr_line | base64 -d)\"'"
fi
"""


@dataclass(frozen=True)
class OnNode(Runtime):
    """Another runtime on a node of a cluster; see `Runtime`."""

    inner: Bare | Apptainer
    in_jobs: bool = True
    servers_folder: str = SERVERS

    @property
    def name(self) -> str:
        own = SLURM.name.lower()
        return f"{own} {self.inner.name}" if self.inner.has_images else own

    @property
    def has_images(self) -> bool:
        return self.inner.has_images

    @property
    def program(self) -> str:
        return self.inner.program

    def place(self, name: str, host: str) -> str:
        return f"the job of `{name}`"

    def describe(self, name: str) -> Steps:
        note = last_states.note(JOBS)
        return {"container": _DESCRIBE.replace("NAME", shlex.quote(name)).replace("NOTE\n", note)}

    @understood("the job of the session")
    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the session as a container, which runs from its job's beginning to its end."""
        printed = results["container"].stdout
        if not printed:
            return None
        *texts, told = printed.split(FIELD)
        facts = dict(zip((*_FACTS, *_TAILS), texts, strict=True))
        image, gpus, options = (
            processes.read_definition(told) if told.strip() else (None, None, NO_OPTIONS)
        )
        over = bool(facts["exit"] or facts["ending"] or not facts["mark"])
        began, until = facts["began"].strip(), facts["until"].strip()
        return Container(
            id=name,
            name=name,
            running=bool(began) and not over,
            started_at=f"{facts['mark']} {began}",
            image=image,
            addresses=("127.0.0.1",),
            gpus=gpus,
            labels={SESSION_LABEL: name},
            options=options,
            halt=self._halt(facts) if over else "",
            in_job=True,
            job=one_line(facts["id"].strip()) or None,
            node=began.rpartition(" ")[2],
            waits=not began and not over,
            starts=bool(began) and not over and not facts["listens"],
            until=by_our_clock(moment(until), moment(facts["now"].strip())),
        )

    def _halt(self, facts: Mapping[str, str]) -> str:
        if not facts["mark"]:
            return "it has no job"
        if halt := {"stopped": STOPPED, "idle": IDLE}.get(facts["ended"].strip()):
            return halt
        known, log = last_states.read_ending(facts["ending"]), facts["log"]
        code = facts["exit"].partition(" ")[0]
        how = known.how(log, written=bool(code), began=bool(facts["began"].strip()))
        if code == "0" and not how:
            return SHUT_DOWN
        ended = f"its job ended: {how}" if how else f"its job ended with exit code {code}"
        said = one_line(facts["last"].strip())[-_SHOWN:]
        return f"{ended}{LAST_WORDS}{said}" if said else ended

    def on_machine(self, name: str, script: str) -> str:
        return command_line((*self._way(name), "sh", "-c", script))

    def owns(self, container: Container) -> str:
        """Check that a process is the user's and of the job."""
        return f'[ -O "$process" ] && {SLURM.holds(container.job or "")}'

    def in_image(self, name: str, script: str) -> str:
        """Run `script` with the image's programs, where the caller is: in a job, or before it."""
        return self.inner.in_image(name, script)

    def detached(self, name: str, script: str) -> str:
        """Run `script` as it would in a job: nothing is begun on a login node."""
        return self.in_image(name, script)

    def launched(self, name: str, script: str, waiting: str) -> str:
        return f"{self.in_image(name, script)}\n{waiting}"

    def relay_prefix(self, name: str) -> Argv:
        """Return the way to the node, and into the image there, perhaps by a module's program."""
        modules = _MODULES.replace("KEEP_PATH", "") if self.has_images else ""
        return (*self._way(name, modules), *self.inner.attached(name, (), Attachment(), {}))

    def attached(self, name: str, argv: Argv, how: Attachment, environment: Environment) -> Argv:
        """Run it as a step of the job, or by ssh if bytes may be many: steps are slower."""
        inner = self.inner.attached(name, argv, how, environment)
        step = SLURM.step("$jlr_id", terminal=how.terminal is not None, name=how.mark)
        by_ssh = "" if how.terminal or how.mark else _BY_SSH
        modules = _MODULES.replace("KEEP_PATH", KEEP_PATH if how.terminal else "")
        return ("sh", "-c", f"{_FIND}{modules}{by_ssh}{step}", "sh", name, *inner)

    def sweep(self, name: str, mark: str, user: str | None = None) -> Argv:
        """Cancel the step: it outlives a client that is killed, and is ended as a whole."""
        end = SLURM.end_steps("$jlr_id", mark)
        return ("sh", "-c", f"{_FIND}case $1 in {LIST}*) exit;; esac\n{end}", "sh", name)

    def _way(self, name: str, modules: str = "") -> Argv:
        step = SLURM.step("$jlr_id")
        return ("sh", "-c", f"{_FIND}{modules}{_BY_SSH}{step}", "sh", name)
