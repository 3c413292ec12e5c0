"""The allocation of a new session's GPUs: choice, and a lease until the session holds them."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import leases, proof
from jlremote.gpus.choice import Chosen, choose, refuse_to_overtake
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease
from jlremote.gpus.request import GpuRequest, is_met, parse_request
from jlremote.gpus.snapshot import CannotAsk, read
from jlremote.gpus.snapshot_script import GPUS_LABEL, snapshot
from jlremote.gpus.usage import users_of_all
from jlremote.host.contract import USER_LABEL, run_script
from jlremote.host.shell_text import command_line
from jlremote.jupyter.server import Server
from jlremote.runtimes.contract import Container, Runtime
from jlremote.runtimes.docker import docker_commands as docker
from jlremote.runtimes.engine.engine import Engine
from jlremote.workflow.container import gpu_wait
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.host.gpus import ASK_SECONDS, ask, engines_asked

# Another start takes a second or two; then its container runs, or it has failed.
TRIES = 8
PAUSE_SECONDS = (0.1, 0.7)


@dataclass(frozen=True)
class AllocatedGpus:
    """The GPUs of a session."""

    engine: str | None = None  # the value of the engine's `--gpus`, `None` for none
    shown: str | None = None  # for a person: `0,3`, `all`, `none`
    environment: Mapping[str, str] = field(default_factory=dict)  # of a server without a container
    in_container: tuple[str, ...] = ()  # variables of a new container, `NAME=VALUE`
    labels: Mapping[str, str] = field(default_factory=dict)  # labels of a new container
    lease: Lease | None = None  # the lease on the devices during the start

    def keep_for(self, engine: Engine, container: str) -> dict[str, str]:
        """Return the step, after the one that starts a container, that ties the lease to it."""
        if self.lease is None:
            return {}
        return {"lease": leases.keep_for(self.lease, docker.state_argv(engine, container, "Pid"))}


def take(start: StartContext) -> AllocatedGpus:
    """Choose the requested GPUs and lease them.

    Raises:
        Busy: they are in use; names the users of each.
        NotFound: the host has no such GPU.
        CannotAsk: only jlr can choose, and the host cannot say which are free.
    """
    request = start.request
    asked = None if request.gpus is None else parse_request(request.gpus)
    chosen = asked is not None and asked.kind in ("free", "named")
    if request.wait is not None and not chosen:
        raise Usage(
            "`--wait` waits for GPUs, and none are chosen",
            hint="add `--gpus auto` or `--gpus auto:N`",
        )
    if asked is None:
        return AllocatedGpus()
    if not chosen:
        return _as_asked(start, asked)
    try:
        return _take(start, asked)
    except CannotAsk as reason:
        if asked.automatic or (asked.kind == "free" and not start.runtime.has_containers):
            raise
        start.note(f"GPUs `{asked.text}` may be in use: {reason.message}")
        return _unseen(asked)


def take_again(start: StartContext, container: Container) -> AllocatedGpus:
    """Lease the GPUs that jlr chose for a container when it created it, for its next start.

    Raises:
        Busy: they are in use.
    """
    labels = container.labels if container.is_session else {}
    uuids = tuple(filter(None, labels.get(GPUS_LABEL, "").split(",")))
    if not uuids:
        return AllocatedGpus()
    try:
        return _take(start, GpuRequest("named", ",".join(uuids), names=uuids))
    except (CannotAsk, NotFound):  # the engine has the last word
        return AllocatedGpus()
    except Busy as busy:
        raise Busy(
            f"the GPUs of the container `{container.name}` are in use by others: {busy.message}",
            hint="`--share-gpus` starts it nevertheless"
            + start.way_to_delete(container, "and a new start gets other GPUs"),
        ) from busy


def planned(start: StartContext) -> AllocatedGpus:
    """Return the allocation that `take` would make; for `--dry-run`."""
    if start.request.gpus is None:
        return AllocatedGpus()
    asked, share = parse_request(start.request.gpus), start.request.share_gpus
    if asked.kind not in ("free", "named"):
        return _plain(asked, start.runtime)
    try:
        found = ask(start.host)
    except CannotAsk:
        if asked.automatic:
            raise
        return _unseen(asked)
    chosen = choose(asked, found, start.host.name, share=share)
    return _of(chosen, found, start.runtime, shared=share)


def explain_unchanged(start: StartContext, have: str | None, uuids: str | None = None) -> None:
    """Note that an existing container keeps its GPUs if others were requested."""
    asked = start.request.gpus
    if (
        asked is not None
        and asked != have
        and not (is_met(asked, have) or (uuids and is_met(asked, uuids)))
    ):
        gpus = f"with GPUs `{have}`" if have else "without GPUs"
        applies = "`--gpus` applies to new containers only"
        start.note(f"`{start.name}` already exists {gpus}; {applies}")


def keep(start: StartContext, taken: AllocatedGpus, server: Server, *, launched: bool) -> None:
    """Let the lease of a server without a container last as long as the server.

    A server that another start launched has GPUs of its own.
    """
    if not launched:
        give_back(start, taken)
    elif taken.lease is not None:
        run_script(start.host, leases.keep(taken.lease, server.pid, server.process_start))


def prove(start: StartContext, engine: str | None) -> None:
    """Note why a container that was just started cannot use the GPUs of the engine's `--gpus`."""
    if engine is None:
        return
    done = run_script(start.host, start.runtime.inside(start.name, proof.PROOF))
    # A container without a shell, or one that has ended, is told by the steps that follow.
    if done.status == 0 and (why := proof.fault(done.stdout, proof.requested(engine))):
        start.note(
            f"the container `{start.name}` cannot use its GPUs: {why}; "
            f"`jlr doctor {start.request.host}` looks for the cause"
        )


