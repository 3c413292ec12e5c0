"""Hand a URL to the person's browser without its token in any argv.

Every user of a machine can read every argv. So the browser is given the address of a small file in
our runtime directory, which only we can read and which leads on to the URL, as Jupyter itself does.
"""

from __future__ import annotations

import contextlib
import html
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

from jlremote.storage import paths

# The standard library falls back on these; JupyterLab is nothing without scripts.
_TEXT_BROWSERS = frozenset(("www-browser", "links", "elinks", "lynx", "w3m"))

# A browser reads the file at once; what is older only keeps a token on the disk.
_STALE_SECONDS = 60.0

_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={url}"><title>jlr</title></head>
<body><a href="{url}">JupyterLab</a></body></html>
"""


def open_in_browser(url: str, name: str | None = None) -> str | None:
    """Open `url` in the browser `name`, or in the person's own (`BROWSER`, the desktop's).

    Args:
        url: the address, with its token.
        name: as `webbrowser` knows it, or a program with or without arguments and `%s`.

    Returns:
        `None` when a browser was started, else one sentence that says why not.

    Raises:
        JlrError: the redirect file cannot be written.
    """
    browser = _chosen(name)
    return browser if isinstance(browser, str) else _launch(browser, _redirect(url).as_uri())


def trouble(name: str | None = None) -> str | None:
    """Return why `open_in_browser` would open none, `None` if it would; opens nothing."""
    browser = _chosen(name)
    return browser if isinstance(browser, str) else None


def forget_redirect(local_port: int) -> None:
    """Remove the redirect file of the session on `local_port`. Twice is fine."""
    _redirect_path(local_port).unlink(missing_ok=True)


def _chosen(name: str | None) -> webbrowser.BaseBrowser | str:
    """Return the browser that is meant, or one sentence that says why there is none."""
    if name is None and _no_display():
        return "there is no display here to open a browser on"
    browser = _find(name)
    if browser is None:
        return f"there is no browser `{name}` here" if name else "there is no browser here"
    if Path(browser.name).name in _TEXT_BROWSERS:
        return f"`{browser.name}` is a text browser, and JupyterLab needs a graphical one"
    return browser


def _no_display() -> bool:
    if sys.platform in ("win32", "darwin"):
        return False
    return not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _find(name: str | None) -> webbrowser.BaseBrowser | None:
    with contextlib.suppress(webbrowser.Error, ValueError):
        return webbrowser.get(name)
    # The library knows the usual names only; a person may name any program.
    with contextlib.suppress(ValueError):
        words = shlex.split(name or "")
        if words and shutil.which(words[0]):
            return webbrowser.BackgroundBrowser([*words, "%s"])
    return None


def _launch(browser: webbrowser.BaseBrowser, address: str) -> str | None:
    if isinstance(browser, webbrowser.GenericBrowser):
        argv = [browser.name, *(word.replace("%s", address) for word in browser.args)]
        return _run(argv)
    # The library waits five seconds for a browser that was not running yet; nobody else needs to.
    opening = threading.Thread(target=browser.open, args=(address,), daemon=True)
    opening.start()
    opening.join(timeout=1.0)
    return None


def _run(argv: list[str]) -> str | None:
    """Start a program of the person's own, which may stay for as long as its window does."""
    try:
        # Silent, because what browsers complain of would be mixed into our output and `--json`.
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as failure:
        return f"the browser `{argv[0]}` does not start: {failure.strerror}"
    try:
        status = process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        return None
    return f"the browser `{argv[0]}` ended with status {status}" if status else None


def _redirect(url: str) -> Path:
    path = _redirect_path(urlsplit(url).port or 0)
    _remove_stale(path.parent)
    paths.write_whole(path, _PAGE.format(url=html.escape(url)))
    return path


def _redirect_path(local_port: int) -> Path:
    """Return the file's path; a session has its local port for itself."""
    return paths.runtime_directory() / f"open-{local_port}.html"


def _remove_stale(directory: Path) -> None:
    oldest = time.time() - _STALE_SECONDS
    for path in directory.glob("open-*.html"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
