"""The stories of pull, push, build, login and save, over a host that answers from a table."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from jlremote.errors import Authentication, JlrError, LinkLost, NotFound, Usage
from jlremote.host.contract import Completed
from jlremote.jupyter.runtime_files import NOT_ASIDE
from jlremote.link.client.link import Link
from jlremote.runtimes.contract import CREATOR_LABEL
from jlremote.runtimes.engine.engine import DOCKER
from jlremote.storage import secrets
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.host.requests import ANY_ENGINE
from jlremote.workflow.images import build, images, login, registry, registry_keys
from jlremote.workflow.images.build import BuildRequest
from jlremote.workflow.images.login import LoginRequest
from jlremote.workflow.images.registry_keys import RegistryKey
from tests.host.shells import run_sh
from tests.workflow.parts import FakeHost, Notes, context

IMAGE = json.dumps([{"Id": "sha256:1", "Created": "2025-01-01", "Size": 9, "Config": {}}])
LAYERS = "a1b2c3d4e5f6: Pulling fs layer\na1b2c3d4e5f6: Pull complete\n"
Printed = list[str | BaseException]


class Output:
    """The output of one streamed script, and its status."""

    def __init__(self, printed: Printed, status: int) -> None:
        self._printed, self.status = printed, status

    def __iter__(self) -> Iterator[str]:
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
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StreamingHost:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    host = StreamingHost("lab", {"script": IMAGE})
    for module in (registry, build):
        monkeypatch.setattr(module, "connected", lambda *_: (host, DOCKER))
    for module in (login, images):
        monkeypatch.setattr(module, "link_on", lambda *_: host)
        monkeypatch.setattr(module, "engine_on", lambda *_: DOCKER)
    monkeypatch.setattr(login, "connect", lambda *_: None)
    monkeypatch.setattr(images, "link_of", lambda *_: host)
    monkeypatch.setattr(secrets, "_backend", lambda: None)
    return host


def test_a_pull_returns_the_image_that_came(host: StreamingHost) -> None:
    host.printed = [[LAYERS]]
    notes = Notes()
    image = registry.pull("lab", "me/x", context(notes))
    assert (image.id, image.size) == ("sha256:1", 9)
    assert notes.steps == ["Pull me/x"]
    assert "docker pull -- me/x" in host.streamed[0][0]


def test_a_pull_is_joined_again_after_a_loss(host: StreamingHost) -> None:
    host.printed = [[LAYERS, LinkLost("the connection broke")], [LAYERS]]
    notes = Notes()
    registry.pull("lab", "me/x", context(notes))
    assert len(host.streamed) == 2
    assert notes.notes == ["the connection broke; the transfer goes on there; reconnecting"]


def test_a_loss_before_the_first_output_is_an_error(host: StreamingHost) -> None:
    host.printed = [[LinkLost("the connection broke")], []]
    with pytest.raises(LinkLost):
        registry.pull("lab", "me/x", context())


def test_a_pull_that_is_refused_names_the_login(host: StreamingHost) -> None:
    host.printed, host.status = [["unauthorized: authentication required\n"]], 1
    with pytest.raises(Authentication, match="cannot pull `nvcr") as error:
        registry.pull("lab", "nvcr.io/me/x", context())
    assert "`jlr login lab nvcr.io`" in (error.value.hint or "")


def test_an_interrupted_pull_says_what_stays(host: StreamingHost) -> None:
    host.printed = [[LAYERS, KeyboardInterrupt()]]
    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        registry.pull("lab", "me/x", context(notes))
    assert notes.notes[0].startswith("did not pull `me/x`; docker keeps no part of it")


def test_a_push_uses_the_key_of_its_registry_for_one_command(
    host: StreamingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = RegistryKey("ada", "secret")
    monkeypatch.setattr(registry_keys, "find", lambda _, names, __: dict.fromkeys(names, key))
    host.printed = [[""]]
    registry.push("lab", "nvcr.io/me/x", context())
    ((script, given),) = host.streamed
    assert b"nvcr.io" in given
    assert "secret" not in script
    assert 'rm -rf "$DOCKER_CONFIG"' in script


def test_an_invalid_name_is_refused_before_the_host_is_reached(host: StreamingHost) -> None:
    for act in (registry.pull, registry.push):
        with pytest.raises(Usage, match="invalid image name"):
            act("lab", "Not A Name", context())
    assert host.streamed == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text("FROM nvcr.io/me/base AS one\nFROM $X\nRUN true\n")
    return tmp_path


def test_a_build_sends_the_folder_and_returns_the_image(host: StreamingHost, folder: Path) -> None:
    host.printed = [["Step 1/3 : FROM nvcr.io/me/base\n", "Step 2/3 : RUN true\nno end"]]
    notes = Notes()
    report = build.build(BuildRequest("lab", folder, ("me/x",)), context(notes))
    assert report.to_json() == {"host": "lab", "tags": ["me/x"], "id": "sha256:1", "size": 9}
    ((script, archive),) = host.streamed
    assert "docker build --force-rm --tag=me/x --file=Dockerfile -" in script
    assert len(archive) % 512 == 0
    assert b"RUN true" in archive
    assert notes.notes[-1] == "no end"


def test_a_failed_build_names_the_line(host: StreamingHost, folder: Path) -> None:
    host.printed, host.status = [["Step 3/3 : RUN true\n", "no such program\n"]], 1
    with pytest.raises(JlrError, match="line 3 of `Dockerfile` fails: `RUN true`"):
        build.build(BuildRequest("lab", folder, ("me/x",)), context())


def test_an_interrupted_or_lost_build_says_what_stays(host: StreamingHost, folder: Path) -> None:
    host.printed = [[KeyboardInterrupt()], [LinkLost("lost")], []]
    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        build.build(BuildRequest("lab", folder, ("me/x",)), context(notes))
    assert notes.notes[0].startswith("nothing is built; docker keeps the finished steps")
    with pytest.raises(LinkLost) as lost:
        build.build(BuildRequest("lab", folder, ("me/x",)), context())
    assert (lost.value.hint or "").startswith("build again")


def test_a_build_is_joined_again_after_a_loss_and_waits_for_the_one_that_goes_on(
    host: StreamingHost, folder: Path
) -> None:
    host.printed = [["Step 1/3 : FROM x\n", LinkLost("lost")], ["Step 3/3 : RUN true\n"]]
    notes = Notes()
    build.build(BuildRequest("lab", folder, ("me/x",)), context(notes))
    (first, sent), (second, again) = host.streamed
    assert (first, sent) == (second, again)
    assert re.search(r"/\.jlr-build-[0-9a-f]{16}\n.*flock 9; fi\ndocker build ", first, re.DOTALL)
    assert "the connection broke; the build goes on there; reconnecting" in notes.notes


@pytest.mark.parametrize(
    ("before", "now", "is_cached"),
    [
        ("old", "echo new", True),
        ("", "echo new", True),
        ("old", "echo old", False),
        ("old", "false", False),
        ("", "false", False),
        ("old", "true", False),
    ],
)
def test_a_lost_build_without_cache_is_joined_only_if_its_image_is_surely_new(
    before: str, now: str, is_cached: bool
) -> None:
    request = BuildRequest("lab", None, ("me/x",), no_cache=True)
    chosen = build._unless_built(DOCKER, request, before, "echo anew", lambda _: "echo joined")
    docker = f'docker() {{ [ "$1 $2" = "image inspect" ] && {now}; }}\n'
    assert run_sh("sh", docker + chosen).stdout == ("joined\n" if is_cached else "anew\n")


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        ("sha256:1\n", "sha256:1"),
        (Completed(1, "\n", "Error: No such image: me/x"), ""),
        (Completed(1, "", "Cannot connect to the Docker daemon"), None),
    ],
)
def test_an_engine_that_does_not_answer_tells_no_image(
    answer: Completed | str, known: str | None, host: StreamingHost
) -> None:
    host.answers["script"] = answer
    request = BuildRequest("lab", None, ("me/x",), no_cache=True)
    assert build._image_id(cast("Link", host), DOCKER, request) == known


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
    assert "env DOCKER_BUILDKIT=1 docker build --force-rm" in script
    assert "--no-cache --target=slim --platform=linux/arm64 --secret=id=t,src=/tmp/jlr-" in script
    assert given == base64.b64encode(b"s3same\n") + b"\n"
    assert "s3same" not in script
    with pytest.raises(Usage, match="cannot read the secret"):
        build.build(replace(request, secrets={"t": folder / "no"}), context())


def test_a_build_needs_valid_names(host: StreamingHost, folder: Path) -> None:
    with pytest.raises(Usage, match="needs a name"):
        build.build(BuildRequest("lab", folder, ()), context())
    with pytest.raises(Usage, match="a new name cannot have a digest"):
        build.build(BuildRequest("lab", folder, (f"x@sha256:{'0' * 64}",)), context())


def test_the_registries_of_all_base_images_are_asked_for_keys(folder: Path) -> None:
    recipe = "from --platform=x nvcr.io/a AS b\nFROM debian\n# FROM no.io/x\nFROM Bad/Name\n"
    assert list(build._registries(recipe)) == ["nvcr.io", "docker.io"]


@pytest.mark.parametrize("keep", [True, False])
def test_a_login_tries_the_key_and_keeps_it_where_it_should(
    host: StreamingHost, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[str, str]] = []
    monkeypatch.setattr(registry_keys, "check_keychain", lambda *_: None)

    def remember(host: str, registry: str, key: RegistryKey) -> str:
        kept.append((host, key.key))
        return "a keychain"

    monkeypatch.setattr(registry_keys, "keep", remember)
    host.printed = [["Login Succeeded\n"]]
    report = login.log_in(LoginRequest("lab", key="secret", keep=keep), context())
    assert kept == ([] if keep else [("lab", "secret")])
    assert ("the engine's settings on lab" in report.kept) is keep
    ((script, given),) = host.streamed
    assert given.endswith(b"secret\n")
    assert "secret" not in script
    assert "'--username=$oauthtoken' --password-stdin nvcr.io" in script


def test_a_refused_key_is_not_kept(host: StreamingHost) -> None:
    host.printed, host.status = [["Error response from daemon: unauthorized\n"]], 1
    with pytest.raises(Authentication, match="refuses this key") as error:
        login.log_in(LoginRequest("lab", key="secret", keep=True), context())
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("key", ["", "two\nlines"])
def test_a_key_is_exactly_one_line(host: StreamingHost, key: str) -> None:
    with pytest.raises(Usage, match="empty or longer than a line"):
        login.log_in(LoginRequest("lab", key=key, keep=True), context())
    assert host.streamed == []


def test_a_kept_key_that_is_refused_is_asked_for_again(
    host: StreamingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_keys, "latest", lambda *_: RegistryKey("ada", "old"))
    host.printed, host.status = [["denied\n"]], 1
    notes = Notes()
    with pytest.raises(JlrError, match="a test was asked: Password or API key"):
        login.log_in(LoginRequest("lab", user="ada", keep=True), context(notes))
    assert notes.notes == ["`nvcr.io` refuses the kept key"]


def test_images_that_vanish_meanwhile_do_not_hide_the_others(host: StreamingHost) -> None:
    facts = {"id": "sha256:1", "names": ["me/x:1"], "created": "2025", "size": 1}
    answer = Completed(1, json.dumps(facts), "Error: No such image: sha256:2")
    host.answers["script"] = answer
    assert [image.tag for image in images.images("lab", context())] == ["1"]
    host.answers["script"] = Completed(1, "", "Cannot connect to the Docker daemon at x")
    with pytest.raises(JlrError, match="does not run"):
        images.images("lab", context(), engine=ANY_ENGINE)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The record of the session that is saved, to be changed by a test."""
    chosen: dict[str, Any] = {"runtime": "docker"}

    def choose(*_: object) -> SessionRecord:
        return SessionRecord("lab", "cont1", chosen["runtime"], 8888)

    monkeypatch.setattr("jlremote.workflow.selection.session_selection.chosen", choose)
    return chosen