def exports(taken: AllocatedGpus) -> str:
    """Return the shell text that sets the variables of a server without a container."""
    return "".join(
        f"export {command_line((f'{name}={value}',))}\n"
        for name, value in taken.environment.items()
    )


def _as_asked(start: StartContext, asked: GpuRequest) -> AllocatedGpus:
    if asked.kind == "all":
        with suppress(JlrError):
            found = ask(start.host)
            if busy := [device for device in found.devices if device.in_use]:
                users = users_of_all(busy, found.now)
                start.note(f"`all` takes GPUs that others use: {users}")
    return _plain(asked, start.runtime)


def _plain(asked: GpuRequest, runtime: Runtime) -> AllocatedGpus:
    """Return the allocation of a request that needs no choice."""
    if asked.kind == "none":
        # NVIDIA's images request all GPUs, and get them if NVIDIA's runtime is the default.
        return AllocatedGpus(
            shown="none",
            environment={"CUDA_VISIBLE_DEVICES": ""},
            in_container=("NVIDIA_VISIBLE_DEVICES=void",),
        )
    if asked.kind == "engine" and not runtime.has_containers:
        raise Usage(
            f"`--gpus {asked.text}` needs a container engine",
            hint="`--gpus` takes `auto`, `2`, `0,3` or UUIDs without containers, too",
        )
    return AllocatedGpus(engine=asked.text, shown=asked.text)


def _unseen(asked: GpuRequest) -> AllocatedGpus:
    """Return the allocation on a host that cannot be asked: the engine chooses."""
    if asked.kind == "free":
        return AllocatedGpus(engine=str(asked.count), shown=str(asked.count))
    names = ",".join(asked.names)
    # CUDA counts the fastest first by default, nvidia-smi by bus.
    devices = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": names}
    return AllocatedGpus(engine=f"device={names}", shown=names, environment=devices)


def _of(
    chosen: Chosen,
    found: Inventory,
    runtime: Runtime,
    *,
    lease: Lease | None = None,
    shared: bool = False,
) -> AllocatedGpus:
    names, uuids = ",".join(chosen.names), ",".join(chosen.uuids)
    # CDI files name devices by index, and only of late by UUID, too.
    by_index = runtime.engine is not None and runtime.engine.kind.gpus == "devices"
    devices = ",".join(chosen.places) if by_index else names
    kept = {} if shared else {USER_LABEL: found.user, GPUS_LABEL: uuids}
    return AllocatedGpus(
        engine=f"device={devices}",
        shown=names,
        environment={"CUDA_VISIBLE_DEVICES": uuids},
        labels=kept,
        lease=lease,
    )


def _take(start: StartContext, asked: GpuRequest) -> AllocatedGpus:
    """Choose and lease GPUs; with `--wait`, as soon as it is this start's turn."""
    if start.request.wait is None:
        return _take_now(start, asked, None)
    count = asked.count or len(asked.names)
    return gpu_wait.in_turn(start, count, lambda word: _take_now(start, asked, word))


def _take_now(start: StartContext, asked: GpuRequest, word: str | None) -> AllocatedGpus:
    """Choose and lease GPUs, again if another start leased the same at the same moment.

    `word` is that of the start's place in the queue.
    """
    share = start.request.share_gpus
    for left in reversed(range(TRIES)):
        found = ask(start.host)
        try:
            chosen = choose(asked, found, start.request.host, share=share)
            if not share:
                refuse_to_overtake(start.request.host, len(chosen.uuids), found, word)
        except Busy:
            if not left or not _others_start(found):
                raise
        else:
            if share:
                return _of(chosen, found, start.runtime, shared=True)
            taken = _leased(start, chosen, found)
            if taken is not None:
                return taken
        time.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311  # so that two do not meet again
    raise Busy(f"lost the race for GPUs on `{start.request.host}`", hint="run the command again")


def _others_start(found: Inventory) -> bool:
    return any(claim.kind == "start" for device in found.devices for claim in device.claims)


def _leased(start: StartContext, chosen: Chosen, found: Inventory) -> AllocatedGpus | None:
    """Lease the chosen GPUs; return `None` if another start was faster."""
    lease = Lease(start.name, chosen.uuids, secrets.token_hex(4), found.boot)
    start.undo.callback(_release, start, lease)
    again = snapshot(engines_asked(start.request.host))
    steps = {"lease": leases.make(lease, found.dead_leases), "gpus": again}
    done = start.host.run(steps, timeout=ASK_SECONDS)
    if done["lease"].status != 0:
        start.note(
            f"cannot lease GPUs in `{leases.FOLDER}` on `{start.request.host}`: other users may "
            "take the same ones"
        )
        return _of(chosen, found, start.runtime)
    others = read(done["gpus"].stdout, start.request.host).without(lease.names)
    if any(device.in_use for device in others.devices if device.uuid in chosen.uuids):
        _release(start, lease)
        return None
    return _of(chosen, found, start.runtime, lease=lease)


def give_back(start: StartContext, taken: AllocatedGpus) -> None:
    """Release the lease during a long step; the GPUs are chosen again after it."""
    if taken.lease is not None:
        _release(start, taken.lease)


def _release(start: StartContext, lease: Lease) -> None:
    with suppress(JlrError):
        run_script(start.host, leases.release(lease))
