"""Missing, not permitted, not running: the errors of each engine, with their remedies."""

from __future__ import annotations

import pytest

from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.engine_errors import (
    EngineMissing,
    EngineNotPermitted,
    EngineNotRunning,
    EngineUnusable,
    SudoPasswordNeeded,
    engine_error,
    reason,
)
from jlremote.place.runtimes.engine.kinds import ENGINES


# As docker 20.10 and 28, podman 4.3 and sudo 1.9 say it.
@pytest.mark.parametrize(
    ("engine", "said", "status", "kind", "mend"),
    [
        ("docker", "sh: 1: docker: not found", 127, EngineMissing, "apt install docker.io"),
        ("podman", "sh: 1: podman: not found", 127, EngineMissing, "apt install podman"),
        ("sudo podman", "sudo: podman: command not found", 1, EngineMissing, "apt install podman"),
        ("sudo docker", "sh: 1: sudo: not found", 127, EngineMissing, "--sudo"),
        (
            "docker",
            "Got permission denied while trying to connect to the Docker daemon socket",
            1,
            EngineNotPermitted,
            "usermod -aG docker",
        ),
        (
            "podman",
            'Error: cannot find UID/GID for user me: no subuid ranges found for user "me"',
            125,
            EngineNotPermitted,
            "--add-subuids",
        ),
        (
            "sudo docker",
            "me is not in the sudoers file.",
            1,
            EngineNotPermitted,
            "NOPASSWD: /usr/bin/docker",
        ),
        ("sudo docker", "sudo: a password is required", 1, SudoPasswordNeeded, "NOPASSWD"),
        (
            "sudo docker",
            "sudo: no askpass program specified, try setting SUDO_ASKPASS",
            1,
            SudoPasswordNeeded,
            "in a terminal asks",
        ),
        ("sudo podman", "sudo: 3 incorrect password attempts", 1, SudoPasswordNeeded, "NOPASSWD"),
        (
            "docker",
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
            1,
            EngineNotRunning,
            "systemctl start docker",
        ),
        (
            "podman",
            "Cannot connect to Podman. Please verify your connection to the Linux system",
            125,
            EngineNotRunning,
            "systemctl --user start podman",
        ),
    ],
)
def test_an_unusable_engine_comes_with_its_remedy(
    engine: str, said: str, status: int, kind: type[EngineUnusable], mend: str
) -> None:
    error = engine_error(ENGINES[engine], Completed(status, "", f"{said}\n"))
    assert type(error) is kind
    assert mend in (error.hint or "")


def test_a_user_without_docker_is_told_of_sudo_unless_it_was_tried() -> None:
    refused = Completed(1, "", "permission denied while trying to connect to the docker API\n")
    assert "--sudo" in (engine_error(ENGINES["docker"], refused).hint or "")
    assert "--sudo" not in (engine_error(ENGINES["sudo docker"], refused).hint or "")


def test_a_containers_id_is_not_shown_for_its_name() -> None:
    said = f'Error: unable to start container "{"5f" * 32}": unable to find user me'
    failed = Completed(125, "", said)
    assert reason(failed) == "unable to find user me"


def test_a_request_to_the_engine_is_not_shown_behind_what_went_wrong() -> None:
    sentence = "permission denied while trying to connect to the Docker daemon socket at unix:///x"
    request = 'Get "http://%2Fx/v1.50/json?limit=1": dial unix /x: connect: permission denied'
    assert reason(Completed(1, "", f"{sentence}: {request}")) == sentence


CHAIN = (
    "Error response from daemon: failed to create task for container: failed to create shim task: "
    "OCI runtime create failed: runc create failed: unable to start container process: error "
    "during container init: error running prestart hook #0: exit status 1, stdout: , stderr: "
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # What says why is in the last line.
        (
            (
                f"{CHAIN}Auto-detected mode as 'legacy'\nnvidia-container-cli: requirement error: "
                "unsatisfied condition: cuda>=12.6, please update your driver: unknown\n"
                "Error: failed to start containers: cont1\n"
            ),
            (
                "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, "
                "please update your driver"
            ),
        ),
        (
            (
                "WARNING: Error loading config file: /root/.docker/config.json: permission denied\n"
                "docker: Error response from daemon: no such runtime.\n\n"
                "Run 'docker run --help' for more information\n"
            ),
            "no such runtime.",
        ),
        (
            'time="2025" level=warning msg="x"\nError: 2 errors occurred:\n * one: no\n * two: no',
            "2 errors occurred: * one: no * two: no",
        ),
        ("Got permission denied", "Got permission denied"),
    ],
)
def test_all_lines_of_an_error_are_told_and_nothing_beside_it(said: str, told: str) -> None:
    assert reason(Completed(1, "", said)) == told


def test_the_end_of_a_long_error_is_told_too() -> None:
    told = reason(Completed(1, "", f"Error: begins {'x' * 5000} because of this"))
    assert told.startswith("begins xxx")
    assert told.endswith("x because of this")
    assert len(told) < 500
