"""Ids and names of images that are to be pulled, and what an interrupted transfer leaves."""

from __future__ import annotations

import pytest

from jlremote.errors import Usage
from jlremote.images.stories import registry
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN
from tests.stories.parts import FakeHost

IDS = "sha256:" + "a1" * 32 + "\nsha256:" + "a2" * 32 + "\n"


def refuse(image: str) -> None:
    host = FakeHost("lab", {"script": IDS})
    registry._refuse_id(host, DOCKER, image)  # type: ignore[arg-type]


@pytest.mark.parametrize("image", ["a1", "a1a1a1a1a1a1", "sha256:a2"])
def test_an_id_of_one_image_is_not_refused(image: str) -> None:
    refuse(image)
    assert registry._name("a1" * 32) is None


def test_a_short_name_of_hexadecimal_digits_may_be_pulled() -> None:
    refuse("cafe")
    name = registry._name("cafe")
    assert name is not None
    assert name.repository == "library/cafe"


def test_a_name_that_is_neither_name_nor_id_is_refused() -> None:
    with pytest.raises(Usage, match="invalid image name"):
        registry._name("Not A Name")


def test_what_an_interrupted_transfer_leaves_depends_on_the_engine() -> None:
    assert "docker keeps no part" in registry._kept(DOCKER, "pull")
    assert "podman keeps the layers" in registry._kept(PODMAN, "pull")
    assert "the registry keeps" in registry._kept(DOCKER, "push")
