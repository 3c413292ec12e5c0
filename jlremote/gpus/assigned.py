"""The GPUs that engines gave to containers, and Slurm to jobs.

Values of an engine are those of docker's `--gpus`: `all`, a number, `device=0,3`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from jlremote.gpus.inventory import Device, Gpu, called
from jlremote.gpus.leases import Claim
from jlremote.place.host.contract import USER_LABEL
from jlremote.place.host.shell_text import TOOK_TOO_LONG
from jlremote.place.host.sudo import ALONE_UNLESS_KNOWN
from jlremote.place.runtimes.engine.engine_gpus import CDI, GPUS_LABEL, VISIBLE, gpus_of
from jlremote.text import one_line, printable
from jlremote.untrusted import Refused, count, document, moment

if TYPE_CHECKING:
    from typing import TypeAlias

# A CDI file names a GPU `0`, `gpu0` or by its UUID, as its host's administrator chose.
_INDEX = re.compile(r"(?:gpu|mig)?(\d{1,4}(?::\d{1,4})?)")

# What `inspect` is asked for: of the variables only one, as others may be secrets. Docker before
# 19.03 has no requests, and podman no such field, but its command line.
_ENVIRONMENT = (
    f'"Env":[{{{{range .Config.Env}}}}{{{{if eq (printf "%.{len(VISIBLE) + 1}s" .) "{VISIBLE}="}}}}'
    "{{json .}},{{end}}{{end}}null]"
)
_REQUESTS = '"DeviceRequests":{{json .HostConfig.DeviceRequests}}'
_HOST = '"Runtime":{{json .HostConfig.Runtime}},"Devices":{{json .HostConfig.Devices}}'
_WORDS = " ".join(
    f'(eq (printf "%.{len(begin)}s" .) "{begin}")' for begin in (CDI, f"--device={CDI}")
)
_COMMAND = (
    f'"CreateCommand":[{{{{range .Config.CreateCommand}}}}{{{{if or {_WORDS}}}}}'
    "{{json .}},{{end}}{{end}}null]"
)
_LABELS = ",".join(
    f'"{label}":{{{{json (index .Config.Labels "{label}")}}}}' for label in (USER_LABEL, GPUS_LABEL)
)
_BEGIN = '{{.Id}} {"Name":{{json .Name}},"State":{"StartedAt":{{json .State.StartedAt}}},'
_FORMATS = tuple(
    f'{_BEGIN}"HostConfig":{{{host}}},"Config":{{"Labels":{{{_LABELS}}},{config}}}}}'
    for host, config in (
        (f"{_REQUESTS},{_HOST}", _ENVIRONMENT),
        (_HOST, f"{_ENVIRONMENT},{_COMMAND}"),
        (_HOST, _ENVIRONMENT),
    )
)
_ANSWER_SECONDS = 10
# Shell functions that print what engines and Slurm have given, a line each, or why they do not
# tell, within `$limit`, which is empty or begins with `timeout`. Where docker does not answer,
# processes show whether it has containers at all; where it is not found, or nothing listens on its
# socket, only those of the machine's own count. Slurm is asked where its daemon or a job of it
# runs.
FUNCTIONS = f"""\
within() {{ $limit ${{limit:+{_ANSWER_SECONDS}}} "$@"; }}
in_line() {{ tr '\\n|' '  '; }}
unless_idle() {{
  case $listed in
  *'daemon running'*|*'not on the PATH') place='address.(/var)?/run/';;
  *) place=moby; [ -r /proc/1/stat ] || place=;;
  esac
  found=$(grep -als '[n]amespace.moby' /proc/[0-9]*/cmdline)
  [ -z "$place" ] || {{ [ -n "$found" ] && grep -aqsE "$place" $found; }} || return
  printf 'refused|%s\n' "$(printf %s "${{listed:-no answer}}" | in_line)"
}}
list_containers() {{
  if ! command -v "$1" >/dev/null; then
    listed='docker is not on the PATH'; [ "$1" != docker ] || unless_idle; return
  fi
  {ALONE_UNLESS_KNOWN}
  for program; do :; done
  listed=$(within "$@" ps --no-trunc --quiet 2>&1) || {{
    [ "$program" != docker ] || unless_idle; return
  }}
  printf 'answered|%s\n' "$program"
  ids=$(printf '%s\n' "$listed" | grep -xE '[0-9a-f]{{64}}')
  [ -n "$ids" ] || return
  printf '%s\n' "$ids"
  for format in {" ".join(map(shlex.quote, _FORMATS))}; do
    told=$(within "$@" container inspect --format "$format" $ids 2>&1); asked=$?
    case $asked,$told in {TOOK_TOO_LONG},*|*']}}}}'*) break;; esac
  done
  printf '%s\n' "$told" | grep -E '^[0-9a-f]{{64}} [{{].*]}}}}$'
  [ "$asked" != 0 ] || return
  printf 'unread|%s\n' "$program: $(printf %s "${{told:-no answer}}" | tail -n 1)"
}}
list_jobs() {{
  command -v scontrol >/dev/null || return
  [ ! -r /proc/1/stat ] || grep -qs '^slurm[ds]' /proc/[0-9]*/comm || return
  node=$(uname -n); node=${{node%%.*}}
  told=$(within scontrol --details show node "$node" 2>&1); asked=$?
  case $asked,$told in
  0,*) ;;
  *'not found'*|*'configuration source'*) return;;
  *) printf 'silent|%s\n' "$(printf %s "${{told:-no answer}}" | in_line)"; return;;
  esac
  printf 'node|%s|%s\n' "$node" "$(printf '%s\n' "$told" | grep '^ *Gres' | in_line)"
  for job in $(within squeue --noheader --nodelist="$node" --format=%A | head -n 64); do
    printf 'job|%s\n' "$(within scontrol --oneliner --details show job "$job" | in_line)"
  done
}}
"""

_GRES = re.compile(r"gpu:(?:[^:,()]+:)?(\d{1,4})(?:\(IDX:([\d,-]{1,200})\))?")


@dataclass(frozen=True)
class RunningContainer:
    """A container that runs, with what is known of its GPUs."""

    name: str
    value: str | None  # the engine's value for its GPUs
    kept: tuple[str, ...] = ()  # the UUIDs that jlr gave it, if any
    user: str | None = None  # of jlr, who started it
    since: float | None = None

    def limit(self, gpus: Sequence[Gpu]) -> Iterator[Gpu]:
        """Yield the container's own GPUs, without its own claims to them."""
        own = set(resolved(self.value, gpus))
        own &= set(self.kept) or own
        kinds = ("container", "session", "assigned", "all")

        def unclaimed(device: Device) -> Device:
            others = (c for c in device.claims if c.kind not in kinds or c.name != self.name)
            return replace(device, claims=tuple(others))

        for gpu in gpus:
            slices = tuple(part for part in gpu.slices if part.uuid in own)
            if slices or gpu.whole.uuid in own:
                yield replace(gpu, slices=slices).with_each_device(unclaimed)


