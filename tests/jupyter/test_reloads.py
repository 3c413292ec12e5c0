"""A page that is loaded anew while cells run: it shows what an undisturbed page does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Error, Page, expect

from jlremote.jupyter.in_server import pages, reloads
from tests.jupyter.local_server import LocalServer, local_server, programs
from tests.jupyter.parts import AGES
from tests.lab.browser import SECONDS, outputs
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.outages.parts import CELL, lines
from tests.sessions.parts import started

pytestmark = pytest.mark.lab  # JupyterLab itself runs

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
FIRST = """\
import base64, sys, time
from IPython.display import HTML, Image, clear_output, display
pause = PAUSE
print("cleared")
bar = display({"text/plain": "begun"}, raw=True, display_id=True)
clear_output(wait=True)
bar = display({"text/plain": "begun"}, raw=True, display_id=True)
for n in range(600):
    print("line", n, flush=True)
    if n % 50 == 0:
        display(Image(base64.b64decode("PIXEL")))
        bar.update({"text/plain": f"{n} of 600"}, raw=True)
    time.sleep(pause)
for n in range(40):
    print(f"\\r{n} of 40", "." * (40 - n), end="", file=sys.stderr, flush=True)
    time.sleep(pause)
display(HTML("<b>rich</b>"))
n""".replace("PIXEL", PIXEL)
SECOND = """\
for n in range(60):
    print("second", n, flush=True)
    time.sleep(pause)
    if n == 30: clear_output()
bar.update({"text/plain": "done"}, raw=True)
1 / 0"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("server"), record=True) as started:
        yield started


@pytest.fixture
def page(file_chromium: BrowserContext) -> Iterator[Page]:
    page = file_chromium.new_page()
    # A container of the lab that comes or goes meanwhile changes the network's addresses.
    lost = page.locator(".jp-Dialog", has_text="Error Loading Theme")
    page.add_locator_handler(lost, lambda dialog: dialog.get_by_role("button").last.click())
    yield page
    page.close()


