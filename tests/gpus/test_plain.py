"""GPUs of the runtime `none` on the demo's host: reserved as long as the server lives."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gpus.stand_in import Gpus
from tests.lab.accounts import all_leases
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
    with laptop.spawn("demo", "--runtime", "none", "--no-browser") as running:
        try:
            wait_for_url(running)
            config = laptop.folder / "run" / "jlr" / "demo" / "ssh_config"
            assert asked(laptop), "the demo's host is found without its configuration, too"
            laptop.environment["JLR_SSH_CONFIG"] = str(config)
            yield laptop
        finally:
            laptop.jlr("stop", "--all", "--force", "--yes")
            laptop.shut_down()
            laptop.remove()


def wait_for_url(running: subprocess.Popen[str]) -> None:
    assert running.stdout is not None
    said = []
    for line in running.stdout:
        if line.startswith("http"):
            return
        said.append(line)
    raise AssertionError("".join(said))


def start(laptop: Laptop, name: str, *words: str) -> Result:
    python = ("--runtime", "none", "--python", sys.executable, "--no-browser")
    return laptop.jlr("start", "demo", name, *python, *words, timeout=START_SECONDS)


def started(laptop: Laptop, name: str, *words: str) -> Session:
    answer = start(laptop, name, "--json", *words)
    assert answer.status == 0, answer
    return Session(laptop, json.loads(answer.stdout))


def asked(laptop: Laptop) -> list[dict[str, Any]]:
    answer = laptop.jlr("gpus", "demo", "--json")
    assert answer.status == 0, answer
    return list(json.loads(answer.stdout)["gpus"])


def test_none_is_none(demo: Laptop) -> None:
    show = ("--rm", "--", "sh", "-c", 'echo "[${CUDA_VISIBLE_DEVICES-all}]"')
    done = demo.jlr("run", "demo", "--runtime", "none", "--gpus", "none", *show)
    assert (done.status, done.stdout) == (0, "[]\n"), done


def test_a_value_of_the_engines_own_is_refused_without_one(demo: Laptop) -> None:
    failed(start(demo, "refused", "--gpus", "driver=nvidia,count=2"), 2, "needs a container engine")


def test_the_plan_shows_the_variable_and_takes_nothing(demo: Laptop, gpus: Gpus) -> None:
    plan = start(demo, "planned", "--gpus", "auto", "--dry-run", "--json")
    [command] = json.loads(plan.stdout)["commands"]
    assert f"export CUDA_VISIBLE_DEVICES={gpus.uuids[0]}" in command
    assert asked(demo)[0]["state"] == "free"


def test_a_gpu_is_its_sessions_until_the_server_ends(demo: Laptop, gpus: Gpus) -> None:
    session = started(demo, "mine", "--gpus", "auto")
    assert session.report["gpus"] == "0"
    with session.notebook("cuda.ipynb") as kernel:
        assert kernel.run(SEEN) == f"'{gpus.uuids[0]}'"
    [kept] = asked(demo)[0]["kept_for"]
    assert (kept["kind"], kept["name"], kept["user"]) == ("session", "mine", getpass.getuser())
    failed(start(demo, "other", "--gpus", "device=0"), 7, "reserved for", "session `mine` since")
    assert "with GPUs `0`; `--gpus` applies" in start(demo, "mine", "--gpus", "none").stderr
    assert demo.jlr("stop", "mine").status == 0
    assert [gpu["state"] for gpu in asked(demo)] == ["free", "free"]
    new = start(demo, "other", "--gpus", "0,1")
    assert new.status == 0, new
    assert "`--gpus` applies" not in new.stderr, new
    stale = [path.name for path in all_leases() if path.name.startswith(gpus.uuids[0])]
    assert len(stale) == 1, "the dead lease was not cleared away"
