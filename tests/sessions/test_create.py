"""A container that is missing is created as it was asked for, or not at all."""

from __future__ import annotations

import json
import signal

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import failed, start, started

FACTS = """
import os, pathlib, shutil
home = pathlib.Path.home()
(home / "written").write_text("x")
[
    os.getuid(), os.getgid(), os.environ["GREETING"], os.getcwd(),
    shutil.disk_usage("/dev/shm").total >> 20, str(home) != "/",
]
"""


def test_a_container_is_created_as_it_was_asked_for(
    laptop: Laptop, container: ContainerFactory, engine: Engine, account: Account
) -> None:
    name = container.name()
    data = account.home / name
    data.mkdir()
    (data / "train.csv").write_text("1,2\n")
    session = started(
        laptop,
        name,
        *("--image", "lab/jupyter", "--volume", f"{data}:/data:ro", "--env", "GREETING=good day"),
        *("--workdir", "/data", "--user", "12345:12345", "--shm-size", "96m"),
        *("--gpus", '"device=90,92"'),  # those of no other test
    )
    assert session.report["gpus"] == "90,92"
    assert session.report["image"] == "lab/jupyter"
    assert [file["name"] for file in session.ask("api/contents")["content"]] == ["train.csv"]
    with session.notebook("asked.ipynb") as kernel:
        assert kernel.run(FACTS) == "[12345, 12345, 'good day', '/data', 96, True]"
    labels = json.loads(Container(engine, name).inspect("{{json .Config.Labels}}"))
    assert labels["org.jlremote.session"] == name
    assert labels["org.jlremote.created-by"].startswith("jlr/")
    # Its own command launches Jupyter the first time only.
    engine.docker("restart", "--time", "1", name)
    wait_until(
        lambda: "sleep" in engine.docker("top", name, "-o", "pid,comm"), "a container that waits"
    )
    assert "jupyter" not in engine.docker("top", name, "-o", "pid,comm")
    started(laptop, name)


@pytest.mark.parametrize(
    ("image", "status", "words"),
    [
        ("lab/none-of-the-name", 6, "cannot pull"),
        ("lab/jupyter:none-such", 6, "`lab/jupyter:none-such`"),
        ("--privileged", 2, "`--privileged`"),
    ],
)
def test_an_image_that_cannot_be_pulled_leaves_nothing(
    lasting_laptop: Laptop, container: ContainerFactory, image: str, status: int, words: str
) -> None:
    failed(start(lasting_laptop, "lab", container.name(), f"--image={image}"), status, words)
    assert container.remove_all() == []


def test_a_container_that_start_created_is_removed_when_a_later_step_fails(
    laptop: Laptop, container: ContainerFactory
) -> None:
    message = failed(
        start(laptop, "lab", container.name(), "--image", "lab/plain"), 6, "no JupyterLab"
    )
    assert "docker exec" not in message, "advice for a container that is gone"
    assert container.remove_all() == []


def test_ctrl_c_in_the_middle_of_a_start_leaves_nothing(
    laptop: Laptop, container: ContainerFactory, engine: Engine
) -> None:
    name = container.name()
    words = ("--image", "lab/slow", "--env", "LAB_DELAY=600", "--no-browser")
    with laptop.spawn("start", "lab", name, *words) as starting:
        pid = f"/tmp/jlr-0/{name}/pid"
        wait_until(
            lambda: engine.try_docker("exec", name, "test", "-s", pid).status == 0,
            "the launch of Jupyter",
            timeout=60,
        )
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=60) == 130
        assert starting.stdout is not None
        removed = f"removed the new container `{name}`"
        said = starting.stdout.read()
        assert [line for line in said.splitlines() if line][-2:] == [removed, "interrupted"], said
    assert container.remove_all() == []
    assert laptop.jlr("list", "--json").stdout.strip() == "[]"
