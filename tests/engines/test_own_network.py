"""Podman's containers have networks of their own, too, where the host reaches these."""

from __future__ import annotations

import pytest

from tests.engines.conftest import EnginesHost, podman_of
from tests.engines.parts import Session
from tests.lab.laptop import Laptop
from tests.long import LONG


@pytest.mark.parametrize(("runtime", "own"), [("sudo podman", True), LONG("podman", False)])
def test_a_network_goes_with_its_container_and_leads_there_by_address(
    runtime: str, own: bool, engines_laptop: Laptop, engines_host: EnginesHost
) -> None:
    podman = podman_of(runtime, engines_host.account)

    def networks() -> list[str]:
        label = f"--filter=label=org.jlremote.session={session.name}"
        return podman("network", "ls", "--format={{.Name}}", label).split()

    session = Session(engines_laptop, engines_host, runtime)
    try:
        assert len(networks()) == own
        assert by_address(engines_host) == own
    finally:
        ended = engines_laptop.jlr("rm", session.name, "--force", "--yes", timeout=90)
    assert ended.status == 0, ended
    assert networks() == []


def by_address(host: EnginesHost) -> bool:
    """Return whether no relay into a container runs for the user of the host."""
    lines = host.account.command_lines()
    return not any("exec" in words and "--interactive" in words for words in lines)
