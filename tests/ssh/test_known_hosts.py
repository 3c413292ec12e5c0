"""known_hosts files and key blobs: read, matched and appended as ssh does."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jlremote.ssh.trust.known_hosts import KnownKey, append, format_line, parse_line, read_files
from jlremote.ssh.wire_format import key_type, string

KEY = string(b"ssh-ed25519") + string(bytes(range(32)))
KEY_TEXT = base64.b64encode(KEY).decode()
PATH = Path("known_hosts")

names = st.text(st.sampled_from("abcXYZ019.-_:[]"), min_size=1, max_size=20)
patterns = st.lists(
    st.tuples(st.sampled_from(["", "!"]), st.text(st.sampled_from("abX.*?-[]:"), min_size=1)),
    min_size=1,
    max_size=4,
).map(lambda parts: ",".join(mark + text for mark, text in parts))


def known(line: str) -> KnownKey | None:
    return parse_line(PATH, 1, line.encode("utf-8", "surrogateescape"))


@settings(max_examples=30)
@given(pattern=patterns, name=names)
def test_names_match_as_ssh_keygen_matches_them(
    pattern: str, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("known") / "hosts"
    path.write_text(f"{pattern} ssh-ed25519 {KEY_TEXT}\n")
    found = subprocess.run(
        ("ssh-keygen", "-F", name, "-f", str(path)), capture_output=True, check=False
    )
    ours = known(f"{pattern} ssh-ed25519 {KEY_TEXT}")
    assert ours is not None
    assert ours.matches(name) == (found.returncode == 0)


@given(names)
def test_a_hashed_line_matches_its_name_without_showing_it(name: str) -> None:
    line = format_line(name.lower(), KEY, hashed=True).decode()
    ours = known(line)
    assert ours is not None
    assert ours.matches(name)
    assert not ours.matches(f"{name}x")
    assert line.startswith("|1|")


@given(st.binary(max_size=200))
def test_no_line_raises(line: bytes) -> None:
    found = parse_line(PATH, 1, line)
    assert found is None or found.blob
    assert isinstance(key_type(line), str)


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "# a comment",
        "host ssh-ed25519",
        "host ssh-ed25519 !!!not-base64!!!",
        f"host ssh-rsa {KEY_TEXT}",
        f"@unknown-marker host ssh-ed25519 {KEY_TEXT}",
        "host 2048 35 12345678901234567890",
        "\xff\xfe",
    ],
)
def test_an_unreadable_line_is_skipped(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(f"{odd}\n  host\t ssh-ed25519   {KEY_TEXT} and a comment\r\n", "latin-1")
    (found,) = read_files([tmp_path / "missing", tmp_path, path])
    assert found.where == f"{path}:2"
    assert found.matches("HOST")


@given(before=st.binary(max_size=300))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_appending_keeps_every_earlier_byte(before: bytes, tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_bytes(before)
    line = format_line("host", KEY, hashed=False)
    append(path, line)
    after = path.read_bytes()
    joint = b"" if before.endswith(b"\n") or not before else b"\n"
    assert after == before + joint + line


def test_a_missing_file_is_created_with_mode_600(tmp_path: Path) -> None:
    path = tmp_path / "ssh" / "known_hosts"
    append(path, b"line\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
