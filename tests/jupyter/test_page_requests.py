"""Which pages of a server begin with the script; `outages/test_page` has what it does."""

from __future__ import annotations

from typing import Any

from jlremote.jupyter.in_server.page_requests import SCRIPT, begin_pages

TEXTS: dict[str, Any] = {
    "page": "<html><head><title>a</title></head><body>&lt;head&gt; <head></body></html>",
    "part": "<header>no page</header>",
    "bytes": b"<head>",
}


def test_each_page_begins_with_the_script_once() -> None:
    class Handler:
        def render_template(self, name: str) -> Any:
            return TEXTS[name]

    class Extension(Handler):
        def render_template(self, name: str) -> Any:
            return super().render_template(name)

    for handler in (Handler, Extension, Handler, Extension):
        begin_pages(handler)
    for made in (Handler(), Extension()):
        assert made.render_template("page") == TEXTS["page"].replace("<head>", f"<head>{SCRIPT}", 1)
        assert made.render_template("part") == TEXTS["part"]
        assert made.render_template("bytes") == TEXTS["bytes"]
