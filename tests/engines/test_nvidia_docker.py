"""A host from before docker's `--gpus`: NVIDIA's old tool creates containers with GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
        another_laptop: makes one that knows it, too.
        folder: where its tools are.
        engines: what runs its containers.
        gpus: its four GPUs, which are stood in for.
    """

    laptop: Laptop
    another_laptop: Callable[[], Laptop]
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
    engines_host: EnginesHost, keys: Keys, tool: str | None, docker: str = "", **variables: str
) -> Iterator[OldHost]:
    """Give a host with one of the tools, or with none.

    Args:
        engines_host: whose engine and account it has.
        keys: what lets the account in.
        tool: NVIDIA's.
        docker: what keeps docker's own client from being old; empty for nothing.
        variables: that sessions start with.
    """
    laptops = []
    with private_folder("old-docker") as folder:
        if tool is not None:
            nvidia_docker.install(folder, tool)
        if not docker:
            nvidia_docker.install_old_client(folder, DOCKER)
        gpus = Gpus(folder)
        gpus.install(4)
        path = f"{folder}:/usr/local/bin:/usr/bin:/bin"
        environment = podman.environment() | {"PATH": path} | variables
        with running_sshd(engines_host.engine, keys, environment=environment) as server:

            def another() -> Laptop:
                laptops.append(new_laptop(server, engines_host.account, keys))
                return laptops[-1].__enter__()

            try:
                yield OldHost(another(), another, folder, engines_host, gpus)
            finally:
                for laptop in laptops:
                    laptop.__exit__(None, None, None)


@pytest.fixture(scope="module", params=[LONG("first"), "second"])
def old(request: pytest.FixtureRequest, engines_host: EnginesHost, keys: Keys) -> Iterator[OldHost]:
    with old_host(engines_host, keys, TOOLS[request.param]) as host:
        yield host


@pytest.fixture(scope="module")
def session(old: OldHost) -> Iterator[str]:
    """A session with two GPUs of four, without `--runtime`."""
    name = f"lab-old-{old.engines.account.name}"
    try:
        begun = old.start(name, "--gpus", "0,1", "--env", "COLOUR=dark blue")
        assert begun.status == 0, begun
        assert USED in begun.stderr
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


def test_gpus_stay_leased_while_docker_refuses(old: OldHost, name: str) -> None:
    try:
        begun = old.run(name, "auto")
        assert begun.status == 0, begun
        chosen = old.inspect(name, '{{index .Config.Labels "org.jlremote.gpus"}}')
        lines = (old.folder / nvidia_docker.LOG).read_text(encoding="utf-8").splitlines()
        [kept, *_] = [line for line in reversed(lines) if line.startswith("kept: ")]
        assert f" {chosen}+" in kept
    finally:
        old.engines.remove("docker", name)


def test_the_container_has_its_owners_label(old: OldHost, session: str) -> None:
    label = '{{index .Config.Labels "org.jlremote.user"}}'
    assert old.inspect(session, label) == old.engines.account.name


def test_every_command_reaches_the_session(old: OldHost, session: str) -> None:
    def jlr(*words: str) -> Result:
        done = old.laptop.jlr(*words, timeout=120)
        assert done.status == 0, done
        return done

    [listed] = [s for s in told(old.laptop, "list", "--json") if s["name"] == session]
    assert (listed["state"], listed["runtime"]) == ("up", "nvidia-docker")
    assert listed["gpus"] in (",".join(uuid[:12] for uuid in old.gpus.uuids[:2]), "90,91")
    assert session in jlr("url", session).stdout
    assert "Jupyter Server" in jlr("logs", session).stdout
    assert jlr("shell", session, "--", "sh", "-c", "echo $COLOUR").stdout == "dark blue\n"
    words = ("run", "lab", "--in", session, "--", "sh", "-c", "echo in $COLOUR")
    assert jlr(*words).stdout == "in dark blue\n"
    assert len(json.loads(jlr("gpus", "lab", "--json").stdout)["gpus"]) == 4


@pytest.mark.long
def test_a_second_laptop_finds_it(old: OldHost, session: str) -> None:
    another = old.another_laptop()
    assert session in [found["name"] for found in told(another, "list", "lab", "--json")]
    assert another.jlr("url", f"lab/{session}").status == 0
    assert another.jlr("shell", session, "--", "echo", "a b").stdout == "a b\n"


