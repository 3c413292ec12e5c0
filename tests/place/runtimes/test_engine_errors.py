"""Missing, not permitted, not running: the errors of each engine, with their remedies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
from tests.sources import modules

# As docker 20.10 and 28, podman 4.3 and sudo 1.9 say it.
REMEDIES: dict[type[EngineUnusable], tuple[tuple[str, str, str], ...]] = {
    EngineMissing: (
        ("docker", "sh: 1: docker: not found", "apt install docker.io"),
        ("podman", "sh: 1: podman: not found", "apt install podman"),
        ("sudo podman", "sudo: podman: command not found", "apt install podman"),
        ("sudo docker", "sh: 1: sudo: not found", "--sudo"),
    ),
    EngineNotPermitted: (
        ("docker", "permission denied while trying to connect to the Docker daemon", "-aG docker"),
        ("podman", "Error: cannot find UID/GID for user me: no subuid ranges", "--add-subuids"),
        ("sudo docker", "me is not in the sudoers file.", "NOPASSWD: /usr/bin/docker"),
    ),
    SudoPasswordNeeded: (
        ("sudo docker", "sudo: a password is required", "NOPASSWD"),
        ("sudo docker", "sudo: no askpass program specified, try", "in a terminal asks"),
        ("sudo podman", "sudo: 3 incorrect password attempts", "NOPASSWD"),
    ),
    EngineNotRunning: (
        ("docker", "Cannot connect to the Docker daemon at unix:///x.", "systemctl start docker"),
        ("podman", "Cannot connect to Podman. Please verify", "systemctl --user start podman"),
    ),
}


@pytest.mark.parametrize("kind", REMEDIES)
def test_an_unusable_engine_comes_with_its_remedy(kind: type[EngineUnusable]) -> None:
    for engine, said, mend in REMEDIES[kind]:
        status = 127 if said.startswith("sh:") else 1
        error = engine_error(ENGINES[engine], Completed(status, "", f"{said}\n"))
        assert type(error) is kind
        assert mend in (error.hint or ""), said


def test_a_user_without_docker_is_told_of_sudo_unless_it_was_tried() -> None:
    refused = Completed(1, "", "permission denied while trying to connect to the docker API\n")
    assert "--sudo" in (engine_error(ENGINES["docker"], refused).hint or "")
    assert "--sudo" not in (engine_error(ENGINES["sudo docker"], refused).hint or "")


DENIED = "permission denied while trying to connect to the Docker daemon socket at unix:///x"
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
        ("WARNING: old\nError response from daemon: no \x1b[31msuch\nError: failed", "no such"),
        ("", "exit status 1"),
        # A container's id is not shown for its name, nor a request behind what went wrong.
        (f'Error: unable to start container "{"5f" * 32}": no user me', "no user me"),
        (f'{DENIED}: Get "http://%2Fx/v1.50/json": dial unix /x: permission denied', DENIED),
    ],
)
def test_all_lines_of_an_error_are_told_and_nothing_beside_it(said: str, told: str) -> None:
    assert reason(Completed(1, "", said)) == told


def test_the_end_of_a_long_error_is_told_too() -> None:
    told = reason(Completed(1, "", f"Error: begins {'x' * 5000} because of this"))
    assert told.startswith("begins xxx")
    assert told.endswith("x because of this")
    assert len(told) < 500


PROGRAMS = ("docker", "podman", "nvidia-docker")
MAY_SPELL_IT = {"jlremote.place.runtimes.engine.kinds"}  # which holds the table


def test_the_old_tool_only_creates_and_docker_does_the_rest() -> None:
    for sudo, words in (("", ()), ("sudo ", ("sudo", "-A", "-k"))):
        engine = ENGINES[f"{sudo}nvidia-docker"]
        assert engine("create", "x") == (*words, "nvidia-docker", "create", "x")
        assert engine("exec", "x", "a b") == (*words, "docker", "exec", "x", "a b")
        assert engine() == (*words, "docker")
        assert engine.shown("rm", "x") == f"{sudo}docker rm x"
        assert engine.everyday == ENGINES[f"{sudo}docker"]
    told = ENGINES["nvidia-docker"].with_variables(NV_GPU="0")
    assert told("create") == ("env", "NV_GPU=0", "nvidia-docker", "create")
    assert all(e.everyday == e for name, e in ENGINES.items() if "nvidia" not in name)


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("sh: 1: nvidia-docker: not found", "nvidia-docker"),
        ("env: 'nvidia-docker': No such file or directory", "nvidia-docker"),
        ("env: \u2018nvidia-docker\u2019: No such file or directory", "nvidia-docker"),
        ("bash: docker: command not found", "docker"),
    ],
)
def test_it_is_told_which_of_the_two_is_not_there(said: str, missing: str) -> None:
    error = engine_error(ENGINES["nvidia-docker"], Completed(127, "", said))
    assert isinstance(error, EngineMissing)
    assert error.message == f"`{missing}` was not found on the host"


def beginnings(tree: ast.Module) -> Iterator[str]:
    """Give the first words of everything that may be an argv, or a command line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_only_engines_begin_their_argvs() -> None:
    spelt = {
        module
        for module, tree in modules().items()
        if any(word in PROGRAMS for word in beginnings(tree))
    }
    assert spelt <= MAY_SPELL_IT
