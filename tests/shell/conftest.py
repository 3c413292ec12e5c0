"""A session that needs no Jupyter: a container, and the laptop's record of it."""

from __future__ import annotations

import pytest

from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.mounts.parts import remember_session


@pytest.fixture(scope="module")
def owner(owner: Laptop, inside: Container) -> Laptop:
    """A laptop with two sessions: the container's, the latest, and `lab/bare` on the host."""
    remember_session(owner, "bare", "none")
    remember_session(owner, inside.name, "docker")
    return owner
