"""The proof: Chromium opens what `jlr start` gave, and a notebook's cell puts its output there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from jlremote.jupyter.endpoint import hostname
from tests.adversity.sites import ASK, site
from tests.lab.browser import ELSEWHERE, SECONDS, open_notebook, run_cell
from tests.lab.containers import Container
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import lives, wait_until
from tests.sessions.parts import START_SECONDS, Session, started

COMPUTATION = """\
import platform
print("Python", platform.python_version(), "in", platform.node())
6 * 7"""


@dataclass(frozen=True)
class Terminal:
    """A terminal of tmux in which a command runs."""

    laptop: Laptop

    def run(self, *words: str) -> str:
        """Run a command of tmux and return its stdout."""
        tmux = ("tmux", "-f", "/dev/null", "-S", str(self.laptop.folder / "tmux"))
        return self.laptop.run(*tmux, *words).stdout

    def close(self) -> None:
        """End it with what runs in it."""
        pane = psutil.Process(int(self.run("list-panes", "-F", "#{pane_pid}")))
        self.run("kill-server")
        wait_until(lambda: not lives(pane), "the terminal's end")


@pytest.fixture(scope="module")
def chromium(file_chromium: BrowserContext) -> BrowserContext:
    return file_chromium


@pytest.fixture(scope="module")
def terminal(file_laptop: Laptop) -> Iterator[Terminal]:
    """The terminal in which the session is started."""
    if shutil.which("tmux") is None:
        pytest.skip("`tmux` is not installed")
    opened = Terminal(file_laptop)
    yield opened
    opened.run("kill-server")


@pytest.fixture(scope="module")
def session(terminal: Terminal, file_laptop: Laptop, here: Container) -> Session:
    """One session for all tests of this file, started in a terminal."""
    words = f"jlr start lab {here.name} --no-browser --json > report; exec cat"
    terminal.run("new-session", "-d", "-x", "100", "-y", "30", words)
    report = file_laptop.folder / "home" / "report"
    wait_until(
        lambda: report.exists() and report.read_text().endswith("}\n"),
        "the start in the terminal",
        timeout=START_SECONDS,
    )
    return Session(file_laptop, json.loads(report.read_text()))


@pytest.fixture(scope="module")
def notebook(session: Session, chromium: BrowserContext) -> Page:
    """JupyterLab with a new notebook."""
    page = chromium.new_page()
    open_notebook(page, session.url)
    return page


def test_a_new_notebook_runs_a_cell_and_its_output_is_on_the_page(
    session: Session, engine: Engine, notebook: Page
) -> None:
    hostname = Container(engine, session.name).inspect("{{.Config.Hostname}}")
    page = notebook
    run_cell(page, COMPUTATION)
    expect(page.locator(".jp-OutputArea-executeResult")).to_have_text(
        re.compile("42"), timeout=SECONDS
    )
    printed = page.locator(".jp-OutputArea-output").first
    expect(printed).to_contain_text(f"in {hostname}", timeout=SECONDS)
    run_cell(page, """from IPython.display import SVG\nSVG('<svg><path d="M0 0h9"/></svg>')""")
    expect(page.locator(".jp-RenderedSVG")).to_be_visible(timeout=SECONDS)
    assert "token=" not in page.url, "the token must not stay in the address"


def test_an_existing_notebook_runs_to_its_end(session: Session, chromium: BrowserContext) -> None:
    """Opened by its path, run as a whole from the menu, and saved with its results."""
    code = (
        "losses = [round(1 / step, 2) for step in range(1, 9)]",
        "losses[-1]",
        "round(sum(losses), 2)",
    )
    session.ask("api/contents/models", {"type": "directory"}, "PUT")
    session.write_notebook("models/old.ipynb", *code)
    opened = session.laptop.jlr("open", session.name, "models/old.ipynb", "--no-browser")
    assert opened.status == 0, opened
    page = chromium.new_page()
    # What other pages of this server have open is left out: the menu runs the notebook in front.
    page.goto(f"{opened.stdout.strip()}&reset", timeout=SECONDS)
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Idle", timeout=SECONDS)
    expect(page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(3, timeout=SECONDS)
    page.locator(
        ".jp-Notebook .jp-CodeCell .cm-content"
    ).first.click()  # the menu runs what is active
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    results = page.locator(".jp-OutputArea-executeResult .jp-OutputArea-output")
    expect(results).to_have_text(["0.12", "2.71"], timeout=SECONDS)
    page.keyboard.press("Control+s")

    def outputs() -> list[str]:
        try:
            saved = session.ask("api/contents/models/old.ipynb")["content"]["cells"]
        except HTTPError:  # the server is just writing it
            return []
        return [out["data"]["text/plain"] for cell in saved for out in cell["outputs"]]

    wait_until(lambda: outputs() == ["0.12", "2.71"], "the saved results")


def test_a_hostile_page_in_the_same_browser_gets_no_cookie_and_makes_no_file(
    session: Session, chromium: BrowserContext
) -> None:
    own = urlsplit(session.url)._replace(netloc=f"{hostname('lab', session.name)}:{session.port}")
    mine = chromium.new_page()
    mine.goto(own.geturl(), timeout=SECONDS)
    there = own._replace(query="")
    notebooks = there._replace(path=there.path.removesuffix("lab") + "api/contents")
    before = [entry["name"] for entry in session.ask("api/contents")["content"]]
    with site("hostile") as hostile:
        page = chromium.new_page()
        page.goto(f"http://{hostname('lab', 'hostile')}:{hostile.port}/")
        here = there._replace(netloc=f"{own.hostname}:{hostile.port}")
        for url in (there, notebooks, here, here._replace(netloc=urlsplit(page.url).netloc)):
            page.evaluate(ASK, url.geturl())
        assert sum(request.path == there.path for request in hostile.asked) >= 12
        assert not any(request.cookie for request in hostile.asked)
    assert [entry["name"] for entry in session.ask("api/contents")["content"]] == before
    answer = mine.goto(notebooks.geturl(), timeout=SECONDS)
    assert answer is not None
    assert answer.status == 200, "the page has lost its login"


def test_a_page_of_elsewhere_or_of_another_session_reads_nothing_under_its_own_name(
    session: Session, chromium: BrowserContext
) -> None:
    base = urlsplit(f"//{session.base}").path
    page = chromium.new_page()
    for name in (ELSEWHERE, hostname("lab", "hostile"), hostname("lab", session.name, 6006)):
        for path in ("/", base, f"{base}api/contents"):
            answer = page.goto(f"http://{name}:{session.port}{path}")
            assert answer is not None
            assert answer.status == 421
            assert base.strip("/") not in f"{answer.headers}{page.content()}"
    for name in (hostname("lab", session.name), "127.0.0.1", "localhost"):
        answer = page.goto(f"http://{name}:{session.port}/")
        assert answer is not None
        assert answer.status == 404
        assert base.strip("/") not in f"{answer.headers}{page.content()}"


def test_the_page_works_after_the_terminal_of_start_is_closed(
    session: Session, terminal: Terminal, notebook: Page
) -> None:
    run_cell(notebook, "'be' + 'fore'")
    result = notebook.locator(".jp-OutputArea-executeResult").last
    expect(result).to_have_text(re.compile("before"), timeout=SECONDS)
    terminal.close()
    run_cell(notebook, "'af' + 'ter'")
    expect(result).to_have_text(re.compile("after"), timeout=SECONDS)
    assert started(session.laptop, session.name).born() == session.born()
