"""The story of `jlr mount`, with a link, an sshfs and a system that only answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.link.wire.status import LinkStatus, MountStatus
from jlremote.mounts import sshfs
from jlremote.mounts.points import Holder, MountPoint
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.mounts import known_mounts, mount, project_folder, unmount
from jlremote.workflow.mounts.mount import MountRequest
from jlremote.workflow.mounts.project_folder import Folder
from tests.workflow.parts import Notes, Person, context


@dataclass
class FakeLink:
    """A link that knows mounts by their names."""

    name: str = "lab"
    known: set[str] = field(default_factory=set)
    failure: str | None = None
    mount_socket: Path = Path("/run/door")

    def mount(self, name: str, remote: str) -> None:
        self.known.add(name)

    def unmount(self, name: str) -> None:
        self.known.discard(name)

    def status(self, *, connect: bool = False) -> LinkStatus:
        held = tuple(MountStatus(name, self.failure is None, self.failure) for name in self.known)
        return LinkStatus("up", 0.0, None, (), held)


@dataclass
class FakeSystem:
    """A system on which sshfs mounts what it is told to."""

    points: list[MountPoint] = field(default_factory=list)
    options: tuple[str, ...] = ()
    busy: str | None = None
    lazily: list[bool] = field(default_factory=list)

    def sshfs(self) -> str:
        return "sshfs"

    def mounted(self) -> list[MountPoint]:
        return self.points

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        self.lazily.append(lazily)
        if self.busy and not lazily:
            return self.busy
        self.points = [point for point in self.points if point.path != path]
        return None

    def holders(self, path: str) -> list[Holder]:
        return [Holder(7, "vim", "works in")]


@dataclass
class Lab:
    link: FakeLink
    system: FakeSystem
    local: Path
    complaint: str | None = None

    def mount(self, notes: Notes | None = None, **given: Any) -> known_mounts.MountReport:
        return mount.mount(MountRequest(str(self.local), **given), context(notes))

    def start(self, command: tuple[str, ...], _: dict[str, str]) -> str | None:
        if self.complaint is None:
            self.system.points.append(MountPoint(command[-1], "fuse.sshfs", command[-2]))
        return self.complaint


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sessions.save(SessionRecord("lab", "cont1", "docker", 8888))
    lab = Lab(FakeLink(), FakeSystem(), tmp_path / "home" / "p")
    for module in (mount, unmount):
        monkeypatch.setattr(module, "link_of", lambda *_: lab.link)
        monkeypatch.setattr(module, "this_system", lambda: lab.system)
    monkeypatch.setattr(known_mounts, "is_served", lambda _: True)
    monkeypatch.setattr(known_mounts, "link_of", lambda *_: lab.link)
    monkeypatch.setattr(known_mounts, "this_system", lambda: lab.system)
    monkeypatch.setattr("jlremote.mounts.sshfs.end", lambda name: None)
    monkeypatch.setattr(project_folder, "find", lambda *_, **__: Folder("/srv/p", writable=True))
    monkeypatch.setattr(sshfs, "start", lab.start)
    monkeypatch.setattr(sshfs, "warning", lambda program: None)
    return lab


def test_the_hosts_refusal_is_the_reason_of_a_failure(lab: Lab) -> None:
    lab.complaint, lab.link.failure = "remote host has disconnected", "the host has no SFTP"
    with pytest.raises(JlrError, match="cannot mount `lab:/srv/p`: the host has no SFTP"):
        lab.mount()


@pytest.mark.parametrize(
    ("complaint", "kind", "hint"),
    [
        ("lab:/srv/p: No such file or directory", NotFound, None),
        ("fusermount3: mount failed: Operation not permitted", JlrError, "/etc/fuse.conf"),
    ],
)
def test_failures_that_are_mended_differently_are_different_errors(
    lab: Lab, complaint: str, kind: type[JlrError], hint: str | None
) -> None:
    lab.complaint = complaint
    with pytest.raises(JlrError) as error:
        lab.mount()
    assert type(error.value) is kind
    assert (hint or "") in (error.value.hint or "")


def test_a_folder_that_the_user_cannot_write_is_noted_unless_read_only(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_folder, "find", lambda *_, **__: Folder("/srv/p", writable=False))
    notes = Notes()
    lab.mount(notes)
    assert notes.notes == ["you may not create files in `/srv/p` on `lab`"]
    unmount.unmount(str(lab.local), context())
    quiet = Notes()
    lab.mount(quiet, read_only=True)
    assert quiet.notes == []


def test_all_mounts_are_unmounted_though_one_is_busy(lab: Lab) -> None:
    lab.mount()
    lab.system.busy = "not permitted"
    person = Person("no")
    with pytest.raises(JlrError, match="nothing was changed"):
        unmount.unmount_all(context(asker=person))
    assert f"the mount {lab.local} of lab" in person.asked
    with pytest.raises(JlrError, match="cannot unmount"):
        unmount.unmount_all(context(), yes=True)
    lab.system.busy = None
    assert unmount.unmount_all(context(), yes=True) == [str(lab.local)]


def test_only_mounts_of_the_session_are_unmounted_with_it(lab: Lab) -> None:
    lab.mount()
    assert unmount.unmount_session("lab", "other", context(), force=False) == []
    lab.system.busy = "not permitted"
    (left,) = unmount.unmount_session("lab", "cont1", context(), force=False)
    assert left.startswith("left it mounted: ")
    lab.system.busy = None
    done = unmount.unmount_session("lab", "cont1", context(), force=False)
    assert done == [f"unmounted {lab.local}"]


def test_a_new_link_is_told_only_of_its_own_mounts(lab: Lab) -> None:
    lab.mount()
    other, again = FakeLink("dgx"), FakeLink("lab")
    known_mounts.bring_back(other, None)  # type: ignore[arg-type]
    known_mounts.bring_back(again, None)  # type: ignore[arg-type]
    assert (other.known, again.known) == (set(), lab.link.known)
    known_mounts.bring_back(again, Path("/another/config"))  # type: ignore[arg-type]
    assert again.known == lab.link.known


def test_without_mounts_no_link_is_asked(lab: Lab) -> None:
    assert known_mounts.reports(context()) == []


def test_a_mount_point_is_not_below_another_mount(lab: Lab) -> None:
    lab.mount()
    with pytest.raises(Usage, match="it lies in the mount"):
        mount.mount(MountRequest(str(lab.local / "sub")), context())
