"""Without `--runtime` the first engine that works is taken; doctor says why not the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.conftest import IMAGE, NOWHERE, EnginesHost
from tests.engines.parts import told
from tests.lab import podman
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop, running_sshd


@pytest.fixture(scope="module")
def without_init(engines_host: EnginesHost, engine: Engine, keys: Keys) -> Iterator[Laptop]:
    """A laptop that knows the host as `lab`, where podman alone runs and has no catatonit."""
    settings = podman.folder() / f"without-init-{engines_host.account.name}.conf"
    lacking = podman.CONTAINERS_CONF.replace("[engine]", 'init_path = "/nonexistent"\n[engine]')
    settings.write_text(lacking, encoding="utf-8")
    variables = podman.environment() | {"DOCKER_HOST": NOWHERE, "CONTAINERS_CONF": str(settings)}
    variables["PATH"] = f"{engines_host.account.home}/bin:/usr/bin:/bin"
    with (
        running_sshd(engine, keys, environment=variables) as server,
        new_laptop(server, engines_host.account, keys) as laptop,
    ):
        yield laptop
    settings.unlink()


def test_podman_is_found_where_docker_does_not_run_and_needs_no_init(
    without_init: Laptop, engines_host: EnginesHost, name: str
) -> None:
    job, lacking = f"{name}-job", "has no package `catatonit`"
    new = ("--image", IMAGE)
    try:
        without_init.jlr("start", "lab", name, *new, "--no-browser", timeout=120).checked(
            0, lacking
        )
        assert told(without_init, "list", name, "--json")["runtime"] == "podman"
        assert without_init.jlr("rm", name, "--yes").status == 0
        words = ("run", "lab", "--name", job, *new, "--", "sh", "-c", "exit 7")
        without_init.jlr(*words, timeout=120).checked(7, lacking)
    finally:
        engines_host.remove("podman", name)
        engines_host.remove("podman", job)


def test_an_engine_that_was_named_is_not_replaced(without_docker: Laptop, name: str) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser", "--runtime", "docker")
    without_docker.jlr(*words).checked(
        1, "the `docker` daemon does not run", "systemctl start docker"
    )
