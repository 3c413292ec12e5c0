"""Hand a session's URL to the person: on stdout, and in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from jlremote.errors import JlrError

if TYPE_CHECKING:
    from jlremote.workflow.host.context import Context


def browser_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--browser` and `--no-browser`."""
    function = click.option(
        "--no-browser", is_flag=True, help="Open no browser, only print the URL."
    )(function)
    return click.option(
        "--browser",
        metavar="NAME",
        help="The browser to open: `firefox`, `chromium`, a program. `none` is --no-browser. "
        "[env: JLR_BROWSER, BROWSER]",
    )(function)


def browse(url: str, context: Context, *, browser: str | None, asked: bool) -> None:
    """Open `url` in a browser.

    Args:
        url: the address with its token.
        context: is told when no browser could be opened.
        browser: its name, `none` for no browser, `None` for the person's own.
        asked: whether the name was given on this very command line, so that not opening it fails.

    Raises:
        JlrError: the browser that was asked for does not open.
    """
    if browser == "none":
        return
    from jlremote.workflow.session.browser import open_in_browser

    trouble = open_in_browser(url, browser)
    if trouble and asked:
        raise JlrError(trouble, hint="the session runs; open the URL above yourself")
    if trouble:
        context.progress.note(f"{trouble}; open the URL yourself")


def chosen_browser(flag: str | None, no_browser: bool, host: str | None = None) -> str | None:
    """Return the browser's name from the flags or the settings of `host`."""
    from jlremote.storage import settings

    if no_browser:
        return "none"
    browser = settings.load().chosen(host, {"browser": flag}).get("browser")
    return None if browser is None else str(browser)
