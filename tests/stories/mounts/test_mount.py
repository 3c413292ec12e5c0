"""The story of `jlr mount` and the states of mounts, with a link, sshfs and system that answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import Busy, JlrError, NotFound, Usage
from jlremote.laptop import sessions
from jlremote.laptop.sessions import MountRecord, SessionRecord
from jlremote.link.wire.states import State
from jlremote.link.wire.status import LinkStatus, MountStatus
from jlremote.mounts import known_mounts, mount, project_folder, sshfs, unmount
from jlremote.mounts.mount import MountRequest
from jlremote.mounts.points import Holder, MountPoint
from jlremote.mounts.project_folder import Folder
from tests.stories.parts import Notes, Person, context

RECORD = MountRecord("/home/ada/p", "/srv/p", "lab", "cont1", None, False, False)
POINT = MountPoint(RECORD.local, "fuse.sshfs", "lab:/srv/p")


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


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_mounts, "is_served", lambda record: True)


def link(state: str = State.UP, **mounted: Any) -> LinkStatus:
    mounts = (MountStatus(**{"name": RECORD.name, **mounted}),) if mounted else ()
    return LinkStatus(state, 0.0, "why", (), mounts)


def state(status: LinkStatus | None, system: FakeSystem | None = None) -> tuple[str, str | None]:
    return known_mounts._state(RECORD, system or FakeSystem([POINT]), status)


def test_a_mount_that_the_link_serves_is_up(served: None) -> None:
    assert state(link(connected=True, failure=None)) == (State.UP, None)


def test_a_mount_is_down_without_a_link_or_one_that_knows_it(served: None) -> None:
    assert state(None) == (State.DOWN, "there is no link to lab")
    assert state(link())[0] == State.DOWN
    told, detail = state(link(connected=False, failure="no SFTP"))
    assert (told, detail) == (State.DOWN, "the host refuses it: no SFTP")


def test_a_mount_has_the_state_of_a_link_that_is_not_up(served: None) -> None:
    assert state(link(State.RECONNECTING)) == (State.RECONNECTING, "why")


def test_a_mount_in_a_mount_is_refused() -> None:
    with pytest.raises(Usage, match="it lies in the mount `/home/ada/p`"):
        known_mounts.place("/home/ada/p/sub", FakeSystem([POINT]))
    assert known_mounts.place("/home/ada/p", FakeSystem([POINT])) == "/home/ada/p"


def test_a_report_has_the_record_and_the_state() -> None:
    assert known_mounts.report(RECORD, "dead", "why").to_json() == {
        "local": "/home/ada/p",
        "host": "lab",
        "remote": "/srv/p",
        "session": "cont1",
        "read_only": False,
        "state": "dead",
        "detail": "why",
    }


def request(**given: Any) -> mount.MountRequest:
    return mount.MountRequest(**{"local": RECORD.local, **given})


def test_a_mount_of_others_is_not_touched(served: None) -> None:
    with pytest.raises(Usage, match="another mount is at `/home/ada/p`"):
        mount._stays(request(), RECORD.local, None, FakeSystem([POINT]))


def test_a_busy_mount_names_at_most_five_programs() -> None:
    users = [Holder(n, "vim", "works in") for n in range(7)]
    error = unmount._refusal(RECORD, "fusermount3: Device or resource busy", users)
    assert isinstance(error, Busy)
    assert error.message.count("vim") == 5
    assert error.message.endswith(", and 2 more")
    assert "--force" in (error.hint or "")


def test_a_mount_that_others_hold_says_so_and_another_fault_is_told_as_it_is() -> None:
    busy = unmount._refusal(RECORD, "busy", [])
    assert "a program of another user uses it" in busy.message
    other = unmount._refusal(RECORD, "not permitted", [])
    assert (type(other), other.message) == (JlrError, "cannot unmount `/home/ada/p`: not permitted")
