"""The tree of errors is drawn as it is, and an error survives the link's socket."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest

import jlremote
from jlremote import errors
from jlremote.errors import Busy, HostKeyChanged, JlrError, from_json

LINE = re.compile(
    r"    (?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: +(?P<note>exit \d+|[a-z]+)(?=  |$))?"
)


class Drawn(NamedTuple):
    """An error: its name, that of the error that it is a kind of, and where it is defined."""

    name: str
    parent: str
    package: str
    exit_code: int


def drawn() -> Iterator[Drawn]:
    """Give the errors of the drawing; what is not said of one is as with its parent."""
    above: list[Drawn] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := LINE.match(line):
            depth = len(found["branch"]) // 4
            parent = above[depth - 1] if depth else Drawn("Exception", "", "errors", 1)
            note = found["note"] or ""
            code = int(note.removeprefix("exit ")) if note.startswith("exit") else parent.exit_code
            package = "errors" if note.startswith("exit") or not note else note
            above[depth:] = [Drawn(found["name"], parent.name, package, code)]
            yield above[depth]


def defined(error: type[JlrError]) -> Iterator[Drawn]:
    package = error.__module__.split(".")[1]
    yield Drawn(error.__name__, error.__bases__[0].__name__, package, error.exit_code)
    for kind in error.__subclasses__():
        if kind.__module__.startswith("jlremote."):
            yield from defined(kind)


def test_the_drawing_shows_every_error_where_it_is_defined() -> None:
    for module in pkgutil.walk_packages(jlremote.__path__, "jlremote."):
        if not module.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # a keyboard of Windows
                importlib.import_module(module.name)
    assert sorted(drawn()) == sorted(defined(JlrError))


@pytest.mark.parametrize(
    "error",
    [Busy("taken", hint="end it"), HostKeyChanged("another key"), JlrError("no", state="closed")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_back_from_json_as_it_was(error: JlrError) -> None:
    back = from_json(error.to_json())
    assert type(back) is type(error)
    assert vars(back) == vars(error)


@pytest.mark.parametrize("message", [{}, {"error": "OfAnotherVersion", "message": "so it is"}])
def test_an_error_of_another_version_is_a_plain_one(message: dict[str, str]) -> None:
    back = from_json(message)
    assert type(back) is JlrError
    assert back.message == message.get("message", "unknown error")
    assert back.hint is None
