"""Files go where platformdirs says, and other users cannot read, plant or swap them."""

import errno
import os
import stat
from pathlib import Path

import pytest

from jlremote.errors import JlrError, Usage
from jlremote.laptop import paths
from tests.lab.disks import needs_root


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_xdg_variables_move_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, variable in (("state", "STATE_HOME"), ("runtime", "RUNTIME_DIR")):
        monkeypatch.setenv(f"XDG_{variable}", str(tmp_path / kind))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert paths.state_directory() == tmp_path / "state/jlr"
    assert paths.log_directory() == tmp_path / "state/jlr/log"
    assert paths.runtime_directory() == tmp_path / "runtime/jlr"
    assert paths.config_directory() == tmp_path / "config/jlr"


@pytest.mark.parametrize("state", ["relative", "", "/tmp"])
def test_the_folder_of_names_is_that_of_the_records(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", state and state.replace("/tmp", f"{tmp_path}/x"))
    assert paths.unchecked_state_directory() == paths.state_directory()


def test_only_this_user_can_enter_new_folders(tmp_path: Path) -> None:
    for _ in range(2):
        made = paths.private_directory(tmp_path / "one" / "two")
        assert mode(made) == mode(made.parent) == 0o700
    (tmp_path / "link").symlink_to(made)
    assert paths.private_directory(tmp_path / "link") == tmp_path / "link"


def test_without_a_runtime_folder_the_fallback_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing" / "deep"))
    assert mode(paths.runtime_directory()) == 0o700
    assert not recwarn.list


def test_without_a_home_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "nowhere")
    monkeypatch.setattr("pwd.getpwuid", dict[int, str]().__getitem__)
    with pytest.raises(JlrError, match="no folder for jlr's files") as refusal:
        paths.state_directory()
    assert "`HOME`" in (refusal.value.hint or "")


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose end"
    loose.mkdir()
    loose.chmod(0o755)
    with pytest.raises(JlrError, match="others have access") as refusal:
        paths.private_directory(loose)
    assert refusal.value.hint == f"`chmod 700 '{loose}'`"


@needs_root
def test_a_squatted_folder_is_refused(tmp_path: Path) -> None:
    squatted = tmp_path / "jlr"
    squatted.mkdir(mode=0o700)
    os.chown(squatted, 12345, 12345)
    with pytest.raises(JlrError, match="belongs to user 12345"):
        paths.private_directory(squatted)


@needs_root
def test_another_users_link_to_this_users_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    link = tmp_path / "jlr"
    link.symlink_to(ours)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(JlrError, match=r"belongs to user 12345|permission denied"):
        paths.private_directory(link)


@needs_root
def test_a_folder_inside_another_users_folder_is_refused(tmp_path: Path) -> None:
    parent = tmp_path / "runtime-0"
    (parent / "jlr").mkdir(parents=True, mode=0o700)
    os.chown(parent, 12345, 12345)
    with pytest.raises(JlrError, match="runtime-0` belongs to user 12345"):
        paths.private_directory(parent / "jlr")


def test_a_parent_in_which_all_users_can_rename_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(JlrError, match="all users can rename"):
        paths.private_directory(open_to_all / "jlr")


def test_a_file_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "file").chmod(0o600)
    with pytest.raises(JlrError, match="is not a folder"):
        paths.private_directory(tmp_path / "file")
    with pytest.raises(JlrError, match=r"cannot write .*not a directory"):
        paths.private_directory(tmp_path / "file" / "jlr")


def test_a_file_is_written_whole_for_this_user_alone(tmp_path: Path) -> None:
    target = tmp_path / "sessions.json"
    target.write_text("old")
    target.chmod(0o644)
    paths.write_whole(target, "né")
    assert target.read_bytes() == "né".encode()
    assert mode(target) == 0o600
    paths.write_whole(tmp_path / "a" / "b", "x")
    assert mode(tmp_path / "a") == 0o700


def test_a_new_file_takes_nothings_place(tmp_path: Path) -> None:
    new, there, link = (tmp_path / name for name in ("new", "there", "link"))
    there.write_text("mine")
    link.symlink_to(tmp_path / "nowhere")
    paths.write_new(new, "né")
    assert new.read_bytes() == "né".encode()
    for taken in (there, link, tmp_path):
        with pytest.raises(Usage, match="exists"):
            paths.write_new(taken, "x")
    assert there.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


@needs_root
def test_a_full_disk_leaves_no_part_of_a_new_file(small_disk: Path) -> None:
    with pytest.raises(JlrError, match="no space left"):
        paths.write_new(small_disk / "new", b"x" * 200_000)
    assert list(small_disk.iterdir()) == []


@needs_root
def test_a_full_disk_leaves_the_old_file_and_nothing_else(small_disk: Path) -> None:
    target = small_disk / "sessions.json"
    target.write_text("old")
    with pytest.raises(JlrError, match="no space left") as refusal:
        paths.write_whole(target, b"x" * 200_000)
    assert refusal.value.hint == "free some space there and try again"
    assert target.read_text() == "old"
    assert [entry.name for entry in small_disk.iterdir()] == ["sessions.json"]


def test_the_quota_counts_as_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(JlrError, match="quota") as refusal:
        paths.write_whole(tmp_path / "new", b"data")
    assert "space" in (refusal.value.hint or "")
    assert not list(tmp_path.iterdir())
