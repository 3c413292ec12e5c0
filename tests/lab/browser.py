"""Debian's Chromium, driven through playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

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
