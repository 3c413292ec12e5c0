"""A registry with a certificate that the host does not trust, and the remedy."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.engines.conftest import EnginesHost
from tests.engines.parts import FLAGS
from tests.images.parts import Registry, missing_programs, running_registry
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import run
from tests.long import LONG


@pytest.fixture
def registry(engine: Engine, tmp_path: Path) -> Iterator[Registry]:
    """A registry with TLS outside loopback, where docker requires it."""
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    # The first dockerd since the machine's start names no gateway; it is the first address.
    subnet = "{{(index .IPAM.Config 0).Subnet}}"
    network = ip_network(engine.docker("network", "inspect", "bridge", "--format", subnet))
    address = str(network[1])
    certificate = tmp_path / "registry.crt"
    key = str(certificate.with_suffix(".key"))
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=registry")
    names = ("-addext", f"subjectAltName=IP:{address}")
    run(*make, *names, "-keyout", key, "-out", str(certificate))
    with running_registry(engine, address, certificate) as running:
        yield running


@pytest.mark.parametrize("runtime", ["docker", LONG("podman"), LONG("sudo podman")])
def test_following_the_hint_leads_to_the_question_for_the_key(
    engines_laptop: Laptop, engines_host: EnginesHost, registry: Registry, runtime: str
) -> None:
    pull = ("image", "pull", "lab", f"{registry.name}/me/x:1", *FLAGS[runtime])
    refused = engines_laptop.jlr(*pull).checked(6)
    told = re.search(r"certificate into `(\S+)`", refused.stderr)
    assert told, refused
    path = Path(told[1].replace("~", str(engines_host.account.home)))
    try:
        path.parent.mkdir(parents=True)
        assert registry.certificate is not None
        shutil.copy(registry.certificate, path)
        if told[1].startswith("~"):
            config = engines_host.account.home / ".config"
            run("chown", "-R", engines_host.account.name, str(config))
        engines_laptop.jlr(*pull).checked(4, f"jlr image login lab {registry.name}")
    finally:
        shutil.rmtree(path.parent)
