"""What a server lets its pages do; `test_ages` and `outages/test_page` have real ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jlremote.jupyter.in_server.pages import SCRIPT, answer_outside, begin_pages

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


OWN: Any = ("/a.b-1/(.*)", object)


class Application:
    def init_handlers(self, _services: list[str], _settings: dict[str, str]) -> list[Any]:
        return [OWN]


@pytest.mark.parametrize(
    ("path", "is_outside"),
    [
        ("/", True),
        ("/lab", True),
        ("/a.b-1", True),
        ("/axb-1/lab", True),
        ("//a.b-1/lab", True),
        ("*", True),
        ("/a.b-1/", False),
        ("/a.b-1/lab", False),
    ],
)
def test_all_but_its_own_path_is_answered_first_and_once(path: str, is_outside: bool) -> None:
    answer_outside(Application)
    answer_outside(Application)
    outside, *rest = Application().init_handlers([], {"base_url": "/a.b-1/"})
    assert rest == [OWN]
    assert (re.fullmatch(outside[0], path) is not None) is is_outside
