"""The URL leads to this machine only, whatever a server calls itself."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from jlremote.jupyter.discovery import BASE_URL, TOKEN
from jlremote.jupyter.endpoint import Server

SERVER = Server(7, "22", 8888, "/cont1/", "a&b=c", False, "", False, "127.0.0.1", True, "python3")


def test_the_url_holds_the_token_for_the_first_hop() -> None:
    assert SERVER.address(8890) == "http://127.0.0.1:8890/cont1/lab?token=a%26b%3Dc"


def test_notebook_has_other_pages_than_jupyterlab() -> None:
    notebook = replace(SERVER, page="tree")
    assert notebook.address(8890) == "http://127.0.0.1:8890/cont1/tree?token=a%26b%3Dc"
    assert "/cont1/tree/work/a.ipynb?" in notebook.address(8890, "work/a.ipynb")


@pytest.mark.parametrize(
    "path", ["work/a b#1?.ipynb", "/work/ü.ipynb/", "../../etc", "@evil.example"]
)
def test_a_path_stays_below_the_server(path: str) -> None:
    parts = urlsplit(SERVER.address(8890, path))
    assert parts.netloc == "127.0.0.1:8890"
    assert parts.path.startswith("/cont1/lab/tree/")
    assert parts.query == "token=a%26b%3Dc"
    assert parts.fragment == ""


@pytest.mark.parametrize(
    "base_url",
    [
        "/\\elsewhere.example/",
        "/@x/",
        "/.x/../..//y/",
        '/"><script>x</script>/',
        "/?a#b/",
        "/é\u202e/",
    ],
)
@pytest.mark.parametrize("token", ["'\"><script>", "a#b", "%0d%0aSet-Cookie:x", "\\"])
def test_a_server_chooses_neither_host_nor_port_nor_markup(base_url: str, token: str) -> None:
    assert BASE_URL.fullmatch(base_url)
    assert TOKEN.fullmatch(token)
    address = replace(SERVER, base_url=base_url, token=token).address(8890, None, "c-d.localhost")
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("http", "c-d.localhost:8890", "")
    assert unquote(parts.path) == f"{base_url}lab"
    assert parse_qs(parts.query) == {"token": [token]}
    # Nothing that ends a word of a shell, an attribute of a page, or a line of a header.
    assert re.fullmatch(r"[\w:/.~%?=+-]+", address, re.ASCII)
