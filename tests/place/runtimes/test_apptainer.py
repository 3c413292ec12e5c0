"""The script that enters an image, and what is remembered of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jlremote.errors import Usage
from jlremote.place.runtimes import processes
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.runtime import ContainerSpec

OPTIONS = ContainerOptions(
    volumes=("/raid/me:/data:ro",),
    environment=("KEY=it's 1 $x", "HOST_ONLY"),
    workdir="/data",
    engine_arguments=("--writable-tmpfs",),
)
# Prints what it is given, in place of the program.
SHOWS = """\
#!/bin/sh
printf '%s\\n' "$@"
env | grep -e ENV_ -e ^PYTHON -e ^JUPYTER | sort
"""


def entered(tmp_path: Path, spec: ContainerSpec, program: str = "apptainer") -> list[str]:
    (tmp_path / program).write_text(SHOWS)
    (tmp_path / program).chmod(0o755)
    done = subprocess.run(
        ("sh", "-c", processes.enter(program, spec, '"$HOME/s 1"'), "sh", "echo", "a b"),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": "/h", "PYTHONPATH": "/outside"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_older_program_has_variables_of_its_own_and_no_gpus_unless_asked(
    tmp_path: Path,
) -> None:
    spec = ContainerSpec("s", "x.sif", options=OPTIONS)
    lines = entered(tmp_path, spec, "singularity")
    assert "SINGULARITYENV_KEY=it's 1 $x" in lines
    assert "--nv" not in lines


def test_a_name_that_no_shell_takes_is_refused() -> None:
    spec = ContainerSpec("s", "x.sif", options=ContainerOptions(environment=("A B=1",)))
    with pytest.raises(Usage, match="invalid name in `--env A B="):
        processes.enter("apptainer", spec, "/s")


def test_what_is_written_is_read_again() -> None:
    spec = ContainerSpec("s", "/i/x.sif", options=OPTIONS, gpus="auto:2")
    assert processes.read_definition(processes.written_definition(spec)) == (
        "/i/x.sif",
        "auto:2",
        OPTIONS,
    )


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"image": "x", "gpus": null, "options": {"x": 1}}']
)
def test_another_text_is_not_taken_for_one(text: str) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        processes.read_definition(text)
