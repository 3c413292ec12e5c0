"""What a browser gets from the forward itself, as while the host cannot be reached."""

from __future__ import annotations

import html

from jlremote.errors import Authentication, JlrError, Unreachable

_RELOAD_SECONDS = 2

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


# A browser has six requests under way to one host at most, and ends those behind them when an
# address of this machine changes; JupyterLab then shows that a file was not saved. A page of a
# server that jlr launched asks again (`jupyter/in_server/pages.py`).
LATER = (
    b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\n\r\n"
)
# Any page may read this, so it tells no name.
_MISDIRECTED = b"jlr: this port does not answer under this name; `jlr open` opens its own address\n"
MISDIRECTED = (
    b"HTTP/1.1 421 Misdirected Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\n\r\n%b" % (len(_MISDIRECTED), _MISDIRECTED)
)


def waiting_page(error: JlrError) -> bytes:
    """Return an HTTP response with the reason for the wait, which loads itself again."""
    hint = f"<p>{html.escape(error.hint)}</p>" if error.hint else ""
    host_is_away = isinstance(error, Unreachable | Authentication)
    title, kernels = _HOST_IS_AWAY if host_is_away else _NO_ANSWER
    message = html.escape(error.message)
    body = _PAGE.format(
        seconds=_RELOAD_SECONDS, title=title, message=message, hint=hint, kernels=kernels
    ).encode(errors="replace")
    head = (
        "HTTP/1.1 503 Service Unavailable\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Retry-After: {_RELOAD_SECONDS}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
