from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jlremote
from jlremote.untrusted import (
    Refused,
    absolute_path,
    argument,
    count,
    document,
    fits_here,
    local_name,
    moment,
    number,
    path_part,
    whole_number,
)
from tests.sources import nodes, parsed


@given(st.text(), st.sampled_from(["", ".ipynb", ".png"]))
def test_a_local_name_is_one_visible_component_with_the_suffix(text: str, suffix: str) -> None:
    name = local_name(text, suffix)
    assert name.endswith(suffix)
    assert name[0] not in ".-~ "
    assert not set(name) & set('/\\:*?"<>|\0\r\n')
    assert 0 < len(name.encode()) <= 200


@pytest.mark.parametrize(
    ("far", "local"),
    [
        (".bash_profile", "bash_profile.ipynb"),
        ("../../.ssh/authorized_keys", "_.._.ssh_authorized_keys.ipynb"),
        ("analysis.ipynb", "analysis.ipynb"),
        ("Übung 1.ipynb", "Übung 1.ipynb"),
        ("con.ipynb", "_con.ipynb"),
        ("...", "unnamed.ipynb"),
        ("--help", "help.ipynb"),
    ],
)
def test_a_far_name_becomes_a_harmless_notebook(far: str, local: str) -> None:
    assert local_name(far, ".ipynb") == local


REFUSED: list[tuple[Callable[[Any], object], list[Any]]] = [
    (path_part, ["", ".", "..", "a/b", "/etc", "a\0b"]),
    (argument, ["", "-rf", "--gpu-launcher=x", "a\nb", "a\0b", "a\x1bb"]),
    (absolute_path, ["", "relative", "~", ".evil.example.com", "/a\nb"]),
    (whole_number, ["", "-1", "1.5", "9" * 400, "٣", "1e3", "18446744073709551616"]),
    (number, ["nan", "inf", "1e999", "x", "", None, [1], 10**400]),
    (document, ["[" * 200_000, "[" * 101 + "]" * 101, '{"a":' * 500, b"\xff", "nothing", ""]),
]


@pytest.mark.parametrize(
    ("door", "value"), [(door, one) for door, every in REFUSED for one in every]
)
def test_what_could_do_harm_is_refused(door: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(Refused):
        door(value)


def test_what_is_harmless_passes() -> None:
    assert path_part(".hidden") == ".hidden"
    assert argument("/data/a b") == "/data/a b"
    assert absolute_path("/data") == "/data"
    assert (whole_number("42\n"), whole_number("-3", least=-5), number("1.5")) == (42, -3, 1.5)
    assert document("[" * 100 + "]" * 100)


@pytest.mark.parametrize(
    "name", ["con.txt", "NUL", "a:b", "a\\b", "dot.", "blank ", "LPT1.log", "a\nb", "wh*t", "com¹"]
)
def test_names_that_windows_takes_for_others_fit_everywhere_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for platform, fits in (("linux", True), ("darwin", True), ("win32", False)):
        monkeypatch.setattr(sys, "platform", platform)
        assert fits_here(name) == fits
        assert fits_here(".hidden, Übung 1.ipynb")


def test_what_json_lacks_becomes_nothing_and_lone_surrogates_a_question_mark() -> None:
    assert document("[NaN, 1e999, 2]") == [None, None, 2]
    assert document("1" + "0" * 400) is None
    assert document("[18446744073709551616]") == [2.0**64]
    assert document(r'["\ud800", "\ud83d\ude00"]') == ["?", "😀"]
    assert document('["\udc80"]') == ["?"]
    assert document(b'["\xed\xa0\x80"]') == ["?"]


_TEXT = st.text(st.characters(codec="utf-8"))
_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _TEXT


@given(st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner)))
def test_a_plain_document_is_parsed_as_by_json(value: object) -> None:
    assert document(json.dumps(value)) == value


@pytest.mark.parametrize(
    "value", ["", "nan", "-1", "9" * 400, 10**400, -1.0, 1e300, True, None, []]
)
def test_a_moment_that_no_platform_can_write_is_none(value: object) -> None:
    assert moment(value) is None
    assert moment("1700000000") == moment(1.7e9) == 1.7e9


def test_a_count_is_a_whole_number_or_none() -> None:
    assert [count(text) for text in ("7", "²", "٣", "", "9" * 5000)] == [7, None, None, None, None]


ROOT = Path(jlremote.__file__).parent
# Where text becomes a number or a document without a door, and why that may be. A folder's row
# is for all of its modules.
WITHOUT_A_DOOR = {
    "untrusted.py": "it is the door",
    # Programs that run over there in a Python of their own, and guard themselves in place.
    "gpus/waiter_program.py": "its own plan",
    "jupyter/in_server/": "runs in the server, with what that has parsed before",
    "remote/": "what the link sends it, what a person typed, what the kernel tells, and records",
    # What a person types, or has in files here.
    "demo/": "jlr's own notebook, signals and ports",
    "gpus/choice.py": "four digits of an option",
    "kernels/lab_config.py": "a pipe of this command, and the version of JupyterLab here",
    "kernels/specs.py": "kernel specs of this machine",
    "kernels/kernel_ports.py": "the file of a client here, and a descriptor",
    "link/service/link_process.py": "a variable of this process",
    "place/runtimes/engine/engine_gpus.py": "an option of the person's",
    "place/clusters/launchers.py": "nine digits of an option",
    "laptop/": "jlr's own files, and a keychain's priority",
    "times.py": "spans and moments that were typed",
    # Numbers already, or so few digits that they are one.
    "cli/screen/progress.py": "seconds of this clock",
    "gpus/snapshot.py": "a status that `number` gave",
    "gpus/taking.py": "seconds of this clock, and what jlr itself wrote into a script",
    "place/host/addresses.py": "a port in hexadecimal, which no length makes an error",
    "place/host/job.py": "moments of the door",
    "link/notices.py": "moments of the door",
    "mounts/": "processes and octal bytes of this machine",
    "place/runtimes/container_options.py": "a number of the door, in bytes",
    "ssh/forward/browser_requests.py": "eighteen digits",
    "ssh/forward/place_streams.py": "a port that asyncssh has read",
    "copies/": "facts of files",
    # Between jlr's own processes on this machine, who have proved themselves.
    "link/client/call.py": "the link's own words",
    "link/service/operations.py": "a command's request",
    "link/wire/": "a frame, whose text may have bytes that are not UTF-8",
}


def readers() -> Iterator[tuple[str, int]]:
    """Yield module and line of each call that makes a number or a document of something."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in nodes(parsed(path)):
            if isinstance(node, ast.Call) and node.args:
                called = ast.unparse(node.func)
                typed = isinstance(node.args[0], ast.Constant)
                makers = ("json.load", "json.loads", "ast.literal_eval")
                if called in makers or (called in ("int", "float") and not typed):
                    yield path.relative_to(ROOT).as_posix(), node.lineno


def test_text_becomes_a_number_or_a_document_only_through_a_door() -> None:
    found = [
        (module, line, next((row for row in WITHOUT_A_DOOR if module.startswith(row)), None))
        for module, line in readers()
    ]
    without = [f"{module}:{line}" for module, line, row in found if row is None]
    assert without == [], "use `whole_number`, `count`, `number`, `moment` or `document`"
    assert set(WITHOUT_A_DOOR) == {row for _, _, row in found}, "a row that nothing needs"
