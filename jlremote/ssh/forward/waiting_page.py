"""The page that a browser gets while there is no way to the host."""

from __future__ import annotations

import html

from jlremote.errors import Authentication, JlrError, Unreachable

_RELOAD_SECONDS = 2
# What a browser loads as a page, in the words of https://www.w3.org/TR/fetch-metadata/.
_PAGES = (b"document", b"iframe", b"frame")

_HOST_IS_AWAY = ("Waiting for the host", "Your kernels keep running. ")
# What ran there may have ended, and then its kernels have too.
_NOTHING_THERE = ("Nothing answers here for now", "")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="{seconds}">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 36em; padding: 0 1em;
       color: #333; background: #fff }}
@media (prefers-color-scheme: dark) {{ body {{ color: #ddd; background: #111 }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{message}</p>
{hint}
<p>{kernels}This page tries again by itself.</p>
</body>
</html>
"""


def is_page_load(request: bytes) -> bool:
    """Tell whether the beginning of a connection is a browser that loads a page.

    Only such a request may be answered in the server's place: anything else, a script or a
    WebSocket, would take the page for the server's own answer.
    """
    if not request.startswith(b"GET "):
        return False
    lines = request.partition(b"\r\n")[2].lower().splitlines()
    headers = {name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    # A script may ask for HTML as well, and only a browser says what for.
    is_page = headers.get(b"sec-fetch-dest", b"document") in _PAGES
    return is_page and b"text/html" in headers.get(b"accept", b"")


def waiting_page(error: JlrError) -> bytes:
    """Return a whole HTTP answer that says what is happening and loads itself again."""
    hint = f"<p>{html.escape(error.hint)}</p>" if error.hint else ""
    host_is_away = isinstance(error, Unreachable | Authentication)
    title, kernels = _HOST_IS_AWAY if host_is_away else _NOTHING_THERE
    message = html.escape(error.message)
    page = _PAGE.format(
        seconds=_RELOAD_SECONDS, title=title, message=message, hint=hint, kernels=kernels
    )
    body = page.encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Retry-After: {_RELOAD_SECONDS}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
