"""Driver and toolkit as `jlr doctor` sees them, proved by `nvidia-smi` in a real container."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doctor.parts import examined
from tests.gpus.conftest import GpuHost
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop

# What NVIDIA's toolkit would bring into a container; the lab's has nothing to bring.
INSIDE = "#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\necho 'GPU 1: NVIDIA H200'\n"


@pytest.fixture
def with_gpus(container: ContainerFactory) -> Iterator[str]:
    """An image with an `nvidia-smi` that lists two GPUs."""
    made = container("lab/plain")
    write = f"cat >/usr/bin/nvidia-smi <<'END'\n{INSIDE}END\nchmod 755 /usr/bin/nvidia-smi"
    made.execute("sh", "-c", write)
    name = f"{made.name}-image"
    container.engine.docker("commit", made.name, name)
    yield name
    container.engine.docker("image", "rm", name)


def test_gpus_are_proved_in_a_container_that_is_removed_again(
    ada: Laptop, gpu_host: GpuHost, with_gpus: str, container: ContainerFactory
) -> None:
    report = examined(ada, "lab", "--image", with_gpus)
    assert report.of("driver")["text"] == "2x NVIDIA H200"
    toolkit = report.of("toolkit")
    assert (toolkit["mark"], "2 GPUs" in toolkit["text"]) == ("ok", True)
    report.failed("jupyter", 6, "no JupyterLab")
    listed = container.engine.docker("ps", "--all", "--format", "{{.Names}} {{.Image}}")
    assert [line for line in listed.splitlines() if line.endswith(f" {with_gpus}")] == []


def test_containers_without_gpus_are_told_with_how_to_install_the_toolkit(
    ada: Laptop, gpu_host: GpuHost
) -> None:
    report = examined(ada, "lab", "--image", "lab/plain")
    report.failed("toolkit", 1, "containers get no GPUs", "nvidia-ctk runtime configure")


NEEDS_DRIVER = "the host gives no GPUs to containers: nvidia-container-cli: requirement error: "


def test_a_driver_that_is_too_old_is_told_as_that_and_not_as_a_missing_toolkit(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory
) -> None:
    name = f"{container.name()}-image"
    container.engine.docker(
        *("build", "--tag", name, "-"), stdin="FROM lab/plain\nENV NVIDIA_REQUIRE_CUDA=cuda>=99.0\n"
    )
    try:
        toolkit = examined(ada, "lab", "--image", name).of("toolkit")
        begun = ada.jlr("start", "lab", name, "--image", name, "--gpus", "1", "--verbose")
    finally:
        container.engine.docker("image", "rm", name)
    assert toolkit["mark"] == "failed"
    assert toolkit["text"].startswith(f"{NEEDS_DRIVER}unsatisfied condition: cuda>=99.0, please")
    assert "nvidia-smi" in toolkit["mend"][0]
    assert "install" not in " ".join(toolkit["mend"])
    assert begun.status == 1, begun
    [error] = [line for line in begun.stderr.splitlines() if line.startswith("error:")]
    assert error.startswith(f"error: {NEEDS_DRIVER}"), error
    assert "jlr doctor" not in begun.stderr
    assert "# Error response from daemon: " in begun.stderr, "all of it with `--verbose`"
    assert "Auto-detected mode as 'legacy'" in begun.stderr
