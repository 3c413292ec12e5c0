"""Choose a new session's GPUs, and lease them until the session holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import leases, proof, taking, wait
from jlremote.gpus.assigned import RunningContainer, resolved
from jlremote.gpus.choice import GpuRequest, choose, is_met, parse_request
from jlremote.gpus.host_gpus import ask, engines_asked
from jlremote.gpus.inventory import Inventory, place_names, users_of_all
from jlremote.gpus.leases import Lease
from jlremote.gpus.snapshot import CannotAsk
from jlremote.gpus.taking import Taken, Wish
from jlremote.hosts.requests import StartContext
from jlremote.jupyter.endpoint import Server
from jlremote.place.host.contract import USER_LABEL, attempt, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.engine.engine_gpus import GPUS_LABEL, shortened
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import Attachment, Container


@dataclass(frozen=True)
class AllocatedGpus:
    """The GPUs of a session."""

    engine: str | None = None  # the value of the engine's `--gpus`, `None` for none
    shown: str | None = None  # for a person: `0,3`, `all`, `none`
    environment: Mapping[str, str] = field(default_factory=dict)  # of a server without a container
    in_container: tuple[str, ...] = ()  # variables of a new container, `NAME=VALUE`
    labels: Mapping[str, str] = field(default_factory=dict)  # labels of a new container
    lease: Lease | None = None  # the lease on the devices during the start
    # what `gpus.waiter_program` is to do for a job that waits for them on the host
    wait: Mapping[str, Any] | None = None

    def keep_for(self, engine: Engine, container: str) -> dict[str, str]:
        """Return the step that ties the lease to the container that the step before has started."""
        if self.lease is None:
            return {}
        return {"lease": leases.keep_for(self.lease, docker.state_argv(engine, container, "Pid"))}


def by_uuid(start: StartContext) -> StartContext:
    """Return the start with its GPUs by UUID, as indices change (`NotFound`: there are none)."""
    gpus = start.request.gpus
    if gpus is None or start.runtime.in_jobs or parse_request(gpus).kind != "named":
        return start
    with suppress(CannotAsk):
        chosen = choose(parse_request(gpus), ask(start.host), start.host.name, share=True)
        return replace(start, request=replace(start.request, gpus=",".join(chosen.uuids)))
    return start


def take(
    start: StartContext,
    *,
    holds: bool = True,
    of: Container | None = None,
    within: RunningContainer | None = None,
) -> AllocatedGpus:
    """Choose the requested GPUs and lease them; `within` limits a job to a container's own.

    `of` is a session that was defined with them, and gets its next server. With `holds` the next
    start of the session may take over what this one has waited for. Raise `Busy` with the users of
    each if they are in use, `NotFound` if the host has no such GPU, and `CannotAsk` if only jlr can
    choose, and the host cannot say which are free.
    """
    request = start.request
    asked = None if request.gpus is None else parse_request(request.gpus)
    if request.wait is not None and (asked is None or not asked.chosen):
        raise Usage("`--wait` needs `--gpus`", hint="add `--gpus auto` or `--gpus auto:N`")
    if asked is None:
        return AllocatedGpus()
    if not asked.chosen:
        return _as_asked(start, asked, within)
    try:
        return _take(start, asked, holds=holds, of=of, within=within)
    except CannotAsk as reason:
        # A container counts its GPUs in its own way.
        if asked.automatic or within or (asked.kind == "free" and not start.runtime.has_containers):
            raise
        start.note(f"GPUs `{asked.text}` may be in use: {reason.message}")
        return _unseen(asked)


def within(start: StartContext, container: Container) -> RunningContainer | None:
    """Return the container that limits a job in it to its own GPUs, `None` without an engine.

    Raise `Usage` if it has no GPUs, or a scheduler gives them.
    """
    gpus = start.request.gpus
    asked = None if gpus is None else parse_request(gpus)
    if asked is None or not asked.chosen:
        return None
    where = f"{start.request.host}/{container.name}"
    if container.in_job:
        raise Usage(
            f"`--gpus {asked.text}` is not for a job in `{where}`: it has the GPUs that its "
            "scheduler gave to the session",
            hint="leave out `--gpus`, or hide them with `--gpus none`",
        )
    if not start.runtime.has_containers:
        return None
    if container.engine_gpus is None:
        raise Usage(
            f"`--gpus {asked.text}`: the container `{container.name}` has no GPUs",
            hint=f"`jlr run {start.request.host} --image IMAGE --gpus {asked.text} -- …` runs the "
            "job in a new container",
        )
    return RunningContainer(container.name, container.engine_gpus, _given(container))


def take_or_promise(
    start: StartContext, *, detached: bool, within: RunningContainer | None = None
) -> AllocatedGpus:
    """Take GPUs as `take` does; with `--wait`, let a detached job wait for them on the host."""
    request = start.request
    asked = None if request.gpus is None else parse_request(request.gpus)
    if not detached or request.wait is None or asked is None or not asked.chosen:
        return take(start, holds=False, within=within)
    try:
        at_once = replace(start, request=replace(request, wait=None))
        return take(at_once, holds=False, within=within)
    except Busy as busy:
        inventory = ask(start.host, within=within)
        # Named ones are known, though they are in use; words stand for the others.
        known = choose(asked, inventory, request.host, share=True) if asked.names else None
        promised = _of(start, Taken(known or taking.promised(asked.count), inventory))
        wish = Wish(start.host, start.name, asked, engines_asked(request.host), within=within)
        return replace(promised, wait=wait.plan(wish, request.wait, busy.message))


def take_again(start: StartContext, container: Container) -> AllocatedGpus:
    """Lease the GPUs that jlr chose for a container at its creation, for its next start.

    Raise `Busy` if they are in use, `NotFound` if one is gone, `JlrError` if the engine would give
    it others.
    """
    uuids = _given(container)
    if not uuids:
        return AllocatedGpus()
    try:
        return _take(start, GpuRequest("named", ",".join(uuids), names=uuids), of=container)
    except CannotAsk as reason:  # the engine has the last word
        start.note(
            f"cannot tell whether the GPUs of `{container.name}` are still its own, and free: "
            f"{reason.message}"
        )
        return AllocatedGpus()
    except Busy as busy:
        what = f"the GPUs of the container `{container.name}` are in use by others: {busy.message}"
        deletes = start.way_to_delete(container, "and a new start gets other GPUs")
        raise Busy(what, hint=f"`--share-gpus` starts it nevertheless{deletes}") from busy


def _refuse_others(
    start: StartContext, container: Container, uuids: Sequence[str], inventory: Inventory
) -> None:
    host, kind = start.request.host, "container" if start.runtime.has_containers else "session"
    what = f"the {kind} `{container.name}`"
    deletes = start.way_to_delete(container, "and a new start gets other GPUs")
    hint = f"`jlr gpus {host}` shows the GPUs that work{deletes}"
    there = {device.uuid for device in inventory.devices}
    if gone := [uuid for uuid in uuids if uuid not in there]:
        failed = {gpu.whole.uuid for gpu in inventory.gpus if gpu.failed}
        fails = " (its driver answers with an error)" if failed.intersection(gone) else ""
        what = f"{what} was given {', '.join(gone)}{fails}, which `{host}` no longer has"
        raise NotFound(what, hint=hint)
    gets = resolved(container.engine_gpus, inventory.gpus)
    if gets and set(gets) != set(uuids):
        raise JlrError(
            f"{what} was given {', '.join(uuids)}, and would now get {', '.join(gets)}: it names "
            f"GPUs by index, and `{host}` has renumbered them",
            hint=hint,
        )


def _given(container: Container) -> tuple[str, ...]:
    labels = container.labels if container.is_session else {}
    return tuple(filter(None, labels.get(GPUS_LABEL, "").split(",")))


def planned(start: StartContext) -> AllocatedGpus:
    """Return the allocation that `take` would make; for `--dry-run`."""
    if start.request.gpus is None:
        return AllocatedGpus()
    asked = parse_request(start.request.gpus)
    if not asked.chosen:
        return _as_asked(start, asked)
    try:
        inventory = ask(start.host)
    except CannotAsk:
        if asked.automatic:
            raise
        return _unseen(asked)
    chosen = choose(asked, inventory, start.host.name, share=start.request.share_gpus)
    return _of(start, Taken(chosen, inventory))


def explain_unchanged(start: StartContext, have: str | None, uuids: str | None = None) -> None:
    """Note that an existing container keeps its GPUs if others were requested.

    `have` is the value of `--gpus` that it was created with, `uuids` those that jlr chose for it.
    """
    asked = start.request.gpus
    if asked is None or asked == have or is_met(asked, have) or (uuids and is_met(asked, uuids)):
        return
    has = (uuids or have or "").removeprefix("device=")
    names = parse_request(asked).names
    if "-" in has and any(name.replace(":", "").isdigit() for name in names):
        try:
            gpus = ask(start.host).gpus
        except JlrError:
            return
        wanted, there = (resolved(f"device={some}", gpus) for some in (",".join(names), has))
        if set(wanted) == set(there):
            return
    gpus_of_it = f"with GPUs `{shortened((have or '').removeprefix('device='))}`"
    start.note(
        f"`{start.name}` already exists {gpus_of_it if have else 'without GPUs'}; "
        "`--gpus` applies to new containers only"
    )


def keep(start: StartContext, taken: AllocatedGpus, server: Server, *, launched: bool) -> None:
    """Let the lease of a server without a container last as long as the server."""
    if not launched:
        give_back(start, taken)
    elif taken.lease is not None:
        run_script(start.host, leases.keep(taken.lease, server.pid, server.process_start))


def prove(start: StartContext, engine: str | None, has: str | None = None) -> None:
    """Note why a session that was just started cannot use its GPUs, or has too many.

    A driver that hangs does not fail the start: its `nvidia-smi` ends by no signal.
    """
    if engine is None:
        given = " ".join(start.request.options.engine_arguments)
        if has is not None and "gpu" not in given and "nvidia" not in given:
            start.note(
                f"the container `{start.name}` has GPUs ({shortened(has)}) without `--gpus`: "
                "NVIDIA's runtime is the engine's default; `--gpus none` gives it none"
            )
        return
    look = start.runtime.attached(start.name, ("sh", "-c", proof.PROOF), Attachment(), {})
    proving = {"script": f"{command_line(look)} </dev/null", "on host": proof.ON_HOST}
    try:
        told = start.host.run(proving)
    except JlrError as failure:
        start.note(f"the GPUs of `{start.name}` could not be checked: {failure.message}")
        return
    done, asked = told["script"], proof.requested(engine, told["on host"].stdout)
    if done.status != 0:  # the steps that follow tell of no shell, or of a container that ended
        return
    what = "container" if start.runtime.has_containers else "session"
    sees, why = proof.seen(done.stdout, asked)
    if sees > asked and start.runtime.has_containers and not proof.wants_all(engine):
        start.note(
            f"the container `{start.name}` sees {sees} GPUs, and you asked for {asked}: set "
            "`CUDA_VISIBLE_DEVICES` in it"
        )
    if why is not None:
        start.note(
            f"the {what} `{start.name}` cannot use its GPUs: {why}; "
            f"`jlr doctor {start.request.host}` looks for the cause"
        )


def exports(taken: AllocatedGpus) -> str:
    """Return the shell text that sets the variables of a server without a container."""
    texts = (command_line((f"{name}={value}",)) for name, value in taken.environment.items())
    return "".join(f"export {text}\n" for text in texts)


def _as_asked(
    start: StartContext, asked: GpuRequest, within: RunningContainer | None = None
) -> AllocatedGpus:
    if asked.kind == "all":
        with suppress(JlrError):
            inventory = ask(start.host, within=within)
            if busy := [device for device in inventory.devices if device.in_use]:
                users = users_of_all(busy, inventory.now)
                start.note(f"`all` takes GPUs that others use: {users}")
            if failed := [gpu.whole for gpu in inventory.gpus if gpu.failed]:
                start.note(f"`all` takes {place_names(failed)}, too, which has failed")
    if asked.kind == "none":
        # NVIDIA's images request all GPUs, and get them if NVIDIA's runtime is the default.
        return AllocatedGpus(
            shown="none",
            environment={"CUDA_VISIBLE_DEVICES": ""},
            in_container=("NVIDIA_VISIBLE_DEVICES=void",),
        )
    if asked.kind == "engine" and not start.runtime.has_containers:
        hint = "`--gpus` takes `auto`, `2`, `0,3` or UUIDs without containers, too"
        raise Usage(f"`--gpus {asked.text}` needs a container engine", hint=hint)
    return AllocatedGpus(engine=asked.text, shown=asked.text)


def _unseen(asked: GpuRequest) -> AllocatedGpus:
    if asked.kind == "free":
        return AllocatedGpus(engine=str(asked.count), shown=str(asked.count))
    names = ",".join(asked.names)
    # CUDA counts the fastest first by default, nvidia-smi by bus.
    devices = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": names}
    return AllocatedGpus(engine=f"device={names}", shown=names, environment=devices)


def _of(start: StartContext, taken: Taken) -> AllocatedGpus:
    chosen, inventory, shared = taken.chosen, taken.inventory, start.request.share_gpus
    places, uuids = ",".join(chosen.places), ",".join(chosen.uuids)
    named = all(device.uuid in inventory.cdi for device in inventory.devices)
    devices = places if start.runtime.gpus_by_cdi and not named else uuids
    return AllocatedGpus(
        engine=f"device={devices}",
        shown=places,
        environment={"CUDA_VISIBLE_DEVICES": uuids},
        labels={} if shared else {USER_LABEL: inventory.user, GPUS_LABEL: uuids},
        lease=taken.lease,
    )


def _take(
    start: StartContext,
    asked: GpuRequest,
    *,
    holds: bool = True,
    of: Container | None = None,
    within: RunningContainer | None = None,
) -> AllocatedGpus:
    request = start.request
    engines = engines_asked(request.host)
    wish = Wish(start.host, start.name, asked, engines, request.share_gpus, within)

    def about_to_lease(lease: Lease) -> None:
        start.undo.callback(attempt, start.host, leases.release(lease))

    inventory = taking.ask(start.host, engines, start.note, within)
    if of is not None and all(name.startswith(("GPU-", "MIG-")) for name in asked.names):
        _refuse_others(start, of, asked.names, inventory)
    taken = wait.pick_up(start, wish, inventory) if holds else None
    try:
        taken = taken or taking.take(wish, None, about_to_lease, start.note, inventory)
    except Busy as busy:
        if request.wait is None:
            raise
        taken = wait.in_turn(start, wish, busy, holds=holds)
    mine = [device for device in taken.inventory.devices if device.uuid in taken.chosen.uuids]
    if not request.share_gpus and any(device.free is None for device in mine):
        start.note(f"{place_names(mine)} may be in use: {taken.inventory.unseen}")
    for name in dict.fromkeys(c.name for d in mine for c in d.claims if c.kind == "all"):
        start.note(f"the container `{name}` has all GPUs, so {place_names(mine)}, too")
    return _of(start, taken)


def give_back(start: StartContext, taken: AllocatedGpus) -> None:
    """Release the lease during a long step; the GPUs are chosen again after it."""
    if taken.lease is not None:
        attempt(start.host, leases.release(taken.lease))
