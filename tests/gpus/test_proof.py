"""What the proof of a new container's GPUs makes of its answers."""

from __future__ import annotations

import pytest

from jlremote.gpus import proof

ONE = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
SLICES = f"{ONE}  MIG 1g.18gb Device 0: (UUID: MIG-1)\n  MIG 1g.18gb Device 1: (UUID: MIG-2)\n"
DRIVER = "driver\037/usr/lib64/libcuda.so.1\036"


def device(name: str) -> str:
    return f"device\037/dev/{name}\036"


@pytest.mark.parametrize(
    ("engine", "output", "words"),
    [
        ("8", f"nvidia-smi\0370\037{ONE}\036", "1 of the 8"),
        ("driver=nvidia,count=2", f"nvidia-smi\0370\037{ONE}\036", "1 of the 2"),
        ("2,capabilities=utility", f"nvidia-smi\0370\037{ONE}\036", "1 of the 2"),
        ('"device=0,3",driver=nvidia', f"nvidia-smi\0370\037{ONE}\036", "1 of the 2"),
        ("device=0,driver=nvidia", f"nvidia-smi\0370\037{ONE}\036", None),
        ("all", f"nvidia-smi\0370\037{ONE}\036", None),
        ("2", f"nvidia-smi\0370\037{ONE}\036", "1 of the 2"),
        ("device=MIG-1,MIG-2", f"nvidia-smi\0370\037{SLICES}\036", None),
        ("3", f"nvidia-smi\0370\037{SLICES}\036", "2 of the 3"),
        ("all", "nvidia-smi\037124\037\036", "says `nothing`"),
        ("driver=nvidia", "nvidia-smi\0370\037No devices found.\036", "none of the 1"),
        ("device=0,3", device("nvidia0") + device("nvidia3") + DRIVER, None),
        ("device=0,3", device("nvidia0") + DRIVER, "1 of the 2"),
        ("device=0", device("nvidia0"), "libcuda"),
        ("2", device("kfd"), None),
        ("2", "", "none of the 2"),
    ],
)
def test_what_a_container_shows_is_compared_with_what_was_asked_for(
    engine: str, output: str, words: str | None
) -> None:
    why = proof.fault(output, proof.requested(engine))
    assert (why is None) == (words is None), why
    assert words is None or words in str(why)


@pytest.mark.parametrize(
    ("asked", "output", "sees"),
    [
        (1, f"nvidia-smi\0370\037{ONE}\036", 0),
        (1, f"nvidia-smi\0370\037{ONE}{ONE}{ONE}\036", 3),
        (1, f"nvidia-smi\0370\037{SLICES}\036", 2),
        (1, f"nvidia-smi\0379\037{ONE}{ONE}\036", 0),
        (1, device("nvidia0") + device("nvidia1") + DRIVER, 2),
        (1, device("kfd") + device("dxg"), 0),
        (1, "", 0),
    ],
)
def test_a_container_that_sees_more_than_was_asked_for_is_noticed(
    asked: int, output: str, sees: int
) -> None:
    assert proof.surplus(output, asked) == sees


@pytest.mark.parametrize("value", ["all", "all,capabilities=utility", "count=-1"])
@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("", 1),  # its driver does not tell
        ("driver\ndriver\ndevice\ndevice\n", 2),
        ("driver\ndriver\ndevice\n", 1),  # a host that has one of the machine's two
        ("device\ndevice\n", 1),  # left by a driver that is not loaded
    ],
)
def test_all_asks_for_each_gpu_of_the_host(value: str, host: str, asked: int) -> None:
    assert proof.requested(value, host) == asked
    assert proof.wants_all(value)
