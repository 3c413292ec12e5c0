"""Command lines for images, and what the engine prints about them."""

from __future__ import annotations

from typing import Any

from jlremote.images import image_commands
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.runtime import CREATOR_LABEL


def container(labels: dict[str, str]) -> dict[str, Any]:
    return {"Config": {"Labels": labels}}


def changes(argv: tuple[str, ...]) -> list[str]:
    return [word.removeprefix("--change=") for word in argv if word.startswith("--change=")]


def test_an_image_of_our_container_gets_back_what_its_own_image_says() -> None:
    ours = container({CREATOR_LABEL: "1", "org.jlremote.typed": "x", "team": "a"})
    base = {"Config": {"Entrypoint": ["/run"], "Cmd": ["a", "b"], "User": "ada"}}
    made = changes(image_commands.commit_argv(DOCKER, "c", "me/x", ours, base, {"PATH": "/b:$x"}))
    assert made[:3] == ['ENTRYPOINT ["/run"]', 'CMD ["a", "b"]', "USER ada"]
    assert 'LABEL org.jlremote.typed=""' in made
    assert not any("team" in change for change in made)
    assert made[-1] == 'ENV PATH="/b:\\$x"'


def test_folders_of_packages_come_first_and_once() -> None:
    had = {"Config": {"Env": ["PATH=/opt/jlr/bin:/bin", "PYTHONPATH=/mine"]}}
    folders = ("/opt/jlr/bin", "/opt/jlr/lib/python3.11/site-packages")
    found = image_commands.with_folders(had, folders)
    assert found == {"PATH": "/opt/jlr/bin:/bin", "PYTHONPATH": f"{folders[1]}:/mine"}
    assert image_commands.with_folders(had, ()) == {}


def test_mounts_and_memory_are_named_as_outside_the_image() -> None:
    inspected = {
        "Mounts": [
            {"Type": "volume", "Name": "data", "Destination": "/data"},
            {"Type": "bind", "Source": "/home/ada", "Destination": "/work"},
            {"Type": "tmpfs", "Destination": "/run"},
        ],
        "HostConfig": {"Tmpfs": {"/tmp": ""}},
    }
    assert image_commands.outside_image(inspected) == (
        *("/data (volume data)", "/work (/home/ada)", "/run (tmpfs)", "/tmp (memory)"),
    )
    assert image_commands.outside_image({"Mounts": [], "HostConfig": {}}) == ()
