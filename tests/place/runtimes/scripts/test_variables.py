"""The folder of a user's files in a container's `/tmp`, and what another user plants there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jlremote.jupyter import launch, scripts
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.scripts import packages, variables
from tests.place.host.shells import run_sh

CONTAINERS = Containers(DOCKER)
OURS = "jlr-0"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def in_folder(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that uses `folder` where a container has its own `/tmp`."""
    return run_sh("sh", script.replace(variables.ROOT, str(folder / OURS)))


def of_another_user(folder: Path) -> None:
    os.chown(folder, 65534, 65534)


def behind_a_link(folder: Path) -> None:
    """Put a link in the folder's place; it leads to a folder that is this user's alone."""
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def open_to_others(folder: Path) -> None:
    folder.chmod(0o701)


def open_to_the_group(folder: Path) -> None:
    folder.chmod(0o750)


planted = pytest.mark.parametrize(
    "plant",
    [
        pytest.param(of_another_user, marks=needs_root),
        behind_a_link,
        open_to_others,
        open_to_the_group,
    ],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with all that jlr would use: a configuration, programs, notes."""
    ours = tmp_path / OURS
    ours.mkdir(mode=0o700)
    python = ours / ".packages/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho planted\n")
    python.chmod(0o700)
    (python.parent / "jupyter-lab").symlink_to("python")
    (ours / "cont1/runtime").mkdir(parents=True)
    (ours / "cont1/jupyter.log").write_text("planted\n")
    (ours / "cont1/installed").write_text("0\n")
    return ours


def files(folder: Path) -> set[Path]:
    return set(folder.parent.rglob("*"))


@planted
@pytest.mark.parametrize(
    "script",
    [
        launch.Launch(CONTAINERS, "cont1", "mine", "h", jupyter=packages.USE).script(),
        launch.launch_once(CONTAINERS, "cont1", "mine", "echo planted\n"),
        scripts.probe(CONTAINERS, "cont1"),
        launch.wait_and_probe(CONTAINERS, "cont1", "mine"),
        launch.abandon(CONTAINERS, "cont1", "mine"),
        scripts.clear(CONTAINERS, "cont1"),
        scripts.show_log(CONTAINERS, "cont1", lines=9),
        packages.USE + "jupyter-lab\n",
        packages.are_there(("x",)),
    ],
)
def test_a_folder_that_another_user_planted_is_refused(
    script: str, plant: Callable[[Path], None], folder: Path
) -> None:
    plant(folder)
    before = files(folder)
    done = in_folder(script, folder.parent)
    assert (done.returncode, done.stdout) == (variables.NO_FOLDER, "")
    assert (
        done.stderr == f"{folder} is not a folder of this user alone, with mode 0700 and no link\n"
    )
    assert files(folder) == before


@planted
def test_no_package_of_a_job_is_installed_in_a_planted_folder(
    plant: Callable[[Path], None], folder: Path
) -> None:
    plant(folder)
    before = files(folder)
    of_debian = "command() { echo /usr/bin/python3; }\n"
    done = in_folder(f"{of_debian}{packages.before_job(('x',))}echo planted\n", folder.parent)
    assert (done.returncode, done.stdout) == (variables.NO_FOLDER, "")
    assert files(folder) == before


@planted
def test_no_home_is_made_in_a_planted_folder(plant: Callable[[Path], None], folder: Path) -> None:
    plant(folder)
    script = f'HOME=/nonexistent\n{variables.writable_home("cont1")}echo "$HOME"\n'
    done = in_folder(script, folder.parent)
    assert done.stdout == "/nonexistent\n"
    assert variables.NOT_PRIVATE in done.stderr


def test_a_folder_of_ones_own_is_made_and_used_again(tmp_path: Path) -> None:
    for _ in range(2):
        done = in_folder(f"umask 000\n{variables.PRIVATE} && echo ours\n", tmp_path)
        assert (done.stdout, done.stderr) == ("ours\n", "")
    assert (tmp_path / OURS).stat().st_mode & 0o7777 == 0o700


def test_a_folder_with_its_parents_group_is_ones_own(tmp_path: Path) -> None:
    (tmp_path / OURS).mkdir()
    (tmp_path / OURS).chmod(0o2700)
    assert in_folder(f"{variables.PRIVATE} && echo ours\n", tmp_path).stdout == "ours\n"


def test_a_container_that_cannot_be_written_is_still_looked_into(tmp_path: Path) -> None:
    """An image may bring a Jupyter of its own, and run read-only."""
    assert in_folder(f"mkdir() {{ return 1; }}\n{variables.PRIVATE}\n", tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["cont1", "it's"])
def test_a_home_that_cannot_be_written_is_replaced(name: str, tmp_path: Path) -> None:
    script = variables.writable_home(name)
    done = in_folder(f'HOME=/nonexistent\n{script}echo "$HOME"\n', tmp_path)
    assert done.stdout == f"{tmp_path / OURS}/{name}/home\n"
    assert (tmp_path / OURS / name / "home").is_dir()
    assert in_folder(f'HOME=/tmp\n{script}echo "$HOME"\n', tmp_path).stdout == "/tmp\n"
