"""`jlr start --gpus`: no session gets a GPU in use, and two never get the same one."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.gpus.conftest import GpuHost, Sleeper
from tests.gpus.parts import NEW, job, jobs_of, leases_of
from tests.lab.accounts import Account, all_leases
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import START_SECONDS, failed, start, started


def label(engine: Engine, name: str) -> str:
    return Container(engine, name).inspect('{{index .Config.Labels "org.jlremote.gpus"}}')


def test_auto_takes_a_free_gpu_and_reserves_it(
    ada: Laptop,
    bert: Laptop,
    gpu_host: GpuHost,
    account: Account,
    other_account: Account,
    sleeper: Sleeper,
    container: ContainerFactory,
    engine: Engine,
) -> None:
    gpu_host.gpus.occupy(0, sleeper(other_account))
    session = started(ada, container.name(), *NEW, "--gpus", "auto")
    shown = gpu_host.gpus.uuids[1][:12]
    assert session.report["gpus"] == shown
    assert label(engine, session.name) == gpu_host.gpus.uuids[1]
    # It computes nothing yet, and is ada's all the same.
    message = failed(
        start(bert, "lab", container.name(), *NEW, "--gpus", "auto"),
        7,
        f"GPU 0: `{other_account.name}` since",
        f"GPU 1: reserved for `{account.name}`'s container `{session.name}`",
        "--share-gpus",
    )
    assert "none of 2 on `lab` is free" in message
    again = start(ada, "lab", session.name, "--gpus", "auto")
    assert "`--gpus` applies" not in again.stderr, again
    again = start(ada, "lab", session.name, "--gpus", "auto:2")
    assert f"`{session.name}` already exists with GPUs `{shown}`; `--gpus` applies" in again.stderr
    assert [name for name in container.remove_all() if name != session.name] == []


def test_a_lease_of_a_running_container_that_vanished_is_told_and_made_again(
    ada: Laptop, gpu_host: GpuHost, without_engine: Laptop, container: ContainerFactory
) -> None:
    """As a cleaner of `/tmp` deletes it, or root."""
    name = container.name()
    job(ada, name, "auto")
    lease = next(one for one in all_leases() if one.name.startswith(gpu_host.gpus.uuids[0]))
    lease.unlink()
    [free, _] = json.loads(without_engine.jlr("gpus", "lab", "--json").stdout)["gpus"]
    assert free["state"] == "free"
    told = ada.jlr("gpus", "lab")
    assert f"the GPUs of `{name}` on `lab` had lost their reservation" in told.stderr
    [kept, _] = json.loads(without_engine.jlr("gpus", "lab", "--json").stdout)["gpus"]
    assert [claim["name"] for claim in kept["kept_for"]] == [name]
    assert "was missing" not in ada.jlr("gpus", "lab").stderr


def test_most_free_memory_comes_first_and_named_gpus_are_given_as_named(
    ada: Laptop, gpu_host: GpuHost, account: Account, sleeper: Sleeper, container: ContainerFactory
) -> None:
    gpu_host.gpus.install(16)
    gpu_host.gpus.change(11, memory_total=200_000)
    gpu_host.gpus.change(3, memory_total=190_000)
    uuids = gpu_host.gpus.uuids
    for asked, given in (("auto:2", (uuids[11], uuids[3])), ("1,3,5,7", uuids[1:8:2])):
        plan = start(ada, "lab", container.name(), *NEW, "--gpus", asked, "--dry-run")
        assert f"""--gpus="device={",".join(given)}"'""" in plan.stdout, plan
    # A count takes a free one, where the engine would take the first.
    gpu_host.gpus.occupy(11, sleeper(account), busy=0)
    plan = start(ada, "lab", container.name(), *NEW, "--gpus", "1", "--dry-run")
    assert f"--gpus=device={uuids[3]} " in plan.stdout, plan
    none = start(ada, "lab", container.name(), *NEW, "--gpus", "none", "--dry-run")
    assert "NVIDIA_VISIBLE_DEVICES=void" in none.stdout, "also in images that ask for all"


def test_all_takes_all_and_names_their_users(
    ada: Laptop,
    gpu_host: GpuHost,
    other_account: Account,
    sleeper: Sleeper,
    container: ContainerFactory,
) -> None:
    gpu_host.gpus.occupy(0, sleeper(other_account))
    name = container.name()
    answer = start(ada, "lab", name, *NEW, "--gpus", "all")
    assert f"`all` takes GPUs that others use: GPU 0: `{other_account.name}`" in answer.stderr
    assert json.loads(ada.jlr("list", name, "--json").stdout)["gpus"] == "all"


