"""Each link of the chain on real parts: all well, and each one broken at its own place."""

from __future__ import annotations

import secrets
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SSHServerFactory
from tests.doctor.parts import examined
from tests.lab.accounts import Account, logging_in_with
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import load, run, wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.sessions.parts import DOCKER, started, without

THE_CHAIN = [
    *("ssh config", "name", "port", "ssh server", "host key", "login", "shell"),
    "forwarding",
    *("system", "disk", "logout", "engine", "permission", "networks"),
    *("driver", "image"),
    *("container", "network", "toolkit", "jupyter", "http", "websocket", "kernel"),
]


class OwnImage:
    """An image under a new name, so that all its containers are those of one test."""

    def __init__(self, engine: Engine, base: str) -> None:
        self.name = f"lab-{secrets.token_hex(4)}/doctor"
        self._engine = engine
        engine.docker("tag", base, self.name)

    def containers(self) -> list[str]:
        """Return the containers that were made of it and are there."""
        listed = self._engine.docker("ps", "--all", "--format", "{{.Names}} {{.Image}}")
        pairs = (line.split() for line in listed.splitlines())
        return [name for name, image in pairs if image == self.name]


@pytest.fixture
def own(request: pytest.FixtureRequest, engine: Engine) -> Iterator[OwnImage]:
    image = OwnImage(engine, request.param)
    yield image
    engine.docker("image", "rm", image.name)


@pytest.fixture
def nothing_left(engine: Engine, laptop: Laptop) -> Iterator[None]:
    """Check that the laptop remembers nothing, and holds no port."""
    yield
    assert laptop.jlr("list", "--json").stdout.strip() == "[]"


@pytest.mark.parametrize("own", ["lab/jupyter"], indirect=True)
def test_a_new_container_of_an_image_is_proved_to_the_kernels_answer_and_removed(
    laptop: Laptop, own: OwnImage, nothing_left: None
) -> None:
    report = examined(laptop, "lab", "--image", own.name)
    assert report.status == 0
    assert report.marks("failed") == []
    on_host = [c["check"] for c in report.printed["checks"] if c["group"] == "lab"]
    assert on_host == THE_CHAIN
    assert report.of("kernel") == {
        "group": "lab",
        "check": "kernel",
        "mark": "ok",
        "text": "6*7 is 42",
        "mend": [],
    }
    # The lab has no GPU, and that is no fault of its own.
    assert report.of("driver")["mark"] == "warning"
    assert report.marks("skipped") == ["toolkit"]
    assert report.of("engine")["text"].startswith("Docker version ")
    assert report.of("network")["text"] == "containers reach pypi.org"
    assert own.containers() == []


