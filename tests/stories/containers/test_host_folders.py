"""The host's folders in a new container, and the user it runs as."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jlremote.containers.host_folders import on_host, with_workspace
from jlremote.errors import NotFound, Usage
from jlremote.laptop.sessions import MOUNTS, MountRecord
from jlremote.place.runtimes.container_options import ContainerOptions
from tests.stories.parts import FakeHost

INFO = ("docker", "info", "--format={{json .}}")


def host(
    who: str = "1005\n1006\nanna\n/home/anna\n",
    missing: str = "",
    info: object = {"SecurityOptions": ["name=seccomp"]},  # it is only read
) -> FakeHost:
    """Return a host that tells who one is, which folders are missing, and what the engine is."""
    return FakeHost("dgx", {"who": who, "missing": missing, "info": json.dumps(info)})


def volumes(*sources: str) -> ContainerOptions:
    return ContainerOptions(volumes=tuple(f"{source}:/data" for source in sources))


def test_a_container_with_a_folder_of_the_host_runs_as_oneself() -> None:
    found = on_host(volumes("/raid/me", "~/x", "cache"), host(), INFO)
    assert found.user == "1005:1006"
    assert found.volumes == ("/raid/me:/data", "/home/anna/x:/data", "cache:/data")
    assert found.environment == ("USER=anna", "LOGNAME=anna")


@pytest.mark.parametrize(
    "there",
    [
        host(who="0\n0\nroot\n/root\n"),
        host(info={"SecurityOptions": ["name=seccomp", "name=rootless"]}),
        host(info={"host": {"security": {"rootless": True}}}),
    ],
    ids=["root", "rootless docker", "rootless podman"],
)
def test_where_files_are_ones_own_anyway_the_image_has_its_user(there: FakeHost) -> None:
    assert on_host(volumes("/raid/me"), there, INFO).user is None


def test_users_that_docker_maps_to_others_are_not_ones_own() -> None:
    remapped = host(info={"SecurityOptions": ["name=seccomp,profile=default", "name=userns"]})
    assert on_host(volumes("/raid/me"), remapped, INFO).user is None
    options = replace(volumes("/raid/me"), engine_arguments=("--userns=host",))
    assert on_host(options, remapped, INFO).user == "1005:1006"


def test_a_user_who_was_asked_for_is_kept_and_nothing_is_asked_of_the_engine() -> None:
    there, options = host(), ContainerOptions(volumes=("~/x:/x",), user="root")
    assert on_host(options, there, INFO) == ContainerOptions(("/home/anna/x:/x",), user="root")
    assert "info" not in there.asked


def test_a_folder_that_is_missing_is_named_with_the_command_that_makes_it() -> None:
    with pytest.raises(NotFound, match=r"missing or not accessible on `dgx`: `~/x`$") as refusal:
        on_host(volumes("/raid/me", "~/x"), host(missing="1\n"), INFO)
    assert "`mkdir -p ~/x`" in (refusal.value.hint or "")
    with pytest.raises(NotFound) as refusal:
        on_host(volumes("~/my data", "/raid/my data"), host(missing="0\n1\n"), INFO)
    assert "`mkdir -p ~/'my data' '/raid/my data'`" in (refusal.value.hint or "")


def test_a_home_of_this_machine_is_recognized() -> None:
    with pytest.raises(NotFound) as refusal:
        on_host(volumes(f"{Path.home()}/x"), host(missing="0\n"), INFO)
    assert "your shell has replaced `~`" in (refusal.value.hint or "")


@pytest.mark.parametrize("source", ["relative/folder", "./here", "../there", "~anna/x"])
def test_a_relative_path_is_refused_before_the_host_is_asked(source: str) -> None:
    there = host()
    with pytest.raises(Usage, match="is not an absolute path"):
        on_host(volumes(source), there, INFO)
    assert not there.asked


@pytest.mark.parametrize(
    ("workspace", "folder"),
    [("/raid/proj", "/raid/proj"), ("proj", "~/proj"), ("~/a b", "~/a b"), (".", "~/here")],
)
def test_a_workspace_is_a_volume_and_where_work_begins(
    workspace: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found = with_workspace(ContainerOptions(), workspace, "dgx")
    assert found == ContainerOptions((f"{folder}:/workspace",), workdir="/workspace")


def test_the_workspace_of_a_mounted_folder_is_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "proj"
    (local / "src").mkdir(parents=True)
    for host, remote in (("other", "/elsewhere"), ("dgx", "/raid/me/proj")):
        shown = local if host == "dgx" else tmp_path
        MOUNTS.save(MountRecord(str(shown), remote, host, "cont1", None, False, False))
    monkeypatch.chdir(local / "src")
    found = with_workspace(ContainerOptions(), ".", "dgx")
    assert found.volumes == ("/raid/me/proj/src:/workspace",)


def test_the_home_here_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Usage, match="is not a project folder"):
        with_workspace(ContainerOptions(), ".", "dgx")
