"""What cells print while no page is open and the host is away: every line is in `jlr output`."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.lab.browser import SECONDS
from tests.lab.network import Network
from tests.lab.programs import PATIENCE, wait_until
from tests.long import LONG
from tests.outages.parts import A_SECOND, Work, link_of
from tests.sessions.parts import Session, failed

# All that a cell's output can be, in an order that the page has, too.
CELL = """\
import sys, time
from IPython.display import HTML, clear_output, display
print("cleared")
clear_output()
bar = display({{"text/plain": "begun"}}, raw=True, display_id="bar")
for n in range({count}):
    print("line", n, flush=True)
    time.sleep({pause})
for n in range(5):
    print(f"\\r{{n}} of 4", end="", file=sys.stderr, flush=True)
bar.update({{"text/plain": "done"}}, raw=True)
display(HTML("<b>rich</b>"))
1 / 0"""


def run_notebook(browser: BrowserContext, session: Session, path: str, cell: int = 0) -> Page:
    opened = session.laptop.jlr("open", "far/" + session.name, path, "--no-browser")
    assert opened.status == 0, opened
    page = browser.new_page()
    page.goto(f"{opened.stdout.strip()}&reset", timeout=SECONDS)
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Idle", timeout=SECONDS)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").nth(cell).click()
    page.keyboard.press("Control+Enter")
    return page


def undisturbed(browser: BrowserContext, session: Session, count: int) -> list[Any]:
    """Return the outputs that a page saves which stays open."""
    path = f"{secrets.token_hex(4)}.ipynb"
    session.write_notebook(path, CELL.format(count=count, pause=0))
    page = run_notebook(browser, session, path)
    prompt = page.locator(".jp-Notebook .jp-InputPrompt").first
    expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=SECONDS)

    found: list[Any] = []

    def saved() -> bool:
        page.keyboard.press("Control+s")
        try:
            found[:] = session.ask(f"api/contents/{path}")["content"]["cells"][0]["outputs"]
        except HTTPError:  # the server is just writing it
            return False
        return any(each["output_type"] == "error" for each in found)

    wait_until(saved, "the saved outputs")
    page.close()
    return found


def joined(outputs: list[Any]) -> list[Any]:
    for each in outputs:
        if isinstance(each.get("text"), list):
            each["text"] = "".join(each["text"])
        for kind, value in each.get("data", {}).items():
            each["data"][kind] = "".join(value) if isinstance(value, list) else value
    return outputs


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [6, LONG(60)])
def test_what_a_cell_prints_while_the_lid_is_closed_is_kept(
    work: Work, network: Network, chromium: BrowserContext, tmp_path: Path, seconds: int
) -> None:
    """The page is gone, the link killed, the network down."""
    session, count = work.session, seconds * A_SECOND
    laptop, place = session.laptop, f"far/{session.name}"
    path = f"models/{secrets.token_hex(4)}.ipynb"
    session.ask("api/contents/models", {"type": "directory"}, "PUT")
    session.write_notebook(path, CELL.format(count=count, pause=1 / A_SECOND))
    page = run_notebook(chromium, session, path)
    expect(page.locator(".jp-OutputArea").first).to_contain_text("line 3", timeout=SECONDS)
    page.goto("about:blank")
    network.take_down()
    link_of(laptop).kill()
    time.sleep(seconds / 2)
    network.bring_up()
    # The kernel still knows for a moment that nothing is there.
    wait_until(lambda: laptop.jlr("output", place).status == 0, "the host's answer", timeout=60)

    def runs() -> list[Any]:
        told = laptop.jlr("output", place, path.rpartition("/")[2], "--json")
        assert told.status == 0, told
        return list(json.loads(told.stdout))

    wait_until(lambda: runs()[0]["status"] != "running", "the cell's end", timeout=seconds + 30)
    [run] = runs()
    assert (run["status"], run["complete"], run["notebook"]) == ("error", True, path)
    assert run["cell"] == "c0"
    shown = laptop.jlr("output", place, path)
    assert re.findall(r"^line (\d+)$", shown.stdout, re.MULTILINE) == [str(n) for n in range(count)]
    lines = shown.stdout.splitlines()
    assert {"done", "4 of 4", "<IPython.core.display.HTML object>"} <= set(lines), shown
    assert "cleared" not in lines
    assert "ZeroDivisionError: division by zero" in lines
    assert "\x1b" not in shown.stdout

    copy = tmp_path / "copy.ipynb"
    written = laptop.jlr("output", place, path, "--save", str(copy))
    assert written.status == 0, written
    failed(laptop.jlr("output", place, path, "--save", str(copy)), 2, "exists", "--force")
    again = laptop.jlr("output", place, path, "--save", str(copy), "--force", "--json")
    assert json.loads(again.stdout)["cells"] == 1, again
    [cell] = json.loads(copy.read_text("utf-8"))["cells"]
    assert cell["execution_count"] == 1
    assert joined(cell["outputs"]) == joined(undisturbed(chromium, session, count))


@pytest.mark.timeout(600)
def test_two_pages_on_one_kernel_and_a_cut_connection_cost_no_line(
    work: Work, network: Network, chromium: BrowserContext, tmp_path: Path
) -> None:
    """Each page runs a cell of its own, and has all of its lines, too."""
    session, place = work.session, f"far/{work.session.name}"
    path, count = f"{secrets.token_hex(4)}.ipynb", 6 * A_SECOND
    code = "import time\nfor n in range({}): print({!r}, n, flush=True); time.sleep({})"
    cells = (code.format(count, called, 1 / A_SECOND) for called in ("first", "second"))
    session.write_notebook(path, *cells)
    pages = [run_notebook(chromium, session, path, cell) for cell in (0, 1)]
    expect(pages[0].locator(".jp-OutputArea").first).to_contain_text("first 3", timeout=SECONDS)
    network.take_down()
    network.line.cut()
    time.sleep(2)
    network.bring_up()
    session.output_with(f"second {count - 1}")
    copy = tmp_path / "copy.ipynb"
    assert session.laptop.jlr("output", place, path, "--save", str(copy)).status == 0
    first, second = json.loads(copy.read_text("utf-8"))["cells"]
    for called, cell in (("first", first), ("second", second)):
        [output] = joined(cell["outputs"])
        assert output["text"] == "".join(f"{called} {n}\n" for n in range(count))
    for called, page in zip(("first", "second"), pages, strict=True):
        shown = page.locator(".jp-OutputArea-output").all_inner_texts()
        numbers = re.findall(rf"^{called} (\d+)$", "\n".join(shown), re.MULTILINE)
        assert list(map(int, numbers)) == list(range(count))


def read_while_it_is_cut(
    command: subprocess.Popen[str], lines: list[str], network: Network, drops: int
) -> threading.Thread:
    """Cut the connection again and again under a command; return what goes on reading its lines."""
    output = command.stdout
    assert output is not None
    reader = threading.Thread(target=lambda: lines.extend(output))
    reader.start()
    for _ in range(drops):
        enough = len(lines) + 5
        wait_until(lambda enough=enough: len(lines) > enough, "some lines", timeout=60)  # type: ignore[misc]
        network.line.cut()
    return reader


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("drops", [20, LONG(200)])
def test_drops_cost_the_one_who_follows_no_line(work: Work, network: Network, drops: int) -> None:
    code = (
        "import os, time\nn = 0\n"
        "while not os.path.exists('/tmp/enough'):\n"
        "    print('followed', n, flush=True); n += 1; time.sleep(0.02)\n"
        "os.unlink('/tmp/enough'); print('followed', n, 'last')"
    )
    place = f"far/{work.session.name}"
    lines: list[str] = []
    with (
        work.kernel.reached_anew() as kernel,  # the first WebSocket ended in another test's outage
        work.session.laptop.spawn("output", place, "-f") as following,
    ):
        kernel.send(code)
        reader = read_while_it_is_cut(following, lines, network, drops)
        work.session.run_in_terminal("touch /tmp/enough")
        wait_until(lambda: any("last" in line for line in lines), "the last line", timeout=60)
        following.terminate()
        reader.join(PATIENCE)
    told = [re.fullmatch(r"followed (\d+).*\n", line) for line in lines]
    numbers = [int(found[1]) for found in told if found]
    assert numbers == list(range(len(numbers)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("drops", [10, LONG(100)])
def test_drops_cost_exec_no_line_and_its_code_runs_once(
    work: Work, network: Network, drops: int
) -> None:
    code = (
        "import os, time\nopen('/tmp/ran', 'a').write('once ')\nn = 0\n"
        "while not os.path.exists('/tmp/enough'):\n"
        "    print('told', n, flush=True); n += 1; time.sleep(0.02)\n"
        "os.unlink('/tmp/enough'); print('last'); open('/tmp/ran').read()"
    )
    lines: list[str] = []
    with work.session.laptop.spawn("exec", f"far/{work.session.name}", "-c", code) as running:
        reader = read_while_it_is_cut(running, lines, network, drops)
        work.session.run_in_terminal("touch /tmp/enough")
        wait_until(lambda: running.poll() is not None, "its end", timeout=60)
        reader.join(PATIENCE)
    assert running.returncode == 0, lines[-5:]
    told = [re.fullmatch(r"told (\d+)\n", line) for line in lines]
    numbers = [int(found[1]) for found in told if found]
    assert numbers == list(range(len(numbers)))
    assert lines[-2:] == ["last\n", "'once '\n"]
