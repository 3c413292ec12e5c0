"""The value of `--gpus`, the GPUs that it chooses, and the proof that a container has them."""

from __future__ import annotations

import pytest

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.gpus import proof
from jlremote.gpus.choice import CannotTell, choose, is_met, parse_request
from jlremote.gpus.inventory import Inventory
from jlremote.place.runtimes.engine.engine_gpus import gpu_flags
from jlremote.place.runtimes.engine.kinds import ENGINES
from tests.gpus.parts import inventory, mig, row, uuid

FREE = inventory([row(0), row(1)])


@pytest.mark.parametrize(
    ("text", "kind", "count", "names"),
    [
        ("none", "none", 0, ()),
        ("all", "all", 0, ()),
        ("auto", "free", 1, ()),
        ("auto:3", "free", 3, ()),
        ("2", "free", 2, ()),
        ("count=2", "free", 2, ()),
        ("0,3", "named", 0, ("0", "3")),
        ("device=0", "named", 0, ("0",)),
        ('"device=0,2"', "named", 0, ("0", "2")),
        ("0:1", "named", 0, ("0:1",)),
        (uuid(0), "named", 0, (uuid(0),)),
        ("MIG-GPU-0a/1/0", "named", 0, ("MIG-GPU-0a/1/0",)),
        ("driver=nvidia,count=2", "engine", 0, ()),
        ('"device=0,2","capabilities=utility"', "engine", 0, ()),
        ('"device=0', "engine", 0, ()),
    ],
)
def test_every_way_to_write_it(text: str, kind: str, count: int, names: tuple[str, ...]) -> None:
    asked = parse_request(text)
    assert (asked.kind, asked.count, asked.names) == (kind, count, names)


def taken(text: str, found: Inventory = FREE, *, share: bool = False) -> tuple[str, ...]:
    return choose(parse_request(text), found, "dgx", share=share).places


@pytest.mark.parametrize("name", ["2", "0:0", uuid(7), "GPU-0", "MIG-1", uuid(1)[:10]])
def test_a_missing_gpu_is_an_error_that_lists_the_others(name: str) -> None:
    with pytest.raises(NotFound, match=f"there is no GPU `{name}` on `dgx`") as failure:
        taken(f"device={name}")
    assert "shows its GPUs: 0, 1" in (failure.value.hint or "")


def test_a_gpu_that_fails_is_named_and_not_given() -> None:
    found = inventory([row(0), row(1, used="[GPU requires reset]")])
    for name in ("device=1", uuid(1), uuid(1)[:12]):
        with pytest.raises(JlrError, match="GPU 1 of `dgx` fails: its driver answers") as failure:
            taken(name, found, share=True)
        assert uuid(1) in failure.value.message
        assert (failure.value.hint or "").startswith("`nvidia-smi -q -i 1`")
    assert taken("auto", found) == ("0",)
    with pytest.raises(NotFound, match="has 1 GPU besides GPU 1, whose driver reports an error"):
        taken("auto:2", found)


def test_what_cannot_be_told_is_not_free_and_not_in_use() -> None:
    found = inventory([row(0), row(1, used=9000)], containers="refused|permission denied")
    assert [gpu.state for gpu in found.gpus] == ["cannot tell", "idle, memory held"]
    told = r"cannot tell which GPUs of `dgx` are free: `docker ps`: permission denied"
    with pytest.raises(CannotTell, match=told):
        taken("auto", found)
    assert taken("device=0", found) == taken("auto", found, share=True) == ("0",)
    with pytest.raises(Busy):
        taken("device=1", found)


