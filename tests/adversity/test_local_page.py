"""A hostile image's output in the page of `jlr local lab` reaches one folder, and no more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.lab.browser import run_cell
from tests.lab.laptop import Laptop
from tests.sessions.conftest import lasting_laptop, session
from tests.sessions.local_lab import local_lab
from tests.sessions.parts import Session

__all__ = ["lasting_laptop", "session"]

MILLISECONDS = 90_000
NOTEBOOK = "page.ipynb"
# It asks the local server, as the page does, and writes the answers into the page.
HOSTILE = """\
from IPython.display import HTML
HTML('''<pre id="ANSWERS"></pre><script>
(async () => {
  const settings = JSON.parse(document.getElementById("jupyter-config-data").textContent);
  const answers = {};
  for (const [method, path, body] of ASKED) {
    const headers = {Authorization: "token " + settings.token};
    const answer = await fetch(settings.baseUrl + path, {method, headers, body});
    answers[method + " " + path] = [answer.status, await answer.text()];
  }
  document.getElementById("ANSWERS").textContent = JSON.stringify(answers);
})();
</script>''')"""


@dataclass(frozen=True)
class Local:
    """The local JupyterLab, its folder, and a notebook in the browser."""

    laptop: Laptop
    server: Session
    process: subprocess.Popen[bytes]
    page: Page

    @property
    def folder(self) -> Path:
        return self.laptop.folder / "home"

    def asked(self, *requests: tuple[str, str, Any]) -> dict[str, tuple[int, str]]:
        """Return the answers that a kernel's output gets, by method and path."""
        texts = [[way, path, body and json.dumps(body)] for way, path, body in requests]
        place = f"answers-{uuid4().hex}"
        code = HOSTILE.replace("ANSWERS", place)
        code = code.replace("ASKED", json.dumps(texts).replace("\\", "\\\\"))
        run_cell(self.page, code)
        found = self.page.locator(f"#{place}")
        expect(found).not_to_be_empty(timeout=MILLISECONDS)
        answers: dict[str, tuple[int, str]] = json.loads(found.inner_text())
        return answers

    def statuses(self, *requests: tuple[str, str, Any]) -> dict[str, int]:
        return {asked: status for asked, (status, _) in self.asked(*requests).items()}


@pytest.fixture(scope="module")
def local(session: Session, file_chromium: BrowserContext) -> Iterator[Local]:
    home = session.laptop.folder / "home"
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh/id").write_text("s3cret-key")
    (session.laptop.folder / "elsewhere").write_text("s3cret-file")
    (home / "out").symlink_to(session.laptop.folder)
    (home / "hidden").symlink_to(home / ".ssh")
    (home / "mine.txt").write_text("mine")
    (home / "cloned").mkdir()
    (home / "cloned/evil.desktop").write_text("Exec=evil")
    (session.laptop.folder / "autostart").mkdir()
    (home / "cloned/.ipynb_checkpoints").symlink_to(session.laptop.folder / "autostart")
    with local_lab(session) as lab, lab.server.notebook(NOTEBOOK) as kernel:
        # On a busy machine a page waits for ever for a kernel that is just starting there.
        kernel.await_start()
        lab.server.write_notebook(NOTEBOOK, "")
        page = file_chromium.new_page()
        page.goto(lab.server.url.replace("/lab?", f"/lab/tree/{NOTEBOOK}?"), timeout=MILLISECONDS)
        status = page.locator("#jp-main-statusbar")
        expect(status).to_contain_text("Idle", timeout=MILLISECONDS)
        yield Local(session.laptop, lab.server, lab.process, page)


def test_an_output_opens_no_terminal_and_installs_nothing(local: Local) -> None:
    spawned = psutil.Process(local.process.pid).children(recursive=True)
    asked: tuple[tuple[str, str, Any], ...] = (
        ("GET", "api/contents/mine.txt", None),
        ("POST", "api/terminals", {}),
        ("GET", "api/terminals", None),
        ("POST", "lab/api/build", {}),
        ("POST", "lab/api/extensions", {"cmd": "install", "extension_name": "jlr"}),
        ("POST", "lab/api/plugins", {"cmd": "disable", "plugin_name": "jlr"}),
        ("GET", "lsp/status", None),
        ("GET", "nbconvert/latex/page.ipynb", None),
        ("POST", "api/nbconvert/pdf", {}),
        ("PUT", "api/config/notebook", {"load_extensions": {"jlr": True}}),
    )
    answers = local.statuses(*asked)
    assert answers.pop("GET api/contents/mine.txt") == 200
    assert set(answers.values()) == {404}, answers
    assert psutil.Process(local.process.pid).children(recursive=True) == spawned == []


