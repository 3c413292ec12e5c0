"""Without being told, jlr finds the session's folder on the host behind its volumes."""

from __future__ import annotations

import pytest

from jlremote.mounts.mount import host_path
from jlremote.place.runtimes.runtime import Container, Volume
from tests.lab.containers import ContainerFactory
from tests.mounts.parts import Desk, own, remember_session

VOLUMES = (
    Volume("/home/me/proj", "/workspace"),
    Volume("/raid/me", "/workspace/data"),
    Volume("/srv/all", "/srv/"),
)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("/workspace", "/home/me/proj"),
        ("/workspace/src/../src/x", "/home/me/proj/src/x"),
        ("/workspace/data", "/raid/me"),
        ("/workspace/data/train", "/raid/me/train"),
        ("/workspace/data2", "/home/me/proj/data2"),
        ("/srv", "/srv/all"),
        ("/srv/a b", "/srv/all/a b"),
        ("/workspaces", None),
        ("/workspace/../etc", None),
        ("/", None),
    ],
)
def test_a_path_goes_through_the_volume_that_is_nearest(inside: str, outside: str | None) -> None:
    container = Container(id="", name="c", running=True, started_at="", volumes=VOLUMES)
    assert host_path(container, inside) == outside


def test_the_folder_behind_the_working_folder_is_mounted(
    desk: Desk, container: ContainerFactory
) -> None:
    (desk.project / "sub").mkdir()
    own(desk.account, desk.project)
    volume = f"--volume={desk.project}:/work"
    made = container("lab/plain", options=(volume, "--workdir=/work/sub"))
    remember_session(desk.laptop, made.name, "docker")
    desk.jlr("mount", str(desk.local), made.name)
    (desk.local / "x").write_bytes(b"x")
    assert made.execute("cat", "/work/sub/x") == "x"
    assert desk.has_project("sub/x", b"x")
    other = desk.local.with_name("other")
    desk.jlr("mount", str(other), "bare:project")
    assert f"unmounted {desk.local}" in desk.jlr("stop", made.name).stdout
    assert not desk.is_mounted()
    assert desk.is_mounted(other), "it is another session's"


def test_a_path_in_the_container_is_found_on_the_host_or_refused_with_its_volumes(
    desk: Desk, container: ContainerFactory
) -> None:
    (desk.project / "deep").mkdir()
    own(desk.account, desk.project)
    made = container("lab/plain", options=(f"--volume={desk.project}:/data",))
    remember_session(desk.laptop, made.name, "docker")
    refusal = desk.jlr("mount", str(desk.local), f"{made.name}:/opt", code=6).stderr
    assert "in none of its volumes" in refusal
    assert f"/data (on the host {desk.project})" in refusal
    assert "`jlr mount " in refusal
    desk.jlr("mount", str(desk.local), f"{made.name}:/data/deep")
    (desk.local / "x").write_bytes(b"x")
    assert desk.has_project("deep/x", b"x")


def test_a_volume_of_the_engine_is_out_of_reach_and_the_advice_says_why(
    desk: Desk, container: ContainerFactory
) -> None:
    made = container("lab/plain", options=("--volume=/work", "--workdir=/work"))
    remember_session(desk.laptop, made.name, "docker")
    refusal = desk.jlr("mount", str(desk.local), made.name, code=6).stderr
    assert "only root may look" in refusal


def test_a_container_without_volumes_leaves_the_folder_of_the_same_name(
    desk: Desk, container: ContainerFactory
) -> None:
    made = container("lab/plain")
    remember_session(desk.laptop, made.name, "docker")
    refusal = desk.jlr("mount", str(desk.local), made.name, code=6).stderr
    assert "has no volumes, and only volumes can be mounted, and `lab` has no `~/place`" in refusal
    local = desk.local.with_name("project")
    desk.jlr("mount", str(local), made.name)
    (local / "x").write_bytes(b"x")
    assert desk.has_project("x", b"x")
