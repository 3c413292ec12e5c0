"""`jlr doctor` checks the engine that `jlr start` would take, and says why not the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doctor.parts import examined
from tests.engines.conftest import IMAGE, EnginesHost
from tests.engines.parts import FLAGS
from tests.lab import podman
from tests.lab.accounts import logging_in_with
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.long import LONG
from tests.sessions.parts import without


def test_podman_is_examined_where_docker_does_not_run(without_docker: Laptop) -> None:
    report = examined(without_docker, "lab")
    assert report.status == 0, report.printed
    found = report.of("engine")
    assert found["mark"] == "warning"
    assert found["text"].startswith("podman version ")
    assert "the `docker` daemon does not run" in found["text"]
    assert "systemctl start docker" in found["mend"][0]
    assert "may use podman" in report.of("permission")["text"]


@pytest.mark.parametrize("runtime", ["podman", LONG("sudo podman"), LONG("sudo docker")])
def test_an_engine_that_is_named_is_proved_to_the_kernels_answer(
    runtime: str, engines_laptop: Laptop
) -> None:
    report = examined(engines_laptop, "lab", "--image", IMAGE, *FLAGS[runtime])
    assert report.status == 0, report.printed
    assert report.of("engine")["mark"] == "ok"
    assert f"may use {runtime}" in report.of("permission")["text"]
    assert report.of("kernel")["text"] == "6*7 is 42"


@pytest.fixture
def wants_terminal(engines_host: EnginesHost) -> Iterator[None]:
    """Make `sudo` refuse the account without a terminal, as old Red Hats do."""
    rule = Path(f"/etc/sudoers.d/{engines_host.account.name}-terminal")
    rule.write_text(f"Defaults:{engines_host.account.name} requiretty\n", encoding="utf-8")
    rule.chmod(0o440)
    yield
    rule.unlink()


def test_a_sudo_that_wants_a_terminal_is_told_as_that_and_not_as_a_missing_engine(
    engines_laptop: Laptop, wants_terminal: None
) -> None:
    report = examined(engines_laptop, "lab", "--image", IMAGE, *FLAGS["sudo docker"])
    report.failed("engine", 1, "you must have a tty", "`Defaults:USER !requiretty`")


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        LONG(("docker",), "; `docker` was not found on the host"),
        (("docker", "podman"), "neither docker nor podman was found"),
    ],
)
def test_engines_that_are_not_installed_are_told(
    missing: tuple[str, ...],
    text: str,
    engines_host: EnginesHost,
    engine: Engine,
    keys: Keys,
    tmp_path: Path,
) -> None:
    path = without(tmp_path, *missing)
    variables = podman.environment() | {"PATH": str(path)}
    with (
        running_sshd(engine, keys, environment=variables) as server,
        new_laptop(server, engines_host.account, keys) as laptop,
        logging_in_with(engines_host.account, path),
    ):
        report = examined(laptop, "lab")
    found = report.of("engine")
    assert text in found["text"]
    assert found["mark"] == ("failed" if "podman" in missing else "ok")
