"""The reader of snapshots: values as nvidia-smi prints them, missing ones unknown."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.gpus.snapshot import GPU_FIELDS, CannotAsk, read, snapshot_script
from tests.gpus.parts import (
    DATA,
    FIELDS,
    RECORDED_FIELDS,
    answer,
    inventory,
    mig,
    process,
    record,
    row,
    uuid,
)

CONTAINER = "a4b9347b39c90bd5eccbe555455d85d9843255f2098ae21b0c1bc42aa4a03451"


def test_two_real_gpus_one_idle_and_one_busy() -> None:
    text = answer(
        (DATA / "query-gpu.csv").read_text(),
        fields=RECORDED_FIELDS,
        processes=(DATA / "compute-apps.csv").read_text().replace("python3, 1002", "1002, python3"),
    )
    idle, busy = read(text, "dgx").gpus
    assert (idle.name, idle.whole.memory_total, idle.busy) == ("NVIDIA H200", 143771, 0)
    assert (idle.temperature, idle.power) == (35, 79.16)
    assert (idle.state, idle.whole.in_use) == ("free", False)
    assert (busy.state, busy.whole.in_use) == ("busy", True)
    [computing] = busy.whole.processes
    assert (computing.pid, computing.name, computing.memory) == (546, "python3", 1002)


@pytest.mark.parametrize(
    "group",
    [
        f"9:name=systemd:/docker/{CONTAINER}\n0::/docker/{CONTAINER}",
        f"0::/user.slice/user-1000.slice/libpod-{CONTAINER}.scope/container",
        f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{CONTAINER}.scope",
    ],
)
def test_a_container_that_no_engine_names_is_told_by_its_id(group: str) -> None:
    lines = "\n".join(f"/proc/100/cgroup:{line}" for line in group.splitlines())
    found = inventory([row(0)], record("owners", "", "", lines), processes=process(0))
    assert found.gpus[0].whole.processes[0].container == CONTAINER[:12]


def test_a_process_that_has_just_ended_or_hides_is_told_without_its_user() -> None:
    [computing] = inventory([row(0)], processes=process(0)).gpus[0].whole.processes
    assert (computing.user, computing.container, computing.since) == (None, None, None)


@pytest.mark.parametrize(
    "unknown", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!", ""]
)
def test_a_value_that_the_driver_lacks_is_none(unknown: str) -> None:
    [gpu] = inventory([row(0, used=unknown, total=unknown, busy=unknown)]).gpus
    assert (gpu.whole.memory_used, gpu.whole.memory_total, gpu.busy) == (None, None, None)
    assert (gpu.state == "error") == (unknown in ("[Unknown Error]", "ERR!"))


@pytest.mark.parametrize(
    ("value", "instead", "fails"),
    [
        ("60.1", "ERR!", False), ("60.1", "[Unknown Error]", False), ("0, 30", "ERR!, 30", False),
        ("60.1", "[GPU requires reset]", True), ("4, 81920", "ERR!, 81920", True),
    ],
)  # fmt: skip
def test_a_sensor_that_cannot_be_read_is_unknown_and_a_gpu_that_fails_is_not_given(
    value: str, instead: str, fails: bool
) -> None:
    found = inventory([row(0).replace(value, instead, 1), row(1)])
    assert [device.place for device in found.devices] == (["1"] if fails else ["0", "1"])
    assert found.gpus[0].state == ("error" if fails else "free")


def test_lines_that_are_no_gpus_become_notes() -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:00:1E.0"
    found = inventory([row(0), warning])
    assert (len(found.gpus), found.notes) == (1, (warning,))


@pytest.mark.parametrize("fields", GPU_FIELDS)
def test_an_older_answer_has_fewer_fields(fields: str) -> None:
    values = dict(zip(FIELDS.split(","), row(0).split(", "), strict=True))
    text = ", ".join(values[name] for name in fields.split(","))
    [gpu] = read(answer(text, fields=fields), "dgx").gpus
    assert (gpu.whole.memory_used, gpu.mig, gpu.state) == (4, False, "free")


@pytest.mark.parametrize(
    ("used", "draws", "in_use"),
    [(4, "Disabled", False), (300, "Disabled", True), (900, "Enabled", False)],
)
def test_memory_without_a_visible_process_is_held(used: int, draws: str, in_use: bool) -> None:
    text = row(0, used=used).replace("Disabled, Disabled", f"{draws}, Disabled")
    assert inventory([text]).gpus[0].whole.in_use is in_use


@pytest.mark.parametrize(
    ("busy", "used", "state"),
    [
        (100, 9000, "busy"),
        (90, 9000, "busy"),
        (89, 9000, "partly busy"),
        (0, 9000, "idle, memory held"),
        ("[N/A]", 9000, "held"),
        (0, 4, "free"),
    ],
)
def test_the_state_is_seen_at_a_glance(busy: object, used: int, state: str) -> None:
    assert inventory([row(0, used=used, busy=busy)]).gpus[0].state == state


def test_a_divided_gpu_gives_its_mig_devices() -> None:
    cut, whole = mig()
    assert [device.place for device in cut.devices] == ["0:0", "0:1", "0:2"]
    assert [device.in_use for device in cut.devices] == [True, False, False]
    assert [device.profile for device in cut.devices] == ["3g.40gb", "1g.10gb", "1g.10gb"]
    assert cut.devices[1].memory_free == 9716
    [computing] = cut.devices[0].processes
    assert (computing.pid, computing.name) == (34965, "python, -u")
    assert cut.whole.processes == ()
    assert cut.state == "held"
    assert [device.place for device in whole.devices] == ["1"]


def test_without_the_document_a_process_may_be_on_any_mig_device() -> None:
    first = "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16"
    rows = f"0, {first}, A100, 9924, 81920, [N/A], 35, 90.1, 400.00, Disabled, Enabled"
    slices = record("slices", (DATA / "mig-list.txt").read_text(), "<broken")
    [gpu] = read(answer(rows, slices, processes=f"{first}, 7, 9865, python"), "dgx").gpus
    assert [device.in_use for device in gpu.devices] == [True, True, True]


@pytest.mark.parametrize(
    ("status", "said", "words"),
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate.", "couldn't communicate"),
        (18, "Failed to initialize NVML: Driver/library version mismatch", "version mismatch"),
        (6, "No devices were found", "No devices were found"),
        (124, "", "did not answer within"),
        (127, "error while loading shared libraries", "cannot be run"),
        (1, "", "exit status 1"),
        (2, "\x1b[2J\x1b]0;gotcha\x07", "exit status 2"),
    ],
)
def test_a_failure_is_told_in_the_drivers_words(status: int, said: str, words: str) -> None:
    with pytest.raises(CannotAsk) as failure:
        read(answer(said, status=status), "dgx")
    assert words in failure.value.message
    assert "`dgx`" in failure.value.message
    assert "\x1b" not in failure.value.message


# Whatever a driver prints: numbers, its words for nothing, and what nobody has thought of.
VALUES = st.one_of(
    st.integers(0, 10**6).map(str),
    st.floats(0, 1000).map(lambda number: f"{number:.2f}"),
    st.sampled_from(["[N/A]", "[Not Supported]", "ERR!", "[Unknown Error]", "[GPU is lost]", ""]),
    st.text(st.characters(exclude_characters="\x1c\x1d\x1e\x1f,"), max_size=20),
)


@given(st.lists(st.tuples(*[VALUES] * 9), max_size=16), st.text(max_size=200))
def test_no_answer_breaks_the_reading(rows: list[tuple[str, ...]], noise: str) -> None:
    text = "\n".join(", ".join((str(i), uuid(i), *row)) for i, row in enumerate(rows))
    try:
        found = read(answer(f"{text}\n{noise}", processes=noise), "dgx")
    except CannotAsk:
        return
    for gpu in found.gpus:
        assert gpu.busy is None or gpu.busy >= 0
        assert gpu.state
        assert gpu.whole.memory_free >= 0


def test_the_script_runs_in_any_sh_and_reports_a_missing_nvidia_smi() -> None:
    text, none = snapshot_script(), {"PATH": ""}
    said = subprocess.run(["/bin/sh"], input=text, env=none, capture_output=True, text=True)
    assert said.stderr == ""
    with pytest.raises(CannotAsk):
        read(said.stdout, "here")
