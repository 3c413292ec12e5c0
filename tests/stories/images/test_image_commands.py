"""The stories of pull, push, build, login and save, over a host that answers from a table."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import JlrError, LinkLost, Usage
from jlremote.hosts.requests import ANY_ENGINE
from jlremote.images import build, login, pull, save
from jlremote.images.build import BuildRequest
from jlremote.images.login import LoginRequest
from jlremote.laptop import secrets
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN
from jlremote.place.runtimes.runtime import CREATOR_LABEL
from tests.stories.parts import FakeHost, Notes, context

IMAGE = json.dumps([{"Id": "sha256:1", "Created": "2025-01-01", "Size": 9, "Config": {}}])
Printed = list[str | BaseException]


class Output:
    """The output of one streamed script, and its status."""

    def __init__(self, printed: Printed, status: int) -> None:
        self._printed, self.status = printed, status

    def text(self) -> Iterator[str]:
        for text in self._printed:
            if isinstance(text, BaseException):
                raise text
            yield text


@dataclass
class StreamingHost(FakeHost):
    """A host that also prints what the test gives it, a list for each streamed script.

    Attributes:
        printed: the outputs, and the status of the last one.
        streamed: the scripts, with what they were given on stdin.
    """

    printed: list[Printed] = field(default_factory=list)
    status: int = 0
    streamed: list[tuple[str, bytes]] = field(default_factory=list)

    @contextmanager
    def stream(
        self, script: str, given: Iterable[bytes] = (), *, end: bool = False
    ) -> Iterator[Output]:
        self.streamed.append((script, b"".join(given)))
        printed = self.printed.pop(0)
        yield Output(printed, 0 if self.printed else self.status)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> StreamingHost:
    host = StreamingHost("lab", {"script": IMAGE})
    for module in (pull, build):
        monkeypatch.setattr(module, "connected", lambda *_: (host, DOCKER))
    for module in (login, save):
        monkeypatch.setattr(module, "link_on", lambda *_: host)
        monkeypatch.setattr(module, "engine_on", lambda *_: DOCKER)
    monkeypatch.setattr(login, "connect", lambda link, _: link)
    monkeypatch.setattr(save, "link_of", lambda *_: host)
    monkeypatch.setattr(secrets, "_backend", lambda: None)
    return host


def test_a_loss_before_the_first_output_is_an_error(host: StreamingHost) -> None:
    host.printed = [[LinkLost("the connection broke")], []]
    with pytest.raises(LinkLost):
        pull.pull("lab", "me/x", context())


def test_what_an_interrupted_transfer_leaves_depends_on_the_engine() -> None:
    kept = [pull._kept(DOCKER, "pull"), pull._kept(PODMAN, "pull"), pull._kept(DOCKER, "push")]
    assert [words.partition(" keep")[0] for words in kept] == ["docker", "podman", "the registry"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text("FROM nvcr.io/me/base AS one\nFROM $X\nRUN true\n")
    return tmp_path


def test_an_interrupted_or_lost_build_says_what_stays(host: StreamingHost, folder: Path) -> None:
    host.printed = [[KeyboardInterrupt()], [LinkLost("lost")], []]
    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        build.build(BuildRequest("lab", folder, ("me/x",)), context(notes))
    assert notes.notes[0].startswith("nothing is built; docker keeps the finished steps")
    with pytest.raises(LinkLost) as lost:
        build.build(BuildRequest("lab", folder, ("me/x",)), context())
    assert (lost.value.hint or "").startswith("build again: ")
    host.printed = [["Step 1/1\n", LinkLost("lost")], []]
    with pytest.raises(LinkLost) as lost:  # a second one would run all steps again
        build.build(BuildRequest("lab", folder, ("me/x",), no_cache=True), context())
    assert (lost.value.hint or "").startswith("build again without `--no-cache`: ")


def test_a_build_passes_on_its_options_and_hides_its_secrets(
    host: StreamingHost, folder: Path
) -> None:
    (folder / "token").write_bytes(b"s3same\n")
    request = BuildRequest(
        *("lab", None, ("me/x",)),
        on_host="~/proj",
        no_cache=True,
        target="slim",
        platform="linux/arm64",
        secrets={"t": folder / "token"},
    )
    host.printed = [[]]
    build.build(request, context())
    ((script, given),) = host.streamed
    assert script.startswith("cd ~/proj || exit\n")
    assert "env DOCKER_BUILDKIT=1 docker build --force-rm --no-cache --tag=me/x " in script
    assert "--target=slim --platform=linux/arm64 --secret=id=t,src=/tmp/jlr-" in script
    assert given == base64.b64encode(b"s3same\n") + b"\n"
    assert "s3same" not in script
    with pytest.raises(Usage, match="cannot read the secret"):
        build.build(replace(request, secrets={"t": folder / "no"}), context())


def test_the_registries_of_all_base_images_are_asked_for_keys(folder: Path) -> None:
    recipe = "from --platform=x nvcr.io/a AS b\nFROM debian\n# FROM no.io/x\nFROM Bad/Name\n"
    assert build.registries(build._FROM.findall(recipe)) == ["nvcr.io", "docker.io"]


@pytest.mark.parametrize("key", ["", "two\nlines"])
def test_a_key_is_exactly_one_line(host: StreamingHost, key: str) -> None:
    with pytest.raises(Usage, match="empty or longer than a line"):
        login.log_in(LoginRequest("lab", key=key, keep=True), context())
    assert host.streamed == []


def test_images_that_vanish_meanwhile_do_not_hide_the_others(host: StreamingHost) -> None:
    facts = {"id": "sha256:1", "names": ["me/x:1"], "created": "2025", "size": 1}
    answer = Completed(1, json.dumps(facts), "Error: No such image: sha256:2")
    host.answers["script"] = answer
    assert [image.tag for image in save.images("lab", context())] == ["1"]
    host.answers["script"] = Completed(1, "", "Cannot connect to the Docker daemon at x")
    with pytest.raises(JlrError, match="does not run"):
        save.images("lab", context(), engine=ANY_ENGINE)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The record of the session that is saved, to be changed by a test."""
    chosen: dict[str, Any] = {"runtime": "docker"}

    def choose(*_: object) -> SessionRecord:
        return SessionRecord("lab", "cont1", chosen["runtime"], 8888)

    monkeypatch.setattr("jlremote.selection.session_selection.chosen", choose)
    return chosen


def inspected(**config: Any) -> str:
    described = {"Labels": {CREATOR_LABEL: "1"}, "Env": ["A=1"], **config}
    return json.dumps([{"Config": described, "Mounts": [], "HostConfig": {}}])


def test_a_full_disk_is_the_reason_of_a_failed_save(
    host: StreamingHost, session: dict[str, Any]
) -> None:
    failed = Completed(1, "", "write /x: no space left on device")
    host.answers |= {"container": inspected(), "image": IMAGE, "script": failed}
    with pytest.raises(JlrError, match="no space is left on `lab`"):
        save.save(None, "me/saved", context())
    host.answers["script"] = Completed(1, "", "invalid reference format")
    with pytest.raises(JlrError, match="cannot save `cont1` as `me/saved`: invalid reference"):
        save.save(None, "me/saved", context())
