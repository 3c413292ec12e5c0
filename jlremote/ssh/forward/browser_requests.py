"""What a browser asks for, as the beginning of a connection tells."""

from __future__ import annotations

import re

# Of a request that may have to be repeated.
_MOST_OF_A_GET = 16 * 1024
_MOST_OF_A_PUT = 8 * 1024 * 1024
# This machine's names. Under any other a page of elsewhere would ask (DNS rebinding).
_HERE = re.compile(rb"(127(\.[0-9]{1,3}){3}|\[::1\]|([a-z0-9-]+\.)?localhost)(:[0-9]+)?")
# What a browser loads as a page, in the terms of https://www.w3.org/TR/fetch-metadata/.
_PAGES = (b"document", b"iframe", b"frame")
# What JupyterLab asks for every 10 to 60 s, and without a dialog if it fails.
_LIST = re.compile(rb"GET \S*/api/(kernels|kernelspecs|me|sessions|terminals|workspaces)[? ]")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+) *\r\n")
# A part of a large file, which Jupyter appends to what it has.
_PART_OF_A_FILE = re.compile(rb'"chunk"\s*:')


def is_script(request: bytes) -> bool:
    """Return whether a request is one of a page that a browser shows.

    A page that gets no answer shows a dialog, and has no limit of its own.
    """
    return b"\r\nsec-fetch-mode:" in request.lower()


def is_fetch(request: bytes) -> bool:
    """Return whether a page's request is one of the six that a browser sends at once."""
    return is_script(request) and not _is_upgrade(request)


def is_list(request: bytes) -> bool:
    """Return whether a page will ask again by itself, and miss nothing meanwhile."""
    return _LIST.match(request) is not None and is_fetch(request)


def is_page_load(request: bytes) -> bool:
    """Return whether a request is of a browser that loads a page.

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


def most_to_repeat(request: bytes) -> int:
    """Return how many bytes of a request are worth keeping."""
    return _MOST_OF_A_PUT if request.startswith(b"PUT ") else _MOST_OF_A_GET


def may_be_repeated(said: bytes) -> bool:
    """Return whether bytes are one request whose repetition changes nothing (RFC 9110, 9.2.2).

    That is a whole GET, or a page's PUT, of which the rest may be to come: a part of one is not
    obeyed. A WebSocket is not repeated: the page opens another one by itself.
    """
    head, end, body = said.partition(b"\r\n\r\n")
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
