"""What a browser asks for at the beginning of a connection, and the forward's own answers to it.

Every page reaches every local port, under any name of this machine and, by DNS rebinding, under one
of its own. The browser sends that name's cookies, which know no ports, and the answer counts as
that name's. So a forward answers only under its own names.
"""

from __future__ import annotations

import html
import re

from jlremote.errors import Authentication, JlrError, Unreachable
from jlremote.place.host.addresses import LOCALHOST, LOCALHOST_6, own_address

# Of the head of a first request.
MOST_OF_A_HEAD = 64 * 1024
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(
    rb"%b (?:/[^ \r\n]*|\*) HTTP/1\.[01]\r\n((?:%b:[^\0\r\n]*\r\n)+)\r\n" % (_TOKEN, _TOKEN)
)
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_HOST = re.compile(rb"^host:[ \t]*(.*?)[ \t]*\r$", re.IGNORECASE | re.MULTILINE)
_REQUEST_LINE = re.compile(rb"%b[ \t].*HTTP/[0-9]" % _TOKEN, re.IGNORECASE | re.DOTALL)
_PART_OF_REQUEST_LINE = re.compile(rb"%b +(?:/|https?:)" % _TOKEN)
_PART_OF_METHOD = re.compile(rb"[A-Z]{0,20} ?")
# HTTP/2 without TLS (RFC 9113, section 3.4): gRPC, but no browser.
_HTTP_2 = b"PRI * HTTP/2.0\r"
# What a browser loads as a page, in the terms of https://www.w3.org/TR/fetch-metadata/.
_PAGES = (b"document", b"iframe", b"frame")
# What JupyterLab asks for every 10 to 60 s, and without a dialog if it fails.
_LIST = re.compile(rb"GET \S*/api/(kernels|kernelspecs|me|sessions|terminals|workspaces)[? ]")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,18}) *\r\n")
# A part of a large file, which Jupyter appends to what it has.
_PART_OF_A_FILE = re.compile(rb'"chunk"\s*:')


def hosts_of(port: int, *names: str) -> frozenset[bytes]:
    """Return the `Host` headers under which a forward on a local port answers."""
    own = ("localhost", LOCALHOST, f"[{LOCALHOST_6}]", own_address(port), *names)
    without_port = own if port == 80 else ()
    return frozenset(host.encode() for host in (*(f"{name}:{port}" for name in own), *without_port))


def is_admitted(begin: bytes | bytearray, hosts: frozenset[bytes], *, over: bool) -> bool | None:
    """Return whether a connection may go on after its first bytes: to `hosts`, or without HTTP.

    `None` stands for a beginning that does not tell yet; `over` says that the client may be waiting
    for an answer to it. A request in a form that no browser sends is refused: servers differ in
    what they take for its host. In a browser later requests of a connection have the same host.
    """
    head = _HEAD.match(begin)
    if head is not None:
        named = _HOST.findall(head[1])
        return len(named) == 1 and named[0].lower() in hosts
    line, newline, _ = begin.lstrip(b"\r\n").partition(b"\n")
    is_http = _REQUEST_LINE.match(line) if newline else _PART_OF_REQUEST_LINE.match(line)
    if is_http and line != _HTTP_2:
        is_whole = _END_OF_HEAD.search(begin) or len(begin) >= MOST_OF_A_HEAD
        return False if is_whole else None
    is_undecided = not newline and _PART_OF_METHOD.fullmatch(line)
    return None if is_undecided and not over else True


def is_script(request: bytes) -> bool:
    """Return whether a script of a page asks: it has no limit of its own, and fails by a dialog."""
    return b"\r\nsec-fetch-mode:" in request.lower()


def is_fetch(request: bytes) -> bool:
    """Return whether a page's request is one of the six that a browser sends at once."""
    return is_script(request) and not _is_upgrade(request)


def is_list(request: bytes) -> bool:
    """Return whether a page asks for a list, which it will ask for again by itself."""
    return _LIST.match(request) is not None and is_fetch(request)


def is_page_load(request: bytes) -> bool:
    """Return whether a browser asks for a page to show.

    Only that may be answered in place of the server: a script or a WebSocket would take the page
    for the server's own answer.
    """
    if not request.startswith(b"GET "):
        return False
    lines = request.partition(b"\r\n")[2].lower().splitlines()
    headers = {name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    # A script may accept HTML as well; only a browser names the purpose.
    is_page = headers.get(b"sec-fetch-dest", b"document") in _PAGES
    return is_page and b"text/html" in headers.get(b"accept", b"")


def most_to_repeat(request: bytes) -> int:
    """Return how many bytes of a request are kept, to send it again."""
    return 8 << 20 if request.startswith(b"PUT ") else 16 << 10


def may_be_repeated(request: bytes) -> bool:
    """Return whether bytes are one request that can be sent twice (RFC 9110, section 9.2.2).

    That is a whole GET, or a page's PUT, of which the rest may be to come: a part of one is not
    obeyed. A WebSocket is not repeated: the page opens another one by itself.
    """
    head, end, body = request.partition(b"\r\n\r\n")
    if not end or b" HTTP/1." not in head.partition(b"\r\n")[0] or _is_upgrade(head):
        return False
    if head.startswith(b"GET "):
        return not body
    length = _LENGTH.search(head.lower() + b"\r\n")
    whole = length is not None and len(body) <= int(length[1])
    return (
        head.startswith(b"PUT ") and is_script(head) and whole and not _PART_OF_A_FILE.search(body)
    )


def _is_upgrade(request: bytes) -> bool:
    return b"\r\nupgrade:" in request.partition(b"\r\n\r\n")[0].lower()


_RELOAD_SECONDS = 2
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


def _response(status: str, body: bytes, *headers: str) -> bytes:
    own = ("Cache-Control: no-store", "Connection: close", f"Content-Length: {len(body)}")
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, *own, "\r\n")).encode() + body


# A browser has six requests under way to one host at most, and ends those behind them when an
# address of this machine changes; JupyterLab then shows that a file was not saved. A page of a
# server that jlr launched asks again (`jupyter/in_server/pages.py`).
LATER = _response("504 Gateway Timeout", b"", "Retry-After: 1")
# Any page may read this, so it tells no name.
_MISDIRECTED = b"jlr: this port does not answer under this name; `jlr open` opens its own address\n"
MISDIRECTED = _response("421 Misdirected Request", _MISDIRECTED, "Content-Type: text/plain")


def waiting_page(error: JlrError) -> bytes:
    """Return an HTTP response with the reason for the wait, which loads itself again."""
    hint = f"<p>{html.escape(error.hint)}</p>" if error.hint else ""
    message = html.escape(error.message)
    # The server may have ended, and its kernels with it.
    title, kernels = "Nothing answers here at present", ""
    if isinstance(error, Unreachable | Authentication):
        title, kernels = "Waiting for the host", "Your kernels keep running. "
    body = _PAGE.format(
        seconds=_RELOAD_SECONDS, title=title, message=message, hint=hint, kernels=kernels
    ).encode(errors="replace")
    headers = ("Content-Type: text/html; charset=utf-8", f"Retry-After: {_RELOAD_SECONDS}")
    return _response("503 Service Unavailable", body, *headers)
