"""Without `--runtime` the first engine that works is taken; doctor says why not the others."""

from __future__ import annotations

import json

import pytest

from tests.engines.conftest import IMAGE, EnginesHost
from tests.lab.laptop import Laptop


def test_podman_is_found_where_docker_does_not_run(
    without_docker: Laptop, engines_host: EnginesHost, name: str
) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser", "--json")
    try:
        result = without_docker.jlr(*words, timeout=120)
        assert result.status == 0, result
        assert json.loads(result.stdout)["runtime"] == "podman"
        assert without_docker.jlr("stop", name, "--remove", "--yes").status == 0
    finally:
        engines_host.remove("podman", name)


def test_an_engine_that_was_named_is_not_replaced(without_docker: Laptop, name: str) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser", "--runtime", "docker")
    result = without_docker.jlr(*words)
    assert result.status == 1
    assert "the `docker` daemon does not run" in result.stderr
    assert "systemctl start docker" in result.stderr


def test_podman_without_an_init_creates_a_container_all_the_same(
    without_docker: Laptop,
    engines_host: EnginesHost,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = "--init-path=/nonexistent"
    monkeypatch.setitem(without_docker.environment, "JLR_ENGINE_ARGUMENTS", arguments)
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser", "--runtime", "podman")
    try:
        result = without_docker.jlr(*words, timeout=120)
        assert result.status == 0, result
        assert "catatonit" in result.stderr
    finally:
        without_docker.jlr("stop", name, "--remove", "--yes")
        engines_host.remove("podman", name)
