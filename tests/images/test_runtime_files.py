"""Jupyter's files stay out of an image, or none is made; with an engine whose container is here."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from jlremote.images.save import LEFT_THERE, NOT_ASIDE, moved_aside
from jlremote.place.runtimes.engine.kinds import DOCKER
from tests.lab.programs import write_program

# Runs what is to be run in the container on this machine.
ENGINE = """\
#!/bin/sh
case "$1 $*" in
"container "*Running*) echo RUNNING;;
"container "*diff*) DIFF;;
"container "*) echo false;;
"exec "*) while [ "$1" != sh ]; do shift; done; EXEC
esac
"""


@dataclass(frozen=True)
class Desk:
    """A container's file system below `root`."""

    root: Path

    @property
    def secrets(self) -> list[Path]:
        """The files with secrets: of jlr's server, of one that it did not launch."""
        folders = ("tmp/jlr-0/cont1/runtime", "home/ada/.local/share/jupyter/runtime")
        return [self.root / folder / "jpserver-1.json" for folder in folders]

    @property
    def mounts(self) -> Path:
        """The table of what is mounted."""
        return self.root / "proc/self/mountinfo"

    def engine(
        self, execute: str = 'exec "$@"', *, running: str = "true", diff: str = "exit 1"
    ) -> None:
        """Let the engine run commands in the container so, and tell its changes so."""
        program = self.root / "bin/docker"
        program.parent.mkdir(exist_ok=True)
        write_program(
            program,
            ENGINE.replace("EXEC", execute).replace("RUNNING", running).replace("DIFF", diff),
        )

    def save(self) -> subprocess.CompletedProcess[str]:
        """Run a command that prints which secrets are in the image."""
        script = moved_aside(DOCKER, "cont1", "LOOK", "")
        # Also `/proc`: the files of servers that other tests run must stay in their places.
        parts = r"(?<![\w.])/(tmp|home|root|dev|proc)/(?!null)"
        script = re.sub(parts, rf"{self.root}/\1/", script)
        look = f"echo in the image:; cd {self.root}; find tmp home -name '*.json'"
        script = script.replace("LOOK", look)
        path = f"{self.root}/bin:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": "/nonexistent"}
        return subprocess.run(
            ("sh", "-c", script), env=environment, capture_output=True, text=True, timeout=60
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    for file in made.secrets:
        file.parent.mkdir(parents=True)
        file.write_text("secret")
    (tmp_path / "dev/shm").mkdir(parents=True)
    made.mounts.parent.mkdir(parents=True)
    made.mounts.write_text("1 0 0:1 / / rw - overlay overlay rw\n")
    made.engine()
    return made


def check_back(desk: Desk) -> None:
    """Check that the secrets are in their places again, and nowhere else."""
    assert [file.read_text() for file in desk.secrets] == ["secret"] * 2
    assert list((desk.root / "dev/shm").iterdir()) == []


def test_all_files_are_aside_while_the_image_is_made_and_back_afterwards(desk: Desk) -> None:
    done = desk.save()
    assert (done.returncode, done.stdout) == (0, "in the image:\n")
    check_back(desk)


def test_what_is_mounted_stays_in_its_place(desk: Desk) -> None:
    """It is not in the image, and may be the host's own home with servers that run there."""
    with desk.mounts.open("a") as table:
        table.write(f"2 1 0:2 / {desk.root}/home rw - ext4 /dev/sda rw\n")
    there = desk.secrets[1].relative_to(desk.root)
    done = desk.save()
    assert (done.returncode, done.stdout) == (0, f"in the image:\n{there}\n"), done.stderr
    check_back(desk)


LOOK = """aside=$(printf '%s\\n' "$3" | sed -n '1s/^aside=//p')"""


@pytest.mark.parametrize(
    "execute",
    [
        "exit 126",  # it is paused, say
        "yes 0 /folder",
        "echo 0 /folder; echo all",
        'case $* in *"cp -pR"*) exit 1;; esac; exec "$@"',
        'shift 2; exec sh -c "cp() { return 1; }; $1"',
        # Where the memory is the host's, other users see the place's name, and plant it.
        f'{LOOK}; eval "[ -z $aside ] || mkdir -p -m 777 $aside"; exec "$@"',
    ],
)
def test_without_them_aside_no_image_is_made(execute: str, desk: Desk) -> None:
    desk.engine(execute)
    done = desk.save()
    assert (done.returncode, done.stdout) == (NOT_ASIDE, "")
    check_back(desk)


RUNTIME = "/home/ada/.local/share/jupyter/runtime"


@pytest.mark.parametrize("name", ["jupyter_cookie_secret", "notebook_cookie_secret"])
def test_a_stopped_container_with_a_cookie_secret_is_not_saved(name: str, desk: Desk) -> None:
    desk.engine(running="false", diff=f"echo 'C /home'; echo 'A {RUNTIME}/{name}'")
    done = desk.save()
    assert (done.returncode, done.stdout) == (LEFT_THERE, "")
    assert done.stderr == f"{RUNTIME}/{name}\n"


@pytest.mark.parametrize(
    "diff",
    [
        "A ROOT/tmp/jlr-0/cont1/runtime/jupyter_cookie_secret",  # the next server gets another one
        f"D {RUNTIME}/jupyter_cookie_secret",
        "",
    ],
)
def test_a_stopped_container_without_one_is_saved(diff: str, desk: Desk) -> None:
    desk.engine(running="false", diff=f"echo '{diff}'".replace("ROOT", str(desk.root)))
    done = desk.save()
    assert done.returncode == 0
    assert done.stdout.startswith("in the image:\n")