_Job: TypeAlias = "tuple[Claim, tuple[int, ...]]"  # with the indices of its GPUs


@dataclass(frozen=True)
class Assigned:
    """What engines and Slurm have given on a host."""

    containers: Mapping[str, RunningContainer]  # by the engine's full id
    jobs: tuple[_Job, ...] = ()
    of_slurm: int | None = None  # how many GPUs Slurm knows here
    unseen: str = ""  # why there may be more, in words; empty if all can be seen

    def claims(self, gpus: Sequence[Gpu]) -> Iterator[tuple[str, Claim]]:
        """Yield each device's UUID with a claim to it."""
        for one in self.containers.values():
            for uuid in one.kept:
                yield uuid, Claim("container", one.name, one.user, one.since)
            kind: Literal["all", "assigned"] = "all" if one.value == "all" else "assigned"
            for uuid in resolved(one.value, gpus):
                if uuid not in one.kept:
                    yield uuid, Claim(kind, one.name, one.user, one.since)
        # A user who is let into a job sees its GPUs alone, counted from 0.
        for claim, indices in self.jobs if self.of_slurm == len(gpus) else ():
            for uuid in resolved(f"device={','.join(map(str, indices))}", gpus):
                yield uuid, claim


def read(text: str) -> Assigned:
    """Return the GPUs of containers and jobs from what `FUNCTIONS` printed."""
    listed: set[str] = set()
    containers: dict[str, RunningContainer] = {}
    told: dict[str, list[str]] = {}
    for line in printable(text).splitlines():
        identity, _, facts = line.partition(" ")
        if not re.fullmatch(r"[0-9a-f]{64}", identity):
            kind, _, words = line.partition("|")
            told.setdefault(kind, []).append(words)
        elif not facts:
            listed.add(identity)
        else:
            try:
                containers[identity] = _container(document(facts))
            except (Refused, AttributeError, KeyError, TypeError, ValueError):
                told.setdefault("unread", []).append("an engine: its answer cannot be read")
    of_slurm, jobs = _jobs(told)
    return Assigned(containers, jobs, of_slurm, _unseen(told, listed.difference(containers)))


