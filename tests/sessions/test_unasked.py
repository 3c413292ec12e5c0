"""A container in which the engine runs no program: what runs there is unknown, and never "no"."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.long import LONG
from tests.sessions.parts import failed, started


def without_a_shell(here: Container) -> None:
    here.engine.docker("exec", "--user=0", here.name, "mv", "/usr/bin/dash", "/usr/bin/gone")


def with_another_shell(here: Container) -> None:
    """Have `sh` print a greeting, read nothing and end well, as a broken wrapper may."""
    script = "printf '#!/usr/bin/gone\necho Welcome\n' >/usr/bin/new; chmod 755 /usr/bin/new"
    swap = f"cp /usr/bin/dash /usr/bin/gone; {script}; mv /usr/bin/new /usr/bin/dash"
    here.engine.docker("exec", "--user=0", here.name, "sh", "-c", swap)


def without_room(here: Container) -> None:
    # Docker takes the new limit at once; what runs already goes on.
    here.engine.docker("update", "--pids-limit", "2", here.name)


@pytest.mark.parametrize("hurt", [without_a_shell, LONG(with_another_shell), LONG(without_room)])
def test_a_busy_kernel_behind_a_failing_exec_is_not_called_stopped(
    laptop: Laptop, container: ContainerFactory, hurt: Callable[[Container], None]
) -> None:
    here = container()
    session = started(laptop, here)
    with session.notebook("busy.ipynb") as kernel:
        kernel.keep_busy()
        hurt(here)
        anyway = f"`jlr stop lab/{here.name} --container --force` ends all that runs there"
        why = f"cannot ask `lab/{here.name}` for busy kernels and programs: "
        failed(laptop.jlr("stop"), 7, why, "nothing was stopped", anyway)
        failed(laptop.jlr("restart", here.name), 7, f"cannot ask what runs in `{here.name}`: ")
        failed(laptop.jlr("output", here.name), 1, f"cannot read what `lab/{here.name}` printed: ")
        [shown] = json.loads(laptop.jlr("list", "--json").stdout)
        assert (shown["name"], shown["state"]) == (here.name, "up")
        assert session.ask("api/status")["kernels"] == 1
        ended = laptop.jlr("stop", f"lab/{here.name}", "--container", "--force", "--yes")
        assert ended.status == 0, ended
        assert not here.running


def test_a_working_folder_that_was_made_anew_hides_no_kernel(
    laptop: Laptop, container: ContainerFactory, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    here = container(options=(f"--volume={folder}:/work", "--workdir=/work"))
    session = started(laptop, here)
    with session.notebook("busy.ipynb") as kernel:
        kernel.keep_busy()
        assert not [*folder.iterdir()]
        folder.rmdir()
        folder.mkdir()
        failed(laptop.jlr("stop"), 7, "has busy kernels: `busy.ipynb`")
