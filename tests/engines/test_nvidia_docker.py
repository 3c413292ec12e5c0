"""A host from before docker's `--gpus`: NVIDIA's old tool creates containers with GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.doctor.parts import examined
from tests.engines.conftest import IMAGE, EnginesHost
from tests.engines.parts import told
from tests.gpus.stand_in import Gpus
from tests.lab import nvidia_docker, podman
from tests.lab.containers import Container
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.lone_engine import lone_engine
from tests.lab.nvidia_docker import FIRST, SECOND, calls
from tests.lab.place import Say, private_folder
from tests.lab.programs import Result
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.long import LONG

DOCKER = Path("/usr/bin/docker")
TOOLS = {"first": FIRST, "second": SECOND}
USED = "using nvidia-docker, because `docker` on the host knows no `--gpus`"
NEW = ("--image", IMAGE, "--no-browser")


@dataclass(frozen=True)
class OldHost:
    """A host from those years.

    Attributes:
        laptop: knows it as `lab`.
        folder: where its tools are.
        engines: what runs its containers.
        gpus: its four GPUs, which are stood in for.
    """

    laptop: Laptop
    folder: Path
    engines: EnginesHost
    gpus: Gpus

    def calls(self, name: str) -> list[str]:
        return calls(self.folder, name)

    def start(self, name: str, *options: str) -> Result:
        return self.laptop.jlr("start", "lab", name, *NEW, *options, timeout=120)

    def run(self, name: str, gpus: str = "1") -> Result:
        """Run a job with GPUs, which costs no Jupyter."""
        words = ("--name", name, "--image", "lab/plain", "--gpus", gpus, "--", "true")
        return self.laptop.jlr("run", "lab", *words, timeout=120)

    def inspect(self, name: str, template: str) -> str:
        return Container(self.engines.engine, name).inspect(template)

    def exists(self, name: str) -> bool:
        return self.engines.engine.try_docker("inspect", name).status == 0


@contextmanager
def old_host(
    engines_host: EnginesHost, keys: Keys, tool: str, *, old_client: bool = True
) -> Iterator[OldHost]:
    """Give a host with one of NVIDIA's tools, and perhaps with docker's own client from then."""
    with private_folder("old-docker") as folder:
        nvidia_docker.install(folder, tool)
        if old_client:
            nvidia_docker.install_old_client(folder, DOCKER)
        gpus = Gpus(folder)
        gpus.install(4)
        path = f"{folder}:/usr/local/bin:/usr/bin:/bin"
        environment = podman.environment() | {"PATH": path}
        with (
            running_sshd(engines_host.engine, keys, environment=environment) as server,
            new_laptop(server, engines_host.account, keys) as laptop,
        ):
            yield OldHost(laptop, folder, engines_host, gpus)


@pytest.fixture(scope="module", params=[LONG("first"), "second"])
def old(request: pytest.FixtureRequest, engines_host: EnginesHost, keys: Keys) -> Iterator[OldHost]:
    with old_host(engines_host, keys, TOOLS[request.param]) as host:
        yield host


@pytest.fixture(scope="module")
def session(old: OldHost) -> Iterator[str]:
    """A session with two GPUs of four, without `--runtime`."""
    name = f"lab-old-{old.engines.account.name}"
    try:
        old.start(name, "--gpus", "0,1", "--env", "COLOUR=dark blue").checked(0, USED)
        yield name
    finally:
        old.engines.remove("docker", name)


def test_the_tool_is_told_the_gpus_and_called_for_nothing_else(old: OldHost, session: str) -> None:
    [created] = old.calls(session)
    named = ",".join(old.gpus.uuids[:2])
    assert created.startswith(f"NV_GPU={named} create ")
    assert f"--env=NVIDIA_VISIBLE_DEVICES={named}" in created
    given = "{{.HostConfig.Runtime}} {{range .HostConfig.Devices}}{{.PathInContainer}} {{end}}"
    assert old.inspect(session, given).split() in (
        ["nvidia"],
        ["runc", "/dev/nvidia90", "/dev/nvidia91"],
    )


def test_every_command_reaches_the_session(old: OldHost, session: str) -> None:
    def jlr(*words: str) -> Result:
        return old.laptop.jlr(*words, timeout=120).checked()

    [listed] = [s for s in told(old.laptop, "list", "--json") if s["name"] == session]
    assert (listed["state"], listed["runtime"]) == ("up", "nvidia-docker")
    assert listed["gpus"] in (",".join(uuid[:12] for uuid in old.gpus.uuids[:2]), "90,91")
    assert session in jlr("url", session).stdout
    assert "Jupyter Server" in jlr("logs", session).stdout
    assert jlr("shell", session, "--", "sh", "-c", "echo $COLOUR").stdout == "dark blue\n"
    words = ("run", "lab", "--in", session, "--", "sh", "-c", "echo in $COLOUR")
    assert jlr(*words).stdout == "in dark blue\n"
    assert len(json.loads(jlr("gpus", "lab", "--json").stdout)["gpus"]) == 4


def test_docker_is_not_replaced_where_it_was_named(old: OldHost, name: str) -> None:
    old.start(name, "--gpus", "1", "--runtime", "docker").checked(
        1,
        "docker on the host is older than 19.03: unknown flag: --gpus",
        "`--runtime nvidia-docker` works if",
    )
    assert not old.exists(name)


@pytest.mark.long
def test_a_dockerd_without_the_toolkit(
    engines_host: EnginesHost, keys: Keys, engine: Engine, say: Say, name: str
) -> None:
    with lone_engine(engine, "lab/plain", say) as lone:
        lone.shut_down()
        lone.start(live_restore=False, toolkit=False)
        host = EnginesHost(lone.engine, engines_host.account, engines_host.server)
        with old_host(host, keys, SECOND, old_client=False) as old:
            old.run(name).checked(0, "has no NVIDIA toolkit for its `--gpus`")
            assert old.inspect(name, "{{.HostConfig.Runtime}}") == "nvidia"
            proof = examined(old.laptop, "lab", "--image", "lab/plain").of("toolkit")
            assert "in a new container of lab/plain by nvidia-docker" in proof["text"]