def at_once(*starts: tuple[Laptop, str]) -> list[dict[str, Any]]:
    """Start sessions at the same moment, each on a GPU of its own; return their output."""
    words = (*NEW, "--gpus", "auto", "--no-browser", "--json")
    running = [laptop.spawn("start", "lab", name, *words) for laptop, name in starts]
    return [ended(process) for process in running]


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = process.communicate(timeout=START_SECONDS)
    if process.returncode == 0:
        return dict(json.loads(said))
    return {"status": process.returncode, "said": said}


def test_of_two_starts_for_the_last_gpu_exactly_one_gets_it(
    ada: Laptop,
    bert: Laptop,
    gpu_host: GpuHost,
    account: Account,
    sleeper: Sleeper,
    container: ContainerFactory,
) -> None:
    gpu_host.gpus.occupy(0, sleeper(account))
    for laptop in (ada, bert):
        assert laptop.jlr("gpus", "lab").status == 0
    answers = at_once((ada, container.name()), (bert, container.name()))
    assert sorted(answer.get("status", 0) for answer in answers) == [0, 7], answers
    [lost] = [answer for answer in answers if "said" in answer]
    assert "GPU 1: reserved for" in lost["said"], lost


def test_a_start_that_fails_gives_the_gpu_back(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory
) -> None:
    failed(start(ada, "lab", container.name(), "--image", "lab/plain", "--gpus", "auto"), 6)
    assert leases_of(gpu_host) == []
    assert container.remove_all() == []


def test_a_stopped_container_does_not_start_on_gpus_that_are_others_by_now(
    ada: Laptop, bert: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    mine = started(ada, container.name(), *NEW, "--gpus", "device=1")
    assert ada.jlr("stop", mine.name, "--container", "--yes").status == 0
    theirs = container.name()
    job(bert, theirs, "device=1")
    words = ("are in use by others", theirs, "`jlr rm ")
    failed(start(ada, "lab", mine.name), 7, *words)
    assert not Container(engine, mine.name).running
    given = gpu_host.gpus.uuids[1][:12]
    assert started(ada, mine.name, "--share-gpus").report["gpus"] == given


BROKEN = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
LOST = "#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'\nexit 255\n"


def test_gpus_are_proved_when_a_container_starts_and_a_loss_is_told_later(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    """The lab's engine drops `--gpus` without a word, as a broken toolkit does."""
    name = container.name()
    created = start(ada, "lab", name, *NEW, "--gpus", "0,1")
    assert created.status == 0, created
    told, said = f"the container `{name}` cannot use its GPUs: ", " ".join(created.stderr.split())
    assert f"{told}it has none of the 2 that you asked for; `jlr doctor lab`" in said, created
    here = Container(engine, name)
    program, write = "/usr/bin/nvidia-smi", 'printf %s "$0" >$1; chmod +x $1'
    for lines, why in (
        ("GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)", None),
        (BROKEN, f"{told}`nvidia-smi` in it says `{BROKEN[:-1]}`"),
    ):
        text = f'#!/bin/sh\ncat <<"END"\n{lines}\nEND\nexit {9 if lines == BROKEN else 0}\n'
        here.execute("sh", "-c", write, text, program)
        engine.docker("stop", "--time", "0", name)
        said = " ".join(start(ada, "lab", name).stderr.split())
        assert (why is None and told not in said) or (why is not None and why in said), said
    here.execute("sh", "-c", write, LOST, program)
    for command in (("url",), ("list", f"lab/{name}")):
        answer = ada.jlr(*command)
        assert answer.status == 0, answer
        lost = f"the container `{name}` has lost its GPUs"
        for word in (lost, "Failed to initialize NVML", "systemd"):
            assert word in answer.stdout + answer.stderr, answer
    report = json.loads(ada.jlr("list", f"lab/{name}", "--json").stdout)
    assert (report["state"], "has lost its GPUs" in report["detail"]) == ("up", True)


def test_a_place_and_its_gpus_outlast_a_start_that_is_killed(
    ada: Laptop, bert: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
    name = container.name()
    wanted = ("start", "lab", name, *NEW, "--gpus", "auto", "--wait", "--no-browser")
    begun = ada.spawn(*wanted)
    wait_until(lambda: jobs_of(ada).get(name, {}).get("place") == 1, "the place in the queue")
    for process in ada.processes():
        process.kill()  # the command and its link
    begun.communicate()
    assert jobs_of(ada)[name]["state"] == "waiting"
    gpu_host.gpus.free(0)
    wait_until(lambda: "held" in str(jobs_of(ada)[name]["reason"]), "the GPU that is held")
    refused = bert.jlr("run", "lab", "--runtime", "none", "--gpus", "auto", "--", "true")
    assert f"session `{name}`" in failed(refused, 7)
    started(ada, name, *NEW, "--gpus", "auto")
    assert label(engine, name) == gpu_host.gpus.uuids[0]
    assert name not in jobs_of(ada)
    assert len(leases_of(gpu_host)) == 1
