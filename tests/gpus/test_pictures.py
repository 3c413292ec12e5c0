"""The pictures of README.md: what commands show in a real terminal, against the lab.

`JLR_LONG=1 JLR_PICTURES=1 tests/run -k test_pictures` writes them to docs/. Only the GPUs are stood
in for.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.conftest import SSHServerFactory
from tests.gpus.conftest import GpuHost, Sleeper
from tests.lab.accounts import Account
from tests.lab.browser import SECONDS, outputs
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.tmux import DOCS, WANTED, TmuxTerminal, tmux_terminal
from tests.link.desk import is_link
from tests.link.servers import name_of
from tests.sessions.parts import Session

ASLEEP = 8  # seconds
EPOCHS = 30
TRAINING = f"""\
from time import sleep, strftime
for epoch in range(1, {EPOCHS + 1}):
    print(strftime("%T"), "epoch", epoch)
    sleep(1)"""
SHORT_TRAINING = """\
from time import sleep
for epoch in range(1, 6):
    print("epoch", epoch, "loss", round(1 / epoch, 3), flush=True)
    sleep(1)
"""
BOARD = """\
import subprocess, sys
board = subprocess.Popen([sys.executable, "-m", "http.server", "6006"])
"""
NOTEBOOK = ".jp-NotebookPanel-notebook"
# Two pictures of a page, side by side.
BESIDE = """\
<body style="margin: 0; font: 15px sans-serif; text-align: center">
<div id=both style="display: inline-flex; gap: 12px; padding: 8px">
<div><p>before the lid is closed</p><img src="data:image/png;base64,{}"></div>
<div><p>after it was opened again</p><img src="data:image/png;base64,{}"></div>
</div>"""


class Training:
    """A page of JupyterLab with a notebook whose only cell runs."""

    def __init__(self, page: Page, session: Session) -> None:
        self._page = page
        session.write_notebook("train.ipynb", TRAINING)
        opened = session.laptop.jlr("open", session.name, "train.ipynb", "--no-browser")
        page.set_viewport_size({"width": 480, "height": 790})
        page.goto(opened.stdout.strip(), timeout=SECONDS)
        page.get_by_role("button", name="No", exact=True).click(timeout=SECONDS)  # no news
        page.keyboard.press("Control+b")  # no list of files
        expect(page.locator("#jp-main-statusbar")).to_contain_text("Idle", timeout=SECONDS)
        page.locator(f"{NOTEBOOK} .cm-content").first.click()
        page.keyboard.press("Control+Enter")

    def epochs(self) -> list[int]:
        """Return those that it shows."""
        return [int(found) for found in re.findall(r"epoch (\d+)", outputs(self._page))]

    def wait_for_end(self) -> None:
        """Wait until the page knows that the cell has ended."""
        prompt = self._page.locator(f"{NOTEBOOK} .jp-InputPrompt").first
        expect(prompt).to_have_text(re.compile(r"\[1\]"), timeout=SECONDS)

    def picture(self) -> str:
        """Return a picture of the notebook, in base64."""
        return b64encode(self._page.locator(NOTEBOOK).screenshot()).decode()


def browsers() -> list[psutil.Process]:
    """Return the processes of this test's Chromium."""
    mine = psutil.Process().children(recursive=True)
    return [process for process in mine if name_of(process) == "chromium"]


@contextmanager
def closed_lid(laptop: Laptop, way: Line) -> Iterator[None]:
    """Stop what runs on a laptop, and its network, as a closed lid does."""
    stopped = [*filter(is_link, laptop.processes()), *browsers()]
    try:
        for process in stopped:
            process.suspend()
        way.take_down()
        yield
    finally:
        for process in stopped:
            process.resume()


@pytest.fixture
def way(gpu_host: GpuHost) -> Iterator[Line]:
    """A network to the host."""
    line = Line(gpu_host.server.port)
    yield line
    line.close()


@pytest.fixture
def terminal(
    ada: Laptop, gpu_host: GpuHost, way: Line, account: Account, keys: Keys, tmp_path: Path
) -> Iterator[TmuxTerminal]:
    """A terminal on a laptop that knows the host as `dgx`."""
    ada.add_host("dgx", gpu_host.server, account, key=keys.private, port=way.port)
    with tmux_terminal(ada, tmp_path / "tmux") as made:
        yield made


@pytest.fixture
def trainings(
    gpu_host: GpuHost, other_account: Account, sleeper: Sleeper, container: ContainerFactory
) -> None:
    """Programs of others on two of the four GPUs of the host."""
    theirs = int(container("lab/plain").inspect("{{.State.Pid}}"))
    gpu_host.gpus.install(4)
    for number, pid in enumerate((sleeper(other_account), theirs)):
        gpu_host.gpus.occupy(number, pid, memory=70_000 - 39_000 * number)


@pytest.fixture
def name(engine: Engine, container: ContainerFactory) -> Iterator[str]:
    """The name of a container: a short one in a picture."""
    factory = ContainerFactory(engine, "cont") if WANTED else container
    yield factory.name()
    factory.remove_all()


