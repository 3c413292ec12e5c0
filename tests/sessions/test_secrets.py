"""The token is where Jupyter put it and in the browser's redirect file, and nowhere else."""

from __future__ import annotations

import re
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.lab.accounts import Account
from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.sessions.parts import START_SECONDS, Session


class Watch:
    """Every argument and environment that was seen in any process of the machine."""

    def __init__(self) -> None:
        self._seen: dict[Path, bytes] = {}
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look again and again, containers' processes included, until the block ends."""
        watcher = threading.Thread(target=self._look)
        watcher.start()
        try:
            yield
        finally:
            self._over.set()
            watcher.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.look()

    def look(self) -> None:
        """Look once."""
        for folder in Path("/proc").glob("[0-9]*"):
            for kind in ("cmdline", "environ"):
                try:
                    text = (folder / kind).read_bytes()
                except OSError:  # it has ended
                    continue
                # A process may become another program; what it was before has been seen too.
                path = folder / kind
                if not self._seen.get(path, b"").endswith(text):
                    self._seen[path] = self._seen.get(path, b"") + b"\n" + text

    def where(self, secret: str) -> list[str]:
        """Return the processes that had the secret."""
        return [str(path) for path, text in self._seen.items() if secret.encode() in text]


def files_with(secret: str, *folders: Path) -> list[Path]:
    """Return the files below folders that hold the secret."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def laptop(file_laptop: Laptop) -> Laptop:
    return file_laptop


def test_the_token_is_in_no_argv_environment_log_or_state_file(
    laptop: Laptop, here: Container, account: Account, sshd: SSHServer
) -> None:
    watch = Watch()
    with watch.watching():
        start = laptop.jlr("start", "lab", here.name, "--verbose", timeout=START_SECONDS)
        wait_until(lambda: bool(laptop.opened()), "the browser's start")
        assert laptop.jlr("open").status == 0
        assert laptop.jlr("list").status == 0
    [url] = start.stdout.split()
    session = Session(laptop, {"url": url})
    with session.notebook("secret.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
        watch.look()
    assert watch.where(here.name), "the watch saw no process of ours"
    assert watch.where(session.token) == []
    assert session.token not in start.stderr
    redirect = Path(unquote(urlsplit(laptop.opened()[0]).path))
    assert files_with(session.token, laptop.folder) == [redirect]
    assert files_with(session.token, account.home, sshd.folder) == []
    assert session.token not in here.engine.docker("logs", here.name)
    assert session.token not in here.inspect("{{json .}}")
    found = here.execute("sh", "-c", f"grep -rl {session.token} /tmp /root /var /opt/jupyter/etc")
    assert all("/runtime/jpserver-" in path for path in found.split()), found
    modes = here.execute("sh", "-c", "stat -c '%a %n' /tmp/jlr-0 /tmp/jlr-0/*/runtime/*")
    assert {line[:3] for line in modes.splitlines()} <= {"700", "600", "644"}, modes
    assert modes.startswith("700 "), modes


def test_the_browser_is_given_a_private_file_that_leads_to_the_session(
    laptop: Laptop, here: Container
) -> None:
    before = len(laptop.opened())
    start = laptop.jlr("start", "lab", here.name, timeout=START_SECONDS)
    wait_until(lambda: len(laptop.opened()) > before, "the browser's start")
    address = laptop.opened()[-1]
    redirect = Path(unquote(urlsplit(address).path))
    assert urlsplit(address).scheme == "file"
    assert stat.S_IMODE(redirect.stat().st_mode) == 0o600
    assert stat.S_IMODE(redirect.parent.stat().st_mode) == 0o700
    [target] = re.findall(r'content="0;url=([^"]*)"', redirect.read_text())
    for_programs = urlsplit(start.stdout.strip())
    assert for_programs.hostname == "127.0.0.1"
    own = f"{here.name}-lab.localhost:{for_programs.port}"
    assert target == for_programs._replace(netloc=own).geturl()
    assert laptop.jlr("stop").status == 0
    assert not redirect.exists()


def filled(file: Path) -> bool:
    return file.exists() and file.read_text() != ""


def test_a_browser_that_is_chosen_by_name_shows_the_session(
    session: Session, tmp_path: Path, chromium: BrowserContext, account: Account
) -> None:
    """Also one that cannot read the file; what another user asks of its page is refused."""
    for place in (tmp_path, tmp_path / "snap" / "bin"):
        place.mkdir(parents=True, exist_ok=True)
        noted, chosen = place / "noted", place / "my-browser"
        chosen.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {noted}\n')
        chosen.chmod(0o755)
        opened = session.laptop.jlr("open", session.name, "--browser", str(chosen))
        assert opened.status == 0, opened
        wait_until(partial(filled, noted), "the browser's start")
        address = noted.read_text()
        assert session.token not in address
        if place is tmp_path:
            assert address.startswith("file://")
        else:
            asked = f"import urllib.request as r; r.urlopen({address!r})"
            theirs = ("/usr/bin/python3", "-I", "-c", asked)
            refused = subprocess.run(theirs, user=account.uid, stderr=subprocess.PIPE, text=True)
            assert "403" in refused.stderr, "another user got the token"
        page = chromium.new_page()
        page.goto(address, wait_until="commit")
        own = f"http://*.localhost:{session.port}/**/lab*"
        page.wait_for_url(own, wait_until="commit")
        expect(page).to_have_title(re.compile("JupyterLab"), timeout=90_000)
        page.close()  # its programs would load for seconds
