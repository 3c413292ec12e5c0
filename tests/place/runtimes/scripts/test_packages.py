"""The scripts that install packages and look for them, in a shell of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.scripts import packages, variables
from tests.lab.programs import write_program
from tests.place.host.shells import run_sh


def here(script: str, folder: Path) -> str:
    """Return a script that uses `folder` where a container has its own `/tmp`."""
    return script.replace(variables.ROOT, str(folder))


def test_a_job_whose_packages_cannot_be_installed_does_not_start(tmp_path: Path) -> None:
    script = here(packages.before_job(("x",)), tmp_path)
    done = run_sh("sh", f"command() {{ return 1; }}\n{script}echo started\n")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.endswith("in the image\nnot started: its packages were not installed\n")


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
    write_program(
        engine,
        "#!/bin/sh\n"
        'case $* in *--user=0*) while [ "$1" != sh ]; do shift; done; exec "$@";;\n'
        f"*) echo 61001 {tmp_path}/home;; esac\n",
    )
    script = packages.share(DOCKER, "c", fresh=True).replace("/tmp/jlr", f"{tmp_path}/jlr")
    script = script.replace("/opt/jlr", f"{tmp_path}/opt")
    done = run_sh("sh", f"PATH={tmp_path}:$PATH\n{script}")
    assert done.returncode == 0, done
    assert (tmp_path / "opt/bin/tool").exists() == (kind == "own")
