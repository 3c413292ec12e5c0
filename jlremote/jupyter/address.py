"""The URL that a browser opens."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from jlremote.jupyter.server import LAB, Server


def address(server: Server, local_port: int, path: str | None = None) -> str:
    """Return the URL, with the token, of a server's page or of a path below the server's root."""
    page = server.page
    if path:
        files = "lab/tree" if page == LAB else page  # Notebook redirects a file to its own page
        page = f"{files}/{quote(path.strip('/'))}"
    query = f"?{urlencode({'token': server.token})}" if server.token else ""
    return f"http://127.0.0.1:{local_port}{quote(server.base_url)}{page}{query}"
