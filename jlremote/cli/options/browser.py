"""The browser that shows a session: its options, the choice, and opening it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jlremote.cli.command import Function, option
from jlremote.errors import JlrError

if TYPE_CHECKING:
    from jlremote.workflow.host.context import Context


_BROWSER = option(
    "This machine",
    "--browser",
    metavar="NAME",
    help="`firefox`, `chromium`, a program or `none`. [env: JLR_BROWSER, BROWSER]",
)
_NO_BROWSER = option(
    "This machine", "--no-browser", is_flag=True, help="Print the URL and open no browser."
)


def browser_options(function: Function) -> Function:
    """Add `--browser` and `--no-browser`."""
    return _BROWSER(_NO_BROWSER(function))


def browse(url: str, context: Context, *, browser: str | None, asked: bool) -> None:
    """Open `url`, which has the token, in a browser.

    Args:
        url: the address.
        context: gets a note when no browser opens.
        browser: its name, `none` for no browser, `None` for the default one.
        asked: whether `--browser` was given, so that a failure is an error.

    Raises:
        JlrError: the browser of `--browser` does not open.
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