def write(server: LocalServer, name: str, *codes: str) -> Path:
    """Write a notebook with cells of that code."""
    facts: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
    cells = [
        {"cell_type": "code", "id": f"c{number}", "source": code} | facts
        for number, code in enumerate(codes)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    document = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    file = server.folder / "root" / name
    file.write_text(json.dumps(document))
    return file


def opened(page: Page, server: LocalServer, file: Path, by: str = "lab/tree") -> None:
    """Open a notebook, and nothing that was open before."""
    page.goto(server.url.replace("/lab?", f"/{by}/{file.name}?reset&"), timeout=SECONDS)
    expect(page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible(timeout=SECONDS)


IDLE = """[...(window.jupyterapp?.shell?.widgets("main") ?? [])].some(
    (panel) => panel.sessionContext?.session?.kernel?.status === "idle")"""


def run_all(page: Page, count: int, *, idle: bool = True) -> None:
    """Run that many cells, the first one first, once the kernel is idle."""
    if idle:
        page.wait_for_function(IDLE, timeout=SECONDS)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    for _ in range(count):
        page.keyboard.press("Shift+Enter")


def await_end(page: Page, *prompts: str) -> None:
    for at, prompt in enumerate(prompts):
        shown = page.locator(".jp-Notebook .jp-InputPrompt").nth(at)
        expect(shown).to_have_text(prompt, timeout=SECONDS * 4)


def shown_text(page: Page) -> str:
    """Return all output once JupyterLab has drawn the last one, which is not in sight."""
    page.locator(".jp-CodeCell").nth(1).scroll_into_view_if_needed()
    wait_until(lambda: "division by zero" in outputs(page), "the last output")
    return outputs(page)


def saved(page: Page, file: Path) -> list[Any]:
    """Save once a kernel is there; return what each cell has, of a notebook that is valid."""
    page.wait_for_function(IDLE, timeout=SECONDS)
    with page.expect_response(lambda answer: "/checkpoints" in answer.url, timeout=SECONDS):
        page.keyboard.press("Control+s")
    notebook = json.loads(file.read_text())
    nbformat.validate(notebook)
    return [(cell["execution_count"], cell["outputs"]) for cell in notebook["cells"]]


def shown(
    page: Page, server: LocalServer, name: str, count: int = 0, by: str = "lab/tree"
) -> tuple[str, list[Any]]:
    """Return what a page shows and saves that is loaded anew so often while its cells run."""
    seed, pause = random.randrange(10**6), count / 120
    print("the seed of the moments:", seed)  # pytest shows it with a failure
    chance = random.Random(seed)
    file = write(server, f"{name}-{count}.ipynb", FIRST.replace("PAUSE", str(pause)), SECOND)
    opened(page, server, file, by)
    run_all(page, 2)
    for _ in range(count):
        page.wait_for_timeout(chance.random() * pause * 20_000)
        address = page.url
        try:
            page.reload(timeout=SECONDS)
        except Error:  # the network has changed: see `page`; Chromium shows a page of its own
            page.goto(address, timeout=SECONDS)
    await_end(page, "[1]:", "[2]:")
    return shown_text(page), saved(page, file)[:2]  # Shift+Enter has made another cell


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [6, LONG(50)])
def test_reloads_at_random_moments_cost_no_output_and_show_none_twice(
    server: LocalServer, page: Page, count: int
) -> None:
    reloaded = shown(page, server, str(count), count)
    assert reloaded == shown(page, server, str(count))
    assert re.findall(r"^line (\d+)$", reloaded[0], re.MULTILINE) == [str(n) for n in range(600)]


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("notebook", ["7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7"])
def test_every_jupyterlab_4_and_notebook_7_shows_all_after_a_reload(
    tmp_path: Path, page: Page, notebook: str
) -> None:
    with local_server(tmp_path / "server", record=True, programs=programs(notebook)) as server:
        expected = shown(page, server, "undisturbed")
        for by in ("lab/tree", "notebooks"):
            assert shown(page, server, by.replace("/", "-"), 3, by) == expected


CLOSED = """\
import os, time
print("before")
while not os.path.exists("go on"): time.sleep(0.05)
print("after")"""


def test_what_ran_while_no_page_was_open_is_shown_and_a_save_alone_writes_it(
    server: LocalServer, page: Page
) -> None:
    file = write(server, "closed.ipynb", CLOSED, "print('edited')", "print('never run')")
    opened(page, server, file)
    saved(page, file)  # JupyterLab notes the kernel's language in it
    run_all(page, 2)
    expect(page.locator(".jp-OutputArea").first).to_contain_text("before", timeout=SECONDS)
    page.goto("about:blank")
    text = file.read_text().replace("edited", "another")
    file.write_text(text)
    (file.parent / "go on").touch()
    records = server.folder / "output"
    wait_until(
        lambda: any('"edited\\n"' in each.read_text() for each in records.glob("*.jsonl")),
        "the end",
    )
    opened(page, server, file)
    await_end(page, "[1]:", "[ ]:", "[ ]:")  # of a cell whose code is another nothing is shown
    first, dirty = page.locator(".jp-CodeCell").first, page.locator(".lm-TabBar-tab.jp-mod-dirty")
    expect(first).to_contain_text("before after")
    page.wait_for_timeout(1500)  # for the looks that follow
    assert (dirty.all_inner_texts(), file.read_text()) == ([], text)
    page.locator(".jp-CodeCell .cm-content").last.click()
    page.keyboard.type("#")
    expect(dirty.first).to_be_visible()
    file.write_text(text.replace("never", "not yet"))
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-Dialog")).to_contain_text("has changed on disk", timeout=SECONDS)
    page.get_by_role("button", name="Overwrite").click()
    page.locator(".jp-Dialog").wait_for(state="detached")
    [(count, outputs), *others] = saved(page, file)
    assert (count, "".join(outputs[0]["text"])) == (1, "before\nafter\n")
    assert others == [(None, []), (None, [])]


def test_of_two_pages_each_shows_what_the_other_runs_until_it_runs_the_cell_itself(
    server: LocalServer, page: Page, file_chromium: BrowserContext
) -> None:
    file = write(server, "two.ipynb", CELL.format(count=60, pause=0.1))
    opened(page, server, file)
    page.wait_for_function(IDLE, timeout=SECONDS)
    other = file_chromium.new_page()
    opened(other, server, file)
    other.wait_for_function(IDLE, timeout=SECONDS)
    run_all(page, 1)
    wait_until(lambda: 9 in lines(other), "the first lines")
    await_end(page, "[1]:")
    await_end(other, "[1]:")
    assert lines(page) == lines(other) == list(range(60))
    run_all(page, 1)
    wait_until(lambda: other.get_by_text("[*]:").count() == 1, "the cell's next run")
    run_all(other, 1, idle=False)
    await_end(other, "[3]:")
    await_end(page, "[2]:")
    assert lines(page) == lines(other) == list(range(60))
    other.close()


# An Output widget that two cells print into, and one that shows the last frame.
WIDGETS = """\
import os, time
from IPython.display import clear_output
from ipywidgets import IntSlider, Output
from tqdm.notebook import tqdm
slider, log, frames = IntSlider(), Output(), Output()
display(slider, log, frames)
with log: print("before")"""
UPDATES = """\
for n in tqdm(range(100)):
    slider.value = n
    with log: print("logged", n)
    with frames:
        clear_output(wait=True)
        print("frame", n)
    if n % 50 == 0: print("cell", n)
while not os.path.exists("go on"): time.sleep(0.05)"""


@pytest.mark.long
def test_widgets_come_once_the_cell_has_ended_with_all_that_they_got(
    tmp_path: Path, page: Page
) -> None:
    with local_server(tmp_path / "server", record=True, programs=programs("7")) as server:
        file = write(server, "widgets.ipynb", WIDGETS, UPDATES)
        opened(page, server, file)
        run_all(page, 2)
        first, second = (page.locator(".jp-CodeCell").nth(at) for at in range(2))
        expect(first).to_contain_text("logged 3", timeout=SECONDS)
        page.reload(timeout=SECONDS)
        note = page.get_by_text("earlier widgets come when the cell ends, if its kernel lives")
        expect(note.first).to_contain_text("`jlr output 'widgets.ipynb'`", timeout=SECONDS)
        (file.parent / "go on").touch()
        for _ in range(2):  # the kernel has them by then
            expect(first).to_contain_text("frame 99", timeout=SECONDS)
            logged = re.findall("(?:logged|frame) [0-9]+", first.inner_text())
            assert logged == [*(f"logged {n}" for n in range(100)), "frame 99"]
            second.scroll_into_view_if_needed()
            expect(second).to_contain_text(re.compile(r"100/100.*cell 0\s+cell 50\s*$"))
            expect(note).to_have_count(0)
            page.reload(timeout=SECONDS)


def record(kind: str, request: str = "r1", time: float = 5, **content: Any) -> dict[str, Any]:
    place = {"notebook": "a.ipynb", "cell": "c1", "kernel": "k"}
    return {"time": time, "kind": kind, "request": request, "content": content, **place}


def text(words: str) -> dict[str, Any]:
    return record("stream", name="stdout", text=words)


def append(folder: Path, *records: Any, kernel: str = "k") -> Path:
    file = folder / f"{kernel}.jsonl"
    with file.open("a") as to:
        to.writelines(json.dumps({**one, "kernel": kernel}) + "\n" for one in records)
    return file


def told(folder: Path, at: str = "0:0", saved_at: float = 0) -> tuple[str, bool, list[Any]]:
    """Return where the records of `a.ipynb` end, whether they begin anew, and the records."""
    asked = reloads.Unsaved("a.ipynb", "k", saved_at, widgets=True)
    head, *lines = reloads.answer(folder, asked, at).splitlines()
    facts = json.loads(head)
    return facts["at"], facts["begins"], [json.loads(line) for line in lines]


def test_records_go_on_where_they_ended_though_files_get_other_names(tmp_path: Path) -> None:
    at, begins, _ = told(tmp_path)
    assert (at, begins) == ("0:0", True)
    file = append(tmp_path, record("code"), text("1"))
    at, begins, found = told(tmp_path, at)
    assert (begins, len(found)) == (True, 2)
    append(tmp_path, text("2"))
    file.rename(tmp_path / "k.10.jsonl")
    torn = append(tmp_path, text("3")).open("a")
    torn.write("{")
    torn.flush()
    at, begins, found = told(tmp_path, at)
    assert (begins, [one["content"]["text"] for one in found]) == (False, ["2", "3"])
    torn.write("}\n")
    torn.close()
    assert told(tmp_path, at)[1:] == (False, [{}])
    (tmp_path / "k.jsonl").unlink()
    assert told(tmp_path, at)[1]


def test_a_notebook_lacks_what_ended_after_it_was_saved_of_any_kernel(tmp_path: Path) -> None:
    append(tmp_path, record("code", "gone"), kernel="other")
    append(tmp_path, record("code", time=6), text("1"), record("end", time=7, status="ok"))
    kinds = [(one["request"], one["kind"]) for one in told(tmp_path)[2]]
    assert kinds == [("r1", "code"), ("r1", "stream"), ("r1", "end")]
    assert told(tmp_path, saved_at=7)[2] == []
    append(tmp_path, record("code", "r2", time=8), record("lost", "", time=9, why="?"))
    kinds = [(one["request"], one["kind"]) for one in told(tmp_path, saved_at=20)[2]]
    assert kinds == [("r2", "code"), ("", "lost")]


def test_what_an_output_takes_away_again_is_not_sent(tmp_path: Path) -> None:
    shown = record("display_data", data={"text/plain": "shown"})
    update = record("update_display_data", data={}, transient={"display_id": "d"})
    append(tmp_path, record("code"), text("old"), shown, record("clear_output", wait=True))
    append(tmp_path, update, update, record("clear_output", wait=False), text("new\r"), text("N"))
    frame = record("clear_output", wait=True) | {"widget": "w"}
    append(tmp_path, text("1") | {"widget": "w"}, frame, text("2") | {"widget": "w"})
    *_, cleared, last = [one for one in told(tmp_path)[2] if one["kind"] != "update_display_data"]
    assert (cleared["kind"], last["content"]["text"]) == ("code", "New\rN")
    caught, *others = told(tmp_path)[2]
    assert (caught["content"]["text"], len(others)) == ("2", 3)


@pytest.mark.parametrize(
    ("written", "rest"),
    [("a\rb\nccc\rd\r", "b\ndcc\r"), ("abc\rx", "xbc\rx"), ("a\b\r", "a\b\r")],
)
def test_a_stream_goes_on_at_its_cursor(written: str, rest: str) -> None:
    assert reloads.settled(written) == rest


def test_a_page_before_jupyterlab_4_says_where_output_is_while_a_cell_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    running = tmp_path / "output" / "running"
    running.parent.mkdir()
    running.write_text("{...}")
    assert pages.where() == ""
    monkeypatch.setattr("jupyterlab.__version__", "3.6.8")
    assert "`jlr output`" in pages.where()
    running.write_text("")
    assert pages.where() == ""


def test_a_page_of_notebook_7_in_a_container_shows_each_line_once(
    laptop: Laptop, container: ContainerFactory, page: Page
) -> None:
    session = started(laptop, container("lab/ages", options=AGES["Notebook 7"].options))
    session.write_notebook("a%20b.ipynb", CELL.format(count=60, pause=0.2))
    page.goto(f"http://{session.base}notebooks/a%20b.ipynb?token={session.token}", timeout=SECONDS)
    page.wait_for_function(IDLE, timeout=SECONDS)
    page.reload(timeout=SECONDS)  # the new container's address may have cost it its stylesheet
    run_all(page, 1)
    wait_until(lambda: "line 3" in outputs(page), "the first lines")
    for _ in range(2):
        page.reload(timeout=SECONDS)
        page.wait_for_timeout(2000)
    await_end(page, "[1]:")
    assert lines(page) == list(range(60))


@pytest.mark.long
@pytest.mark.parametrize("name", ["JupyterLab 3", "Notebook 6"])
def test_an_older_page_that_is_loaded_while_a_cell_runs_names_jlr_output(
    laptop: Laptop, container: ContainerFactory, page: Page, name: str
) -> None:
    session = started(laptop, container("lab/ages", options=AGES[name].options))
    page.goto(session.url, timeout=SECONDS)
    line = page.get_by_text("`jlr output`")
    with session.notebook("long.ipynb") as kernel:
        page.wait_for_timeout(2000)
        expect(line).to_have_count(0)
        kernel.send("import time; time.sleep(90)")
        wait_until(lambda: page.reload() is not None and line.is_visible(), "the line", timeout=60)
