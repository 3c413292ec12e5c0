"""The container that files are copied to and from."""

from __future__ import annotations

import pytest

from tests.lab.containers import Container, ContainerFactory


@pytest.fixture(scope="module")
def inside(containers: ContainerFactory) -> Container:
    return containers("lab/jupyter", options=("--workdir", "/srv"))
