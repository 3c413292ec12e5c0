"""The page that a browser gets while there is no way to the host."""

from __future__ import annotations

import html

from jlremote.errors import JlrError

_RELOAD_SECONDS = 2

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="{seconds}">
<title>Waiting for the host</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 36em; padding: 0 1em;
       color: #333; background: #fff }}
@media (prefers-color-scheme: dark) {{ body {{ color: #ddd; background: #111 }} }}
</style>
</head>
<body>
<h1>Waiting for the host</h1>
<p>{message}</p>
{hint}
<p>Your kernels keep running. This page tries again by itself.</p>
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
    headers = request.partition(b"\r\n")[2].lower().splitlines()
    accepts = [line for line in headers if line.startswith(b"accept:")]
    return any(b"text/html" in line for line in accepts)


def waiting_page(error: JlrError) -> bytes:
    """Return a whole HTTP answer that says what is happening and loads itself again."""
    hint = f"<p>{html.escape(error.hint)}</p>" if error.hint else ""
    page = _PAGE.format(seconds=_RELOAD_SECONDS, message=html.escape(error.message), hint=hint)
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
