"""Sessions with a light server, and programs that listen beside it."""

from __future__ import annotations

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.link.conftest import clean_laptop, desk, servers
from tests.link.desk import Desk
from tests.link.servers import start_inside

__all__ = ["clean_laptop", "desk", "servers"]
JUPYTER_PORT = 8888


@pytest.fixture
def laptop(clean_laptop: Laptop) -> Laptop:
    return clean_laptop


@pytest.fixture
def inside(desk: Desk, container: ContainerFactory) -> Container:
    """A container with a session."""
    made = container("lab/plain")
    start_inside(made, JUPYTER_PORT)
    desk.start(made.name, "docker")
    return made
