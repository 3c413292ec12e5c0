"""A host's GPUs at one moment: the script that describes them, and the reader of its output.

The script is one for `sh`, and changes nothing. It asks `nvidia-smi`, `/proc`, the engines and
Slurm, and prints records.
"""

from __future__ import annotations

import re
import secrets
import xml.etree.ElementTree as Xml
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from jlremote.errors import JlrError
from jlremote.gpus import assigned, leases
from jlremote.gpus.assigned import RunningContainer
from jlremote.gpus.inventory import Device, Gpu, GpuProcess, Inventory
from jlremote.gpus.leases import Claim, Lease
from jlremote.place.host import contract
from jlremote.place.host.contract import PRINT_FIELD, PRINT_RECORD, OddAnswer, understood
from jlremote.place.host.shell_text import TOOK_TOO_LONG, command_line
from jlremote.text import one_line, printable
from jlremote.untrusted import count, number, whole_number

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
{assigned.FUNCTIONS}exec 2>/dev/null
LC_ALL=C; export LC_ALL
clean() {{ {contract.TAKE_OUT}; }}
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
  {leases.LIST}
}}
"""


def snapshot_script(engines: Engines | None = EVERYBODYS) -> str:
    """Return the script that describes the GPUs once, with the containers of these engines.

    Without `engines` neither containers nor jobs of Slurm are asked for.
    """
    if engines is None:
        return f"{_FUNCTIONS}ask_all\n"
    asked = "".join(f"list_containers {command_line(engine)}; " for engine in engines)
    return f"{_FUNCTIONS}containers=$({asked}list_jobs)\nask_all\n"


_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[^()]+)\)")
_DEVICE = re.compile(r"\s+MIG (\S+)\s+Device\s+([0-9]{1,9}): \(UUID: (MIG-[^)]+)\)")


def read_mig(listing: str, document: str) -> dict[str, tuple[Device, ...]]:
    """Return the MIG devices by their GPU's UUID; the place of each is its number on the GPU."""
    known: dict[str, Xml.Element] = {}
    with suppress(Xml.ParseError, UnicodeError):
        # The parser refuses entity bombs and fetches nothing.
        gpus = Xml.fromstring(document).findall("gpu")  # noqa: S314
        known = {gpu.findtext("uuid", ""): gpu for gpu in gpus}
    found: dict[str, list[Device]] = {}
    here = ""
    for line in listing.splitlines():
        if gpu := _GPU.match(line):
            here = gpu[1]
        elif device := _DEVICE.match(line):
            part = Device(str(whole_number(device[2])), device[3], profile=device[1])
            described = _described(part, known[here]) if here in known else part
            found.setdefault(here, []).append(described)
    return {uuid: tuple(parts) for uuid, parts in found.items()}


def _described(part: Device, gpu: Xml.Element) -> Device:
    for device in gpu.iterfind("mig_devices/mig_device"):
        if device.findtext("index", "").strip() == part.place:
            kinds = ("used", "total")
            used, total = (_mebibytes(device.findtext(f"fb_memory_usage/{one}")) for one in kinds)
            processes = tuple(_processes(gpu, _instance(device)))
            return replace(part, memory_used=used, memory_total=total, processes=processes)
    return part


def _instance(element: Xml.Element) -> tuple[str, str]:
    names = ("gpu_instance_id", "compute_instance_id")
    gpu, compute = (element.findtext(name, "").strip() for name in names)
    return gpu, compute


def _processes(gpu: Xml.Element, instance: tuple[str, str]) -> Iterator[GpuProcess]:
    for process in gpu.iterfind("processes/process_info"):
        pid = process.findtext("pid", "").strip()
        if _instance(process) == instance and (number := count(pid)) is not None:
            name = process.findtext("process_name", "")
            yield GpuProcess(number, name, _mebibytes(process.findtext("used_memory")))


def _mebibytes(text: str | None) -> int | None:
    amount = re.fullmatch(r"\s*(\d{1,15}) MiB\s*", text or "")
    return count(amount[1]) if amount else None


Records: TypeAlias = "Mapping[str, Sequence[str]]"
Processes: TypeAlias = "Mapping[str, tuple[GpuProcess, ...]]"  # by the UUID of their device

_NO_SUCH_FILE, _TIMED_OUT = (126, 127), (124, 137)
# What the driver says of a GPU that fails; and of a single value that it cannot read.
_LOST, _UNREADABLE = ("gpu is lost", "gpu requires reset"), ("err!", "unknown error")


class CannotAsk(JlrError):
    """The host cannot describe its GPUs."""


class NvidiaSmiMissing(CannotAsk):
    """No `nvidia-smi` was found on the host."""


