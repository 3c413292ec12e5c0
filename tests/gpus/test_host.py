"""`jlr gpus` on a host: sshd, engine, users, processes, containers are real; the GPUs are not."""

from __future__ import annotations

import datetime
import json
import os
import signal

import psutil
import pytest

from tests.gpus.conftest import GpuHost, Sleeper
from tests.gpus.parts import asked
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE
from tests.sessions.parts import failed


def test_each_gpu_lists_its_users_with_container_and_time(
    ada: Laptop,
    gpu_host: GpuHost,
    other_account: Account,
    sleeper: Sleeper,
    container: ContainerFactory,
) -> None:
    train = container("lab/plain")
    pid = sleeper(other_account)
    gpu_host.gpus.occupy(0, pid, memory=70000, busy=40)
    gpu_host.gpus.occupy(1, int(train.inspect("{{.State.Pid}}")), busy=0)
    first, second = asked(ada)["gpus"]
    assert (first["state"], second["state"]) == ("partly busy", "idle, memory held")
    assert ada.completions("jlr start lab --gpus ") == ["auto", "all", "none"], "none is free"
    [process] = first["processes"]
    assert process["user"] == other_account.name
    assert process["container"] is None
    assert (process["memory"], process["name"]) == (70000, "python3")
    assert second["processes"][0]["container"] == train.name
    assert second["processes"][0]["user"] == "root"
    answer = ada.jlr("gpus", "lab")
    assert answer.status == 0, answer
    assert f"{other_account.name}  -" in answer.stdout, answer
    assert "idle, memory held" in answer.stdout, answer
    assert train.name in answer.stdout, answer
    since = datetime.datetime.fromisoformat(process["since"]).timestamp()
    assert abs(since - psutil.Process(pid).create_time()) < 3
    gpu_host.gpus.free(1)
    found = asked(ada)
    free = found["gpus"][1]
    assert (found["host"], free["state"], free["memory_total"]) == ("lab", "free", 143771)
    assert ada.completions("jlr run lab --gpus dev") == ["device=1"], "the free one"


def test_a_host_without_nvidia_smi_is_told_as_such(ada: Laptop, gpu_host: GpuHost) -> None:
    gpu_host.gpus.remove()
    failed(ada.jlr("gpus", "lab"), 1, "there is no `nvidia-smi` on `lab`", "driver")


@pytest.mark.long
def test_a_driver_that_does_not_answer_is_given_up(ada: Laptop, gpu_host: GpuHost) -> None:
    gpu_host.gpus.state["delay"] = 60
    gpu_host.gpus.write()
    failed(ada.jlr("gpus", "lab"), 1, "did not answer within 20 s", "dmesg")


def test_a_gpu_that_fails_is_an_error_and_the_others_are_told_all_the_same(
    ada: Laptop, gpu_host: GpuHost
) -> None:
    gpu_host.gpus.change(0, memory_used="ERR!", utilization_gpu="[Unknown Error]")
    gpu_host.gpus.change(1, power_draw="[N/A]", temperature_gpu="[Not Supported]")
    first, second = asked(ada)["gpus"]
    assert first["state"] == "error"
    assert (second["state"], second["power"], second["temperature"]) == ("free", None, None)


def test_watching_gives_one_object_a_line(ada: Laptop, gpu_host: GpuHost) -> None:
    with ada.spawn("gpus", "lab", "--watch", "0.1", "--json") as watching:
        assert watching.stdout is not None
        moments = [json.loads(watching.stdout.readline()) for _ in range(3)]
        assert [gpu["state"] for gpu in moments[2]["gpus"]] == ["free", "free"]
        gpu_host.gpus.change(0, memory_used=90000)
        later = (json.loads(line)["gpus"][0]["state"] for line in watching.stdout)
        assert "idle, memory held" in later
        lost = gpu_host.gpus.state["gpus"].pop()
        gpu_host.gpus.write()
        second = (json.loads(line)["gpus"][lost["index"]] for line in watching.stdout)
        assert next(gpu for gpu in second if gpu["state"] == "error")["uuid"] == lost["uuid"]
        watching.send_signal(signal.SIGINT)
        watching.stdout.close()
        assert watching.wait(timeout=PATIENCE) in (0, 1)


def test_on_a_terminal_it_draws_the_gpus_until_ctrl_c(ada: Laptop, gpu_host: GpuHost) -> None:
    gpu_host.gpus.occupy(0, os.getpid(), busy=100)
    with ada.terminal("jlr", "gpus", "lab", "--watch", "0.1") as terminal:
        terminal.expect("100 %")
        gpu_host.gpus.change(0, utilization_gpu=40)
        terminal.expect("partly busy")
        terminal.sendintr()
        terminal.expect_exact("\x1b[?25h")  # the cursor is back
        assert terminal.wait() == 0
