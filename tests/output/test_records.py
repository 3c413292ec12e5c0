"""Lines of the recorder's files, and the script's output as records."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.output import recorded_files
from jlremote.output.recorded_files import KINDS, Reader, Record, parsed
from tests.output.parts import line

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "time": st.floats() | JSON,
        "kernel": st.text() | JSON,
        "kind": st.sampled_from(sorted(KINDS)) | JSON,
        **dict.fromkeys(("notebook", "cell", "request", "content"), JSON),
    },
)


@given(
    st.one_of(
        st.binary(), JSON.map(json.dumps).map(str.encode), TOLD.map(json.dumps).map(str.encode)
    )
)
def test_garbage_is_no_record_and_no_traceback(garbage: bytes) -> None:
    record = parsed(garbage)
    assert record is None or (math.isfinite(record.time) and isinstance(record.content, dict))


def test_a_whole_line_is_a_record() -> None:
    content = {"name": "stdout", "text": "é"}
    whole = line("stream", content, cell=None)
    assert parsed(whole) == Record(1.0, "k", "stream", "a.ipynb", None, "r1", content)
    odd = (b"[" * 200_000, b'{"a":' * 50_000, b"1" * 10_000, b'{"time": 1e999}')
    assert [parsed(torn) for torn in (whole[:-3], *odd)] == [None] * 5


def taken(reader: Reader, data: Iterable[bytes]) -> list[Record]:
    return [record for piece in data for record in reader.take(piece) if record is not None]


def printed(folder: Path, reader: Reader, *, end_only: bool = False) -> bytes:
    """Return what the script prints of a folder."""
    script = recorded_files.script(f"directory={folder}\n", reader, end_only=end_only)
    return subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout


@given(st.data())
def test_pieces_of_any_size_give_the_same_records(data: st.DataObject) -> None:
    lines = [line("stream", {"name": "stdout", "text": str(at)}) for at in range(4)]
    first, second, third, fourth = lines
    whole = b"\x1e7 0\n" + first + second + b"\x1e8 0\n" + third + b"\x1e\n\x1e7 99\n" + fourth
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    parts = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    reader = Reader()
    told = [record for part in parts for record in reader.take(part)]
    assert [record and record.text("text") for record in told] == ["0", "1", "2", None, "3"]


def test_only_what_is_new_is_read_however_often_the_connection_breaks(tmp_path: Path) -> None:
    folder = tmp_path / recorded_files.FOLDER
    folder.mkdir()
    reader, lines = Reader(), [line("stream", {"text": f"é{at}"}) for at in range(200)]
    found: list[Record] = []
    for at in range(0, 200, 10):
        current = folder / "k.jsonl"
        if at == 100:  # the recorder has begun a new piece
            current.rename(folder / "k.1.jsonl")
        with current.open("ab") as file:
            file.write(b"".join(lines[at : at + 10])[:-7])
        output = printed(tmp_path, reader)
        found += taken(reader, [output[: (at * 37) % len(output)]])
        reader.again()
        found += taken(reader, [printed(tmp_path, reader)])
        reader.again()
        with current.open("ab") as file:
            file.write(lines[at + 9][-7:])
    found += taken(reader, [printed(tmp_path, reader)])
    assert sorted(r.text("text") for r in found) == sorted(f"é{at}" for at in range(200))


def test_the_end_of_each_kernel_is_its_last_two_pieces_and_says_how_much_is_left_out(
    tmp_path: Path,
) -> None:
    folder, reader = tmp_path / recorded_files.FOLDER, Reader()
    folder.mkdir()
    for name in ("k.8", "k.9", "k.10", "k", "a-1", "b.x.1", "b.x"):
        (folder / f"{name}.jsonl").write_bytes(line("stream", {"text": name}))
    found = taken(reader, [printed(tmp_path, reader, end_only=True)])
    assert sorted(r.text("text") for r in found) == ["a-1", "b.x", "b.x.1", "k", "k.10"]
    assert reader.left_out == sum((folder / f"k.{at}.jsonl").stat().st_size for at in (8, 9))


@pytest.mark.lab  # it takes seconds
def test_files_are_followed_until_the_reader_goes(tmp_path: Path) -> None:
    folder = tmp_path / recorded_files.FOLDER
    folder.mkdir()
    reader = Reader()
    script = recorded_files.script(f"directory={tmp_path}\n", reader, follow=True)
    argv = ("sh", "-c", script)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as following:
        assert following.stdin is not None
        assert following.stdout is not None
        output = following.stdout
        told = iter(lambda: output.read1(), b"")  # type: ignore[attr-defined]
        records = (record for data in told for record in reader.take(data))
        assert next(records) is None
        for at, name in enumerate(("k1", "k2", "k1", "k1")):
            path = folder / f"{name}.jsonl"
            if at == 3:
                path.rename(folder / "k1.1.jsonl")
            with path.open("ab") as file:
                file.write(line("stream", {"text": str(at)}))
            found = next(record for record in records if record)
            assert found.text("text") == str(at)
        following.stdin.close()
        assert [record for record in records if record] == []