class NvidiaSmiSilent(CannotAsk):
    """`nvidia-smi` does not answer, so the host may have GPUs."""


def read(output: str, host: str, within: RunningContainer | None = None) -> Inventory:
    """Return the GPUs from a snapshot, or those of a container (`CannotAsk`: it has no answer)."""
    told = [(name.strip(), fields[:-1]) for name, *fields in contract.records(output)]
    records = dict(told)
    if "host" not in records:
        raise CannotAsk(f"`{host}` did not answer about its GPUs")
    if "missing" in records:
        hint = f"`jlr doctor {host}` says how to install NVIDIA's driver, which brings it"
        raise NvidiaSmiMissing(f"there is no `nvidia-smi` on `{host}`", hint=hint)
    try:
        with understood("`nvidia-smi`"):
            found_leases = [fields for name, fields in told if name == "lease"]
            return _Reading(records, host).inventory(found_leases, within)
    except OddAnswer as odd:
        raise CannotAsk(odd.message, hint=odd.hint) from odd


class _Reading:
    """One snapshot's records, and the facts that several of them need."""

    def __init__(self, records: Records, host: str) -> None:
        self.records, self.host = records, host
        now, uptime, self.boot, self.user, ticks = records["host"]
        self.now = _number(now) or 0.0
        self.born = self.now - (_number(uptime.partition(" ")[0]) or 0.0)
        self.ticks = _number(ticks) or 100.0
        self.assigned = assigned.read(records.get("containers", [""])[0])
        self.containers = self.assigned.containers

    def inventory(
        self, found_leases: Sequence[Sequence[str]], within: RunningContainer | None
    ) -> Inventory:
        gpus, notes = self._gpus()
        links = (fields for fields in found_leases if not leases.is_place(fields))
        parsed = (leases.read(fields, self.now, self.boot) for fields in links)
        listed = [lease for lease in parsed if lease]
        kept = self._claims(gpus, listed)
        own = [lease for lease in listed if lease[1].user == self.user]
        leased = {uuid for uuid, _, holds in own if holds}
        dead = [str(claim.lease) for _, claim, holds in own if not holds]

        def claimed(device: Device) -> Device:
            claims = tuple(kept.get(device.uuid, ()))
            return replace(device, claims=claims, unseen=bool(self.assigned.unseen))

        there = tuple(gpu.with_each_device(claimed) for gpu in gpus)
        there = tuple(within.limit(there)) if within else there
        first = there[0].whole.uuid if there else "none"
        # Others wait for the same GPUs, unless these are the container's alone.
        alone = within is not None and within.value != "all"
        line = f"{first}.{within.name}" if within and alone else first
        queue, left = leases.read_queue(found_leases, line, self.now, self.boot)
        dead += [name for name, owner in left.items() if owner == self.user]
        return Inventory(
            gpus=there,
            now=self.now,
            user=self.user,
            boot=self.boot,
            notes=notes,
            dead_leases=tuple(dead),
            queue=queue,
            unleased={
                identity: Lease(container.name, container.kept, secrets.token_hex(4), self.boot)
                for identity, container in self.containers.items()
                if container.user == self.user and not leased.issuperset(container.kept)
            },
            line=line,
            container=within.name if within else "",
            unseen=self.assigned.unseen,
            cdi=frozenset(self.records.get("cdi", [""])[0].split()),
        )

    def _claims(
        self, gpus: Sequence[Gpu], listed: Sequence[tuple[str, Claim, bool]]
    ) -> Mapping[str, Sequence[Claim]]:
        claims: dict[str, list[Claim]] = defaultdict(list)
        for uuid, claim in self.assigned.claims(gpus):
            claims[uuid].append(claim)
        for uuid, claim, holds in listed:
            names = {other.name for other in claims[uuid] if other.kind != "all"}
            if holds and claim.name not in names:
                claims[uuid].append(claim)
        return claims

    def _gpus(self) -> tuple[list[Gpu], tuple[str, ...]]:
        fields, status, *words = self.records["gpus"]
        text = "".join(words)  # the driver's own text may contain a separator
        lines = [line.strip() for line in printable(text).splitlines() if line.strip()]
        rows = [row for line in lines if (row := _row(line, fields))]
        complaints = [one_line(line) for line in lines if not _row(line, fields)]
        if not rows:
            raise self._refused(int(_number(status) or 0), complaints)
        processes = self._processes()
        layout = read_mig(*self.records.get("slices", ("", "")))
        gpus = [self._gpu(row, processes, layout) for row in rows]
        return sorted(gpus, key=lambda gpu: gpu.index), tuple(complaints)

    def _refused(self, status: int, complaints: Sequence[str]) -> CannotAsk:
        if status in _TIMED_OUT:
            return NvidiaSmiSilent(
                f"`nvidia-smi` on `{self.host}` did not answer within {ANSWER_SECONDS} s",
                hint="`sudo nvidia-smi -pm 1` there keeps the driver loaded, which answers sooner; "
                "or a GPU may hang, and `dmesg` there may say which",
            )
        said = complaints[0].rstrip(".") if complaints else f"exit status {status}"
        if status in _NO_SUCH_FILE:
            return CannotAsk(f"`nvidia-smi` on `{self.host}` cannot be run: {said}")
        hint = "try it there by hand; the driver may not be loaded, or was updated since boot"
        return CannotAsk(f"`nvidia-smi` on `{self.host}` lists no GPUs: {said}", hint=hint)

    def _gpu(
        self, row: Mapping[str, str], processes: Processes, layout: Mapping[str, tuple[Device, ...]]
    ) -> Gpu:
        uuid, index = row["uuid"], whole_number(row["index"])
        mig = row.get("mig.mode.current") == "Enabled"
        # Another sensor that cannot be read is unknown, and no failure.
        memory = f"{row['memory.used']} {row['memory.total']}".lower()
        whole = Device(
            place=str(index),
            uuid=uuid,
            memory_used=_whole(row["memory.used"]),
            memory_total=_whole(row["memory.total"]),
            processes=processes.get(uuid, ()),
            draws=row.get("display_active") == "Enabled",
        )
        parts = tuple(self._slice(part, whole, processes) for part in layout.get(uuid, ()))
        on_parts = {process.pid for part in parts for process in part.processes}
        if mig:
            rest = tuple(process for process in whole.processes if process.pid not in on_parts)
            whole = replace(whole, processes=rest)
        return Gpu(
            index=index,
            name=row["name"],
            whole=whole,
            busy=_whole(row["utilization.gpu"]),
            temperature=_whole(row["temperature.gpu"]),
            power=_number(row.get("power.draw", "")),
            power_limit=_number(row.get("power.limit", "")),
            mig=mig,
            slices=parts if mig else (),
            failed=any(word in " ".join(row.values()).lower() for word in _LOST)
            or any(word in memory for word in _UNREADABLE),
        )

    def _slice(self, part: Device, whole: Device, processes: Processes) -> Device:
        placed = tuple(self._process(p.pid, p.name, p.memory) for p in part.processes)
        if part.memory_total is None:  # the document does not say which process is on which
            placed = whole.processes
        place = f"{whole.place}:{part.place}"
        return replace(part, place=place, processes=placed or processes.get(part.uuid, ()))

    def _processes(self) -> Processes:
        found: dict[str, list[GpuProcess]] = defaultdict(list)
        for line in printable(self.records.get("processes", [""])[0]).splitlines():
            values = [value.strip() for value in line.split(",", PROCESS_FIELDS.count(","))]
            if len(values) == 4 and (pid := count(values[1])) is not None:
                uuid, _, memory, name = values
                found[uuid].append(self._process(pid, name, _whole(memory)))
        return {uuid: tuple(processes) for uuid, processes in found.items()}

    def _process(self, pid: int, name: str, memory: int | None) -> GpuProcess:
        owners, starts, groups = self.records.get("owners", ("", "", ""))
        start = "\n".join(_after(starts, f"/proc/{pid}/stat:"))
        ticks = start.rpartition(")")[2].split()[19:20]
        group = "\n".join(_after(groups, f"/proc/{pid}/cgroup:"))
        found = re.findall(r"[0-9a-f]{64}", group)
        known = self.containers.get(found[0]) if found else None
        return GpuProcess(
            pid=pid,
            name=one_line(name).rpartition("/")[2] or "?",
            memory=memory,
            user=next(iter(_after(owners, f"/proc/{pid} ")), None),
            container=None if not found else known.name if known else found[0][:12],
            since=self.born + number(ticks[0]) / self.ticks if ticks else None,
        )


def _row(line: str, fields: str) -> dict[str, str] | None:
    names, values = fields.split(","), [value.strip() for value in line.split(",")]
    if len(values) != len(names) or count(values[0]) is None:
        return None
    return dict(zip(names, values))  # noqa: B905  # Python 3.8 has no `strict`


def _number(text: str) -> float | None:
    return number(text) if re.fullmatch(r"\d{1,15}(\.\d{1,15})?", text.strip()) else None


def _whole(text: str) -> int | None:
    number = _number(text)
    return None if number is None else round(number)


def _after(text: str, beginning: str) -> Iterator[str]:
    lines = text.splitlines()
    return (line[len(beginning) :] for line in lines if line.startswith(beginning))
