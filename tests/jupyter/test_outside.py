"""Which paths a server says nothing about; `test_ages` has what each version answers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jlremote.jupyter.in_server.outside import answer_outside

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
