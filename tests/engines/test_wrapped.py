"""docker behind `sudo` and behind NVIDIA's old tool."""

from __future__ import annotations

import pytest

from tests.engines.conftest import EnginesHost
from tests.engines.parts import Session
from tests.lab.laptop import Laptop
from tests.long import LONG


@pytest.mark.parametrize("runtime", ["sudo docker", LONG("nvidia-docker")])
def test_a_session_is_started_found_and_removed_through_it(
    runtime: str, engines_host: EnginesHost, engines_laptop: Laptop
) -> None:
    session = Session(engines_laptop, engines_host, runtime)
    try:
        assert (session.first["state"], session.first["runtime"]) == ("up", runtime)
        again = session.start()
        assert (again["runtime"], again["local_port"]) == (runtime, session.first["local_port"])
        assert session.inside("echo $COLOUR").strip() == "blue"
        result = engines_laptop.jlr("rm", session.name, "--force", "--yes", timeout=90)
        assert result.status == 0, result
        assert engines_host.engine.try_docker("inspect", session.name).status != 0
    finally:
        engines_host.remove(runtime, session.name)
