"""`--gpus` with podman, by CDI files; the devices are stand-ins."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.engines.conftest import IMAGE, EnginesHost, podman_of
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
        begun = engines_laptop.jlr(*words, "--no-browser", timeout=120)
        assert begun.status == 0, begun
        inside = engines_laptop.jlr("shell", name, "--", "sh", "-c", LOOK)
        assert inside.status == 0, inside
        assert set(inside.stdout.split()) == set(got)
        again = engines_laptop.jlr(*words, "--no-browser", timeout=120)
        assert "`--gpus` applies" not in again.stderr, again
    finally:
        engines_laptop.jlr("stop", name, "--remove", "--force", "--yes")
        engines_host.remove(runtime, name)


def test_a_gpu_that_nothing_describes_is_one_clear_error(
    engines_laptop: Laptop, engines_host: EnginesHost, name: str
) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--runtime", "podman", "--gpus", "7")
    begun = engines_laptop.jlr(*words, "--no-browser", timeout=120)
    assert begun.status == 1, begun
    assert "the host gives no GPUs to containers" in begun.stderr
    assert "nvidia.com/gpu=" in begun.stderr


@pytest.mark.parametrize("runtime", [LONG("podman"), "sudo podman"])
def test_a_gpus_container_is_named_behind_sudo_too(
    runtime: str, engines_laptop: Laptop, engines_host: EnginesHost, gpus: Gpus, name: str
) -> None:
    flags = (*FLAGS[runtime], "--gpus", "device=0", "--no-browser")
    try:
        begun = engines_laptop.jlr("start", "lab", name, "--image", IMAGE, *flags, timeout=120)
        assert begun.status == 0, begun
        pid = podman_of(runtime, engines_host.account)(
            "container", "inspect", "--format={{.State.Pid}}", name
        )
        gpus.occupy(0, int(pid))
        first, _ = json.loads(engines_laptop.jlr("gpus", "lab", "--json").stdout)["gpus"]
        # The lab gives rootless containers no control group, by which a process is known.
        grouped = name if runtime.startswith("sudo") else None
        assert [process["container"] for process in first["processes"]] == [grouped]
        assert [(kept["kind"], kept["name"]) for kept in first["kept_for"]] == [("container", name)]
    finally:
        engines_laptop.jlr("stop", name, "--remove", "--force", "--yes")
        engines_host.remove(runtime, name)
