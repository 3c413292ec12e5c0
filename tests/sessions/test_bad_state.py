"""A full disk, a read-only disk, damaged records: a clear message, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.disks import disk, fill, full, read_only, state
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.outages.parts import within
from tests.sessions.parts import failed, start, started

# What a command may take that only says what is wrong.
TOLD = 15.0


def test_a_full_disk_is_told_before_anything_is_made(
    laptop: Laptop, container: ContainerFactory
) -> None:
    with disk(state(laptop)):
        fill(state(laptop))
        with within(TOLD):
            answer = start(laptop, "lab", container.name(), "--image", "lab/jupyter")
        failed(answer, 1, "no space left on device", "free some space")
        assert laptop.shut_down() == []
    assert container.remove_all() == []


def test_a_read_only_disk_is_told_before_anything_is_made(
    laptop: Laptop, container: ContainerFactory
) -> None:
    with disk(state(laptop), "ro"):
        with within(TOLD):
            answer = start(laptop, "lab", container.name(), "--image", "lab/jupyter")
        failed(answer, 1, "read-only file system", "XDG_STATE_HOME")
        assert laptop.shut_down() == []
    assert container.remove_all() == []


@pytest.mark.parametrize("trouble", [read_only, full])
def test_a_session_that_runs_is_reached_though_nothing_can_be_written(
    laptop: Laptop, here: Container, trouble: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with disk(state(laptop)):
        session = started(laptop, here)
        with trouble(state(laptop)):
            with within(TOLD):
                assert laptop.jlr("url").stdout.strip() == session.url
                [report] = json.loads(laptop.jlr("list", "--json").stdout)
            assert report["state"] == "up"
        assert laptop.shut_down() == []


def test_files_without_a_record_are_named_and_kept(laptop: Laptop, here: Container) -> None:
    session = started(laptop, here)
    folder = state(laptop) / "jlr" / "sessions"
    [ours] = folder.glob("*.json")
    whole = json.loads(ours.read_text())
    rubbish = {
        "cut.json": ours.read_text()[:40],
        "typed.json": json.dumps(whole | {"local_port": "8888"}),
        "later.json": json.dumps(whole | {"format": 99}),
        "deep.json": "[" * 100_000,
        "notes.txt": "mine",
    }
    for name, text in rubbish.items():
        (folder / name).write_text(text)
    with within(TOLD):
        listed = laptop.jlr("list")
    assert listed.status == 0, listed
    assert session.name in listed.stdout
    for name in rubbish:
        assert (name in listed.stderr) == name.endswith(".json"), listed
        assert (folder / name).read_text() == rubbish[name]
    assert laptop.jlr("url").stdout.strip() == session.url


def test_a_record_that_was_cut_short_is_found_again_by_start(
    laptop: Laptop, here: Container
) -> None:
    born = started(laptop, here).born()
    [ours] = (state(laptop) / "jlr" / "sessions").glob("*.json")
    ours.write_text(ours.read_text()[:40])
    failed(laptop.jlr("url"), 6, "no sessions")
    with within(TOLD):
        again = started(laptop, here)
    assert again.born() == born
    assert laptop.jlr("url").stdout.strip() == again.url


def test_a_record_of_an_unknown_runtime_breaks_no_list(laptop: Laptop, here: Container) -> None:
    session = started(laptop, here)
    [ours] = (state(laptop) / "jlr" / "sessions").glob("*.json")
    other = {"name": "later", "runtime": "unheard-of", "local_port": free_port()}
    later = json.loads(ours.read_text()) | other
    (ours.parent / "lab+later.json").write_text(json.dumps(later))
    assert laptop.shut_down() == [], "its link"
    with within(TOLD):
        listed = laptop.jlr("list", "--json")
    assert listed.status == 0, listed
    states = {report["name"]: report["state"] for report in json.loads(listed.stdout)}
    assert states == {session.name: "up", "later": "down"}, listed
