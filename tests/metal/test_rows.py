"""Rows A5, A7, B2, B3, B8, B11, C3, D1, D3, E6 and E7 on real GPUs in real containers.

Each docstring is a row of the table that `run` writes.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pexpect
import pytest

from tests.lab.programs import wait_until
from tests.lab.tmux import tmux_terminal
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


# The GPU of each job, from its first to its last moment.
BUSY = """
gpu=$(nvidia-smi -L | sed -n 's/.*UUID: \\(GPU-[0-9a-f-]*\\).*/\\1/p')
echo "begin $(date +%s.%N) $gpu"; sleep 3; echo "end $(date +%s.%N) $gpu"
"""


def test_auto_takes_a_free_gpu_and_a_notebooks_kernel_computes_on_it(
    metal: Metal, runtime: GpuRuntime
) -> None:
    """`--gpus auto` leases a GPU, a notebook's kernel multiplies on it, a second is refused."""
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
    """A job's GPUs by number, index, part of a UUID, `all` and `none`."""

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
    """`--wait`: a job in the queue of the host begins when a session gives its GPUs back."""
    name = f"waits-{runtime.name}"  # docker and Apptainer share a host
    with metal.session(runtime, "holder", "--gpus", f"auto:{metal.gpus}"):
        metal.jlr(
            *("run", runtime.host, "-d", "--name", name, *runtime.words("--gpus", "auto")),
            *("--wait", "--", "nvidia-smi", "-L"),
        )
        assert "wait" in metal.jlr("job", "list", runtime.host).stdout
    wait_until(
        lambda: listed(metal.jlr("logs", f"{runtime.host}/{name}")), "the job's GPU", timeout=60
    )


def test_watch_shows_a_gpu_at_work(metal: Metal) -> None:
    """`jlr gpus --watch` under load: utilization, memory, and who uses the GPU."""
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
    """`jlr doctor --image` to its last line, a kernel's answer in a container with GPUs."""
    judged = metal.laptop.jlr(
        *("--no-input", "doctor", runtime.host, "--image", runtime.image, *runtime.options),
        timeout=240,
    )
    assert "✗" not in judged.stdout, judged
    assert "6*7 is 42" in judged.stdout, judged


def test_two_gpus_of_one_container_add_up_by_nccl(metal: Metal) -> None:
    """NCCL over two GPUs of one container, with shared memory (and locked, where root may)."""
    if metal.gpus < 2:
        pytest.skip("this machine has one GPU")
    # A machine that is a container itself may not raise what it may lock.
    may_lock = metal.laptop.ssh("root", "ulimit -H -l").stdout.strip() == "unlimited"
    limits = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
    options = ("--profile", "nvidia", *limits) if may_lock else ("--shm-size", "1g")
    program = f"ulimit -l; cat > /tmp/ranks.py <<'END'\n{TORCH}{RANKS}\nEND\npython3 /tmp/ranks.py"
    summed = metal.jlr(
        *("run", "root", *PODMAN.words("--gpus", "2", *options)),
        # On shared machines a program that uses multicast can stop the GPUs of others.
        *("--env", "NCCL_NVLS_ENABLE=0", "--", "sh", "-c", program),
    )
    assert summed.stdout.startswith("unlimited") == may_lock, summed
    assert summed.stdout.count("sum 3.0") == 2


def test_a_gpu_by_its_uuid_is_the_first_of_cuda_in_whatever_order(
    metal: Metal, runtime: GpuRuntime
) -> None:
    """A GPU named by its UUID, with CUDA_DEVICE_ORDER set to another order."""
    wanted = metal.report(runtime.host)["gpus"][-1]["uuid"]
    program = f"{TORCH}\nprint(torch.cuda.device_count(), torch.cuda.get_device_properties(0).uuid)"
    done = metal.jlr(
        *("run", runtime.host, *runtime.words("--gpus", wanted)),
        *("--env", "CUDA_DEVICE_ORDER=FASTEST_FIRST", "--", "python3", "-c", program),
    )
    assert done.stdout.split() == ["1", wanted.removeprefix("GPU-")]


def test_many_jobs_share_the_gpus_one_at_a_time(metal: Metal) -> None:
    """Eight jobs at once on fewer GPUs, by `--gpus auto --wait`: no GPU has two at a time."""
    names = [f"busy-{number}" for number in range(8)]
    for name in names:
        metal.jlr(
            *("run", "root", "-d", "--name", name, *PODMAN.words("--gpus", "auto", "--wait")),
            *("--", "sh", "-c", BUSY),
        )

    def told() -> list[list[str]]:
        return [metal.laptop.jlr("logs", f"root/{name}").stdout.split() for name in names]

    wait_until(lambda: all("end" in words for words in told()), "the end of all", 200)
    spans: dict[str, list[tuple[float, float]]] = {}
    for _, begin, gpu, _, end, _ in told():
        spans.setdefault(gpu, []).append((float(begin), float(end)))
    assert len(spans) == metal.gpus
    for times in spans.values():
        ordered = sorted(times)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ordered))


def test_a_container_whose_gpu_went_away_is_named(metal: Metal) -> None:
    """A container that loses its GPU while it runs is named, with what brings the GPU back."""
    with metal.session(PODMAN, "losing", "--gpus", "auto"):
        pid = metal.laptop.ssh("root", "podman inspect -f '{{.State.Pid}}' losing").stdout.strip()
        away = "mount --bind /dev/null /dev/nvidiactl"
        done = metal.laptop.ssh("root", f"nsenter -t {pid} -m sh -c '{away}'")
        assert done.status == 0, done
        for words in (("url", "root/losing"), ("list", "root/losing")):
            answer = metal.jlr(*words)
            told = " ".join((answer.stdout + answer.stderr).split())
            assert "the container `losing`" in told
            assert "GPUs" in told
            assert "NVML" in told
            assert "podman restart losing" in told


def test_a_part_of_a_gpu_is_taken_where_mig_is_on(metal: Metal) -> None:
    """MIG, where the machine has it switched on."""
    modes = metal.laptop.ssh(
        "root", "nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader"
    )
    if "Enabled" not in modes.stdout:
        pytest.skip("MIG is not switched on")
    done = metal.jlr(*("run", "root", *PODMAN.words("--gpus", "auto"), "--", "nvidia-smi", "-L"))
    assert "UUID: MIG-" in done.stdout


def test_pictures_of_a_start_and_of_a_gpu_at_work(metal: Metal, tmp_path: Path) -> None:
    """`start` and `gpus --watch` in a terminal (docs/metal-start.svg, docs/metal-gpus.svg)."""
    with tmux_terminal(metal.laptop, tmp_path / "tmux") as terminal:
        words = "--image lab/jupyter:1 --runtime podman -v /opt/torch:/opt/torch:ro"
        terminal.run(f"jlr start root cont1 {words} --gpus auto --no-browser")
        assert "token=" in terminal.screen()
        terminal.take_picture("metal-start")
        terminal.clear()
        load = f"{TORCH}\na = torch.randn(8192, 8192, device='cuda')\nwhile True: a @ a"
        metal.jlr(
            "run", "root", "-d", "--in", "cont1", "--name", "load", "--", "python3", "-c", load
        )
        terminal.type("jlr gpus root --watch 0.5")
        wait_until(lambda: re.search(r"(9\d|100) %", terminal.screen()), "the load", 60)
        terminal.take_picture("metal-gpus")
        terminal.press("C-c")
        terminal.wait_for_prompt()
        metal.jlr("rm", "root/cont1", "--force", "--yes")
