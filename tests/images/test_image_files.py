"""Images that are files: their names, their folder, and why a pull failed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import Authentication, JlrError, NotFound, Usage
from jlremote.images import image_files

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


@given(REFERENCE, REFERENCE)
def test_two_references_never_have_one_file(one: str, other: str) -> None:
    same = image_files.file_name(one) == image_files.file_name(other)
    assert same == (one == other)


def test_an_invalid_reference_is_the_persons_mistake() -> None:
    with pytest.raises(Usage, match="its name"):
        image_files.file_name("docker://nvcr.io/Torch")


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
    assert named.stdout == found.id


def test_a_folder_that_is_not_there_has_no_images(tmp_path: Path) -> None:
    assert image_files.read_list(sh(image_files.list_script("none"), tmp_path).stdout) == []
    assert sh(image_files.find_script("x.sif", None), tmp_path).returncode == image_files.MISSING


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
    assert not list((tmp_path / "w").glob(".*.part"))


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
        ("unauthorized: authentication required", Authentication, "jlr login zih"),
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
    pull = image_files.FilePull()
    assert pull.in_words() == ""
    pull.take("INFO:    Fetching OCI image...\n40.0MiB / 135.0")
    assert pull.in_words() == "Fetching OCI image"
    pull.take("MiB [==>--] 30 %\rFATAL:   \x1b[31mx")
    pull.finish()
    assert pull.in_words() == "40.0MiB of 135.0MiB"
    assert pull.lines[1:] == ["40.0MiB / 135.0MiB [==>--] 30 %", "FATAL: x"]


def test_a_key_is_tried_with_a_file_of_its_own_unless_it_is_kept() -> None:
    trial = image_files.login_script("apptainer", "nvcr.io", "$oauthtoken", keep=False)
    kept = image_files.login_script("apptainer", "nvcr.io", "$oauthtoken", keep=True)
    assert '--authfile="$REGISTRY_AUTH_FILE" docker://nvcr.io' in trial
    assert trial.startswith("apptainer registry login '--username=$oauthtoken' --password-stdin ")
    assert "authfile" not in kept


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
    error = image_files.login_error("nvcr.io", "me", said)
    assert type(error) is kind
    assert said.removeprefix("FATAL:").strip() in error.message
