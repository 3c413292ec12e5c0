"""Without `--runtime` the first engine that works is taken; doctor says why not the others."""

from __future__ import annotations

import pytest

from tests.engines.conftest import IMAGE, EnginesHost, podman_of
from tests.engines.parts import told
from tests.lab.laptop import Laptop


def test_podman_is_found_where_docker_does_not_run_and_needs_no_init(
    without_docker: Laptop,
    engines_host: EnginesHost,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = "--init-path=/nonexistent"
    monkeypatch.setitem(without_docker.environment, "JLR_ENGINE_ARGUMENTS", arguments)
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser")
    try:
        result = without_docker.jlr(*words, timeout=120)
        assert result.status == 0, result
        assert "catatonit" in result.stderr
        assert told(without_docker, "status", name, "--json")["runtime"] == "podman"
        assert without_docker.jlr("stop", name, "--remove", "--yes").status == 0
    finally:
        engines_host.remove("podman", name)


def test_shell_finds_podmans_container_where_docker_works_too(
    engines_laptop: Laptop, engines_host: EnginesHost, name: str
) -> None:
    podman = podman_of("podman", engines_host.account)
    podman("run", "--detach", "--init", "--name", name, IMAGE, "sleep", "infinity")
    try:
        hostname = podman("exec", name, "hostname")
        done = engines_laptop.jlr("shell", f"lab/{name}", "--", "hostname", stdin="")
        assert (done.status, done.stdout.strip()) == (0, hostname), done
        assert "failed" not in done.stderr
    finally:
        engines_host.remove("podman", name)
    gone = engines_laptop.jlr("shell", f"lab/{name}", "--", "true", stdin="")
    assert gone.status == 6, gone
    assert f"neither a session nor a container `{name}` on `lab`" in gone.stderr


def test_an_engine_that_was_named_is_not_replaced(without_docker: Laptop, name: str) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser", "--runtime", "docker")
    result = without_docker.jlr(*words)
    assert result.status == 1
    assert "the `docker` daemon does not run" in result.stderr
    assert "systemctl start docker" in result.stderr
