"""Images: a registry that wants a key, and a laptop with a keychain."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.images.parts import Registry, missing_programs, running_registry
from tests.images.parts import unlocked_keychain as unlocked
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line


@pytest.fixture(scope="module")
def laptop(file_laptop: Laptop) -> Laptop:
    """The same laptop for all tests of a file."""
    return file_laptop


@pytest.fixture(scope="session")
def registry(engine: Engine) -> Iterator[Registry]:
    """A private registry, which only the lab's key opens."""
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    with running_registry(engine) as running:
        yield running


@pytest.fixture
def keychain(laptop: Laptop) -> Iterator[None]:
    """Have the laptop keep secrets as a desktop does."""
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    with unlocked(laptop):
        yield


@pytest.fixture
def name(engine: Engine) -> Iterator[str]:
    """An unused image name; images with it or below it are removed afterwards."""
    prefix = f"lab-{secrets.token_hex(4)}/made"
    yield prefix
    forget_images(engine, prefix)


def forget_images(engine: Engine, prefix: str) -> None:
    """Remove the images whose name begins with `prefix`."""
    listed = engine.docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    if names := [name for name in listed if name.startswith(prefix)]:
        engine.docker("rmi", "--force", *names)


@pytest.fixture
def folder(laptop: Laptop) -> Path:
    """A folder of the laptop's person, to build from."""
    made = laptop.folder / "home" / "project"
    shutil.rmtree(made, ignore_errors=True)  # another test's
    made.mkdir()
    return made


class Layers(Protocol):
    """Makes images of new layers, which nothing compresses and the engine does not have."""

    def __call__(self, name: str, *sizes: int) -> None:
        """Push an image of layers of these bytes as `name`."""
        ...


@pytest.fixture
def layers(engine: Engine, registry: Registry, tmp_path: Path) -> Layers:
    """Make images that only the registry has."""

    def make(name: str, *sizes: int) -> None:
        lines = ["FROM scratch"]
        for number, size in enumerate(sizes):
            (tmp_path / f"layer{number}").write_bytes(os.urandom(size))
            lines.append(f"COPY layer{number} /")
        (tmp_path / "Dockerfile").write_text("\n".join(lines))
        local = f"lab-{secrets.token_hex(4)}"
        engine.docker("build", "--quiet", "--tag", local, str(tmp_path))
        registry.push(local, name)
        engine.docker("rmi", local)

    return make


@pytest.fixture
def slow_line(registry: Registry) -> Iterator[Line]:
    """A way to the registry of four megabytes a second."""
    line = Line(registry.port, rate=4e6)
    yield line
    line.close()
    forget_images(registry.engine, f"127.0.0.1:{line.port}/")


@pytest.fixture(autouse=True)
def _forget_pulled(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "registry" in request.fixturenames:
        registry: Registry = request.getfixturevalue("registry")
        forget_images(registry.engine, f"{registry.name}/")
