"""GPUs of the runtime `none` on the demo's host: reserved as long as the server lives."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gpus.stand_in import Gpus
from tests.lab.laptop import Laptop
from tests.lab.programs import Result
from tests.sessions.parts import START_SECONDS, Session, failed

pytestmark = pytest.mark.lab
SEEN = "import os; os.environ['CUDA_VISIBLE_DEVICES']"


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    gpus = Gpus(tmp_path_factory.mktemp("gpus"))
    gpus.install()
    return gpus


@pytest.fixture(scope="module")
def demo(gpus: Gpus) -> Iterator[Laptop]:
    """A laptop whose own machine is the host `demo`, with two free GPUs."""
    laptop = Laptop()
    laptop.environment["PATH"] = f"{gpus.folder}:{laptop.environment['PATH']}"
    del laptop.environment["JLR_SSH_CONFIG"]
    with laptop.spawn("demo", "--no-browser") as running:
        try:
            assert running.stdout is not None
            assert any(line.startswith("http") for line in running.stdout)
            config = laptop.folder / "run" / "jlr" / "demo" / "ssh_config"
            assert asked(laptop), "the demo's host is found without its configuration, too"
            laptop.environment["JLR_SSH_CONFIG"] = str(config)
            yield laptop
        finally:
            laptop.jlr("stop", "--all", "--force", "--yes")
            laptop.shut_down()
            laptop.remove()


def start(laptop: Laptop, name: str, *words: str) -> Result:
    python = ("--runtime", "none", "--python", sys.executable, "--no-browser")
    return laptop.jlr("start", "demo", name, *python, *words, timeout=START_SECONDS)


def asked(laptop: Laptop) -> list[dict[str, Any]]:
    answer = laptop.jlr("gpus", "demo", "--json")
    assert answer.status == 0, answer
    return list(json.loads(answer.stdout)["gpus"])


def test_a_gpu_is_its_sessions_until_the_server_ends(demo: Laptop, gpus: Gpus) -> None:
    answer = start(demo, "mine", "--json", "--gpus", "auto")
    assert answer.status == 0, answer
    session = Session(demo, json.loads(answer.stdout))
    assert session.report["gpus"] == "0"
    with session.notebook("cuda.ipynb") as kernel:
        assert kernel.run(SEEN) == f"'{gpus.uuids[0]}'"
    [kept] = asked(demo)[0]["kept_for"]
    assert (kept["kind"], kept["name"], kept["user"]) == ("session", "mine", getpass.getuser())
    failed(start(demo, "other", "--gpus", "device=0"), 7, "reserved for", "session `mine` since")
    assert demo.jlr("stop", "mine").status == 0
    assert [gpu["state"] for gpu in asked(demo)] == ["free", "free"]