@pytest.mark.long
def test_it_stops_and_starts_as_the_same_container(old: OldHost, session: str) -> None:
    before = old.inspect(session, "{{.Id}}")
    assert (
        old.laptop.jlr("stop", session, "--container", "--force", "--yes", timeout=90).status == 0
    )
    again = told(old.laptop, "start", "lab", session, "--no-browser", "--json")
    assert (again["runtime"], old.inspect(session, "{{.Id}}")) == ("nvidia-docker", before)


def test_the_doctor_names_the_tool_that_gives_gpus(old: OldHost, session: str) -> None:
    of_session = examined(old.laptop, "lab")
    assert "may use nvidia-docker" in of_session.of("permission")["text"]
    assert of_session.of("kernel")["text"] == "6*7 is 42"
    report = examined(old.another_laptop(), "lab", "--image", "lab/plain")
    found = report.of("engine")
    assert found["mark"] == "ok", report.printed
    assert found["text"].startswith("Docker version 18.09.7, build 2d0083d; ")
    assert "nvidia-docker gives GPUs, as `docker` on the host knows no `--gpus`" in found["text"]
    # The images of the lab have no driver in them.
    assert (
        "`nvidia-smi` in a new container of lab/plain by nvidia-docker"
        in (report.of("toolkit")["text"])
    )


def test_without_gpus_docker_itself_creates(old: OldHost, session: str, name: str) -> None:
    """Under NVIDIA's runtime its images would have all of them."""
    try:
        words = ("run", "lab", "--name", name, "--image", IMAGE)
        done = old.laptop.jlr(*words, "--", "echo", "done", timeout=120)
        assert (done.status, done.stdout) == (0, "done\n"), done
        assert old.calls(name) == []
    finally:
        old.engines.remove("docker", name)


@pytest.mark.usefixtures("session")  # which has the first two GPUs
def test_a_job_with_gpus_runs_and_is_found_again(old: OldHost, name: str) -> None:
    words = ("run", "lab", "--name", name, "--image", IMAGE, "--gpus", "1")
    try:
        done = old.laptop.jlr(*words, "--", "sh", "-c", "echo out; exit 7", timeout=120)
        assert (done.status, done.stdout) == (7, "out\n"), done
        assert USED in done.stderr
        [created] = old.calls(name)
        assert created.startswith(f"NV_GPU={old.gpus.uuids[2]} create ")
        [listed] = [job for job in told(old.laptop, "runs", "lab", "--json") if job["name"] == name]
        assert (listed["state"], listed["exit_code"]) == ("ended", 7)
        assert old.laptop.jlr("logs", f"lab/{name}").stdout == "out\n"
        assert old.laptop.jlr("stop", name, "--remove", "--yes").status == 0
        assert not old.exists(name)
    finally:
        old.engines.remove("docker", name)


@pytest.mark.usefixtures("session")  # which has the first two GPUs
def test_a_dry_run_shows_it_and_why(old: OldHost, name: str) -> None:
    plan = old.start(name, "--gpus", "1", "--dry-run")
    assert plan.status == 0, plan
    assert USED in plan.stderr
    assert f"env NV_GPU={old.gpus.uuids[2]} nvidia-docker create " in plan.stdout
    without = old.start(name, "--dry-run")
    assert "docker create " in without.stdout
    assert "--pull" not in str(without.stdout)
    assert "nvidia-docker" not in str(without.stdout)
    assert old.calls(name) == []


@pytest.mark.long
def test_an_image_that_is_missing_is_not_pulled_in_silence(old: OldHost, name: str) -> None:
    image = "127.0.0.1:1/no/such:1"
    for words in (
        ("start", "lab", name, "--image", image, "--gpus", "1", "--no-browser"),
        ("run", "lab", "--name", name, "--image", image, "--gpus", "1", "--", "true"),
    ):
        done = old.laptop.jlr(*words, timeout=120)
        assert done.status == 6, done
        assert "cannot pull" in done.stderr
    assert old.calls(name) == []


def test_docker_is_not_replaced_where_it_was_named(old: OldHost, name: str) -> None:
    begun = old.start(name, "--gpus", "1", "--runtime", "docker")
    assert begun.status == 1, begun
    assert "docker on the host is older than 19.03: unknown flag: --gpus" in begun.stderr
    assert "`--runtime nvidia-docker` works if" in begun.stderr
    assert not old.exists(name)


