"""The script that describes a host's GPUs: one for `sh`, which changes nothing.

It asks `nvidia-smi`, `/proc`, the engines and Slurm, and prints records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jlremote.gpus.assigned import FUNCTIONS
from jlremote.gpus.leases import LIST
from jlremote.place.host.contract import PRINT_FIELD, PRINT_RECORD, TAKE_OUT
from jlremote.place.host.shell_text import TOOK_TOO_LONG, command_line

if TYPE_CHECKING:
    from typing import TypeAlias

# Commands of container engines, as their argvs begin.
Engines: TypeAlias = "Iterable[tuple[str, ...]]"
EVERYBODYS: Engines = (("docker",), ("podman",))

# Folders of `nvidia-smi` besides the PATH: NVIDIA's images, WSL, the driver container.
_FOLDERS = (
    "/usr/bin /usr/local/bin /usr/local/nvidia/bin /usr/lib/wsl/lib /run/nvidia/driver/usr/bin"
)

# An old nvidia-smi refuses the whole query for one unknown field; then the next list is asked.
_BASIC = "index,uuid,name,memory.used,memory.total,utilization.gpu,temperature.gpu"
GPU_FIELDS = (
    f"{_BASIC},power.draw,power.limit,display_active,mig.mode.current",
    f"{_BASIC},power.draw,power.limit",
    _BASIC,
)
# The name comes last, as it alone may contain a comma.
PROCESS_FIELDS = "gpu_uuid,pid,used_memory,process_name"

# Without persistence mode the driver begins anew for each question, a second or two for each GPU.
ANSWER_SECONDS = 20

_FUNCTIONS = f"""\
{FUNCTIONS}exec 2>/dev/null
LC_ALL=C; export LC_ALL
clean() {{ {TAKE_OUT}; }}
say() {{ printf '%s{PRINT_FIELD}' "$@"; printf '{PRINT_RECORD}'; }}
limit=; ! command -v timeout >/dev/null || limit=timeout
! timeout -k 1 1 true || limit='timeout -k 2'
ask_smi() {{ $limit ${{limit:+{ANSWER_SECONDS}}} "$smi" "$@"; }}
csv=--format=csv,noheader,nounits
smi=$(command -v nvidia-smi)
for folder in {_FOLDERS}; do
  [ -n "$smi" ] || [ ! -x "$folder/nvidia-smi" ] || smi=$folder/nvidia-smi
done
ask_gpus() {{
  for fields in {" ".join(GPU_FIELDS)}; do
    gpus=$(ask_smi --query-gpu="$fields" $csv 2>&1); status=$?
    case $gpus in *'not a valid field'*) ;; *) break;; esac
  done
  say gpus "$fields" "$status" "$gpus"
}}
ask_processes() {{
  processes=$(ask_smi --query-compute-apps={PROCESS_FIELDS} $csv | clean)
  say processes "$processes"
  pids=$(printf '%s\\n' "$processes" | cut -d, -f2)
}}
ask_slices() {{
  case $gpus in *Enabled*) ;; *) return;; esac
  list=$(ask_smi -L)
  case $list in *MIG*) ;; *) return;; esac
  document=$(ask_smi -q -x | clean)
  say slices "$list" "$document"
  pids="$pids $(printf '%s\\n' "$document" | sed -n 's/.*<pid>\\([0-9]*\\)<.*/\\1/p')"
}}
ask_owners() {{
  pids=$(printf '%s\\n' $pids | grep -x '[0-9][0-9]*' | sort -u)
  [ -n "$pids" ] || return
  say owners "$(stat -c '%n %U' $(printf '/proc/%s ' $pids))" \\
    "$(grep -aH . $(printf '/proc/%s/stat ' $pids) | clean)" \\
    "$(grep -aH . $(printf '/proc/%s/cgroup ' $pids) | clean)"
}}
ask_all() {{
  say host "$(date +%s)" "$(cat /proc/uptime)" "$(cat /proc/sys/kernel/random/boot_id)" \\
    "$(id -un || id -u)" "$(getconf CLK_TCK || echo 100)"
  [ -n "$smi" ] || {{ say missing; return; }}
  ask_gpus
  case $status in {TOOK_TOO_LONG}|137) return;; esac
  ask_processes; ask_slices; ask_owners
  say containers "$containers"
  say cdi "$(cat /etc/cdi/* /var/run/cdi/* | grep -aoE '(GPU|MIG)-[0-9a-f-]+' | sort -u)"
  {LIST}
}}
"""


def snapshot(engines: Engines | None = EVERYBODYS) -> str:
    """Return the script that describes the GPUs once, with the containers of these engines.

    Without `engines` neither containers nor jobs of Slurm are asked for.
    """
    if engines is None:
        return f"{_FUNCTIONS}ask_all\n"
    asked = "".join(f"list_containers {command_line(engine)}; " for engine in engines)
    return f"{_FUNCTIONS}containers=$({asked}list_jobs)\nask_all\n"
