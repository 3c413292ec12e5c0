"""The choice of a session's GPUs: free ones, or the named ones if they are free."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus.inventory import Device, Inventory, called, in_line, users_of_all
from jlremote.gpus.leases import ahead
from jlremote.text import one_line

_NAME = re.compile(r"\d+(:\d+)?|(GPU|MIG)-[0-9A-Za-z/-]+")


@dataclass(frozen=True)
class GpuRequest:
    """A parsed value of `--gpus`."""

    # A number of free ones, named ones, or a value that only the engine understands.
    kind: Literal["none", "all", "free", "named", "engine"]
    text: str  # the value, without the quotes that the engine wants
    count: int = 0  # of free ones
    names: tuple[str, ...] = ()  # indices and UUIDs

    @property
    def chosen(self) -> bool:
        """Whether jlr chooses GPUs for it."""
        return self.kind in ("free", "named")

    @property
    def automatic(self) -> bool:
        """Whether no engine takes this value, so that jlr must choose."""
        return self.text.startswith("auto")


def parse_request(text: str) -> GpuRequest:
    """Return the request of `--gpus TEXT` (`Usage`: it is no GPU selection)."""
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == '"' and bare.count('"') == 2:
        bare = bare[1:-1]  # docker's manual writes --gpus '"device=0,2"'
    if bare in ("none", "all"):
        return GpuRequest("none" if bare == "none" else "all", bare)
    names = tuple(re.sub(r"\Adevice=", "", bare).split(","))
    if counted := re.fullmatch(r"(?:count=|auto:)?(\d{1,4})|auto", bare):
        if count := int(counted[1] or 1):
            return GpuRequest("free", bare, count=count)
        hint = "`--gpus none` takes no GPU"
        raise Usage(f"`--gpus {bare}` is a count; the first GPU is `--gpus device=0`", hint=hint)
    if all(_NAME.fullmatch(name) for name in names):
        return GpuRequest("named", bare, names=names)
    if re.match(r"[\"a-z]+=[^\s=]", bare):
        return GpuRequest("engine", bare)
    raise Usage(
        f"`{one_line(text)}` is not a GPU selection",
        hint="`--gpus` takes `auto`, `auto:N`, `N`, `0,3`, UUIDs, `all`, `none` or "
        "a value of the engine's own with `=`",
    )


def is_met(text: str, have: str | None) -> bool:
    """Return whether a container that was created with `--gpus HAVE` meets the request `text`.

    A number alone is a count in both, and `device=2` a name.
    """
    asked = parse_request(text)
    try:
        has = parse_request(have) if have else GpuRequest("none", "none")
    except Usage:  # an engine may have more values than `--gpus` takes
        return asked.text == have
    if asked.kind == "free":
        return asked.count == (has.count or len(has.names))
    return asked.kind == has.kind and (
        set(asked.names) == set(has.names) if asked.names else asked.text == has.text
    )


SHARE = "`--share-gpus` takes GPUs that are in use, too"


class CannotTell(JlrError):
    """The host does not tell whether a GPU is free."""


@dataclass(frozen=True)
class Chosen:
    """The devices that were chosen, by each of their names."""

    uuids: tuple[str, ...]  # as engines, CUDA and leases take them
    places: tuple[str, ...]  # for people: indices, `GPU:MIG` for MIG devices


def choose(wanted: GpuRequest, inventory: Inventory, host: str, *, share: bool) -> Chosen:
    """Return the devices for a request of kind `free` or `named`; `share` allows those in use.

    The inventory is without the leases of this start. Raise `Busy` with the users of each if the
    devices are in use, or too few are free; `CannotTell` if the host does not tell which are free;
    `JlrError` if a named GPU fails; `NotFound` if the host has no such devices; and `Usage` if the
    names mix GPUs and MIG devices.
    """
    if wanted.kind == "free":
        return _free(wanted.count, inventory, host, share=share)
    found = [device for name in wanted.names for device in _devices_called(name, inventory, host)]
    _refuse_mixed(found, host)
    busy = {device.uuid: device for device in found if device.in_use}
    if busy and not share:
        what = f"in use on `{inventory.place(host)}`: {users_of_all(busy.values(), inventory.now)}"
        hint = f"`--gpus auto` takes a free one; {SHARE}"
        raise Busy(what, hint=hint)
    return _chosen(found)


def refuse_to_overtake(host: str, count: int, inventory: Inventory, word: str | None) -> None:
    """Raise `Busy` if earlier starts in the queue wait for the GPUs; `word` is this one's place."""
    earlier = ahead(inventory.queue, word)
    free = sum(not device.in_use for device in inventory.devices)
    if earlier and free - count < sum(start.count for start in earlier):
        what = f"others already wait for GPUs of `{host}`: {in_line(earlier, inventory.now)}"
        hint = "`--wait` joins the queue behind them"
        raise Busy(what, hint=hint)


