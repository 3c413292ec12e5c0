"""The allocation of a new session's GPUs: choice, and a lease until the session holds them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import leases, proof
from jlremote.gpus.choice import Chosen, choose
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease
from jlremote.gpus.request import GpuRequest, is_met, parse_request
from jlremote.gpus.snapshot import CannotAsk
from jlremote.gpus.snapshot_script import GPUS_LABEL
from jlremote.gpus.usage import users_of_all
from jlremote.gpus.waiting import placeholders, taking
from jlremote.gpus.waiting.taking import Taken, Wish
from jlremote.host.contract import USER_LABEL, run_script
from jlremote.host.shell_text import command_line
from jlremote.jupyter.server import Server
from jlremote.runtimes.contract import Attachment, Container, Runtime
from jlremote.runtimes.docker import docker_commands as docker
from jlremote.runtimes.engine.engine import Engine
from jlremote.workflow.container import gpu_holder, gpu_wait
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.host.gpus import ask, engines_asked
from jlremote.workflow.host.requests import StartRequest

_CHOSEN = ("free", "named")  # the kinds of requests that jlr chooses for


@dataclass(frozen=True)
class AllocatedGpus:
    """The GPUs of a session."""

    engine: str | None = None  # the value of the engine's `--gpus`, `None` for none
    shown: str | None = None  # for a person: `0,3`, `all`, `none`
    environment: Mapping[str, str] = field(default_factory=dict)  # of a server without a container
    in_container: tuple[str, ...] = ()  # variables of a new container, `NAME=VALUE`
    labels: Mapping[str, str] = field(default_factory=dict)  # labels of a new container
    lease: Lease | None = None  # the lease on the devices during the start
    # what `gpus.waiting.waiter_program` is to do for a job that waits for them on the host
    wait: Mapping[str, Any] | None = None

    def keep_for(self, engine: Engine, container: str) -> dict[str, str]:
        """Return the step, after the one that starts a container, that ties the lease to it."""
        if self.lease is None:
            return {}
        return {"lease": leases.keep_for(self.lease, docker.state_argv(engine, container, "Pid"))}


def take(start: StartContext, *, holds: bool = True) -> AllocatedGpus:
    """Choose the requested GPUs and lease them.

    With `holds` the place in the queue, and GPUs whose turn it was, outlast this command.

    Raises:
        Busy: they are in use; names the users of each.
        NotFound: the host has no such GPU.
        CannotAsk: only jlr can choose, and the host cannot say which are free.
    """
    request = start.request
    _check_wait(request)
    if request.gpus is None:
        return AllocatedGpus()
    asked = parse_request(request.gpus)
    if asked.kind not in _CHOSEN:
        return _as_asked(start, asked)
    try:
        return _take(start, asked, holds=holds)
    except CannotAsk as reason:
        if asked.automatic or (asked.kind == "free" and not start.runtime.has_containers):
            raise
        start.note(f"GPUs `{asked.text}` may be in use: {reason.message}")
        return _unseen(asked)


def _check_wait(request: StartRequest) -> None:
    chosen = request.gpus is not None and parse_request(request.gpus).kind in _CHOSEN
    if request.wait is not None and not chosen:
        raise Usage(
            "`--wait` waits for GPUs, and none are chosen",
            hint="add `--gpus auto` or `--gpus auto:N`",
        )


def take_or_promise(start: StartContext, *, detached: bool) -> AllocatedGpus:
    """Choose the requested GPUs and lease them; with `--wait`, a detached job may wait for them.

    Raises:
        Busy, NotFound, CannotAsk: as `take` does.
    """
    if not detached or start.request.wait is None:
        return take(start, holds=False)
    without = replace(start, request=replace(start.request, wait=None))
    _check_wait(start.request)
    try:
        return take(without, holds=False)
    except Busy as busy:
        return promise(start, busy)


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
    except (CannotAsk, NotFound, Usage):  # the engine has the last word
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
    """Note that an existing container keeps its GPUs if others were requested.

    `have` is the value of `--gpus` that it was created with, `uuids` those that jlr chose for it.
    """
    asked = start.request.gpus
    if (
        asked is not None
        and asked != have
        and not (is_met(asked, have) or (uuids and is_met(asked, uuids)))
    ):
        gpus = f"with GPUs `{have.removeprefix('device=')}`" if have else "without GPUs"
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
    """Note why a session that was just started cannot use the GPUs of the engine's `--gpus`.

    A driver that hangs does not fail the start: its `nvidia-smi` ends by no signal.
    """
    if engine is None:
        return
    look = start.runtime.attached(start.name, ("sh", "-c", proof.PROOF), Attachment(), {})
    proving = {"script": f"{command_line(look)} </dev/null", "on host": proof.ON_HOST}
    try:
        told = start.host.run(proving)
    except JlrError as failure:
        start.note(f"the GPUs of `{start.name}` could not be proved: {failure.message}")
        return
    done, asked = told["script"], proof.requested(engine, told["on host"].stdout)
    # A container without a shell, or one that has ended, is told by the steps that follow.
    if done.status == 0 and (why := proof.fault(done.stdout, asked)):
        what = "container" if start.runtime.has_containers else "session"
        start.note(
            f"the {what} `{start.name}` cannot use its GPUs: {why}; "
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
    devices = ",".join(chosen.places) if runtime.gpus_by_index else names
    kept = {} if shared else {USER_LABEL: found.user, GPUS_LABEL: uuids}
    return AllocatedGpus(
        engine=f"device={devices}",
        shown=names,
        environment={"CUDA_VISIBLE_DEVICES": uuids},
        labels=kept,
        lease=lease,
    )


def _take(start: StartContext, asked: GpuRequest, *, holds: bool = True) -> AllocatedGpus:
    """Choose and lease GPUs; with `--wait`, as soon as it is this start's turn."""
    request = start.request
    engines = engines_asked(request.host)
    wish = Wish(start.host, start.name, asked, engines, share=request.share_gpus)

    def about_to_lease(lease: Lease) -> None:
        start.undo.callback(taking.release, start.host, lease)

    def now(word: str | None, found: Inventory | None = None) -> Taken:
        return taking.take(wish, word, about_to_lease, start.note, found)

    found = taking.ask(start.host, engines, start.note)
    taken = gpu_holder.pick_up(start, wish, found) if holds else None
    if taken is None:
        waits = request.wait is not None
        taken = (
            gpu_wait.in_turn(start, wish, now, found, holds=holds) if waits else now(None, found)
        )
    shared = request.share_gpus
    return _of(taken.chosen, taken.found, start.runtime, lease=taken.lease, shared=shared)


def promise(start: StartContext, busy: Busy) -> AllocatedGpus:
    """Return an allocation for a job that waits on the host: words stand for GPUs that it may get.

    `busy` is why it waits.
    """
    request = start.request
    asked, found = parse_request(request.gpus or ""), ask(start.host)
    # Named ones are known, though they are in use.
    known = choose(asked, found, request.host, share=True) if asked.names else None
    promised = _of(known or placeholders.promised(asked.count), found, start.runtime)
    wish = Wish(start.host, start.name, asked, engines_asked(request.host))
    return replace(promised, wait=gpu_holder.plan(wish, request.wait or 0.0, busy.message))


def give_back(start: StartContext, taken: AllocatedGpus) -> None:
    """Release the lease during a long step; the GPUs are chosen again after it."""
    if taken.lease is not None:
        taking.release(start.host, taken.lease)
