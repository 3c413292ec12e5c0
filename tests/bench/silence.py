"""What a page misses of a cell while the network is silent: `jlr` beside `ssh -L` and autossh.

`python -m tests.bench.silence [SECONDS …]` prints the table of docs/outages.md. In one Chromium a
page for each way runs a cell that prints five lines a second. The network falls silent for all of
them at once and comes back with another address of this machine. autossh is left out where it is
not installed.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from tests.bench.page import ssh_forward, through
from tests.bench.parts import lab
from tests.lab import browser
from tests.lab.browser import open_notebook, run_cell
from tests.lab.network import Network
from tests.lab.remote_host import new_laptop
from tests.outages.parts import A_SECOND, CELL, lines
from tests.sessions.parts import started, with_a_server

SILENCES = (20, 60, 180)
SOME_SECONDS = 12.0  # that a cell prints beside the silence
LATEST = 60.0  # seconds that a page has after the network's return
ALIVE = ("ServerAliveInterval 5", "ServerAliveCountMax 3")
PLAIN, KEPT = "`ssh -L`", "`ssh -L` by autossh"
OURS, THEIRS = "`jlr`", "`jlr`, Jupyter started by hand"
ENDED = re.compile(r"\[\d+\]")


def row(silence: int, way: str, page: Page, count: int) -> str:
    missing = count - len(set(lines(page)))
    prompt = page.locator(".jp-Notebook .jp-InputPrompt").first.inner_text()
    ended = "yes" if ENDED.search(prompt) else "no"
    dialogs = [text.splitlines()[0] for text in page.locator(".jp-Dialog").all_inner_texts()]
    told = ", ".join(dialogs) or "none"
    return f"| {silence} s | {way} | {missing or 'none'} of {count:,} | {ended} | {told} |"


def measure(silence: int, pages: dict[str, Page], network: Network) -> None:
    """Let the network fall silent once, and print what each page has missed."""
    count = round((silence + SOME_SECONDS) * A_SECOND)
    for page in pages.values():
        page.bring_to_front()
        run_cell(page, CELL.format(count=count, pause=1 / A_SECOND))
    while not all(len(lines(page)) >= A_SECOND for page in pages.values()):
        time.sleep(0.2)
    network.take_down()
    time.sleep(silence)
    network.change_address()
    network.bring_up()
    time.sleep(LATEST)
    for way, page in pages.items():
        print(row(silence, way, page, count), flush=True)


def opened(chromium: BrowserContext, ways: dict[str, str]) -> dict[str, Page]:
    pages = {way: chromium.new_page() for way in ways}
    for way, page in pages.items():
        page.bring_to_front()
        open_notebook(page, f"{ways[way]}&reset")
    return pages


def main() -> int:
    silences = [int(word) for word in sys.argv[1:]] or SILENCES
    programs = {PLAIN: ("ssh",), KEPT: ("autossh", "-M", "0")}
    with lab() as parts:
        by_hand, ours = with_a_server(parts.containers, "--ip=0.0.0.0"), parts.containers()
        head = "| silence | by | lines lost | cell ended | dialog |"
        print(f"{head}\n|---|---|---|---|---|", flush=True)
        for silence in silences:
            with ExitStack() as once:
                network = once.enter_context(closing(Network(parts.sshd.port)))
                laptop = once.enter_context(new_laptop(*parts.host))
                laptop.add_host(
                    "far",
                    parts.sshd,
                    parts.account,
                    key=parts.keys.private,
                    address=network.address,
                    port=network.line.port,
                    options=ALIVE,
                )
                theirs = started(laptop, by_hand, host="far").url
                ways = {OURS: started(laptop, ours, host="far").url, THEIRS: theirs}
                for way, program in programs.items():
                    if shutil.which(program[0]):
                        port = once.enter_context(ssh_forward(laptop, "far", by_hand, program))
                        ways[way] = through(theirs, port)
                profile = Path(once.enter_context(tempfile.TemporaryDirectory()))
                chromium = once.enter_context(browser.chromium(profile))
                measure(silence, opened(chromium, ways), network)
    return 0


if __name__ == "__main__":
    sys.exit(main())
