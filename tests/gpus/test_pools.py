"""Pools of hosts: two have an sshd and stand-ins for GPUs, one is down."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from jlremote.hosts.links import POOL_SECONDS
from tests.gpus.conftest import GpuHost
from tests.gpus.stand_in import Gpus
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.ports import free_port
from tests.lab.programs import SYSTEM_PATH
from tests.lab.remote_host import Keys, running_sshd
from tests.sessions.parts import failed


@pytest.fixture(scope="module")
def second_host(engine: Engine, keys: Keys) -> Iterator[GpuHost]:
    """A host of the pool without an engine."""
    with private_folder("gpus-of-second") as programs:
        variables = f'"PATH={programs}:{SYSTEM_PATH}" "MACHINE=second" "DOCKER_HOST=unix:///none"'
        with running_sshd(engine, keys, f"SetEnv {variables}") as server:
            yield GpuHost(server, Gpus(programs), programs)


@pytest.fixture
def second_gpus(second_host: GpuHost) -> Iterator[Gpus]:
    gpus = Gpus(second_host.programs)
    gpus.install()
    yield gpus
    gpus.remove()


@pytest.fixture
def pool(
    ada: Laptop, account: Account, keys: Keys, second_host: GpuHost, second_gpus: Gpus
) -> Laptop:
    """A laptop with the pool `@all`: `lab`, `second`, and `down`, where nothing listens.

    In `@away` are `gone` and `down`.
    """
    ada.add_host("second", second_host.server, account, key=keys.private)
    for name in ("down", "gone"):
        ada.add_host(name, second_host.server, account, key=keys.private, port=free_port())
    pools = '[pools.all]\nhosts = ["lab", "down", "second"]\n'
    ada.settle(f'{pools}[pools.away]\nhosts = ["gone", "down"]\n')
    return ada


def test_the_gpus_of_a_pool_are_one_table_and_a_host_that_is_down_is_a_line(
    pool: Laptop, second_gpus: Gpus
) -> None:
    second_gpus.occupy(1, os.getpid(), memory=70000)
    shown = pool.jlr("gpus", "@all")
    assert shown.status == 0, shown
    rows = [(words[0], words[-1]) for line in shown.stdout.splitlines() if (words := line.split())]
    free = [("lab", "free"), ("lab", "free"), ("down", "answer"), ("second", "free")]
    assert rows[1:5] == free, shown
    assert rows[5] == ("second", "busy"), shown
    assert "cannot ask `down`" in shown.stderr
    first, down, second = json.loads(pool.jlr("gpus", "@all", "--json").stdout)
    assert (first["host"], second["host"]) == ("lab", "second")
    assert second["gpus"][1]["processes"][0]["memory"] == 70000
    assert "error" in down


def test_a_host_whose_driver_hangs_does_not_hold_the_view_of_the_others(
    pool: Laptop, gpu_host: GpuHost, second_gpus: Gpus
) -> None:
    with pool.spawn("gpus", "@all", "--watch", "--json") as watching:
        assert watching.stdout is not None
        looks = map(json.loads, watching.stdout)
        both = (look for look in looks if "gpus" in look[0] and "gpus" in look[2])
        _, down, known = next(both)
        assert len(known["gpus"]) == 2
        assert "refused" in down["error"], down
        second_gpus.state["delay"] = 60
        second_gpus.write()
        gpu_host.gpus.change(0, utilization_gpu=40)
        began, pauses = time.monotonic(), list[float]()
        for first, _, second in looks:
            busy = first["gpus"][0]["busy_percent"]
            pauses.append(time.monotonic() - began)
            began = time.monotonic()
            assert len(second["gpus"]) == 2, "what was last known"
            if second["notes"]:
                break
        assert (busy, max(pauses) < POOL_SECONDS) == (40, True), pauses
        assert "answer" in second["notes"][0]
        watching.send_signal(signal.SIGINT)


def test_a_pool_of_which_no_host_answers_tells_why_of_each(pool: Laptop) -> None:
    for words in (("gpus", "@away"), ("list", "@away")):
        failed = pool.jlr(*words)
        assert (failed.status, failed.stdout) == (5, ""), failed
        told = failed.stderr.partition("error: ")[0]
        assert told.index("cannot ask `gone`") < told.index("cannot ask `down`")


def test_jlr_wait_ends_at_the_first_host_with_gpus_and_the_end_of_a_job(
    pool: Laptop, gpu_host: GpuHost, second_gpus: Gpus
) -> None:
    gpu_host.gpus.occupy(0, os.getpid(), memory=70000)
    job = ("run", "lab", "--runtime", "none", "--detach", "--name", "trains")
    assert pool.jlr(*job, "--", "sh", "-c", "exit 3").status == 0
    waited = pool.jlr("wait", "@all", "lab/trains", "--for", "gpus=2", "--json")
    events = map(json.loads, waited.stdout.splitlines())
    told = {(event["name"], event["happened"], event["exit_code"]) for event in events}
    assert told == {("second", "gpus", 0), ("lab/trains", "end", 3)}, waited
    assert waited.status == 3, waited
    failed(pool.jlr("wait", "lab/trains", "--for", "gpus"), 2, "needs a host")
    assert pool.jlr("job", "rm", "lab/trains", "--yes").status == 0


def test_a_session_of_a_pool_starts_where_most_gpu_memory_is_free(
    pool: Laptop, gpu_host: GpuHost, second_gpus: Gpus, container: ContainerFactory
) -> None:
    name = container.name()
    wanted = (name, "--image", "lab/plain", "--gpus", "auto", "--dry-run")
    second_gpus.occupy(0, os.getpid(), memory=70000)
    begun = pool.jlr("start", "@all", *wanted)
    assert begun.status == 0, begun
    assert "`lab` of `@all` has the most free GPU memory" in begun.stderr
    assert name in begun.stdout
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
        second_gpus.occupy(gpu, os.getpid(), memory=70000)
    failed(pool.jlr("start", "@all", *wanted), 7, "no host of `@all`")
    second_gpus.state["failure"] = [18, "Driver/library version mismatch"]
    second_gpus.write()
    told = "`nvidia-smi` on `second` lists no GPUs: Driver/library version mismatch"
    failed(pool.jlr("start", "@all", *wanted), 7, told)
    begun = pool.jlr("start", "@all", name, "--image", "lab/plain", "--dry-run")
    assert "`lab` of `@all` is the first that answers" in begun.stderr, begun


def test_what_has_a_name_is_found_on_its_host_of_the_pool(
    pool: Laptop, gpu_host: GpuHost, container: ContainerFactory
) -> None:
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
    here = container("lab/plain")
    ran = pool.jlr("run", "@all", "--in", here.name, "--gpus", "none", "--rm", "--", "hostname")
    assert ran.status == 0, ran
    assert ran.stdout.strip() == here.inspect("{{.Config.Hostname}}")
    listed = pool.jlr("list", "@all")
    assert listed.status == 0, listed
    assert "cannot ask `down`" in listed.stderr


def test_a_pool_is_refused_where_one_host_is_wanted(pool: Laptop) -> None:
    listed = pool.jlr("image", "list", "@all")
    failed(listed, 2, "`@all` is a pool", "`second`", "`gpus` take pools")
    failed(pool.jlr("gpus", "@al"), 6, "no pool `@al`", "did you mean `@all`?")