def _free(count: int, inventory: Inventory, host: str, *, share: bool) -> Chosen:
    parts = inventory.mig_devices
    whole = tuple(gpu.whole for gpu in inventory.gpus if not gpu.failed and not gpu.mig)
    # A program sees either GPUs or MIG devices, so they are never mixed.
    enough = [kind for kind in (whole, parts) if len(kind) >= count]
    if not enough:
        divided = f" and {len(parts)} MIG devices, which do not mix" if parts else ""
        failed = ", ".join(str(gpu.index) for gpu in inventory.gpus if gpu.failed)
        fails = f" besides GPU {failed}, whose driver reports an error"
        gpus = f"{len(whole)} GPU{'s' * (len(whole) != 1)}{divided}{fails if failed else ''}"
        what = f"`{inventory.place(host)}` has {gpus}, and {count} were asked for"
        hint = _available(inventory, host)
        raise NotFound(what, hint=hint)
    # The sort is stable, so of equal devices the first is taken; devices in use come last.
    by_room = [sorted(kind, key=lambda one: (one.in_use, -one.memory_free)) for kind in enough]
    taken = min((kind[:count] for kind in by_room), key=_in_use)
    if not share and _in_use(taken):
        raise _too_few_free(count, min(enough, key=_in_use), inventory, host)
    if not share and any(device.free is None for device in taken):
        raise CannotTell(
            f"cannot tell which GPUs of `{inventory.place(host)}` are free: {inventory.unseen}",
            hint=f"`jlr gpus {host}` shows what is known of them; `--gpus device=N` takes one that "
            "you name",
        )
    return _chosen(taken)


def _in_use(devices: Sequence[Device]) -> int:
    return sum(device.in_use for device in devices)


def _too_few_free(count: int, devices: Sequence[Device], inventory: Inventory, host: str) -> Busy:
    busy = [device for device in devices if device.in_use]
    free = len(devices) - len(busy)
    asked = "a GPU was" if count == 1 else f"{count} GPUs were"
    return Busy(
        f"{asked} asked for, and {free or 'none'} of {len(devices)} on `{inventory.place(host)}` "
        f"{'is' if free < 2 else 'are'} free: {users_of_all(busy, inventory.now)}",
        hint=f"`--wait` waits until they are free; {SHARE}",
    )


def _refuse_mixed(devices: Sequence[Device], host: str) -> None:
    """Refuse GPUs together with MIG devices, where an engine would give both.

    "CUDA will not enumerate non-MIG GPU if any compute instance is enumerated on any other GPU"
    (NVIDIA's MIG user guide, CUDA device enumeration).
    """
    parts = ",".join(dict.fromkeys(device.place for device in devices if device.is_part))
    whole = ",".join(dict.fromkeys(device.place for device in devices if not device.is_part))
    if parts and whole:
        raise Usage(
            f"`--gpus` names GPUs of `{host}` ({whole}) and MIG devices ({parts}), which cannot "
            "be combined: a program with a MIG device sees no whole GPU",
            hint=f"`--gpus device={whole}` or `--gpus device={parts}`, in a session each",
        )


def _devices_called(name: str, inventory: Inventory, host: str) -> tuple[Device, ...]:
    found = called(name, inventory.gpus)
    if len(found) != 1:
        hint = _available(inventory, host)
        raise NotFound(f"there is no GPU `{name}` on `{inventory.place(host)}`", hint=hint)
    [(gpu, devices)] = found
    if gpu.failed:
        raise JlrError(
            f"GPU {gpu.index} of `{host}` fails: its driver answers with an error for "
            f"{gpu.whole.uuid}",
            hint=f"`nvidia-smi -q -i {gpu.index}` on the host shows what it says; a reset "
            "or a reboot may mend it. `--gpus auto` takes another one",
        )
    if not devices:
        what = f"GPU {gpu.index} of `{host}` is in MIG mode and has no MIG devices"
        hint = "`nvidia-smi mig -cgi … -C` on the host makes them; this needs root"
        raise NotFound(what, hint=hint)
    return devices


def _chosen(devices: Collection[Device]) -> Chosen:
    return Chosen(
        tuple(dict.fromkeys(device.uuid for device in devices)),
        tuple(dict.fromkeys(device.place for device in devices)),
    )


def _available(inventory: Inventory, host: str) -> str:
    names = [f"{d.place} ({d.uuid})" if d.is_part else d.place for d in inventory.devices]
    return f"`jlr gpus {host}` shows its GPUs: {', '.join(names) or 'none'}"
