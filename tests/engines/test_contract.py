"""One contract for docker and podman, with root and without, and Apptainer; all of them real."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conftest import IMAGE, SIF, EnginesHost
from tests.engines.parts import Session, told
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import Session as Running

FILES = "apptainer"  # its images are files


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module", params=[LONG("docker"), "podman", "apptainer", LONG("sudo podman")])
def session(
    request: pytest.FixtureRequest, engines_host: EnginesHost, engines_laptop: Laptop
) -> Iterator[Session]:
    runtime = request.param
    made = Session(engines_laptop, engines_host, runtime)
    yield made
    engines_host.remove(runtime, made.name)


def test_a_session_starts_in_a_new_container_and_answers(session: Session) -> None:
    assert (session.first["state"], session.first["runtime"]) == ("up", session.runtime)
    assert f"/{session.name}-" in session.first["url"]
    assert session.inside("echo $COLOUR").strip() == "blue"


def test_what_its_cells_print_is_recorded(session: Session) -> None:
    running = Running(session.laptop, session.first)
    with running.notebook("a.ipynb") as kernel:
        kernel.await_start()
        assert kernel.run("'4' + '2'") == "'42'"
        running.output_with("'42'")


def test_it_is_found_again_without_naming_the_engine(session: Session) -> None:
    again = session.start()
    assert (again["runtime"], again["local_port"]) == (session.runtime, session.first["local_port"])
    status = told(session.laptop, "list", session.name, "--json")
    assert (status["state"], status["runtime"]) == ("up", session.runtime)


def test_its_log_comes_from_that_engine(session: Session) -> None:
    result = session.laptop.jlr("logs", session.name)
    assert "Jupyter Server" in result.stdout, result


def test_a_further_port_is_reached(session: Session) -> None:
    # Jupyter's own port is one that surely listens.
    port = "8888"
    if session.runtime == FILES:  # its Jupyter listens on a unix socket
        port = str(free_port())
        serve = f"setsid -f python3 -m http.server -b 127.0.0.1 {port} >/dev/null 2>&1"
        assert session.laptop.ssh("lab", serve).status == 0
        wait_until(lambda: listens(int(port)), "a program that listens")
    result = session.laptop.jlr("forward", session.name, port, "--json").checked()
    assert [port["state"] for port in json.loads(result.stdout)] == ["up"]
    assert session.laptop.jlr("forward", session.name, "--remove", port).status == 0


def test_files_go_there_and_back(session: Session, tmp_path: Path) -> None:
    (tmp_path / "sent" / "é").mkdir(parents=True)
    (tmp_path / "sent" / "é" / "-n").write_text("text", encoding="utf-8")
    there = f"{session.name}:/tmp/copied"
    for words in (
        ("-r", str(tmp_path / "sent"), there),
        ("-r", there, str(tmp_path)),
        (f"{there}/*/-*", str(tmp_path)),
    ):
        session.laptop.jlr("cp", *words).checked()
    for path in ("copied/é/-n", "-n"):
        assert (tmp_path / path).read_text("utf-8") == "text"


def test_its_images_are_listed(session: Session) -> None:
    if session.runtime == FILES:
        pulled = f".local/share/jlr/images/docker.io+{IMAGE.replace('/', '+')}@1.sif"
        made = f"mkdir -p ~/.local/share/jlr/images && ln -s ~/{SIF} ~/{pulled}"
        assert session.laptop.ssh("lab", made).status == 0
    found = told(session.laptop, "image", "list", "lab", *session.flags, "--json")
    assert any((image["repository"] or "").endswith(IMAGE) for image in found)


def test_a_saved_container_starts_from_its_image(session: Session) -> None:
    if session.runtime == FILES:
        refused = session.laptop.jlr("image", "save", session.name, "lab/x:1")
        assert (refused.status, "cannot save" in refused.stderr) == (2, True), refused
        return
    image = f"lab/{session.name}:1"
    saved = told(session.laptop, "image", "save", session.name, image, "--json")
    assert saved["size"] > 0
    listed = told(session.laptop, "image", "list", "lab", *session.flags, "--json")
    assert any((i["repository"] or "").endswith(f"lab/{session.name}") for i in listed)


def test_it_stops_and_starts_as_the_same_container(session: Session) -> None:
    session.laptop.jlr(
        "stop", session.name, "--container", "--force", "--yes", timeout=90
    ).checked()
    again = session.start()
    assert again["runtime"] == session.runtime
    assert session.image in again["image"] or again["image"] == session.first["image"]


def test_an_unknown_image_is_one_clear_error_and_leaves_nothing(session: Session) -> None:
    other = f"{session.name}-x"
    image = "127.0.0.1:1/no/such:1"
    words = ("start", "lab", other, "--image", image, *session.flags, "--no-browser")
    result = session.laptop.jlr(*words, timeout=120).checked(6)
    said = "there is no image" if session.runtime == FILES else "cannot pull"
    assert said in result.stderr, result
    session.laptop.jlr("start", "lab", other, *session.flags, "--no-browser").checked(6)


def test_a_flag_that_it_does_not_know_is_the_persons_mistake(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(session.laptop.environment, "JLR_ENGINE_ARGUMENTS", "--nonsense")
    other = f"{session.name}-x"
    words = ("start", "lab", other, "--image", session.image, *session.flags, "--no-browser")
    session.laptop.jlr(*words).checked(2, "--nonsense")


def test_it_is_removed(session: Session) -> None:
    session.laptop.jlr("rm", session.name, "--force", "--yes", timeout=90).checked()
    session.laptop.jlr("start", "lab", session.name, *session.flags, "--no-browser").checked(6)
