"""Images that are files: their names, their folder, and why a pull failed."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlremote.errors import Authentication, JlrError, NotFound
from jlremote.images import image_files
from jlremote.images.image_errors import login_error
from jlremote.images.transfers import Transfer
from jlremote.place.host.contract import Completed

DIGEST = f"sha256:{'0a' * 32}"
PART = st.from_regex(r"[a-z0-9]{1,9}([._-][a-z0-9]{1,9})?", fullmatch=True)
TAG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}", fullmatch=True)
REFERENCE = st.builds(
    lambda parts, tag: f"docker://reg.org/{'/'.join(parts)}:{tag}",
    st.lists(PART, min_size=1, max_size=4),
    TAG,
)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("docker://nvcr.io/nvidia/pytorch:21.08-py3", "nvcr.io+nvidia+pytorch@21.08-py3.sif"),
        ("docker://debian", "docker.io+library+debian@latest.sif"),
        ("docker://127.0.0.1:5000/x:1", "127.0.0.1-5000+x@1.sif"),
        (f"docker://me/x@{DIGEST}", f"docker.io+me+x@{DIGEST.replace(':', '-')}.sif"),
        ("oras://ghcr.io/me/x:1", "oras+ghcr.io+me+x+1.sif"),
    ],
)
def test_a_reference_names_its_file(typed: str, name: str) -> None:
    assert image_files.file_name(typed) == name


@settings(max_examples=30)
@given(REFERENCE, REFERENCE)
def test_two_references_never_have_one_file(one: str, other: str) -> None:
    same = image_files.file_name(one) == image_files.file_name(other)
    assert same == (one == other)


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        (None, ".local/share/jlr/images"),
        ("~/w s", "w s"),
        ("w", "w"),
    ],
)
def test_a_folder_is_relative_to_the_home(tmp_path: Path, setting: str | None, where: str) -> None:
    (tmp_path / where).mkdir(parents=True)
    (tmp_path / where / "a+b@1.sif").write_bytes(b"12345")
    [found] = image_files.read_list(sh(image_files.list_script(setting), tmp_path).stdout)
    assert (found.repository, found.tag, found.size) == ("a/b", "1", 5)
    assert found.id == str(tmp_path / where / "a+b@1.sif")
    named = sh(image_files.find_script("a+b@1.sif", setting), tmp_path)
    assert image_files.read_found(named.stdout) == (found.id, "")


def sh(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.run(
        ("sh", "-c", script), env=variables, cwd=home, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("killed", [False, True])
def test_only_a_whole_file_has_the_images_name(tmp_path: Path, killed: bool) -> None:
    program = tmp_path / "apptainer"
    program.write_text(f'#!/bin/sh\necho half >"$3"\n{"kill -9 $$" if killed else ""}\n')
    program.chmod(0o755)
    script = image_files.pull_script("apptainer", "docker://a/b:1", "w", keyed=False)
    done = sh(f"PATH={tmp_path}:$PATH\n{script}", tmp_path)
    assert (done.returncode == 0) == (not killed)
    assert [p.name for p in (tmp_path / "w").glob("*.sif")] == (
        [] if killed else ["docker.io+a+b@1.sif"]
    )
    assert not list((tmp_path / "w").rglob("*.part"))


ADA, BERT = 61_001, 61_002  # users without an account
IMAGE = "docker://a/b:1"
NAME = image_files.file_name(IMAGE)


@pytest.fixture(params=[0o1777, 0o777], ids=["sticky", "open"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of images in which all users of a host can write."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(request.param)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o1777)
    tmp_path.chmod(0o755)
    # As the real one, with what it keeps and unpacks.
    program = tmp_path / "apptainer"
    program.write_text(
        '#!/bin/sh\nid -u >"$APPTAINER_CACHEDIR/kept" && id -u >"$APPTAINER_TMPDIR/made" &&\n'
        '  cp "$APPTAINER_CACHEDIR/kept" "$3"\n'
    )
    program.chmod(0o755)
    for uid in (ADA, BERT):
        (tmp_path / f"{uid}").mkdir()
        os.chown(tmp_path / f"{uid}", uid, uid)
    return folder


def pulls(shared: Path, uid: int) -> subprocess.CompletedProcess[str]:
    script = image_files.pull_script("apptainer", IMAGE, str(shared), keyed=False)
    return as_user(f"PATH={shared.parent}:$PATH\n{script}", shared, uid)


def finds(shared: Path, uid: int) -> tuple[str, str]:
    done = as_user(image_files.find_script(IMAGE, str(shared)), shared, uid)
    return image_files.read_found(done.stdout)


def as_user(script: str, shared: Path, uid: int) -> subprocess.CompletedProcess[str]:
    home = shared.parent / f"{uid}"
    user = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")
    variables = {"PATH": os.environ["PATH"], "HOME": str(home)}
    argv = (*user, "sh", "-c", script)
    return subprocess.run(
        argv, env=variables, cwd=home, capture_output=True, text=True, check=False, timeout=60
    )


def test_two_users_pull_into_one_folder(shared: Path) -> None:
    assert pulls(shared, ADA).returncode == 0
    assert pulls(shared, ADA).returncode == 0  # a tag may mean another image by now
    assert finds(shared, ADA) == (str(shared / NAME), "")
    assert finds(shared, BERT)[1] == "UNKNOWN"
    again = pulls(shared, BERT)
    if shared.stat().st_mode & 0o1000:
        error = image_files.pull_error("apptainer", IMAGE, "dgx", [again.stdout], again.returncode)
        assert "who alone can replace it" in error.message
        assert (shared / NAME).read_text() == f"{ADA}\n"
    else:
        assert (again.returncode, (shared / NAME).read_text()) == (0, f"{BERT}\n")
    for uid in (ADA, BERT):
        assert (shared / f".jlr-{uid}").stat().st_mode & 0o7777 == 0o700


def test_of_two_who_pull_at_once_both_have_an_image(shared: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda uid: pulls(shared, uid), (ADA, BERT) * 4))
    late = [one for one in done if one.returncode != 0]
    assert all("who alone can replace it" in one.stdout for one in late)
    assert finds(shared, ADA)[0] == finds(shared, BERT)[0] == str(shared / NAME)


@pytest.mark.parametrize("name", [f".{NAME}.lock", f".{NAME}.part", NAME, f".jlr-{ADA}"])
def test_a_link_that_another_user_planted_is_not_followed(shared: Path, name: str) -> None:
    home = shared.parent / f"{ADA}"
    (home / "precious").write_text("precious")
    (home / "folder").mkdir()
    for path in (home / "precious", home / "folder"):
        os.chown(path, ADA, ADA)
    for target in ("precious", "folder"):
        assert as_user(f"ln -sfT {home / target} {shared / name}", shared, BERT).returncode == 0
        pulls(shared, ADA)
        assert (home / "precious").read_text() == "precious"
        assert list((home / "folder").iterdir()) == []


@pytest.mark.parametrize("name", [".cache", ".unpacked", f".jlr-{ADA}", NAME])
def test_a_folder_that_another_user_planted_is_not_used(shared: Path, name: str) -> None:
    planted = as_user(f"umask 0; mkdir -p {shared / name}/cache/unpacked", shared, BERT)
    assert planted.returncode == 0
    done = pulls(shared, ADA)
    assert [path.name for path in (shared / name).rglob("*")] == ["cache", "unpacked"]
    assert (done.returncode == 0) == (name != NAME)


def test_an_image_that_another_user_put_there_is_told(shared: Path) -> None:
    home = shared.parent / f"{BERT}"
    assert as_user(f"echo evil >{shared / NAME}", shared, BERT).returncode == 0
    assert finds(shared, ADA) == (str(shared / NAME), "UNKNOWN")
    (shared / NAME).unlink()
    (shared.parent / "of-root").write_text("fine")
    link = f"ln -s {shared.parent / 'of-root'} {shared / NAME}"  # its owner can change it
    assert as_user(link, shared, BERT).returncode == 0
    assert finds(shared, ADA) == (str(shared / NAME), "UNKNOWN")
    (shared / NAME).unlink()
    (shared / NAME).symlink_to(home / "evil")
    assert as_user("echo evil >evil; chmod 755 .", shared, BERT).returncode == 0
    assert finds(shared, ADA) == (str(shared / NAME), "UNKNOWN")


def test_a_program_that_takes_no_file_of_keys_is_given_none(tmp_path: Path) -> None:
    program = tmp_path / "singularity"
    program.write_text('#!/bin/sh\n[ "$2" = --help ] || echo pulled\n')
    program.chmod(0o755)
    script = image_files.pull_script("singularity", "docker://a/b:1", "w", keyed=True)
    done = sh(
        f"PATH={tmp_path}:$PATH\n{script.replace('IFS= read -r config', 'config={}')}", tmp_path
    )
    assert (done.returncode, done.stdout) == (image_files.NO_AUTHFILE, "")
    error = image_files.pull_error("singularity", "docker://a/b:1", "zih", [], done.returncode)
    assert "takes no key for one pull" in error.message


@pytest.mark.parametrize(
    ("said", "kind", "hint"),
    [
        ("reading manifest 1: authentication required", Authentication, "jlr image login zih"),
        ("manifest unknown", NotFound, "its name and tag"),
        ("write /x: no space left on device", JlrError, "JLR_IMAGE_FOLDER"),
        ("write /x: disk quota exceeded", JlrError, "JLR_IMAGE_FOLDER"),
    ],
)
def test_each_cause_has_its_error(said: str, kind: type[JlrError], hint: str) -> None:
    lines = ["INFO:    Fetching OCI image...", f"FATAL:   While making image: {said}"]
    error = image_files.pull_error("apptainer", "docker://a/b", "zih", lines, 255)
    assert type(error) is kind
    assert error.message == f"cannot pull `docker://a/b`: While making image: {said}"
    assert hint in (error.hint or "")


def test_progress_is_told_in_steps_and_bytes_and_the_last_lines_are_kept() -> None:
    pull = Transfer()
    assert pull.in_words() == ""
    pull.take("INFO:    Fetching OCI image...\n40.0MiB / 135.0")
    assert pull.in_words() == "Fetching OCI image"
    pull.take("MiB [==>--] 30 %\rFATAL:   \x1b[31mx")
    pull.finish()
    assert pull.in_words() == "40.0MiB of 135.0MiB"
    assert pull.complaint[1:] == ["40.0MiB / 135.0MiB [==>--] 30 %", "FATAL:   x"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("FATAL:   logging in failed: 401 Unauthorized\n", Authentication),
        ("FATAL:   dial tcp: no such host\n", JlrError),
    ],
)
def test_a_refused_key_is_told_from_a_registry_out_of_reach(
    said: str, kind: type[JlrError]
) -> None:
    error = login_error(None, "nvcr.io", "me", "zih", Completed(1, "", said))
    assert type(error) is kind
    assert said.removeprefix("FATAL:").strip() in error.message