@pytest.fixture
def image(engine: Engine) -> Iterator[str]:
    """An image; in a picture one that sees the GPU, as by NVIDIA's toolkit."""
    if not WANTED:
        yield "lab/jupyter"
        return
    sees = "RUN printf '#!/bin/sh\\necho GPU 0: NVIDIA H200\\n' >/usr/bin/nvidia-smi"
    recipe = f"FROM lab/jupyter\n{sees} && chmod +x /usr/bin/nvidia-smi\n"
    engine.docker("build", "--tag", "lab/pytorch", "-", stdin=recipe)
    yield "lab/pytorch"
    engine.try_docker("rmi", "lab/pytorch")


@pytest.mark.usefixtures("trainings")
@pytest.mark.long
def test_a_session_on_a_free_gpu_that_is_back_after_the_network_was_away(
    terminal: TmuxTerminal,
    ada: Laptop,
    gpu_host: GpuHost,
    way: Line,
    chromium: BrowserContext,
    name: str,
    image: str,
) -> None:
    terminal.run(f"jlr start dgx {name} --image {image} --gpus auto")
    assert "/lab?token=" in terminal.screen()
    terminal.take_picture("start")

    terminal.clear()
    terminal.type("jlr gpus dgx --watch 0.2")
    wait_until(lambda: "reserved by its container" in terminal.screen(), "the GPUs")
    gpu_host.gpus.change(0, utilization_gpu=97)
    wait_until(lambda: " 97 % " in terminal.screen(), "the new load")
    terminal.take_picture("gpus")
    terminal.press("C-c")
    terminal.wait_for_prompt()

    terminal.clear()
    session = Session(ada, json.loads(ada.jlr("list", "--json").stdout)[0])
    training = Training(chromium.new_page(), session)
    wait_until(lambda: len(training.epochs()) > 5, "the first epochs")
    terminal.run("jlr list")
    before = training.picture()
    with closed_lid(ada, way):
        time.sleep(ASLEEP)
    wait_until(lambda: " reconnecting " in ada.jlr("list").stdout, "the loss")
    terminal.run("jlr list     # the lid was closed for a while, and there is no network yet")
    way.bring_up()
    wait_until(lambda: " up " in ada.jlr("list").stdout, "the way back")
    terminal.run("jlr list     # and back: the same page, with the same cell")
    states = re.findall(rf"{name} +dgx +([a-z-]+) +\S+ +(\S.*?) +(\d+) ", terminal.screen())
    (_, cell, port), *_ = states
    assert [(state, at) for state, _, at in states] == [
        ("up", port),
        ("reconnecting", port),
        ("up", port),
    ]
    assert "train.ipynb" in cell
    terminal.take_picture("back")
    training.wait_for_end()
    assert training.epochs() == [*range(1, EPOCHS + 1)]
    if WANTED:
        page = chromium.new_page()
        page.set_content(BESIDE.format(before, training.picture()))
        page.locator("#both").screenshot(path=DOCS / "back-page.png")
    assert ada.jlr("rm", "--yes").status == 0, "the doctor would tell of it"


def test_code_of_this_laptop_runs_in_a_kernel_there(
    terminal: TmuxTerminal, ada: Laptop, name: str, image: str
) -> None:
    proj = ada.folder / "home" / "proj"
    proj.mkdir()
    (proj / "load.py").write_text("data = [*range(3000)]\nprint(len(data), 'rows')\n")
    (proj / "train.py").write_text(SHORT_TRAINING)
    (proj / "board.py").write_text(BOARD)
    assert ada.jlr("start", "dgx", name, "--image", image, "--no-browser").status == 0
    terminal.run("cd ~/proj")
    terminal.clear()
    terminal.run("jlr sync")
    assert "sent 3 files" in terminal.screen()
    terminal.run("jlr exec load.py")
    terminal.run("jlr exec -c 'sum(data)'     # variables stay")
    assert "3000 rows" in terminal.screen()
    assert str(sum(range(3000))) in terminal.screen()
    terminal.run("jlr exec train.py --timeout 2s")
    (run,) = set(re.findall(r"run-[0-9a-f]{12}", terminal.screen("-J")))
    terminal.run(f"jlr wait {run}")
    assert f"{run}`: [3] ok" in terminal.screen("-J")
    terminal.run("jlr exec board.py")
    terminal.type("jlr forward --auto")
    wait_until(lambda: "6006" in terminal.screen(), "the forwarded port")
    terminal.press("C-c")
    terminal.wait_for_prompt()
    terminal.take_picture("exec")


@pytest.mark.long
def test_a_doctor_that_finds_a_user_without_the_engine(
    terminal: TmuxTerminal,
    ada: Laptop,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
    forbidden_engine: str,
) -> None:
    ada.add_host("ec2", another_sshd(f'SetEnv "{forbidden_engine}"'), account, key=keys.private)
    terminal.run("jlr doctor ec2 --runtime docker")
    assert "✗ permission" in terminal.screen()
    terminal.take_picture("doctor")
