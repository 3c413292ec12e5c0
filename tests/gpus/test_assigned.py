"""GPUs that others have without computing: by their engines' containers, which are real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.gpus.assigned import FUNCTIONS
from jlremote.gpus.assigned import read as read_assigned
from tests.gpus.conftest import GpuHost
from tests.gpus.parts import ID, NEW, asked, inventory, row, uuid
from tests.gpus.parts import container as described
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.programs import write_program
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.place.host.shells import run_sh
from tests.sessions.parts import failed, start


@pytest.mark.parametrize(
    ("host", "config", "claims"),
    [
        ({"DeviceRequests": [{"Count": 2}]}, {}, {"assigned": [0, 1]}),
        ({"DeviceRequests": [{"Count": -1}]}, {}, {"all": [0, 1, 2]}),
        ({"DeviceRequests": [{"DeviceIDs": ["nvidia.com/gpu=2"]}]}, {}, {"assigned": [2]}),
        ({"DeviceRequests": [{"DeviceIDs": [uuid(1)[:12]]}]}, {}, {"assigned": [1]}),
        ({"DeviceRequests": [{"DeviceIDs": ["7", "amd.com/gpu=1"]}]}, {}, {}),
        ({"Runtime": "nvidia"}, {"Env": ["NVIDIA_VISIBLE_DEVICES=2", None]}, {"assigned": [2]}),
        ({"Runtime": "nvidia"}, {"Env": ["NVIDIA_VISIBLE_DEVICES=void", None]}, {}),
        ({"Runtime": "runc"}, {"Env": ["NVIDIA_VISIBLE_DEVICES=all", None]}, {}),
        ({}, {"CreateCommand": ["--device=nvidia.com/gpu=gpu1", None]}, {"assigned": [1]}),
        ({}, {"CreateCommand": ["nvidia.com/gpu=all", None]}, {"all": [0, 1, 2]}),
        ({"Devices": [{"PathInContainer": "/dev/nvidia2"}]}, {}, {"assigned": [2]}),
    ],
)  # fmt: skip
def test_each_way_to_give_a_container_gpus_is_understood(
    host: dict[str, Any], config: dict[str, Any], claims: dict[str, list[int]]
) -> None:
    found: dict[str, list[int]] = {}
    for gpu in inventory([row(0), row(1), row(2)], containers=described(host, config)).gpus:
        for claim in gpu.whole.claims:
            found.setdefault(claim.kind, []).append(gpu.index)
            assert (claim.name, claim.since) == ("train", 1_795_381_736.0)
    assert found == claims


def test_a_container_that_ended_meanwhile_hides_nothing() -> None:
    begin = f"answered|docker\n{ID}\n"
    gone = inventory([row(0)], containers=f"{begin}unread|docker: Error: No such container: {ID}")
    assert (gone.unseen, gone.gpus[0].state) == ("", "free")
    for told in ("unread|docker: authorization denied", f"{ID} {{}}", f"{ID} {{"):
        kept = inventory([row(0)], containers=f"{begin}{told}")
        assert kept.gpus[0].state == "cannot tell"
    # The same engine behind `sudo` has answered.
    assert inventory([row(0)], containers="answered|docker\nrefused|denied").unseen == ""


SHIM = "containerd-shim-runc-v2\0-namespace\0moby\0-id\0c0ffee\0-address\0{}\0"
SYSTEMS, OWN = "/run/containerd/containerd.sock", "/home/me/containerd.sock"
DENIED = "permission denied while trying to connect to the docker API"
DOWN = "Cannot connect to the Docker daemon. Is the docker daemon running?"


@pytest.mark.parametrize(
    ("complaint", "address", "hidden", "may_be"),
    [
        (DENIED, OWN, False, True), (DENIED, None, False, False), (DENIED, None, True, True),
        (DOWN, SYSTEMS, False, True), (DOWN, OWN, False, False), (DOWN, None, False, False),
        (None, f"/var{SYSTEMS}", False, True), (None, OWN, False, False),
        ("", SYSTEMS, False, True),
    ],
)  # fmt: skip
def test_where_docker_does_not_tell_processes_show_whether_it_has_containers(
    complaint: str | None, address: str | None, hidden: bool, may_be: bool, tmp_path: Path
) -> None:
    """`None` stands for a docker that is not on the PATH."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cmdline").write_text("sleep\0600\0" if address is None else SHIM.format(address))
    if not hidden:
        (tmp_path / "1").mkdir()
        (tmp_path / "1/stat").touch()
    program = f"docker() {{ printf '%s' '{complaint}' >&2; return 1; }}\n"
    begin = "PATH=/usr/bin:/bin; " + (program if complaint is not None else "")
    asks = "docker" if complaint is not None else "no-docker"
    functions = FUNCTIONS.replace("/proc", str(tmp_path)).replace("!= docker ]", f"!= {asks} ]")
    told = run_sh("sh", f"{begin}limit=\n{functions}\nlist_containers {asks}\n").stdout
    assert bool(read_assigned(told).unseen) == may_be, told


def run_by_hand(engine: Engine, name: str, *options: str) -> None:
    engine.docker("run", "--detach", "--name", name, *options, "lab/plain", "sleep", "1d")


