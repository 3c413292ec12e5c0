"""Open a URL in the browser, without its token in any process's arguments.

The browser is given the address of a small file in the runtime folder, which redirects to the URL,
as Jupyter does it. The page sends Safari to 127.0.0.1, because that resolves no name below
`localhost`. A browser of snap or Flatpak is given a page on the loopback (`loopback_page`).
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
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from jlremote.forwards.address import Address
from jlremote.laptop import paths
from jlremote.text import reason_of

# The standard library falls back on these, but JupyterLab needs JavaScript.
_TEXT_BROWSERS = frozenset(("www-browser", "links", "elinks", "lynx", "w3m"))

# Where programs are that cannot read jlr's runtime folder.
_CONFINED = ("/snap/bin/", "/snapd/", "/bin/snap", "/flatpak/")
_FLATPAKS = "/var/lib/flatpak/exports/share"
_SCRIPT_BYTES = 4096

# A browser reads the file at once; older ones only keep a token on the disk.
_STALE_SECONDS = 60.0

_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<noscript><meta http-equiv="refresh" content="0;url={page}"></noscript><title>jlr</title></head>
<body><a id="page" href="{page}">JupyterLab</a> <a id="url" href="{url}">(in Safari)</a>
<script>
const id = /Apple/.test(navigator.vendor) ? "url" : "page"
location.replace(document.getElementById(id).href)
</script></body></html>
"""


def open_in_browser(address: Address, name: str | None = None) -> str | None:
    """Open a page in the browser `name`, or in the default one; return why none was started.

    `name` is one that `webbrowser` knows, or a program, with or without arguments and `%s`;
    `BROWSER` is a list of such names, of which the first that starts is taken.
    """

    def launch(browser: webbrowser.BaseBrowser) -> str | None:
        page = _page_for(browser, address)
        if isinstance(browser, webbrowser.GenericBrowser):
            return _run([browser.name, *(word.replace("%s", page) for word in browser.args)])
        # The library waits five seconds for a browser that was not running yet; jlr need not.
        opening = threading.Thread(target=browser.open, args=(page,), daemon=True)
        opening.start()
        opening.join(timeout=1.0)
        return None

    return _first(name, launch)


def trouble(name: str | None = None) -> str | None:
    """Return why `open_in_browser` would fail, `None` if it would not."""
    return _first(name, lambda _: None)


def _first(name: str | None, use: Callable[[webbrowser.BaseBrowser], str | None]) -> str | None:
    troubles = []
    names: list[str | None] = [*filter(None, os.environ.get("BROWSER", "").split(os.pathsep))]
    for each in [name] if name else names or [None]:
        browser = _chosen(each)
        failed = browser if isinstance(browser, str) else use(browser)
        if failed is None:
            return None
        troubles.append(failed)
    return "; ".join(troubles)


def forget_redirect(local_port: int) -> None:
    """Delete the redirect file of the session on `local_port`, if there is one."""
    _redirect_path(local_port).unlink(missing_ok=True)


def _chosen(name: str | None) -> webbrowser.BaseBrowser | str:
    displays = map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if name is None and sys.platform not in ("win32", "darwin") and not any(displays):
        return "this machine has no display for a browser"
    browser = _find(name)
    if browser is None:
        return f"this machine has no browser `{name}`" if name else "this machine has no browser"
    if Path(browser.name).name in _TEXT_BROWSERS:
        return f"`{browser.name}` is a text browser; JupyterLab needs a graphical one"
    return browser


def _find(name: str | None) -> webbrowser.BaseBrowser | None:
    words: list[str] = []
    with contextlib.suppress(ValueError):
        words = shlex.split(name or "")
    with contextlib.suppress(webbrowser.Error, ValueError, IndexError):  # a blank one is no word
        # All of a name in `BROWSER` without `%s` is for the library the program's name.
        if not words[1:] or "%s" in (name or ""):
            browser = webbrowser.get(name)
            is_program = isinstance(browser, webbrowser.GenericBrowser)
            return None if is_program and shutil.which(browser.name) is None else browser
    # The library knows the usual names only, but any program may be named.
    if words and shutil.which(words[0]):
        return webbrowser.BackgroundBrowser([*words, "%s"])
    return None


def _page_for(browser: webbrowser.BaseBrowser, address: Address) -> str:
    if sys.platform == "linux" and _is_confined(browser.name):
        from jlremote.forwards import loopback_page  # few browsers need it

        if page := loopback_page.lend(address.page):
            return page
    return _redirect(address).as_uri()


def _is_confined(name: str) -> bool:
    program = Path(shutil.which(name) or name)
    if any(place in f"{program} {program.resolve()}" for place in _CONFINED):
        return True
    if program.name == "xdg-open":
        return _default_is_confined()
    try:
        with program.open("rb") as file:  # Ubuntu's /usr/bin/firefox is a script that starts snap's
            begin = file.read(_SCRIPT_BYTES)
    except OSError:
        return False
    return begin.startswith(b"#!") and any(place.encode() in begin for place in _CONFINED)


def _default_is_confined() -> bool:
    asked = ("xdg-settings", "get", "default-web-browser")
    try:
        told = subprocess.run(asked, capture_output=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    folders = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    own = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    for folder in (own, *folders.split(":"), "/var/lib/snapd/desktop", _FLATPAKS):
        with contextlib.suppress(OSError, ValueError):  # a name with a null byte
            entry = Path(folder, "applications", os.fsdecode(told.strip())).read_bytes()
            return b"X-SnapInstanceName=" in entry or b"X-Flatpak=" in entry
    return False


def _run(argv: list[str]) -> str | None:
    nothing = subprocess.DEVNULL  # browsers' warnings would be mixed into jlr's output and `--json`
    try:
        process = subprocess.Popen(
            argv, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
    except OSError as failure:
        return f"the browser `{argv[0]}` does not start: {reason_of(failure)}"
    try:
        status = process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        return None
    return f"the browser `{argv[0]}` ended with status {status}" if status else None


def _redirect(address: Address) -> Path:
    path = _redirect_path(urlsplit(address.url).port or 0)
    oldest = time.time() - _STALE_SECONDS
    for other in path.parent.glob("open-*.html"):
        with contextlib.suppress(OSError):
            if other.stat().st_mtime < oldest:
                other.unlink()
    page = _PAGE.format(page=html.escape(address.page), url=html.escape(address.url))
    paths.write_whole(path, page)
    return path


def _redirect_path(local_port: int) -> Path:
    return paths.runtime_directory() / f"open-{local_port}.html"
