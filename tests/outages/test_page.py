"""JupyterLab's page after a silence of the network: no line of a cell is missing, and it ends."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Request, expect

from tests.jupyter.parts import AGES
from tests.lab.accounts import Account
from tests.lab.browser import SECONDS, open_notebook, outputs, run_cell
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.network import Network
from tests.lab.ports import free_port
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.long import LONG
from tests.outages.conftest import add_far
from tests.outages.parts import A_SECOND, BUSY, CELL, Work, lines, work_in
from tests.sessions.parts import started

ENDING = CELL.replace("line", "begun") + "\ntime.sleep({more}); print('ended')"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [8, LONG(20), LONG(60), LONG(180)])
def test_a_silence_costs_the_page_no_line(
    work: Work, network: Network, chromium: BrowserContext, seconds: int
) -> None:
    """The notebook is saved in the silence, as JupyterLab does every 120 s, and no dialog comes.

    One cell ends in the silence, and another one begins, which ends after it.

    When an address of this machine changes, Chromium ends what waits behind the six requests that
    it has under way to one host (`ERR_NETWORK_CHANGED`).
    """
    count = (seconds // 2 + 7) * A_SECOND
    page = chromium.new_page()
    open_notebook(page, f"{work.session.url}&reset")  # and not what another test left
    page.keyboard.press("Control+s")
    page.get_by_role("button", name="Rename and Save").click(timeout=SECONDS)
    run_cell(page, ENDING.format(count=A_SECOND, pause=1 / A_SECOND, more=2 + seconds / 2))
    run_cell(page, CELL.format(count=count, pause=1 / A_SECOND))
    wait_until(lambda: f"begun {A_SECOND - 1}" in outputs(page), "the first lines")
    network.take_down()
    page.keyboard.press("Control+s")
    time.sleep(seconds)
    network.change_address()
    network.bring_up()
    for cell in page.locator(".jp-Notebook .jp-InputPrompt").all()[:2]:
        expect(cell).to_have_text(re.compile(r"\[\d+\]"), timeout=SECONDS)
    wait_until(lambda: count - 1 in lines(page), "the last line")
    assert "ended" in outputs(page)
    assert lines(page) == list(range(count))
    assert page.locator(".jp-Dialog").all_inner_texts() == []


# Requests of a page, of which Chromium has six under way and ends the rest when an address of this
# machine changes.
ASK = """(url) => {
    const ask = (n) => fetch(`${url}?n=${n}`).then((answer) => answer.status, String);
    window.asked = [...Array(10).keys()].map(ask);
}"""
ASKED = "() => Promise.all(window.asked)"
ANSWERED = [200] * 10
ENDED = "net::ERR_NETWORK_CHANGED"
LATEST = 20_000 * BUSY  # milliseconds


def test_a_page_asks_again_what_chromium_ends(
    work: Work, network: Network, chromium: BrowserContext
) -> None:
    """A save waits behind the requests, and it is no reason for a dialog."""
    page = chromium.new_page()
    open_notebook(page, f"{work.session.url}&reset")
    page.keyboard.press("Control+s")
    page.locator(".jp-Dialog input").first.fill("asked.ipynb")
    with page.expect_response(lambda answer: is_checkpoint(answer.request), timeout=SECONDS):
        page.get_by_role("button", name="Rename and Save").click(timeout=SECONDS)
    run_cell(page, "'to be saved'")
    network.take_down()
    page.evaluate(ASK, f"http://{work.session.base}api/contents")
    with page.expect_response(lambda answer: is_checkpoint(answer.request), timeout=LATEST):
        page.keyboard.press("Control+s")
        with page.expect_event("requestfailed", lambda request: request.failure == ENDED):
            network.change_address()
        network.bring_up()
        assert page.evaluate(ASKED) == ANSWERED
    assert "to be saved" in str(work.session.ask("api/contents/asked.ipynb"))
    assert page.locator(".jp-Dialog").all_inner_texts() == []


def is_checkpoint(request: Request) -> bool:
    return request.method == "POST" and "/checkpoints" in request.url


@dataclass(frozen=True)
class Front:
    """Where a page has what this file looks at, as CSS selectors."""

    editor: str
    prompt: str
    output: str
    dialog: str


OLD_SILENCE = 40
CLASSIC = Front("#notebook .CodeMirror", ".input_prompt", ".output_subarea", ".modal.in")
# It has two WebSockets to a kernel.
LAB = Front(
    ".jp-Notebook .CodeMirror",
    ".jp-Notebook .jp-InputPrompt",
    ".jp-OutputArea-output",
    ".jp-Dialog",
)
FRONTS = {"Notebook 6": CLASSIC, "JupyterLab 2": LAB, "JupyterLab 3": LAB}


@pytest.mark.long
@pytest.mark.parametrize("name", FRONTS)
def test_a_page_of_an_older_jupyter_goes_on_after_a_silence(
    laptop: Laptop,
    network: Network,
    container: ContainerFactory,
    sshd: SSHServer,
    account: Account,
    keys: Keys,
    chromium: BrowserContext,
    name: str,
) -> None:
    add_far(laptop, network, sshd, account, keys)
    here = container("lab/ages", options=AGES[name].options)
    session, front = started(laptop, here, host="far"), FRONTS[name]
    count = (OLD_SILENCE + 12) * A_SECOND
    code = CELL.format(count=count, pause=1 / A_SECOND)
    session.ask("api/contents/long.ipynb", {"type": "notebook", "content": notebook(code)}, "PUT")
    page = chromium.new_page()
    page.goto(laptop.jlr("open", session.name, "long.ipynb", "--no-browser").stdout.strip())
    prompt = page.locator(front.prompt).first

    def shown() -> list[int]:
        text = "\n".join(page.locator(front.output).all_inner_texts())
        return [int(found) for found in re.findall(r"line (\d+)", text)]

    def runs() -> bool:
        page.locator(front.editor).first.click(timeout=SECONDS)
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(2000)
        return len(shown()) >= A_SECOND

    wait_until(runs, "the first lines", timeout=60)
    network.take_down()
    page.evaluate(ASK, f"http://{session.base}api/contents")
    time.sleep(OLD_SILENCE)
    network.change_address()
    network.bring_up()
    expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=SECONDS)
    wait_until(lambda: count - 1 in shown(), "the last line")
    assert shown() == list(range(count))
    assert page.evaluate(ASKED) == ANSWERED
    assert page.locator(front.dialog).all_inner_texts() == []


def notebook(code: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [{"cell_type": "code", "source": code} | facts]
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}


# A line's latency in seconds, each way, and the share of packets that it loses.
LATENCY, LOSS = 2.0, 0.05


@pytest.mark.long
def test_a_slow_line_that_loses_packets_costs_no_websocket(
    laptop: Laptop,
    network: Network,
    lasting_container: Container,
    sshd: SSHServer,
    account: Account,
    keys: Keys,
) -> None:
    laptop.add_host(
        "slow", sshd, account, key=keys.private, address=network.address, port=network.line.port
    )
    session = started(laptop, lasting_container, "--port", str(free_port()), host="slow")
    with work_in(session) as work:
        network.lose(LOSS)
        network.line.delay = LATENCY
        work.kernel.send(CELL.format(count=60, pause=1))
        seen = ""
        while "line 59" not in seen:
            message = json.loads(work.kernel.socket.recv())  # it raises once it is closed
            seen += message["content"].get("text", "")
        assert re.findall(r"line (\d+)", seen) == [str(n) for n in range(60)]
