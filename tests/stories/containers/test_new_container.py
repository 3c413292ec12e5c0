"""The creation of a container, with a host that only answers."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jlremote.containers import new_container
from jlremote.errors import JlrError
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.gpus.leases import Lease
from jlremote.hosts.requests import StartRequest
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.runtime import ContainerSpec
from tests.lab.programs import wait_until, write_program
from tests.stories.containers.parts import Answer, Start, inspected, refused, start

SPEC = ContainerSpec("cont1", "torch")
RUNS = inspected("launches")


def creating(*answers: Answer, request: StartRequest | None = None) -> Start:
    return start({"create": list(answers)}, request)


@pytest.mark.parametrize(
    ("options", "own"),
    [
        (ContainerOptions(), True),
        (ContainerOptions(engine_arguments=("--cap-add", "NET_ADMIN")), True),
        (ContainerOptions(network="bridge"), False),
        (ContainerOptions(engine_arguments=("--net=mine",)), False),
        (ContainerOptions(engine_arguments=("--network", "mine")), False),
        (ContainerOptions(engine_arguments=("--link", "db")), False),
    ],
)
def test_a_container_gets_a_network_of_its_own_unless_one_was_chosen(
    options: ContainerOptions, own: bool
) -> None:
    begun = creating(RUNS)
    new_container.create(begun.context, replace(SPEC, options=options), AllocatedGpus())
    [script] = begun.host.texts("create")
    assert ("docker network create" in script) == own
    # No docker is told not to pull: an old one does not know it.
    assert "--pull" not in script
    assert script.startswith("LC_ALL=C; export LC_ALL\ndocker image inspect -- torch"), script


def test_the_end_of_its_script_does_not_end_a_creation_unseen(tmp_path: Path) -> None:
    """Docker would finish it after the rollback has looked, which waits for its client."""
    docker = tmp_path / "docker"
    write_program(docker, '#!/bin/sh\n[ "$1" != create ] || { : >"$0.1"; sleep 0.5; : >"$0.2"; }')
    begun, path = creating(RUNS), f"{tmp_path}:{os.environ['PATH']}"
    new_container.create(begun.context, SPEC, AllocatedGpus())
    argv = ("sh", "-c", *begun.host.texts("create"))
    with subprocess.Popen(argv, env={"PATH": path}, start_new_session=True) as script:
        wait_until((tmp_path / "docker.1").exists, "the creation")
        os.killpg(script.pid, signal.SIGTERM)
    wait_until((tmp_path / "docker.2").exists, "its end")


def test_podman_without_an_init_creates_it_without() -> None:
    begun = creating(refused("Error: container-init binary not found on the host"), RUNS)
    assert new_container.create(begun.context, SPEC, AllocatedGpus()) is not None
    assert "left out `--init`" in begun.notes.notes[0]
    assert ["--init " in text for text in begun.host.texts("create")] == [True, False]


def test_a_container_that_ends_without_its_entrypoint_too_is_an_error() -> None:
    begun = creating(refused("bad", 117), refused("sh: not found", 117))
    with pytest.raises(JlrError, match="`cont1` ended at once: sh: not found"):
        new_container.create(begun.context, SPEC, AllocatedGpus())


def test_a_failed_start_removes_only_the_container_of_its_own_mark() -> None:
    begun = creating(RUNS)
    new_container.create(begun.context, SPEC, AllocatedGpus())
    begun.context.undo.close()
    [removal] = begun.host.texts("script")
    [created] = begun.host.texts("create")
    mark = removal.partition("org.jlremote.start=")[2].split()[0].rstrip("')")
    assert f"--label=org.jlremote.start={mark}" in created
    assert "docker rm --force --volumes $ids" in removal


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ("f00d\n", "removed the new container `cont1`"),
        (refused("gone", 1), "left behind on `dgx`: the container `cont1`"),
    ],
)
def test_a_container_that_is_removed_or_left_is_named(answer: Answer, note: str) -> None:
    begun = start({"create": [RUNS], "script": [answer]})
    new_container.create(begun.context, SPEC, AllocatedGpus())
    begun.context.undo.close()
    assert begun.notes.notes == [note]


def test_leased_gpus_are_tied_to_the_container_in_the_same_round_trip() -> None:
    begun = start({"create": [RUNS], "lease": [""]})
    lease = Lease("cont1", ("GPU-1",), "w", "boot")
    new_container.create(begun.context, SPEC, AllocatedGpus(engine="device=0", lease=lease))
    assert [step for step, _ in begun.host.scripts] == ["create", "lease"]
    assert "{{.State.Pid}}" in begun.host.texts("lease")[0]
