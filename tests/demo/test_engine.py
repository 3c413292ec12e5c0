"""The engine that the demo asks, played by a script; and the image that it chooses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jlremote.demo import local_engine
from jlremote.demo.local_engine import best
from jlremote.errors import JlrError, NotFound


@pytest.mark.parametrize(
    ("images", "chosen"),
    [
        ([], None),
        (["debian:12", "nvcr.io/nvidia/pytorch:25.01-py3"], None),
        (["me/my-jupyter:1", "jupyter/base-notebook:latest"], "jupyter/base-notebook:latest"),
        (["jupyter/scipy-notebook:x", "quay.io/jupyter/minimal-notebook:latest"],
         "quay.io/jupyter/minimal-notebook:latest"),
        (["debian:12", "lab/jupyter:latest"], "lab/jupyter:latest"),
        (["jupyterhub/jupyterhub:5", "quay.io/jupyterhub/k8s-hub:4"], None),
    ],
)  # fmt: skip
def test_the_likeliest_image_is_taken(images: list[str], chosen: str | None) -> None:
    assert best(images) == chosen


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a `docker` on the PATH that runs a script of the test."""

    def install(script: str) -> None:
        program = tmp_path / "docker"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return install


def test_an_image_with_jupyterlab_is_found_without_a_pull(docker: Callable[[str], None]) -> None:
    docker('[ "$1" = images ] || exit 9; echo debian:12; echo quay.io/jupyter/base-notebook:x')
    assert local_engine.jupyter_image() == "quay.io/jupyter/base-notebook:x"


def test_without_such_an_image_the_command_to_pull_one_is_named(
    docker: Callable[[str], None],
) -> None:
    docker("echo debian:12")
    with pytest.raises(NotFound, match="`jupyter` in its name") as error:
        local_engine.jupyter_image()
    assert "docker pull quay.io/jupyter" in (error.value.hint or "")


def test_an_engine_that_refuses_is_quoted(docker: Callable[[str], None]) -> None:
    docker("echo first >&2; printf 'permission \\033[1mdenied\\n' >&2; exit 1")
    with pytest.raises(JlrError, match="`docker` refuses: permission") as error:
        local_engine.jupyter_image()
    assert "\x1b" not in error.value.message


def test_an_engine_that_is_missing_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JlrError, match="`docker` is not installed"):
        local_engine.check_here()
    assert local_engine.addresses() == frozenset()


def test_an_engine_that_hangs_is_not_waited_for(
    docker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "ANSWER_SECONDS", 0.05)
    docker("exec sleep 5")
    with pytest.raises(JlrError, match="`docker` did not answer within"):
        local_engine.jupyter_image()


def test_the_addresses_of_all_running_containers_are_known(docker: Callable[[str], None]) -> None:
    docker("case $1 in ps) echo a; echo b;; container) echo 172.17.0.2; echo; echo 10.1.0.9;; esac")
    assert local_engine.addresses() == {"172.17.0.2", "10.1.0.9"}


def test_an_engine_of_another_machine_is_refused(docker: Callable[[str], None]) -> None:
    docker("echo unix:///var/run/docker.sock")
    local_engine.check_here()
    docker("echo ssh://far")
    with pytest.raises(JlrError, match="is on another machine"):
        local_engine.check_here()
