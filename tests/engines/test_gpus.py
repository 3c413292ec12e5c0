"""`--gpus` with podman, by CDI files; the devices are stand-ins."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.engines.conftest import IMAGE, EnginesHost
from tests.engines.parts import FLAGS
from tests.gpus.stand_in import Gpus
from tests.lab import podman
from tests.lab.laptop import Laptop
from tests.lab.place import Say
from tests.long import LONG

FIRST, SECOND = podman.DEVICES["0"], podman.DEVICES["1"]
LOOK = f"ls {' '.join(podman.DEVICES['all'])}; true"  # without those that are not there


@pytest.fixture(scope="module", autouse=True)
def _described(engines_host: EnginesHost, say: Say) -> Iterator[None]:
    with podman.described_gpus(say):
        yield


@pytest.fixture
def gpus(engines_host: EnginesHost) -> Iterator[Gpus]:
    """Two free GPUs of the host."""
    made = Gpus(engines_host.account.home / "bin")
    made.install()
    yield made
    made.remove()


@pytest.mark.parametrize("runtime", ["podman", LONG("sudo podman")])
@pytest.mark.parametrize(
    ("asked", "got"),
    [
        LONG("all", (*FIRST, *SECOND)),
        LONG("0,1", (*FIRST, *SECOND)),
        ("UUID", SECOND),
        LONG("auto", FIRST),
        LONG("none", ()),
    ],
)
def test_a_container_has_the_gpus_that_were_asked_for(
    runtime: str,
    asked: str,
    got: tuple[str, ...],
    engines_laptop: Laptop,
    engines_host: EnginesHost,
    gpus: Gpus,
    name: str,
) -> None:
    asked = gpus.uuids[1] if asked == "UUID" else asked
    words = ("start", "lab", name, "--image", IMAGE, *FLAGS[runtime], "--gpus", asked)
    try:
        engines_laptop.jlr(*words, "--no-browser", timeout=120).checked()
        inside = engines_laptop.jlr("shell", name, "--", "sh", "-c", LOOK).checked()
        assert set(inside.stdout.split()) == set(got)
        again = engines_laptop.jlr(*words, "--no-browser", timeout=120)
        assert "`--gpus` applies" not in again.stderr, again
    finally:
        engines_laptop.jlr("rm", name, "--force", "--yes")
        engines_host.remove(runtime, name)


@pytest.mark.long
def test_a_container_keeps_its_gpu_when_the_host_counts_anew(
    engines_laptop: Laptop, engines_host: EnginesHost, gpus: Gpus, name: str
) -> None:
    """Where the CDI files name GPUs by UUID, too, as NVIDIA's tool does from 1.15 on."""
    first, second = gpus.uuids
    words = ("start", "lab", name, "--no-browser")
    try:
        podman.describe({**podman.DEVICES, first: FIRST, second: SECOND})
        new = ("--image", IMAGE, *FLAGS["podman"], "--gpus", "device=1")
        engines_laptop.jlr(*words, *new, timeout=120).checked()
        told = json.loads(engines_laptop.jlr("list", name, "--json").stdout)
        assert told["gpus"] == second[:12]
        assert engines_laptop.jlr("stop", name, "--container", "--yes").status == 0
        gpus.state["gpus"].pop(0)
        gpus.state["gpus"][0]["index"] = 0
        gpus.write()
        podman.describe({"0": SECOND, second: SECOND})
        engines_laptop.jlr(*words, timeout=120).checked()
        inside = engines_laptop.jlr("shell", name, "--", "sh", "-c", LOOK)
        assert set(inside.stdout.split()) == set(SECOND)
        [gpu] = json.loads(engines_laptop.jlr("gpus", "lab", "--json").stdout)["gpus"]
        assert [claim["name"] for claim in gpu["kept_for"]] == [name]
        assert engines_laptop.jlr("stop", name, "--container", "--yes").status == 0
        gpus.install()
        engines_laptop.jlr(*words, timeout=120).checked(
            6, f"was given {second}, which `lab` no longer has"
        )
    finally:
        podman.describe(podman.DEVICES)
        engines_laptop.jlr("rm", name, "--force", "--yes")
        engines_host.remove("podman", name)


def test_a_gpu_that_nothing_describes_is_one_clear_error(
    engines_laptop: Laptop, engines_host: EnginesHost, name: str
) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--runtime", "podman", "--gpus", "7")
    engines_laptop.jlr(*words, "--no-browser", timeout=120).checked(
        1, "the host gives no GPUs to containers", "nvidia.com/gpu="
    )
