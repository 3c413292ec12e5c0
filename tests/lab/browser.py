"""Debian's Chromium, driven through playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
# A name of a page of elsewhere, which its owner has led to this machine (DNS rebinding).
ELSEWHERE = "evil.example"
FLAGS = (
    "--no-sandbox",  # Chromium refuses to run as root with its sandbox
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
)


@contextmanager
def chromium(profile: Path) -> Iterator[BrowserContext]:
    """Give a headless browser with a new profile in the folder `profile`."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=str(CHROMIUM),
            headless=True,
            args=list(FLAGS),
            viewport={"width": 1280, "height": 800},
        )
        try:
            yield context
        finally:
            context.close()


SECONDS = 90_000  # of playwright's, in milliseconds


def open_notebook(page: Page, url: str) -> None:
    """Open JupyterLab and make a notebook through its launcher."""
    page.goto(url, timeout=SECONDS)
    card = page.locator('.jp-LauncherCard[data-category="Notebook"]').first
    card.click(timeout=SECONDS)
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(1, timeout=SECONDS)
    # The footer says so once a kernel answers.
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Idle", timeout=SECONDS)


def run_cell(page: Page, code: str) -> None:
    """Type code into the last cell and run it, which makes another cell below."""
    cells = page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    cells.last.locator(".cm-content").click()
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    expect(cells).to_have_count(count + 1, timeout=SECONDS)


def outputs(page: Page) -> str:
    return "\n".join(page.locator(".jp-OutputArea-output").all_inner_texts())
