"""Images with podman, with and without root: a private registry, builds, interruptions."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engines.conftest import IMAGE, EnginesHost, podman_of
from tests.engines.parts import FLAGS
from tests.images.conftest import registry as registry
from tests.images.parts import USER, Registry, unlocked_keychain
from tests.lab.laptop import Laptop
from tests.lab.podman import Podman
from tests.lab.programs import Result, wait_until
from tests.long import LONG

SECONDS = 120


@dataclass(frozen=True)
class Desk:
    """A user of one kind of podman on a host.

    Attributes:
        laptop: theirs, with a keychain.
        host: the host.
        registry: which only its key opens.
        runtime: `podman` or `sudo podman`.
        podman: the same, asked by the lab itself.
    """

    laptop: Laptop
    host: EnginesHost
    registry: Registry
    runtime: str
    podman: Podman

    def jlr(self, verb: str, *words: str, stdin: str | None = None) -> Result:
        """Run one of the commands for a host's images."""
        argv = ("image", verb, "lab", *words, *FLAGS[self.runtime])
        return self.laptop.jlr(*argv, timeout=SECONDS, stdin=stdin)

    def log_in(self, registry: str, key: str, *words: str) -> Result:
        argv = (registry, "--username", USER, "--password-stdin", *words)
        return self.jlr("login", *argv, stdin=key)

    def has(self, image: str) -> bool:
        return self.podman.attempt("image", "exists", image).status == 0

    def keys_there(self) -> list[str]:
        """Return the files of the host that hold the registry's key now."""
        home = self.host.account.home
        found = []
        for folder in (home, Path("/tmp"), Path("/run/containers"), Path("/root")):
            for path in json_files(folder, deep=folder == home):
                with suppress(OSError):
                    found += [str(path)] * (self.registry.name in path.read_text(errors="replace"))
        return found


@pytest.fixture(scope="module", params=["podman", LONG("sudo podman")])
def desk(
    request: pytest.FixtureRequest,
    engines_laptop: Laptop,
    engines_host: EnginesHost,
    registry: Registry,
) -> Iterator[Desk]:
    podman = podman_of(request.param, engines_host.account)
    with unlocked_keychain(engines_laptop):
        yield Desk(engines_laptop, engines_host, registry, request.param, podman)


@pytest.fixture
def image(desk: Desk) -> Iterator[str]:
    """A new image name of the registry; the image is removed afterwards."""
    name = f"{desk.registry.name}/lab-{secrets.token_hex(4)}/made:1"
    yield name
    desk.podman.attempt("rmi", "--force", name)
    desk.jlr("login", desk.registry.name, "--forget")


def json_files(folder: Path, *, deep: bool) -> Iterator[Path]:
    """Give the JSON files below a folder, two levels down or all; they may come and go."""
    for parent, folders, files in os.walk(folder):
        yield from [Path(parent, name) for name in files if name.endswith(".json")]
        if not deep and len(Path(parent).relative_to(folder).parts) == 2:
            folders.clear()


@pytest.fixture
def folder(engines_laptop: Laptop) -> Path:
    """A folder of the laptop's user to build from."""
    made = engines_laptop.folder / "home" / f"project-{secrets.token_hex(4)}"
    made.mkdir()
    return made


def test_images_that_are_removed_together_are_all_told(desk: Desk, folder: Path) -> None:
    """Of an image and one that was built from it podman itself tells only one as deleted."""
    base, child = (f"localhost/lab-{secrets.token_hex(4)}/{name}:1" for name in ("base", "child"))
    (folder / "own").write_bytes(os.urandom(5_000))
    for recipe, name in (("FROM scratch", base), (f"FROM {base}", child)):
        (folder / "Dockerfile").write_text(f"{recipe}\nCOPY own /{secrets.token_hex(4)}\n")
        desk.jlr("build", str(folder), "-t", name).checked()
    removed = desk.jlr("rm", base, child, "--yes")
    assert set(removed.stdout.splitlines()[:2]) == {f"deleted {child}", f"deleted {base}"}, removed
    assert not desk.has(base)
    assert not desk.has(child)


# A shell alone: a whole system takes ten seconds to compress.
SMALL = f"""\
FROM {IMAGE} AS whole
FROM scratch
COPY --from=whole /usr/bin/dash /bin/sh
COPY --from=whole /lib64/ld-linux-x86-64.so.2 /lib64/
COPY --from=whole /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/
"""


def test_an_image_is_built_pushed_and_pulled_again_with_the_key(
    desk: Desk, image: str, folder: Path
) -> None:
    (folder / "Dockerfile").write_text(f"{SMALL}COPY . /srv\nRUN echo made here\n")
    (folder / ".dockerignore").write_text("*.bin\n!kept.bin\n")
    for name in ("left.bin", "kept.bin", "data.txt"):
        (folder / name).write_text(name)
    built = desk.jlr("build", str(folder), "-t", image, "--json").checked()
    identity = json.loads(built.stdout)["id"].removeprefix("sha256:")
    assert desk.podman("image", "inspect", "--format", "{{.Id}}", image) == identity
    listed = desk.podman("run", "--rm", "--network=none", image, "sh", "-c", "echo /srv/*").split()
    assert listed == ["/srv/Dockerfile", "/srv/data.txt", "/srv/kept.bin"]

    desk.jlr("push", image).checked(
        4, f"`jlr image login lab {desk.registry.name} --username NAME`"
    )
    assert desk.log_in(desk.registry.name, desk.registry.key).status == 0
    desk.jlr("push", image).checked()
    desk.podman("rmi", image)
    pulled = desk.jlr("pull", image, "--json").checked()
    assert json.loads(pulled.stdout)["id"].removeprefix("sha256:") == identity
    wait_until(lambda: desk.keys_there() == [], "the end of the key on the host")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (f"FROM {IMAGE}\nRUN exit 7\n", "RUN exit 7"),
        LONG(f"FROM {IMAGE}\n\nRUNN true\n", "RUNN"),
        LONG(f"FROM {IMAGE}\nCOPY nothing /\n", "COPY nothing /"),
    ],
)
def test_a_wrong_dockerfile_is_reported_and_leaves_nothing(
    recipe: str, message: str, desk: Desk, image: str, folder: Path
) -> None:
    (folder / "Dockerfile").write_text(recipe)
    before = desk.podman("ps", "--all", "--external", "--quiet", "--no-trunc").split()
    desk.jlr("build", str(folder), "-t", image).checked(1, message)
    assert not desk.has(image)
    after = desk.podman("ps", "--all", "--external", "--quiet", "--no-trunc").split()
    assert desk.runtime != "podman" or set(after) <= set(before)