def test_mig_devices_are_chosen_like_gpus() -> None:
    found = Inventory(gpus=mig(), now=0, user="ada")
    assert taken("auto", found) == ("1",)
    free_parts = tuple(part.uuid for part in found.mig_devices[1:])
    assert taken("auto:2", found) == ("0:1", "0:2"), "and never one of each kind"
    with pytest.raises(Busy, match="3 GPUs were asked for, and 2 of 3 on `dgx` are free"):
        taken("3", found)
    with pytest.raises(NotFound, match="has 1 GPU and 3 MIG devices, which do not mix, and 4"):
        taken("4", found)
    shared = choose(parse_request("auto:2"), found, "dgx", share=True)
    assert shared.uuids == free_parts, "those in use come last, also of two kinds"
    assert taken("MIG-36c795f2-5cf7-55d6-af30-e535e79b7bb6", found) == ("0:2",)
    with pytest.raises(Busy, match="GPU 0:0: "):
        taken("device=0", found)
    assert taken("device=0", found, share=True) == ("0:0", "0:1", "0:2")
    assert taken("0:1,0:2", found) == ("0:1", "0:2")
    with pytest.raises(NotFound) as failure:
        taken("0:7", found)
    assert "0:1 (MIG-a25704ba" in (failure.value.hint or "")


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        ("0:1,1", "0:1"),
        ("1,0", "0:0,0:1,0:2"),
        ("1,MIG-36c795f2-5cf7-55d6-af30-e535e79b7bb6", "0:2"),
    ],
)
@pytest.mark.parametrize("share", [False, True])
def test_names_do_not_mix_gpus_and_mig_devices_either(named: str, parts: str, share: bool) -> None:
    found = Inventory(gpus=mig(), now=0, user="ada")
    told = rf"names GPUs of `dgx` \(1\) and MIG devices \({parts}\), which cannot be combined"
    with pytest.raises(Usage, match=told) as refused:
        taken(f"device={named}", found, share=share)
    assert f"`--gpus device=1` or `--gpus device={parts}`" in (refused.value.hint or "")
    assert len(taken("0:1,0:2", found)) == 2


@pytest.mark.parametrize(
    ("text", "have", "same"),
    [
        ("auto", "device=3", True),
        ("auto", "3", False),
        ("auto:2", "2", True),
        ("2", "device=2", False),
        ("2", "auto:2", True),
        ("device=2", "2", False),
        ("device=2", "device=2", True),
        ("auto:2", "0,3", True),
        ("auto", None, False),
        ("none", None, True),
        ("none", "1", False),
        ("auto", "none", False),
        ("auto", "all", False),
        ("0,3", "3,0", True),
        ("device=0,3", "0,3", True),
        ("0,3", "mig1:0", False),
        ("driver=nvidia,count=2", "driver=nvidia,count=2", True),
    ],
)
def test_an_existing_container_may_meet_the_request(
    text: str, have: str | None, same: bool
) -> None:
    assert is_met(text, have) is same


def test_a_value_of_dockers_own_is_refused_by_other_engines() -> None:
    with pytest.raises(Usage, match="does not take docker's"):
        gpu_flags(ENGINES["podman"], "device=0,capabilities=utility")


def test_a_number_of_gpus_that_a_host_made_up_fills_no_memory() -> None:
    many = "9" * 5000
    assert gpu_flags(ENGINES["podman"], many) == (f"--device=nvidia.com/gpu={many}",)


ONE = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
SLICES = f"{ONE}  MIG 1g.18gb Device 0: (UUID: MIG-1)\n  MIG 1g.18gb Device 1: (UUID: MIG-2)\n"
DRIVER = "driver\037/usr/lib64/libcuda.so.1\036"


def device(name: str) -> str:
    return f"device\037/dev/{name}\036"


@pytest.mark.parametrize(
    ("engine", "output", "words"),
    [
        ("driver=nvidia,count=2", f"nvidia-smi\0370\037{ONE}\036", "1 of the 2"),
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
    _, why = proof.seen(output, proof.requested(engine))
    assert (why is None) == (words is None), why
    assert words is None or words in str(why)


@pytest.mark.parametrize(
    ("output", "sees"),
    [
        (f"nvidia-smi\0370\037{ONE}\036", 1),
        (f"nvidia-smi\0370\037{ONE}{ONE}{ONE}\036", 3),
        (f"nvidia-smi\0370\037{SLICES}\036", 2),
        (f"nvidia-smi\0379\037{ONE}{ONE}\036", 0),
        (device("nvidia0") + device("nvidia1") + DRIVER, 2),
        (device("kfd") + device("dxg"), 0),
        ("", 0),
    ],
)
def test_the_gpus_that_a_container_sees_are_counted(output: str, sees: int) -> None:
    assert proof.seen(output, 1)[0] == sees


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
