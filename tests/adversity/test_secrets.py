"""Other users of a host read the arguments of all its processes; a person's secrets are in none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jlremote.containers.new_container import with_owner
from jlremote.errors import Usage
from jlremote.place.host import kept_jobs
from jlremote.place.host.kept_jobs import ProcessJobs, ProcessPlan
from jlremote.place.host.shell_text import wait_while
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.docker.docker_commands import create_argv
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import Attachment, ContainerSpec
from jlremote.place.runtimes.scripts import variables
from tests.place.host.shells import SHELLS, run_sh

SECRET = "it's s3cret"
KEY = f"-----BEGIN-----\n{SECRET}\n-----END-----"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the scripts read /proc")


def arguments() -> Iterator[bytes]:
    """Give the arguments of all processes, which every user may read."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes()
        except OSError:  # it has ended
            continue


def test_a_jobs_variables_are_in_no_processes_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    plain, private = variables.parted({"KEY": KEY, "WANDB_API_KEY": SECRET, "UID": "7"})
    script = 'printf "%s" "$KEY$WANDB_API_KEY"; cat; while [ ! -e "$0" ]; do sleep 0.02; done'
    over = tmp_path / "over"
    take = variables.TAKE + 'exec "$@"'
    command = ("sh", "-c", take, "sh", "sh", "-c", script, str(over))
    argv = Bare().attached("h", command, Attachment(), plain)
    plan = ProcessPlan("job", argv, "sh", variables=private, mark="mark")
    begun = run_sh("sh", kept_jobs.launch(plan))
    try:
        seen = list(arguments())
        assert any(str(over).encode() in words for words in seen), "no process of it was seen"
        assert not [words for words in seen if b"s3cret" in words]
    finally:
        over.touch()
    assert begun.returncode == 0, begun
    folder = tmp_path / "jlr" / "jobs" / os.uname().nodename / "job"
    run_sh("sh", wait_while(f"[ ! -e {folder}/exit ]", 10, every=0.02))
    assert run_sh("sh", ProcessJobs().rest("job", 0, 0)).stdout == KEY + SECRET
    kept = [file for file in folder.iterdir() if file.name != "stdout"]
    assert not [file for file in kept if b"s3cret" in file.read_bytes()]


def docker(folder: Path) -> None:
    """Put a stand-in there that notes its arguments, and the variables that it is given."""
    program = folder / "docker"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" >"$0.arguments"\n'
        'case "$*" in *--env-file=/dev/stdin*) cat /dev/stdin;; esac >"$0.file"\n'
        'printf %s "${KEY-}" >"$0.key"\n'
    )
    program.chmod(0o700)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_variables_of_a_new_container_are_in_no_processes_arguments(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    given = (f"WANDB_API_KEY={SECRET}", "PATH=/opt/bin", f"KEY={KEY}", "LANG", "EMPTY=")
    spec = ContainerSpec("cont1", "torch", options=ContainerOptions(environment=given))
    create = create_argv(DOCKER, spec)
    done = run_sh(shell, f"{with_owner(create, given)} || exit 125\necho done\n")
    assert (done.returncode, done.stdout) == (0, "done\n"), done
    arguments = (tmp_path / "docker.arguments").read_text()
    assert "s3cret" not in arguments
    assert {"--env=KEY", "--env=LANG", "--env=EMPTY="} <= set(arguments.splitlines())
    assert (tmp_path / "docker.file").read_text() == f"WANDB_API_KEY={SECRET}\nPATH=/opt/bin\n"
    assert (tmp_path / "docker.key").read_text() == KEY


def test_a_variable_that_cannot_be_hidden_is_refused() -> None:
    spec = ContainerSpec("c1", "torch", options=ContainerOptions(environment=(f"KEY={KEY}",)))
    with pytest.raises(Usage, match="`--env KEY` has several lines") as refused:
        with_owner(create_argv(ENGINES["sudo docker"], spec), spec.options.environment)
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"
    item = f"a.key={KEY}"
    dotted = ContainerSpec("c1", "torch", options=ContainerOptions(environment=(item,)))
    with pytest.raises(Usage, match="invalid name in `--env a"):
        with_owner(create_argv(DOCKER, dotted), dotted.options.environment)
    with pytest.raises(Usage, match="invalid name in `--env a") as refused:
        variables.parted({"a.key": SECRET})
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"
