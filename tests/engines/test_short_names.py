"""A name without a registry: the settings of podman's host decide, and not jlr."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from tests.engines.conftest import NOWHERE, EnginesHost, podman_of
from tests.engines.parts import told
from tests.images.conftest import registry as registry
from tests.images.parts import USER, Registry, unlocked_keychain
from tests.lab import podman
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop, running_sshd


@pytest.fixture
def searching(
    engines_host: EnginesHost, engine: Engine, keys: Keys, registry: Registry
) -> Iterator[Laptop]:
    """A laptop of a host where names without a registry mean the lab's own registry."""
    settings = podman.folder() / f"registries-{engines_host.account.name}.conf"
    search = f'unqualified-search-registries = ["{registry.name}"]\n'
    settings.write_text(f"{search}{podman.REGISTRIES_CONF}", encoding="utf-8")
    variables = podman.environment() | {
        "DOCKER_HOST": NOWHERE,
        "CONTAINERS_REGISTRIES_CONF": str(settings),
    }
    with (
        running_sshd(engine, keys, environment=variables) as server,
        new_laptop(server, engines_host.account, keys) as laptop,
        unlocked_keychain(laptop),
    ):
        yield laptop
    settings.unlink()


def test_the_registry_of_the_hosts_settings_is_asked_and_no_other(
    searching: Laptop, engines_host: EnginesHost, registry: Registry
) -> None:
    short = f"lab-{secrets.token_hex(4)}/short"
    whole = registry.push_small(short)
    refused = searching.jlr("image", "pull", "lab", short).checked(
        4, "`jlr image login lab REGISTRY --username NAME`"
    )
    assert "docker.io" not in refused.stderr, "which was not asked"
    log_in = (
        "image",
        "login",
        "lab",
        registry.name,
        "--username",
        USER,
        "--password-stdin",
        "--keep",
    )
    assert searching.jlr(*log_in, stdin=registry.key).status == 0
    try:
        pulled = told(searching, "image", "pull", "lab", short, "--json")
        has = podman_of("podman", engines_host.account)("image", "inspect", whole)
        assert json.loads(has)[0]["Id"] in pulled["id"]
    finally:
        podman_of("podman", engines_host.account).attempt("rmi", "--force", whole)
        searching.jlr("image", "login", "lab", registry.name, "--forget")


def test_a_host_whose_settings_name_no_registry_gets_none_of_ours(without_docker: Laptop) -> None:
    without_docker.jlr("image", "pull", "lab", "me/nothing").checked(
        6,
        "cannot pull `me/nothing`: it names no registry",
        "hint: write it with its registry: Docker Hub's is `docker.io/me/nothing",
    )
