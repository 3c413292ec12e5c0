"""The scripts that wait for packages and look for them, in a shell of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.scripts import packages, variables
from tests.place.host.shells import run_sh


def here(script: str, folder: Path) -> str:
    """Return a script that uses `folder` where a container has its own `/tmp`."""
    return script.replace(variables.ROOT, str(folder))


def waited(folder: Path) -> subprocess.CompletedProcess[str]:
    return run_sh("sh", here(packages.until_installed("job1"), folder) + "echo started\n")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return the folder in which an installation leaves its notes."""
    folder = tmp_path / "job1"
    folder.mkdir()
    return folder


def test_a_job_starts_when_its_packages_are_installed(notes: Path) -> None:
    (notes / "installed").write_text("0\n")
    assert waited(notes.parent).stdout == "started\n"


def test_a_job_whose_packages_were_not_installed_does_not_start(notes: Path) -> None:
    (notes / "installed").write_text("1\n")
    done = waited(notes.parent)
    assert (done.returncode, done.stdout) == (packages.NOT_INSTALLED, "")
    assert done.stderr == "not started: its packages were not installed\n"


def test_a_job_does_not_wait_for_an_installation_that_was_killed(notes: Path) -> None:
    with subprocess.Popen(("true",)) as ended:
        ended.wait()
    (notes / "installing").write_text(f"{ended.pid}\n")
    assert waited(notes.parent).returncode == packages.NOT_INSTALLED


def test_a_job_waits_as_long_as_the_installation_runs(notes: Path) -> None:
    (notes / "installing").write_text(f"{os.getpid()}\n")
    script = here(packages.until_installed("job1"), notes.parent).replace(
        "jlr_turns=$((jlr_turns + 1))", f'echo 0 >"{notes}/installed"'
    )
    assert run_sh("sh", script + "echo started\n").stdout == "started\n"


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        (("pytest",), 0),
        (("pytest", "hypothesis>=1"), 0),
        (("pytest[extra] ~= 1.0",), 0),
        (("pytest", "no-such-distribution-at-all"), packages.GONE),
        (("git+https://example.org/x.git",), 0),
    ],
)
def test_packages_are_looked_for_by_their_names(
    wanted: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    script = here(packages.are_there(wanted), tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run_sh("sh", f"PATH={path}\n{script}").returncode == status


def test_a_virtual_environment_of_ours_comes_first(tmp_path: Path) -> None:
    site = tmp_path / ".packages/lib/python3.11/site-packages"
    python = tmp_path / ".packages/bin/python"
    for folder in (site, python.parent):
        folder.mkdir(parents=True)
    python.symlink_to("/bin/true")
    use = here(packages.USE, tmp_path)
    found = run_sh("sh", f'PYTHONPATH=/theirs\n{use}echo "${{PATH%%:*}}" "$PYTHONPATH"\n')
    assert found.stdout == f"{python.parent} {site}:/theirs\n"


def test_without_such_an_environment_nothing_is_set(tmp_path: Path) -> None:
    use = here(packages.USE, tmp_path / "none")
    done = run_sh("sh", f'unset PYTHONPATH; PATH=/bin:/usr/bin\n{use}echo "$PATH|$PYTHONPATH"\n')
    assert done.stdout == "/bin:/usr/bin|\n"


def test_an_installation_leaves_its_status_for_the_job(tmp_path: Path) -> None:
    script = here(packages.install_for_job("job1", ("x",)), tmp_path)
    without_python = f"command() {{ return 1; }}\n{script}"
    assert run_sh("sh", without_python).returncode != 0
    assert (tmp_path / "job1/installed").read_text() != "0\n"
    assert (tmp_path / "job1/installing").read_text().strip().isdigit()
    assert (tmp_path / "job1").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["own", "another user's", "a link"])
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="it gives folders away")
def test_what_another_user_put_in_the_place_of_ones_packages_is_in_no_image(
    tmp_path: Path, kind: str
) -> None:
    made = tmp_path / ("elsewhere" if kind == "a link" else "jlr-61001")
    tool = made / ".packages/bin/tool"
    tool.parent.mkdir(parents=True)
    (made / ".packages/lib/python3.11/site-packages").mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    os.chown(made, 61_001 if kind != "another user's" else 61_002, -1)
    if kind == "a link":
        (tmp_path / "jlr-61001").symlink_to(made)
    # An engine that runs commands here, as the container's user and as root.
    engine = tmp_path / "docker"
    engine.write_text(
        "#!/bin/sh\n"
        'case $* in *--user=0*) while [ "$1" != sh ]; do shift; done; exec "$@";;\n'
        f"*) echo 61001 {tmp_path}/home;; esac\n"
    )
    engine.chmod(0o755)
    script = packages.share(DOCKER, "c", fresh=True).replace("/tmp/jlr", f"{tmp_path}/jlr")
    script = script.replace("/opt/jlr", f"{tmp_path}/opt")
    done = run_sh("sh", f"PATH={tmp_path}:$PATH\n{script}")
    assert done.returncode == 0, done
    assert (tmp_path / "opt/bin/tool").exists() == (kind == "own")
