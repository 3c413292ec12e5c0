"""The page that a browser gets while the host cannot be reached."""

from __future__ import annotations

import html
import re

from jlremote.errors import Authentication, JlrError, Unreachable

_RELOAD_SECONDS = 2
# This machine's names. Under any other a page of elsewhere would ask (DNS rebinding).
_HERE = re.compile(rb"(127(\.[0-9]{1,3}){3}|\[::1\]|([a-z0-9-]+\.)?localhost)(:[0-9]+)?")
# What a browser loads as a page, in the terms of https://www.w3.org/TR/fetch-metadata/.
_PAGES = (b"document", b"iframe", b"frame")

_HOST_IS_AWAY = ("Waiting for the host", "Your kernels keep running. ")
# The server may have ended, and its kernels with it.
_NO_ANSWER = ("Nothing answers here at present", "")

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
<p>{kernels}This page reloads by itself.</p>
</body>
</html>
"""


def is_script(request: bytes) -> bool:
    """Return whether the beginning of a connection is a request of a page that a browser shows.

    A page that gets no answer shows a dialog, and has no limit of its own.
    """
    return b"\r\nsec-fetch-mode:" in request.lower()


def is_page_load(request: bytes) -> bool:
    """Return whether the beginning of a connection is a browser that loads a page.

    Only such a request may be answered in place of the server: a script or a WebSocket would take
    the page for the server's own answer. It must name this machine as its host.
    """
    if not request.startswith(b"GET "):
        return False
    lines = request.partition(b"\r\n")[2].lower().splitlines()
    headers = {name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    # A script may accept HTML as well; only a browser names the purpose.
    is_page = headers.get(b"sec-fetch-dest", b"document") in _PAGES
    is_page &= _HERE.fullmatch(headers.get(b"host", b"")) is not None
    return is_page and b"text/html" in headers.get(b"accept", b"")


def waiting_page(error: JlrError) -> bytes:
    """Return an HTTP response with the reason for the wait, which loads itself again."""
    hint = f"<p>{html.escape(error.hint)}</p>" if error.hint else ""
    host_is_away = isinstance(error, Unreachable | Authentication)
    title, kernels = _HOST_IS_AWAY if host_is_away else _NO_ANSWER
    message = html.escape(error.message)
    body = _PAGE.format(
        seconds=_RELOAD_SECONDS, title=title, message=message, hint=hint, kernels=kernels
    ).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Retry-After: {_RELOAD_SECONDS}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