def test_gpus_of_idle_containers_are_not_free_however_they_were_given(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    """Their indices are those of no other test, as all containers of the lab are seen."""
    gpu_host.gpus.install(26)
    uuids, others = gpu_host.gpus.uuids, [container.name() for _ in range(6)]
    ways = (
        ("--gpus", "device=20"),
        ("--gpus", f'"device={uuids[21]},{uuids[22]}"'),
        ("--runtime=nvidia", "--env", "NVIDIA_VISIBLE_DEVICES=23"),
        ("--device=/dev/fuse:/dev/nvidia24",),
        ("--env", "NVIDIA_VISIBLE_DEVICES=25"),  # by itself it gives none
        ("--gpus", "all"),
    )
    for name, way in zip(others, ways, strict=True):
        run_by_hand(engine, name, *way)
    found = asked(ada)["gpus"]
    assert [gpu["state"] for gpu in found[20:]] == [*["assigned, idle"] * 5, "free"]
    holders = [claim["name"] for gpu in found[20:] for claim in gpu["kept_for"]]
    assert holders == [others[0], others[1], others[1], others[2], others[3]]
    assert others[5] in found[25]["shared_with"]
    table = " ".join(ada.jlr("gpus", "lab").stdout.split())
    assert f"20 ? {others[0]} " in table
    assert "assigned to this container, idle" in table
    words = (f"GPU 20: assigned to container `{others[0]}`", "idle", "--gpus auto")
    failed(start(ada, "lab", container.name(), *NEW, "--gpus", "device=20"), 7, *words)
    for index in range(20):
        gpu_host.gpus.change(index, memory_used=9000)
    plan = start(ada, "lab", container.name(), *NEW, "--gpus", "auto", "--dry-run")
    assert f"--gpus=device={uuids[25]} " in plan.stdout, plan
    note = f"the container `{others[5]}` has all GPUs, so GPU 25, too"
    shared = ada.jlr("run", "lab", "--runtime", "none", "--gpus", "auto", "--rm", "--", "true")
    assert note in " ".join(shared.stderr.split()), shared
    engine.docker("stop", "--time", "0", others[0])
    assert asked(ada)["gpus"][20]["state"] == "free"


@pytest.fixture
def refused_engine(
    gpu_host: GpuHost, other_account: Account, keys: Keys, engine: Engine
) -> Iterator[Laptop]:
    """The laptop of a user who may not open the socket of the host's docker."""
    with private_folder("refused") as folder:
        (folder / "docker.sock").symlink_to(engine.socket)
        folder.chmod(0o700)
        path = f"{gpu_host.programs}:/usr/local/bin:/usr/bin:/bin"
        environment = {"PATH": path, "DOCKER_HOST": f"unix://{folder}/docker.sock"}
        with (
            running_sshd(engine, keys, environment=environment) as server,
            new_laptop(server, other_account, keys) as laptop,
        ):
            yield laptop


def test_without_leave_to_ask_docker_nothing_is_called_free(
    refused_engine: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    run_by_hand(engine, container.name(), "--gpus", f"device={gpu_host.gpus.uuids[0]}")
    told = asked(refused_engine)
    assert [gpu["state"] for gpu in told["gpus"]] == ["cannot tell", "cannot tell"]
    assert "`docker ps`" in told["cannot_tell"]
    assert "permission denied" in told["cannot_tell"]
    said = " ".join(refused_engine.jlr("gpus", "lab").stderr.split())
    assert "cannot tell which GPUs containers or jobs have: `docker ps`" in said
    run = ("run", "lab", "--runtime", "none", "--rm", "--gpus")
    refused = refused_engine.jlr(*run, "auto", "--", "true")
    failed(refused, 1, "cannot tell which GPUs of `lab` are free: `docker ps`", "`jlr gpus lab`")
    named = refused_engine.jlr(*run, "device=1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert (named.status, named.stdout.strip()) == (0, gpu_host.gpus.uuids[1]), named
    assert "GPU 1 may be in use: `docker ps`" in " ".join(named.stderr.split())


NO_INSPECT = """\
#!/bin/sh
case "$*" in 'container inspect'*) echo 'authorization denied by plugin' >&2; exit 1;; esac
exec /usr/bin/docker "$@"
"""


def test_a_container_that_docker_does_not_describe_is_not_taken_for_one_without_gpus(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    run_by_hand(engine, container.name())
    docker = gpu_host.programs / "docker"
    write_program(docker, NO_INSPECT)
    try:
        told = asked(ada)
    finally:
        docker.unlink()
    assert [gpu["state"] for gpu in told["gpus"]] == ["cannot tell", "cannot tell"]
    assert told["cannot_tell"] == "`inspect` by docker: authorization denied by plugin"


BY_DEFAULT = """\
#!/bin/sh
[ "$1" != create ] || { shift; set -- create --runtime=nvidia "$@"; }
exec /usr/bin/docker "$@"
"""


@pytest.mark.long
def test_gpus_that_nobody_asked_for_are_told(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory
) -> None:
    """Where NVIDIA's runtime is the engine's default, and the image wants all GPUs."""
    docker = gpu_host.programs / "docker"
    write_program(docker, BY_DEFAULT)
    wants = ("--env", "NVIDIA_VISIBLE_DEVICES=all")
    try:
        name = container.name()
        told = start(ada, "lab", name, *NEW, *wants)
        said = " ".join(told.stderr.split())
        assert f"the container `{name}` has GPUs (all) without `--gpus`" in said, told
        told = start(ada, "lab", container.name(), *NEW, "--gpus", "none")
        assert "none were asked for" not in " ".join(told.stderr.split()), told
        job = ("run", "lab", "--image", "lab/plain", *wants, "--name", container.name())
        told = ada.jlr(*job, "--", "true")
        assert "has GPUs (all) without `--gpus`" in " ".join(told.stderr.split()), told
    finally:
        docker.unlink()
