"""Rows A5, A7, B2, B3, B8, B11, C3, D1, D3, E6 and E7 on real GPUs in real containers."""

from __future__ import annotations

import re

import pexpect
import pytest

from tests.lab.programs import wait_until
from tests.metal.conftest import PODMAN, TORCH, GpuRuntime, Metal, kernel, listed

pytestmark = pytest.mark.hardware

PRODUCT = (
    TORCH
    + """
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
(torch.cuda.device_count(), bool((a @ a).float().abs().mean() > 0))
"""
)

RANKS = """
import torch.distributed as ranks

def add(rank):
    torch.cuda.set_device(rank)
    ranks.init_process_group("nccl", "tcp://127.0.0.1:29511", rank=rank, world_size=2)
    numbers = torch.full((1 << 20,), float(rank + 1), device="cuda")
    ranks.all_reduce(numbers)
    print("sum", numbers[0].item(), flush=True)
    ranks.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.spawn(add, nprocs=2)
"""


def test_auto_takes_a_free_gpu_and_a_notebooks_kernel_computes_on_it(
    metal: Metal, runtime: GpuRuntime
) -> None:
    with metal.session(runtime, "cards", "--gpus", "auto") as session, kernel(session) as notebook:
        assert notebook.run(PRODUCT) == "(1, True)"
        first = metal.report(runtime.host)["gpus"][0]
        assert first["memory_used"] > 200  # MiB
        assert "cards" in str(first)
        refused = metal.jlr(
            *("start", runtime.host, "more", *runtime.words("--gpus", f"auto:{metal.gpus}")),
            "--no-browser",
            status=7,
        )
        assert "cards" in refused.stderr
    assert "cards" not in str(metal.report(runtime.host)["gpus"])


def test_a_job_sees_the_gpus_that_it_asks_for_and_no_other(
    metal: Metal, runtime: GpuRuntime
) -> None:
    def seen(gpus: str) -> list[str]:
        look = ("sh", "-c", 'nvidia-smi -L; echo "$CUDA_VISIBLE_DEVICES" | tr , "\\n"')
        argv = ("run", runtime.host, *runtime.words("--gpus", gpus), "--", *look)
        done = metal.laptop.jlr("--no-input", *argv, timeout=240)
        # Apptainer shows each device to all, and CUDA's programs those of the variable.
        chosen = re.findall("^GPU-[0-9a-f-]+$", done.stdout, re.MULTILINE)
        return (runtime.name == "apptainer" and chosen) or listed(done)

    uuids = [gpu["uuid"] for gpu in metal.report(runtime.host)["gpus"]]
    assert seen("all") == uuids
    assert len(seen("1")) == 1
    assert seen(uuids[-1][:12]) == [uuids[-1]]
    assert seen(f"device={metal.gpus - 1}") == [uuids[-1]]
    assert seen("none") == []


def test_a_job_waits_until_another_gives_its_gpus_back(metal: Metal, runtime: GpuRuntime) -> None:
    if runtime.name == "apptainer":
        pytest.skip("a job without containers waits as the others do")
    with metal.session(runtime, "holder", "--gpus", f"auto:{metal.gpus}"):
        metal.jlr(
            *("run", runtime.host, "-d", "--name", "waits", *runtime.words("--gpus", "auto")),
            *("--wait", "--", "nvidia-smi", "-L"),
        )
        assert "wait" in metal.jlr("job", "list", runtime.host).stdout
    wait_until(
        lambda: listed(metal.jlr("logs", f"{runtime.host}/waits")), "the job's GPU", timeout=60
    )


def test_watch_shows_a_gpu_at_work(metal: Metal) -> None:
    with (
        metal.session(PODMAN, "watched", "--gpus", "auto") as session,
        kernel(session) as notebook,
        metal.laptop.terminal("jlr", "gpus", "root", "--watch", timeout=60) as shown,
    ):
        notebook.send(TORCH + "a = torch.randn(8192, 8192, device='cuda')\nwhile True: a @ a")
        shown.expect(r"(9\d|100) ?%")
        shown.expect_exact("watched")
        shown.sendintr()
        shown.expect(pexpect.EOF)


def test_doctor_proves_the_host_up_to_a_kernel_with_its_gpus(
    metal: Metal, runtime: GpuRuntime
) -> None:
    judged = metal.laptop.jlr(
        *("--no-input", "doctor", runtime.host, "--image", runtime.image, *runtime.options),
        timeout=240,
    )
    assert "✗" not in judged.stdout, judged
    assert "6*7 is 42" in judged.stdout, judged


def test_two_gpus_of_one_container_add_up_by_nccl(metal: Metal) -> None:
    if metal.gpus < 2:
        pytest.skip("this machine has one GPU")
    program = f"cat > /tmp/ranks.py <<'END'\n{TORCH}{RANKS}\nEND\npython3 /tmp/ranks.py"
    summed = metal.jlr(
        *("run", "root", *PODMAN.words("--gpus", "2", "--shm-size", "1g")),
        # On shared machines a program that uses multicast can stop the GPUs of others.
        *("--env", "NCCL_NVLS_ENABLE=0", "--", "sh", "-c", program),
    )
    assert summed.stdout.count("sum 3.0") == 2
