"""A JupyterLab that is missing, broken or slow is told as such, with what to do."""

from __future__ import annotations

import pytest

from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.link.servers import start_inside
from tests.long import LONG
from tests.outages.parts import within
from tests.sessions.parts import failed, start, started


def test_a_jupyter_that_ends_is_reported_with_its_last_lines_until_it_is_mended(
    lasting_laptop: Laptop, container: ContainerFactory
) -> None:
    here = container("lab/broken")
    failed(
        start(lasting_laptop, "lab", here.name),
        1,
        "exit status 1",
        "ImportError: cannot import name 'contextfilter' from 'jinja2'",
        f"docker exec -it {here.name} jupyter lab",
    )
    said = lasting_laptop.jlr("list", "--json")
    assert here.name not in said.stdout, said

    words = "echo 'this time another'; exit 9"
    here.execute("sh", "-c", f'echo "#!/bin/sh\n{words}" > /opt/broken/bin/jupyter-lab')
    message = failed(start(lasting_laptop, "lab", here.name), 1, "exit status 9", "another")
    assert "ImportError" not in message

    here.execute("rm", "/opt/broken/bin/jupyter-lab")
    assert started(lasting_laptop, here).ask("api/status")["kernels"] == 0


@within(15)
def test_a_container_where_nothing_can_be_written_says_so_at_once(
    lasting_laptop: Laptop, container: ContainerFactory
) -> None:
    here = container(options=("--read-only",))
    words = ("cannot write files", "Read-only", "`-- --tmpfs /tmp`")
    failed(start(lasting_laptop, "lab", here.name), 1, *words)


# The whole disk, and one with room for less than Jupyter needs.
@pytest.mark.parametrize("size", [LONG("4k"), "16k"])
@within(15)
def test_a_container_whose_disk_is_full_says_so_at_once(
    lasting_laptop: Laptop, container: ContainerFactory, size: str
) -> None:
    here = container(options=("--tmpfs", f"/tmp:size={size}"))
    answer = start(lasting_laptop, "lab", here.name)
    failed(answer, 1, "cannot write files", "No space left on device", "docker system df")


def test_a_server_that_was_killed_is_replaced_on_the_same_port(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    start_inside(here, 8888)
    first = started(laptop, here)
    here.execute("sh", "-c", f"kill -9 {first.ask('api/status')['pid']}")
    with within(15):
        listed = laptop.jlr("list")
    assert "jupyter-dead" in listed.stdout, listed
    second = started(laptop, here)
    assert second.port == first.port
    assert second.token != first.token
    assert second.ask("api/status")["kernels"] == 0


WHICH = "import os; print(os.environ['PATH'].split(':')[0])"


def test_a_conda_that_only_login_shells_know_is_found_and_another_python_is_taken_if_named(
    lasting_laptop: Laptop, container: ContainerFactory
) -> None:
    here = container("lab/jupyter", options=("--env", "PATH=/usr/bin:/bin"))
    failed(start(lasting_laptop, "lab", here.name), 6, "no JupyterLab")
    mine = "/root/miniconda3/envs"
    here.execute("sh", "-c", f"ln -s /opt/jupyter /opt/conda; mkdir -p {mine}; ln -s /opt/* {mine}")
    for words, expected in (
        ((), "/opt/conda/bin"),
        (("--python", "/opt/jupyter"), "/opt/jupyter/bin"),
        (("--conda-env", "jupyter"), f"{mine}/jupyter/bin"),
        (("--conda-env", "base"), "/opt/conda/bin"),
    ):
        session = started(lasting_laptop, here, *words)
        with session.notebook("conda.ipynb") as kernel:
            assert kernel.run(WHICH) == f"{expected}\n"
        assert lasting_laptop.jlr("stop", f"lab/{here.name}").status == 0
