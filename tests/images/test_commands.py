"""Command lines for images, and what the engine prints about them."""

from __future__ import annotations

import json
from typing import Any

from jlremote.images import commands
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.runtime import CREATOR_LABEL


def facts(identifier: str, names: list[str] | None, created: str = "2025-01-01") -> str:
    return json.dumps({"id": identifier, "names": names, "created": created, "size": 10})


def test_the_latest_image_is_listed_first() -> None:
    printed = "\n".join(facts(day, [f"x:{day}"], f"2025-01-0{day}") for day in "132")
    assert [image.tag for image in commands.read_list(printed, every=False)] == ["3", "2", "1"]


def test_a_build_has_all_its_tags_and_arguments() -> None:
    argv = commands.build_argv(DOCKER, ("a", "b:2"), "Dockerfile.x", ("N=1", "HOME"))
    assert argv == (
        *("docker", "build", "--force-rm", "--tag=a", "--tag=b:2", "--file=Dockerfile.x"),
        *("--build-arg=N=1", "--build-arg=HOME", "-"),
    )


def container(labels: dict[str, str]) -> dict[str, Any]:
    return {"Config": {"Labels": labels}}


def changes(argv: tuple[str, ...]) -> list[str]:
    return [word.removeprefix("--change=") for word in argv if word.startswith("--change=")]


def test_an_image_of_our_container_gets_back_what_its_own_image_says() -> None:
    ours = container({CREATOR_LABEL: "1", "org.jlremote.typed": "x", "team": "a"})
    base = {"Config": {"Entrypoint": ["/run"], "Cmd": ["a", "b"], "User": "ada"}}
    made = changes(commands.commit_argv(DOCKER, "c", "me/x", ours, base, {"PATH": "/b:$x"}))
    assert made[:3] == ['ENTRYPOINT ["/run"]', 'CMD ["a", "b"]', "USER ada"]
    assert 'LABEL org.jlremote.typed=""' in made
    assert not any("team" in change for change in made)
    assert made[-1] == 'ENV PATH="/b:\\$x"'


def test_folders_of_packages_come_first_and_once() -> None:
    had = {"Config": {"Env": ["PATH=/opt/jlr/bin:/bin", "PYTHONPATH=/mine"]}}
    folders = ("/opt/jlr/bin", "/opt/jlr/lib/python3.11/site-packages")
    found = commands.with_folders(had, folders)
    assert found == {"PATH": "/opt/jlr/bin:/bin", "PYTHONPATH": f"{folders[1]}:/mine"}
    assert commands.with_folders(had, ()) == {}


def test_an_image_of_another_persons_container_is_left_as_it_is() -> None:
    assert changes(commands.commit_argv(DOCKER, "c", "me/x", container({}), {}, {})) == []


def test_an_image_without_an_entrypoint_gets_none() -> None:
    ours = container({CREATOR_LABEL: "1"})
    made = changes(commands.commit_argv(DOCKER, "c", "me/x", ours, {}, {}))
    assert made[0] == f"ENTRYPOINT {DOCKER.kind.no_entrypoint}"
    assert made[1:3] == ["CMD []", "USER root"]


def test_mounts_and_memory_are_named_as_outside_the_image() -> None:
    inspected = {
        "Mounts": [
            {"Type": "volume", "Name": "data", "Destination": "/data"},
            {"Type": "bind", "Source": "/home/ada", "Destination": "/work"},
            {"Type": "tmpfs", "Destination": "/run"},
        ],
        "HostConfig": {"Tmpfs": {"/tmp": ""}},
    }
    assert commands.outside_image(inspected) == (
        *("/data (volume data)", "/work (/home/ada)", "/run (tmpfs)", "/tmp (memory)"),
    )
    assert commands.outside_image({"Mounts": [], "HostConfig": {}}) == ()


def test_only_names_of_added_variables_are_told_and_never_their_values() -> None:
    inspected = {"Config": {"Env": ["PATH=/bin", "TOKEN=secret", "LANG=C"]}}
    base = {"Config": {"Env": ["PATH=/bin", "LANG=de"]}}
    assert commands.added_variables(inspected, base) == ("TOKEN", "LANG")
    assert commands.added_variables({"Config": {}}, {}) == ()