def inspected(**config: Any) -> str:
    described = {"Labels": {CREATOR_LABEL: "1"}, "Env": ["A=1"], **config}
    return json.dumps([{"Config": described, "Mounts": [], "HostConfig": {}}])


def test_a_saved_image_is_reported_with_what_is_not_in_it(
    host: StreamingHost, session: dict[str, Any]
) -> None:
    host.answers |= {"container": inspected(), "image": Completed(1, "", "no such image")}
    report = images.save(None, "me/saved", context())
    assert report.to_json() == {
        "host": "lab",
        "image": "me/saved",
        "id": "sha256:1",
        "size": 9,
        "outside": [],
        "variables": ["A"],
    }


def test_only_an_existing_container_can_be_saved(
    host: StreamingHost, session: dict[str, Any]
) -> None:
    host.answers |= {"container": Completed(1, "", "No such container: cont1"), "image": ""}
    with pytest.raises(NotFound, match="there is no container `cont1` on `lab`"):
        images.save(None, "me/saved", context())
    session["runtime"] = "none"
    with pytest.raises(Usage, match="cannot save `lab/cont1`: it has no container"):
        images.save(None, "me/saved", context())


def test_secrets_that_cannot_be_moved_are_deleted_by_a_stop_of_that_session(
    host: StreamingHost, session: dict[str, Any]
) -> None:
    failed = Completed(NOT_ASIDE, "", "mv: no space left")
    host.answers |= {"container": inspected(), "image": IMAGE, "script": failed}
    with pytest.raises(JlrError, match="cannot be moved") as refused:
        images.save(None, "me/saved", context())
    assert "`jlr stop lab/cont1` deletes them" in (refused.value.hint or "")


def test_a_full_disk_is_the_reason_of_a_failed_save(
    host: StreamingHost, session: dict[str, Any]
) -> None:
    failed = Completed(1, "", "write /x: no space left on device")
    host.answers |= {"container": inspected(), "image": IMAGE, "script": failed}
    with pytest.raises(JlrError, match="no space is left on `lab`"):
        images.save(None, "me/saved", context())
    host.answers["script"] = Completed(1, "", "invalid reference format")
    with pytest.raises(JlrError, match="cannot save `cont1` as `me/saved`: invalid reference"):
        images.save(None, "me/saved", context())
