"""Packages are installed in a new container with the image's own Python, whatever that allows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.wheels import OFFLINE, write_wheel
from tests.long import LONG, WANTED
from tests.sessions.parts import START_SECONDS, Session, failed, start, started


@pytest.fixture
def wheels(account: Account) -> Path:
    """A folder of the host with the package `tiny`, to be mounted at /wheels."""
    return write_wheel(account.home / "wheels")


# Who may not write where the image has its packages gets an environment besides.
@pytest.mark.parametrize(
    ("user", "lose"),
    [
        LONG("root", "python3 -m pip uninstall --yes tiny"),
        ("12345:12345", "rm -r /tmp/jlr-12345/.packages"),
    ],
    ids=["root", "12345"],
)
def test_a_package_stays_with_its_container_and_is_installed_again_once_it_is_gone(
    laptop: Laptop, container: ContainerFactory, engine: Engine, wheels: Path, user: str, lose: str
) -> None:
    name = container.name()
    words = ("--image", "lab/jupyter", "-v", f"{wheels}:/wheels:ro", *OFFLINE, "--user", user)
    started(laptop, name, *words, "--install", "tiny")
    labels = json.loads(Container(engine, name).inspect("{{json .Config.Labels}}"))
    assert labels["org.jlremote.packages"] == "tiny"
    assert laptop.jlr("stop", "--container", "--yes", name).status == 0
    unchanged = start(laptop, "lab", name, "--json")
    assert "Install tiny" not in unchanged.stderr, unchanged
    check_tiny(Session(laptop, json.loads(unchanged.stdout)))
    assert laptop.jlr("stop", name).status == 0
    engine.docker("exec", name, "sh", "-c", lose)
    check_tiny(started(laptop, name))


def check_tiny(session: Session) -> None:
    """Check that notebooks of a session have the package."""
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("import tiny, jupyterlab; tiny.VALUE") == "42"


def test_packages_of_the_settings_are_shown_in_the_plan(
    laptop: Laptop, container: ContainerFactory
) -> None:
    laptop.environment["JLR_PACKAGES"] = "tiny==1.0 'keras>=3'"
    shown = start(laptop, "lab", container.name(), "--image", "lab/jupyter", "--dry-run", "--json")
    assert shown.status == 0, shown
    assert "org.jlremote.packages=" in shown.stdout
    assert "tiny==1.0" in shown.stdout.split("pip install")[1]


def test_a_package_that_pip_refuses_is_reported_in_its_words_and_nothing_stays(
    laptop: Laptop, container: ContainerFactory
) -> None:
    words = ("--image", "lab/jupyter", "-e", "PIP_NO_INDEX=1", "--install", "no-such-thing")
    message = failed(start(laptop, "lab", container.name(), *words), 1, "no-such-thing")
    assert "No matching distribution found" in message
    assert container.remove_all() == []


def test_packages_without_room_on_the_disk_are_reported_as_such(
    laptop: Laptop, container: ContainerFactory
) -> None:
    words = ("--image", "lab/plain", "--install", "tiny", "--", "--tmpfs", "/tmp:size=16k")
    answer = laptop.jlr("start", "lab", container.name(), "--no-browser", *words)
    failed(answer, 1, "cannot install the packages", "No space left on device", "docker system df")
    assert container.remove_all() == []


# Debian's Python finds what JupyterLab needs, all but itself: to download and unpack a hundred
# packages takes ten times as long as what is tested.
WITHOUT_JUPYTERLAB = """\
FROM lab/jupyter
RUN pip uninstall --yes jupyterlab \\
 && echo /opt/jupyter/lib/python3.11/site-packages >/usr/lib/python3/dist-packages/needed.pth
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""


@pytest.fixture
def without_jupyterlab(engine: Engine, container: ContainerFactory) -> Iterator[str]:
    """An image that has what JupyterLab needs."""
    image = container.name()
    engine.docker("build", "--quiet", "--tag", image, "-", stdin=WITHOUT_JUPYTERLAB)
    yield image
    container.remove_all()
    engine.docker("image", "rm", image)


@pytest.mark.parametrize("image", ["almost", LONG("lab/plain")])
def test_jupyterlab_is_installed_where_the_image_has_none(
    laptop: Laptop, container: ContainerFactory, without_jupyterlab: str, image: str
) -> None:
    """From a real index; the image's Python is Debian's, which lets nobody install (PEP 668)."""
    name = container.name()
    image = without_jupyterlab if image == "almost" else image
    # Without bytecode for its packages, which takes longer than all else.
    words = ("--image", image, "-e", "PIP_NO_COMPILE=1", "--install", "jupyterlab")
    answer = laptop.jlr("start", "lab", name, *words, "--no-browser", timeout=2 * START_SECONDS)
    assert answer.status == 0, answer
    assert f"/{name}-" in answer.stdout
    if WANTED:  # a boot without bytecode takes seconds
        assert laptop.jlr("stop", name).status == 0
        again = start(laptop, "lab", name)
        assert again.status == 0, again