def test_a_new_client_of_an_old_daemon(engines_host: EnginesHost, keys: Keys, name: str) -> None:
    """The client itself refuses, with what docker 18.09's daemon speaks."""
    with old_host(engines_host, keys, SECOND, "new", DOCKER_API_VERSION="1.39") as old:
        try:
            assert USED in old.start(name, "--gpus", "1", "--dry-run").stderr
            begun = old.run(name)
            assert begun.status == 0, begun
            assert USED in begun.stderr
            assert old.inspect(name, "{{.HostConfig.Runtime}}") == "nvidia"
        finally:
            engines_host.remove("docker", name)


def test_a_dockerd_without_the_toolkit(
    engines_host: EnginesHost, keys: Keys, engine: Engine, say: Say, name: str
) -> None:
    with lone_engine(engine, "lab/plain", say) as lone:
        lone.shut_down()
        lone.start(live_restore=False, toolkit=False)
        host = EnginesHost(lone.engine, engines_host.account, engines_host.server)
        with old_host(host, keys, SECOND, "new") as old:
            begun = old.run(name)
            assert begun.status == 0, begun
            assert "has no NVIDIA toolkit for its `--gpus`" in begun.stderr
            assert old.inspect(name, "{{.HostConfig.Runtime}}") == "nvidia"
            proof = examined(old.another_laptop(), "lab", "--image", "lab/plain").of("toolkit")
            assert "in a new container of lab/plain by nvidia-docker" in proof["text"]


def test_without_the_tool_dockers_own_words_are_told(
    engines_host: EnginesHost, keys: Keys, name: str
) -> None:
    with old_host(engines_host, keys, None) as old:
        begun = old.start(name, "--gpus", "1")
        assert begun.status == 1, begun
        assert "docker on the host is older than 19.03: unknown flag: --gpus" in begun.stderr
        assert "nvidia-docker is used" not in begun.stderr
        assert not old.exists(name)


@contextmanager
def sudo_finds(old: OldHost) -> Iterator[None]:
    """Let `sudo` find the host's tools."""
    account = old.engines.account.name
    sudoers = Path(f"/etc/sudoers.d/jlr-lab-{account}")
    sudoers.write_text(f'Defaults:{account} secure_path="{old.folder}:/usr/bin:/bin"\n')
    sudoers.chmod(0o440)
    try:
        yield
    finally:
        sudoers.unlink()


@pytest.mark.long
def test_without_the_tool_behind_a_sudo_that_speaks_german(
    engines_host: EnginesHost, keys: Keys, name: str
) -> None:
    with (
        old_host(engines_host, keys, None, LANG="C.UTF-8", LANGUAGE="de") as old,
        sudo_finds(old),
    ):
        begun = old.start(name, "--gpus", "1", "--sudo")
        assert begun.status == 1, begun
        assert "sudo docker on the host is older than 19.03: unknown flag" in begun.stderr
        assert "nvidia-docker is used" not in begun.stderr
        assert not old.exists(name)


@pytest.mark.long
def test_behind_sudo(engines_host: EnginesHost, keys: Keys, name: str) -> None:
    with old_host(engines_host, keys, SECOND) as old, sudo_finds(old):
        try:
            begun = old.start(name, "--gpus", "1", "--sudo", "--json")
            assert begun.status == 0, begun
            assert json.loads(begun.stdout)["runtime"] == "sudo nvidia-docker"
            [created] = old.calls(name)
            assert created.startswith(f"NV_GPU={old.gpus.uuids[0]} create ")
            stopped = old.laptop.jlr("stop", name, "--remove", "--force", "--yes", timeout=90)
            assert stopped.status == 0, stopped
            assert not old.exists(name)
        finally:
            engines_host.remove("docker", name)


def test_a_docker_that_knows_gpus_is_preferred(
    engines_host: EnginesHost, keys: Keys, name: str
) -> None:
    with old_host(engines_host, keys, SECOND, "new") as host:
        try:
            plan = host.start(name, "--gpus", "1", "--dry-run").stdout
            assert "nvidia-docker" not in plan
            assert host.run(name).status == 0
            assert host.calls(name) == []
        finally:
            engines_host.remove("docker", name)
