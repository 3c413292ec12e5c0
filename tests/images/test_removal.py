"""`jlr image rm` and `jlr image prune`: what goes is told and asked."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pexpect import EOF

from tests.images.parts import has
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.lone_engine import lone_engine
from tests.lab.place import Say
from tests.lab.remote_host import Keys, running_sshd

BASE = "lab/plain"


def made(engine: Engine, folder: Path, *names: str) -> str:
    """Build an image with a layer of its own; return its id."""
    (folder / "own").write_bytes(os.urandom(1000))
    (folder / "Dockerfile").write_text(f"FROM {BASE}\nCOPY own /\n")
    tags = (f"--tag={name}" for name in names)
    return engine.docker("build", "--quiet", *tags, str(folder))


def removed(laptop: Laptop, *words: str) -> dict[str, Any]:
    done = laptop.jlr("image", "rm", "lab", *words, "--json", "--yes")
    assert done.status == 0, done
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_an_image_is_removed_by_its_name_or_id(
    laptop: Laptop, engine: Engine, name: str, tmp_path: Path
) -> None:
    one, two = (made(engine, tmp_path, f"{name}:{tag}") for tag in ("one", "two"))
    first = removed(laptop, f"{name}:one")
    assert [image["id"] for image in first["deleted"]] == [one]
    assert first["untagged"] == []
    shown = laptop.jlr("image", "rm", "lab", two.removeprefix("sha256:")[:12], "--yes")
    assert shown.stdout == f"deleted {name}:two\n", shown
    assert not has(engine, one)
    assert not has(engine, two)


def test_an_image_with_another_name_only_loses_the_one_that_is_given(
    laptop: Laptop, engine: Engine, name: str, tmp_path: Path
) -> None:
    image = made(engine, tmp_path, f"{name}:one", f"{name}:two")
    by_id = laptop.jlr("image", "rm", "lab", image)
    assert by_id.status == 2, by_id
    assert f"has several names: `{name}:one`, `{name}:two`" in by_id.stderr
    done = laptop.jlr("image", "rm", "lab", f"{name}:one")
    assert done.stdout == f"removed the name {name}:one; its image stays\n", done
    assert has(engine, f"{name}:two")


def test_an_image_of_a_stopped_container_stays_and_so_does_all_else_that_was_named(
    laptop: Laptop, engine: Engine, container: ContainerFactory, name: str, tmp_path: Path
) -> None:
    for tag in ("used", "free"):
        made(engine, tmp_path, f"{name}:{tag}")
    here = container(f"{name}:used", "true")
    engine.docker("wait", here.name)
    done = laptop.jlr("image", "rm", "lab", f"{name}:free", f"{name}:used", "--yes")
    assert done.status == 7, done
    assert f"the image `{name}:used` is used by `{here.name}` on `lab`" in done.stderr
    unknown = laptop.jlr("image", "rm", "lab", f"{name}:free", f"{name}:none")
    assert unknown.status == 6, unknown
    assert f"there is no image `{name}:none` on `lab`" in unknown.stderr
    assert has(engine, f"{name}:free")


def test_a_terminal_is_asked_and_a_script_wants_a_yes(
    laptop: Laptop, engine: Engine, name: str, tmp_path: Path
) -> None:
    made(engine, tmp_path, f"{name}:one")
    for answer, end in (("n", "nothing was changed"), ("y", f"deleted {name}:one")):
        with laptop.terminal("jlr", "image", "rm", "lab", f"{name}:one") as screen:
            screen.expect_exact(f"{name}:one (")
            screen.expect_exact("Delete this image of lab? (y/N) ")
            screen.send(f"{answer}\r")
            screen.expect_exact(end)
            screen.expect(EOF)
        assert has(engine, f"{name}:one") == (answer == "n")
    made(engine, tmp_path, f"{name}:two")
    told = laptop.jlr("image", "rm", "lab", f"{name}:two")
    assert (told.status, has(engine, f"{name}:two")) == (1, True), told
    assert "this would be lost: " in told.stderr
    assert "--yes" in told.stderr


@pytest.fixture
def lone(
    laptop: Laptop, engine: Engine, account: Account, keys: Keys, say: Say
) -> Iterator[Engine]:
    """The dockerd of the host `alone`, whose images are no other test's."""
    with (
        lone_engine(engine, "lab/jupyter", say) as running,
        running_sshd(running.engine, keys) as server,
    ):
        laptop.add_host("alone", server, account, key=keys.private)
        yield running.engine


def test_prune_deletes_what_builds_have_left_and_nothing_that_is_used_or_named(
    laptop: Laptop, lone: Engine, tmp_path: Path
) -> None:
    lone.docker("tag", "lab/jupyter", BASE)
    lone.docker("image", "prune", "--force")  # an earlier test's image of that name has none now
    name = f"lab-{secrets.token_hex(4)}"
    used, left, named = (made(lone, tmp_path, name) for _ in range(3))
    factory = ContainerFactory(lone, f"{name}-")
    lone.docker("wait", factory(used, "true").name)
    with laptop.terminal("jlr", "image", "prune", "alone") as screen:
        screen.expect_exact(left.removeprefix("sha256:")[:12])
        screen.expect_exact("Delete this image of alone? (y/N) ")
        screen.send("n\r")
        screen.expect(EOF)
    assert has(lone, left)
    done = laptop.jlr("image", "prune", "alone", "--yes", "--json")
    assert done.status == 0, done
    told = json.loads(done.stdout)
    assert [image["id"] for image in told["deleted"]] == [left]
    assert [has(lone, image) for image in (used, left, named)] == [True, False, True]
    nothing = laptop.jlr("image", "prune", "alone")
    assert (nothing.status, nothing.stdout) == (0, "")
    assert "no untagged images that no container uses" in nothing.stderr
    factory.remove_all()
    lone.docker("rmi", "--force", used, name, BASE)
