"""Jobs in a container of their own, in that of a session, and on the host itself."""

from __future__ import annotations

import pytest

from tests.jobs.parts import Jobs
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.long import LONG

PLACES = ("image", "session", "host")
every_place = pytest.mark.parametrize("jobs", PLACES, indirect=True)
# For what happens on the laptop, wherever the job runs.
one_place = pytest.mark.parametrize("jobs", [LONG("image"), LONG("session"), "host"], indirect=True)


@pytest.fixture(params=["image", LONG("session"), "host"])
def jobs(
    request: pytest.FixtureRequest, owner: Laptop, inside: Container, containers: ContainerFactory
) -> Jobs:
    """Jobs in one of the places; `every_place` are all three, `one_place` is the host."""
    where = {
        "image": ("--image", "lab/plain"),
        "session": ("--in", inside.name),
        "host": ("--runtime", "none"),
    }
    return Jobs(owner, where[request.param], containers)