def test_an_output_starts_kernels_of_the_session_only(local: Local, session: Session) -> None:
    before = {kernel["id"] for kernel in session.ask("api/kernels")}
    answers = local.asked(
        ("POST", "api/kernels", {"name": "python3"}), ("POST", "api/kernels", {"name": "here"})
    )
    assert [status for status, _ in answers.values()] != [201, 201]
    started = {kernel["id"] for kernel in session.ask("api/kernels")} - before
    told = [json.loads(body)["id"] for status, body in answers.values() if status == 201]
    assert set(told) <= started
    assert psutil.Process(local.process.pid).children(recursive=True) == []
    for kernel in started:
        session.ask(f"api/kernels/{kernel}", method="DELETE")


def test_an_output_reads_and_writes_nothing_hidden_or_outside(local: Local) -> None:
    file = {"type": "file", "format": "text", "content": "echo mine"}
    asked: tuple[tuple[str, str, Any], ...] = (
        ("GET", "api/contents/.ssh/id", None),
        ("GET", "files/.ssh/id", None),
        ("GET", "api/contents/hidden/id", None),
        ("GET", "files/hidden/id", None),
        ("GET", "api/contents/out/elsewhere", None),
        ("GET", "files/out/elsewhere", None),
        ("GET", "api/contents/out", None),
        ("POST", "api/contents", {"copy_from": ".ssh/id"}),
        ("POST", "api/contents", {"copy_from": "hidden/id"}),
        ("POST", "api/contents/", {"copy_from": "out/elsewhere"}),
        ("PUT", "api/contents/.bash_profile", file),
        ("PUT", "api/contents/hidden/authorized_keys", file),
        ("PUT", "api/contents/out/planted", file),
        ("PATCH", "api/contents/mine.txt", {"path": ".bash_profile"}),
        ("PATCH", "api/contents/mine.txt", {"path": "out/planted"}),
        ("DELETE", "api/contents/out/elsewhere", None),
        ("POST", "api/contents/cloned/evil.desktop/checkpoints", None),
    )
    answers = local.asked(*asked)
    assert {
        asked: told for asked, told in answers.items() if told[0] < 400 or "s3cret" in told[1]
    } == {}
    assert (local.laptop.folder / "elsewhere").read_text() == "s3cret-file"
    assert not (local.laptop.folder / "planted").exists()
    assert list((local.laptop.folder / "autostart").iterdir()) == []
    assert {path.name for path in (local.folder / ".ssh").iterdir()} == {"id"}
    assert not (local.folder / ".bash_profile").exists()
    assert (local.folder / "mine.txt").read_text() == "mine"
    listed = local.server.ask("api/contents")["content"]
    names = {entry["name"] for entry in listed}
    assert "mine.txt" in names
    assert names.isdisjoint({"out", "hidden", ".ssh"})


def test_what_an_output_trusts_and_sets_is_nothing_to_another_jupyter_here(local: Local) -> None:
    shortcuts = "lab/api/settings/@jupyterlab/shortcuts-extension:shortcuts"
    answers = local.statuses(
        ("PUT", shortcuts, {"raw": "{}"}),
        ("PUT", "lab/api/workspaces/jlr", {"data": {}, "metadata": {"id": "jlr"}}),
        ("POST", "api/contents/page.ipynb/trust", None),
        ("POST", "api/contents/page.ipynb/checkpoints", None),
    )
    assert set(answers.values()) <= {200, 201, 204}, answers
    data = Path(local.laptop.environment["XDG_DATA_HOME"], "jupyter")
    assert not list(data.glob("nbsignatures*"))
    assert not list((local.folder / ".jupyter").glob("*"))