def test_a_session_that_runs_is_looked_at_and_one_that_is_stopped_is_not(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = started(laptop, container())
    born = here.born()
    with here.notebook("work.ipynb") as kernel:
        assert kernel.run("x = 1") == ""
        no_names = "echo nameserver 127.0.0.1 >/etc/resolv.conf"
        container.engine.docker("exec", "--user=0", here.name, "sh", "-c", no_names)
        report = examined(laptop, "lab")
        assert report.status == 0, report.printed
        assert report.of("kernel")["text"] == "6*7 is 42"
        assert here.name in report.of("container")["text"]
        network = report.of("network")
        assert "containers cannot resolve `pypi.org`, but the host does" in network["text"]
        assert "--dns" in network["mend"][0]
        assert kernel.run("x") == "1"
        assert len(here.ask("api/kernels")) == 1
    assert here.born() == born
    assert report.of("sessions")["text"] == "1 forwarded, 0 stopped"
    assert laptop.jlr("stop", here.name, "--force", "--yes").status == 0
    report = examined(laptop, "lab")
    assert report.status == 0, report.printed
    assert report.of("container")["text"] == "a new container of lab/jupyter starts"
    assert report.of("jupyter")["text"] == "launched"


def test_without_an_image_and_a_session_the_next_command_is_named(laptop: Laptop) -> None:
    report = examined(laptop, "lab")
    assert report.status == 0
    assert report.printed["verdict"] == "warning"
    assert "no kernel was tried" in report.printed["text"]
    assert report.of("container")["mark"] == "skipped"
    assert "jlr doctor lab --image IMAGE" in report.of("container")["mend"][0]
    assert report.of("network")["text"] == "the host reaches pypi.org", "no container is there"


@pytest.mark.long
def test_without_containers_a_jupyter_on_the_host_is_tried_and_removed(
    laptop: Laptop, account: Account, environment: Path, nothing_left: None
) -> None:
    report = examined(laptop, "lab", "--runtime", "none", "--python", str(environment))
    assert report.status == 0, report.printed
    assert report.of("kernel")["mark"] == "ok"
    left = laptop.ssh("lab", "ls ~/.local/state/jlr/servers/*; pgrep -u $(id -u) -f jupyter[l]ab")
    assert left.stdout.split() == []


@pytest.mark.parametrize("own", ["lab/slow"], indirect=True)
def test_ctrl_c_removes_what_was_made(laptop: Laptop, own: OwnImage) -> None:
    process = laptop.spawn("doctor", "lab", "--image", own.name)
    wait_until(lambda: own.containers() != [], "the container", timeout=90)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 130
    assert own.containers() == []


def add(laptop: Laptop, server: SSHServer, account: Account, keys: Keys) -> None:
    laptop.add_host("odd", server, account, key=keys.private)


def test_a_server_that_permits_no_forwarding(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    add(laptop, another_sshd("AllowTcpForwarding no"), account, keys)
    report = examined(laptop, "odd")
    told = report.of("forwarding")
    assert told["mark"] == "failed"
    assert "`AllowTcpForwarding local`" in " ".join(told["mend"])
    assert report.of("permission")["mark"] == "ok"


def test_an_engine_that_is_not_installed(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys, tmp_path: Path
) -> None:
    path = without(tmp_path, "docker")
    add(laptop, another_sshd(f'SetEnv "PATH={path}"'), account, keys)
    with logging_in_with(account, path):
        report = examined(laptop, "odd", "--image", "lab/jupyter", *DOCKER)
    report.failed("engine", 1, "`docker` was not found on the host", "sudo apt install docker.io")
    assert report.of("kernel")["text"] == "needs `engine`"


def test_an_engine_that_does_not_answer(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    place = account.home / f"silent-{secrets.token_hex(4)}.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place))
        silent.listen(50)
        place.chmod(0o777)
        add(laptop, another_sshd(f'SetEnv "DOCKER_HOST=unix://{place}"'), account, keys)
        began = time.monotonic()
        report = examined(laptop, "odd", "--image", "lab/jupyter", *DOCKER)
        assert time.monotonic() - began < 15 * 1.5 * load()
    place.unlink()
    report.failed("permission", 1, "does not answer", "sudo systemctl restart docker")
    assert report.of("disk")["mark"] == "ok"


def test_an_engine_that_the_user_may_not_use(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    path = account.home / f"root-only-{secrets.token_hex(4)}.sock"
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(path))
        engine.listen()
        path.chmod(0o600)
        add(laptop, another_sshd(f'SetEnv "DOCKER_HOST=unix://{path}"'), account, keys)
        report = examined(laptop, "odd", *DOCKER)
    path.unlink()
    report.failed("permission", 1, "may not use", f"sudo usermod -aG docker {account.name}")
    assert report.of("engine")["mark"] == "ok"


def test_a_full_disk(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys, engine: Engine
) -> None:
    folder = account.home / f"full-{secrets.token_hex(4)}"
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=4096,mode=1777", "tmpfs", str(folder))
    try:
        (folder / "all").write_bytes(bytes(4096))
        environment = f'SetEnv "TMPDIR={folder}" "DOCKER_HOST={engine.url}"'
        add(laptop, another_sshd(environment), account, keys)
        report = examined(laptop, "odd", "--image", "lab/jupyter")
    finally:
        run("umount", str(folder))
        folder.rmdir()
    report.failed("disk", 1, "No space left on device", str(folder), "df -h")
    assert report.of("container")["text"] == "needs `disk`"


def test_an_image_without_jupyter(laptop: Laptop, nothing_left: None) -> None:
    report = examined(laptop, "lab", "--image", "lab/plain")
    report.failed("jupyter", 6, "no JupyterLab", "lab/plain", "--install jupyterlab")
    assert report.of("container")["mark"] == "ok"
