"""VS Code's server in a container, and its page in a browser of the laptop.

With `JLR_PICTURES=1` the picture of docs/editors.md is taken.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.editors.conftest import Clients, end
from tests.lab import vscode
from tests.lab.ports import free_port
from tests.lab.programs import wait_until

pytestmark = pytest.mark.long

PICTURE = Path(__file__).parents[2] / "docs" / "vscode.png"
PORT = 7613  # in the container
FOLDER = "/srv/project"
PROGRAM = """\
\"\"\"Tell where this runs.\"\"\"

import pathlib
import socket

where = f"{socket.gethostname()}:{pathlib.Path.cwd()}"
pathlib.Path("where.txt").write_text(where)
print("this runs in the container", where)
"""
FLAGS = (
    f"--host 127.0.0.1 --port {PORT} --without-connection-token --accept-server-license-terms"
    " --disable-workspace-trust --disable-telemetry --server-data-dir /tmp/vscode-data"
)


@pytest.fixture(scope="module")
def server(clients: Clients) -> Iterator[subprocess.Popen[bytes]]:
    """The server, copied and started through the endpoint as VS Code's Remote - SSH does."""
    folder = vscode.folder()
    send = f"tar -C {folder} -c . | ssh -F {clients.config} {clients.name} '{{}}'"
    unpack = "mkdir -p /opt/vscode && tar -C /opt/vscode --no-same-owner -x"
    sent = clients.run("bash", "-c", send.format(unpack), timeout=300)
    assert sent.returncode == 0, sent
    put = f"mkdir -p {FOLDER} && cat >{FOLDER}/train.py"
    assert clients.ssh(clients.name, put, given=PROGRAM.encode()).returncode == 0
    process = clients.popen("-T", clients.name, "bash")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"cd /opt/vscode && exec ./{vscode.START} {FLAGS}\n".encode())
    process.stdin.flush()
    line = b""
    while not line.startswith(b"Extension host agent listening on"):
        line = process.stdout.readline()
        assert line, "the server ended"
    yield process
    end(process)


def test_its_page_edits_and_runs_in_the_container(
    clients: Clients, server: subprocess.Popen[bytes], chromium: BrowserContext
) -> None:
    port = free_port()
    tunnel = clients.popen("-N", "-L", f"127.0.0.1:{port}:127.0.0.1:{PORT}", clients.name)
    try:
        probe = ("curl", "-sS", "-o", "/dev/null", f"http://127.0.0.1:{port}/")
        wait_until(lambda: clients.run(*probe).returncode == 0, "the tunnel", 60)
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{port}/?folder={FOLDER}")
        file = page.get_by_role("treeitem", name="train.py")
        expect(file).to_be_visible(timeout=120_000)
        file.dblclick()
        expect(page.locator(".view-lines", has_text="import socket")).to_be_visible(timeout=60_000)
        page.keyboard.press("Control+Backquote")
        terminal = page.locator(".xterm-helper-textarea").first
        expect(terminal).to_be_attached(timeout=60_000)
        terminal.focus()
        page.keyboard.type("python3 train.py\n")
        expect(page.get_by_role("treeitem", name="where.txt")).to_be_visible(timeout=60_000)
        host = clients.inside.execute("hostname").strip()
        assert clients.inside.execute("cat", f"{FOLDER}/where.txt").strip() == f"{host}:{FOLDER}"
        if os.environ.get("JLR_PICTURES"):
            page.mouse.move(800, 400)
            expect(page.locator(".workbench-hover")).not_to_be_visible(timeout=10_000)
            expect(page.locator(".xterm-rows", has_text="container")).to_be_visible()
            page.screenshot(path=PICTURE)
    finally:
        end(tunnel)