def _container(facts: Mapping[str, Any]) -> RunningContainer:
    labels, started = facts["Config"]["Labels"], str(facts["State"]["StartedAt"])
    user, kept = (str(labels[label] or "") for label in (USER_LABEL, GPUS_LABEL))
    found = re.match(r"(\d{4}-\d\d-\d\dT[\d:]{8})(?:\.\d+)?(Z|[+-]\d\d:\d\d)$", started)
    iso = found and found[1] + found[2].replace("Z", "+00:00")
    since = moment(datetime.fromisoformat(iso).timestamp()) if iso else None
    name, uuids = str(facts["Name"]).lstrip("/"), tuple(filter(None, kept.split(",")))
    return RunningContainer(name, gpus_of(facts), uuids, user or None, since)


def _unseen(told: Mapping[str, Sequence[str]], unread: Iterable[str]) -> str:
    why = []
    if "refused" in told and "docker" not in told.get("answered", ()):
        why += [f"`docker ps`: {words}" for words in told["refused"]]
    if unread:  # a container may have ended meanwhile
        errors = (words for words in told.get("unread", ()) if "no such" not in words.lower())
        why += [f"`inspect` by {words}" for words in errors]
    why += [f"Slurm: {words}" for words in told.get("silent", ())]
    return one_line("; ".join(why)).rstrip(".")


def _jobs(told: Mapping[str, Sequence[str]]) -> tuple[int | None, tuple[_Job, ...]]:
    for line in told.get("node", ()):
        node, _, gres = line.partition("|")
        has, _, used = gres.partition("GresUsed=")
        jobs = [job for text in told.get("job", ()) if (job := _job(text, node))[1]]
        known = {index for _, indices in jobs for index in indices}
        if hidden := tuple(index for index in _indices(used) if index not in known):
            jobs.append((Claim("job", "?", None, None), hidden))
        return sum(count(found[1]) or 0 for found in _GRES.finditer(has)), tuple(jobs)
    return None, ()


def _job(text: str, node: str) -> _Job:
    facts = dict(re.findall(r"(JobId|UserId)=([^\s(]+)", text)[::-1])  # the first counts
    places = re.findall(r"\bNodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)", text)
    here = [gres for nodes, gres in places if nodes == node] or [gres for _, gres in places][:1]
    claim = Claim("job", facts.get("JobId", "?"), facts.get("UserId"), None)
    return claim, tuple(_indices(" ".join(here)))


def _indices(gres: str) -> Iterator[int]:
    for found in _GRES.finditer(gres):
        for part in filter(None, (found[2] or "").split(",")):
            first, _, last = part.partition("-")
            begin, end = count(first), count(last or first)
            if begin is not None and end is not None:
                yield from range(begin, min(end, begin + 1023) + 1)


def resolved(value: str | None, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """Return the UUIDs of those devices of the host that an engine's value names."""
    if value is None:
        return ()
    amount = len(gpus) if value == "all" else count(value)
    first = sorted(gpu.index for gpu in gpus)
    named = value.partition("device=")[2].strip("\"'").split(",")
    names = named if amount is None else list(map(str, first[:amount]))
    places = (found[1] if (found := _INDEX.fullmatch(name)) else name for name in names)
    devices = (device for place in places for _, some in called(place, gpus) for device in some)
    return tuple(dict.fromkeys(device.uuid for device in devices))
