"""Ranks of a job, and arrays: several jobs of one submission, which differ by their index.

`srun` starts a task for each rank, or one `torchrun` on each node.

The address of the first node is resolved on that node and outside of images: in an image there is
no `scontrol`, and ranks that fall back to localhost would form a world on each node.
"""

from __future__ import annotations

import re

from jlremote.errors import Usage
from jlremote.place.clusters.scheduler import Ranks
from jlremote.place.host.shell_text import command_line
from jlremote.untrusted import count

# Variables that are set, by `--env` or the site, win. Ports from 32768 on are those of connections.
_MEETING = """\
jlr_first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
if [ -z "${MASTER_ADDR-}" ]; then
  MASTER_ADDR=$(getent ahostsv4 "$jlr_first" | { read -r address _; echo "$address"; })
  MASTER_ADDR=${MASTER_ADDR:-$jlr_first}
  case $SLURM_JOB_NUM_NODES:$MASTER_ADDR in
    1:*) ;;
    *:127.*|*:localhost|*:::1)
      echo "jlr: on $jlr_first its own name is $MASTER_ADDR, which other nodes do not reach;" \\
        "give its address: --env MASTER_ADDR=ADDRESS" >&2
      exit 1;;
  esac
fi
export MASTER_ADDR MASTER_PORT="${MASTER_PORT:-$((10000 + SLURM_JOB_ID % 20000))}"
"""
# Since 22.05 srun does not take over the CPUs of each task. Without `--kill-on-bad-exit` one rank
# that dies leaves the others waiting for it.
_SRUN = """\
exec srun --kill-on-bad-exit=1 ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} """
# One task on each node has all CPUs and GPUs that the job has there, whatever was asked for a task.
_TORCHRUN = """\
export PET_NNODES="${PET_NNODES:-$SLURM_JOB_NUM_NODES}" PET_RDZV_BACKEND="${PET_RDZV_BACKEND:-c10d}"
export PET_RDZV_ID="${PET_RDZV_ID:-$SLURM_JOB_ID}"
export PET_RDZV_ENDPOINT="${PET_RDZV_ENDPOINT:-$MASTER_ADDR:$MASTER_PORT}"
jlr_ranks=$((${SLURM_NTASKS:-1} / SLURM_JOB_NUM_NODES))
[ "$jlr_ranks" -gt 1 ] || jlr_ranks=${SLURM_GPUS_ON_NODE:-1}
export PET_NPROC_PER_NODE="${PET_NPROC_PER_NODE:-$jlr_ranks}"
unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_NTASKS_PER_GPU SLURM_GPUS_PER_TASK
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_TRES_PER_TASK
exec srun --kill-on-bad-exit=1 --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpu-bind=none \
"""
_RANK = """\
export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS"
exec "$@"
"""
# The node of the meeting point is said, as torchrun knows it only by the name of the machine.
_AGENT = """\
[ "$SLURM_NODEID" = 0 ] && jlr_host=true || jlr_host=false
export PET_RDZV_CONF="${PET_RDZV_CONF:-is_host=$jlr_host}"
! command -v torchrun >/dev/null || exec torchrun "$@"
exec python3 -m torch.distributed.run "$@"
"""
# Its own prefix has the local rank only, unless PyTorch is 2.1 or newer and is told so.
_LABEL = "export TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='${rank}: ' PET_TEE=3\n"


def task(command: tuple[str, ...], ranks: Ranks) -> tuple[str, ...]:
    """Return what each task of `srun` runs, perhaps in an image."""
    if ranks.launcher == "srun":
        return ("sh", "-c", _RANK, "sh", *command)
    label = _LABEL if ranks.label else ""
    # Spelt so for PyTorch 1, too.
    script = () if command[0].endswith(".py") else ("--no_python",)
    # torchrun takes `$$` in the arguments for `$`, and `${local_rank}` for a number.
    program, *arguments = command
    exact = (argument.replace("$", "$$") for argument in arguments)
    return ("sh", "-c", label + _AGENT, "sh", *script, program, *exact)


def launched(argv: tuple[str, ...], ranks: Ranks) -> str:
    """Return shell text that runs `argv` as each task, in place of the shell."""
    by_srun = ranks.launcher == "srun"
    label = "--label " if ranks.label and by_srun else ""
    return f"{_MEETING}{_SRUN if by_srun else _TORCHRUN}{label}{command_line(argv)}"


_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_MOST = 4_000_001  # what the setting MaxArraySize may be at most


def indices(array: str, limit: str) -> tuple[int, ...]:
    """Return the indices that `1,3,5-9:2%4` stands for; behind `%` is how many run at a time.

    `limit` is what `Slurm.array_limit` printed, the first index that the site refuses, or empty
    (`Usage`: it is not written so, or has an index that is too high).
    """
    listed, percent, together = array.strip().partition("%")
    parts = [_PART.fullmatch(part.strip()) for part in listed.split(",")]
    if percent and not together.isdecimal():
        parts = [None]
    found, refused = set[int](), count(limit.strip()) or _MOST
    for part in parts:
        if part is None or part[3] == "0" or (part[2] and int(part[2]) < int(part[1])):
            hint = "`--array 0-7`, `--array 1,3,5-9:2`; `--array 0-99%4` runs four at a time"
            raise Usage(f"`--array {array}` names no indices", hint=hint)
        last = int(part[2] or part[1])
        if last >= refused:
            why = f"`--array {array}`: Slurm takes indices up to {refused - 1} there"
            hint = f"`--array 0-{refused - 1}` is the longest; let each job do more of the work"
            raise Usage(why, hint=hint)
        found.update(range(int(part[1]), last + 1, int(part[3] or 1)))
    return tuple(sorted(found))
