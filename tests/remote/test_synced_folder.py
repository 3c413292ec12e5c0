"""The far end of `jlr sync`: what it brings, what it deletes, and what it leaves as it is."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from jlremote.remote import synced_folder
from jlremote.remote.sending import program
from jlremote.remote.synced_folder import BUSY, EMPTY, OWN, REFUSED, SIZE_DIGITS, decide

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it runs on the host")
OLD, NEW = 1_000_000_007, 2_000_000_011  # nanoseconds


def file(text: str, when: int = OLD, *, executable: bool = False) -> list[Any]:
    return ["f", len(text), when, executable]


class Far:
    """A destination, and the process that takes a folder there."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.argv = (sys.executable, "-I", "-c", program(synced_folder.__name__))

    def begin(self, entries: Mapping[str, list[Any]], **more: Any) -> subprocess.Popen[bytes]:
        words: dict[str, Any] = {"into": str(self.top), "name": "proj", "source": "here:/proj"}
        words |= {"overwrite": False, "dry": False, "entries": list(entries.items())} | more
        packed = zlib.compress(json.dumps(words).encode("ascii"))
        process = subprocess.Popen(self.argv, stdin=-1, stdout=-1, stderr=-1)
        given, _ = ends(process)
        given.write(sized(packed))
        given.flush()
        return process

    def sync(
        self,
        texts: Mapping[str, str],
        entries: Mapping[str, list[Any]] | None = None,
        changed: tuple[str, ...] = (),
        **more: Any,
    ) -> dict[str, Any]:
        """Sync files of these texts; return the last answer, with the names that it `wanted`."""
        entries = entries or {name: file(text) for name, text in texts.items()}
        with self.begin(entries, **more) as process:
            given, told = ends(process)
            answer = json.loads(told.readline() or "{}")
            wanted = [list(entries)[number] for number in answer.get("want", ())]
            if wanted:
                given.write(files(texts, entries, answer["want"], changed))
                given.close()
                answer = json.loads(told.readline() or "{}")
            assert process.stderr is not None
            errors = process.stderr.read().decode()
        answer |= {"wanted": wanted, "status": process.returncode, "errors": errors}
        return dict(answer)

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.top)): path.read_text()
            for path in self.top.rglob("*")
            if path.is_file() and OWN not in path.parts
        }


def ends(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return the stdin and stdout of a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def sized(data: bytes) -> bytes:
    return str(len(data)).zfill(SIZE_DIGITS).encode() + data


def files(
    texts: Mapping[str, str],
    entries: Mapping[str, list[Any]],
    wanted: list[int],
    changed: tuple[str, ...] = (),
) -> bytes:
    bodies = (texts[list(entries)[number]].encode() for number in wanted)
    return b"".join(map(sized, (*bodies, json.dumps(changed).encode())))


@pytest.fixture
def far(tmp_path: Path) -> Far:
    return Far(tmp_path / "there")


def test_a_folder_comes_whole_and_a_second_time_nothing_is_wanted(far: Far) -> None:
    names = ("a", "-n", "é\n", "e\u0301", "\udcff", "it's", "データ", "файл", "קובץ", "😀")
    entries = {"d": ["d"], "d/x": file("run", executable=True), "link": ["l", "d/x"]}
    entries |= {
        name: file(name.encode("utf-8", "surrogateescape").decode("latin-1")) for name in names
    }
    texts = {"d/x": "run"} | {name: "y" * entries[name][1] for name in names}
    first = far.sync(texts, entries)
    assert first["status"] == 0, first
    assert set(first["sent"]) == {"d/x", "link", *names}
    assert (far.top / "d" / "x").stat().st_mode & 0o100
    assert (far.top / "a").stat().st_mtime_ns == OLD
    assert str((far.top / "link").readlink()) == "d/x"
    again = far.sync(texts, entries)
    assert (again["wanted"], again["sent"], again["deleted"], again["kept"]) == ([], [], [], [])
    assert stat.S_IMODE((far.top / OWN).stat().st_mode) == 0o700
    assert stat.S_IMODE((far.top / OWN / "list").stat().st_mode) & 0o077 in (0, 0o044)


def test_only_what_it_brought_and_left_unchanged_is_deleted(far: Far) -> None:
    entries = {"d": ["d"], "d/a": file("a"), "b": file("b"), "c": file("c")}
    far.sync({"d/a": "a", "b": "b", "c": "c"}, entries)
    (far.top / "d" / "theirs").write_text("theirs")
    (far.top / "b").write_text("changed there")
    done = far.sync({"c": "c"})
    assert (done["deleted"], done["kept"]) == (["d", "d/a"], ["b"])
    assert far.files() == {"d/theirs": "theirs", "b": "changed there", "c": "c"}
    assert far.sync({"c": "c"})["kept"] == []  # it is theirs now


@pytest.mark.parametrize("harm", ["missing", "broken", "of another folder"])
def test_without_its_list_nothing_is_deleted_or_replaced(far: Far, harm: str) -> None:
    far.sync({"a": "a", "b": "b"})
    listed = far.top / OWN / "list"
    if harm == "missing":
        listed.unlink()
    elif harm == "broken":
        listed.write_text(listed.read_text()[:-5])
    more: dict[str, Any] = {"source": "other:/proj"} if harm == "of another folder" else {}
    done = far.sync({"a": "A"}, {"a": file("A", NEW)}, **more)
    assert (done["deleted"], done["conflicts"]) == ([], ["a"])
    assert far.files() == {"a": "a", "b": "b"}
    over = far.sync({"a": "A"}, {"a": file("A", NEW)}, overwrite=True, **more)
    assert over["sent"] == ["a"]
    assert far.files() == {"a": "A", "b": "b"}


def test_a_file_that_changed_there_is_kept_and_an_equal_one_is_taken_over(far: Far) -> None:
    far.sync({"a": "a", "b": "b"})
    (far.top / "a").write_text("theirs")
    (far.top / "b").write_text("both")
    (far.top / "c").write_text("same")
    entries = {"a": file("a"), "b": file("ours", NEW), "c": file("same", NEW)}
    done = far.sync({"b": "ours", "c": "same"}, entries)
    assert (done["kept"], done["conflicts"], done["sent"]) == (["a"], ["b"], ["c"])
    assert far.files() == {"a": "theirs", "b": "both", "c": "same"}
    assert far.sync({"b": "b"}, {"b": file("b")})["deleted"] == ["c"]


@pytest.mark.parametrize("cut", ["before the files", "in a file", "in a length", "before the end"])
def test_a_cut_leaves_the_old_files_whole_and_the_next_sync_clears_up(far: Far, cut: str) -> None:
    far.sync({"a": "old"})
    entries = {"a": file("new", NEW), "b": file("b" * 5000, NEW)}
    data = files({"a": "new", "b": "b" * 5000}, entries, [0, 1])
    end = {"before the files": 0, "in a file": 2000, "in a length": -5, "before the end": -1}[cut]
    with far.begin(entries) as process:
        given, _ = ends(process)
        given.write(data[:end])
        given.close()
        process.wait()
    assert process.returncode == 1
    assert far.files() == {"a": "old"}
    assert not (far.top / OWN / "new").exists()
    assert far.sync({"a": "new", "b": "b" * 5000}, entries)["sent"] == ["a", "b"]


def test_a_cut_among_the_new_names_is_taken_for_no_change_there(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list has the new states beside the old ones before a file gets its name."""
    far.sync({"a": "a", "b": "b"})
    stop = "import os\nreal = os.replace\ndef cut(one, two):\n    real(one, two)\n"
    stop += "    if two.endswith(b'/a'):\n        os._exit(9)\nos.replace = cut\n"
    whole = far.argv
    far.argv = (*whole[:-1], stop + whole[-1])
    entries = {"a": file("A", NEW), "b": file("B", NEW)}
    assert far.sync({"a": "A", "b": "B"}, entries)["status"] == 9
    assert far.files() == {"a": "A", "b": "b"}
    far.argv = whole
    newer = {"a": file("AA", NEW + 5), "b": file("BB", NEW + 5)}
    done = far.sync({"a": "AA", "b": "BB"}, newer)
    assert (done["sent"], done["conflicts"]) == (["a", "b"], [])
    assert far.files() == {"a": "AA", "b": "BB"}


def test_a_file_that_changed_while_it_was_read_stays_old(far: Far) -> None:
    far.sync({"a": "old"})
    done = far.sync({"a": "mix", "b": "b"}, {"a": file("mix", NEW), "b": file("b")}, changed=("a",))
    assert done["sent"] == ["b"]
    assert far.files() == {"a": "old", "b": "b"}
    entries = {"a": file("new", NEW), "b": file("b")}
    assert far.sync({"a": "new", "b": "b"}, entries)["sent"] == ["a"]


@pytest.mark.parametrize("when", [7 * 10**18 + 1, 1 - 10**18])
def test_a_laptop_whose_clock_is_years_off_sends_each_edit_once(far: Far, when: int) -> None:
    far.sync({"a": "old"})
    entries = {"a": file("new", when)}
    assert far.sync({"a": "new"}, entries)["sent"] == ["a"]
    assert far.sync({"a": "new"}, entries)["sent"] == []
    assert far.files() == {"a": "new"}


def test_files_folders_and_links_take_each_others_place(far: Far) -> None:
    entries = {"x": ["d"], "x/y": file("1"), "z": file("2"), "l": ["l", "z"]}
    far.sync({"x/y": "1", "z": "2"}, entries)
    entries = {"x": file("3", NEW), "z": ["d"], "z/w": file("4"), "l": file("5", NEW)}
    done = far.sync({"x": "3", "z/w": "4", "l": "5"}, entries)
    assert (done["conflicts"], done["errors"]) == ([], "")
    assert far.files() == {"x": "3", "z/w": "4", "l": "5"}
    assert not (far.top / "l").is_symlink()


def test_nothing_goes_through_a_link_there(far: Far, tmp_path: Path) -> None:
    far.sync({"d/a": "a"}, {"d": ["d"], "d/a": file("a")})
    (tmp_path / "elsewhere").mkdir()
    (far.top / "d").rename(tmp_path / "elsewhere" / "d")
    (far.top / "d").symlink_to(tmp_path / "elsewhere" / "d")
    done = far.sync({"d/a": "A"}, {"d": ["d"], "d/a": file("A", NEW)})
    assert done["kept"] == ["d"]
    gone = far.sync({"b": "b"})
    assert (gone["kept"], gone["deleted"]) == (["d"], [])
    assert (tmp_path / "elsewhere" / "d" / "a").read_text() == "a"


def test_an_empty_folder_here_deletes_nothing_there(far: Far) -> None:
    far.sync({"a": "a"})
    with far.begin({}) as process:
        process.wait()
    assert process.returncode == EMPTY
    assert far.files() == {"a": "a"}


def test_a_dry_run_changes_nothing(far: Far) -> None:
    done = far.sync({}, {"a": file("a")}, dry=True)
    assert done["sent"] == ["a"]
    assert not far.top.exists()


def test_home_and_root_are_refused_and_a_default_there_gets_a_name(
    far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    for into in ("/", "~", str(home), "."):
        with far.begin({}, into=into) as process:
            process.wait()
        assert process.returncode == REFUSED, into
    assert far.sync({"a": "a"}, into=None)["into"] == str(home / "proj")
    monkeypatch.chdir(tmp_path)
    assert far.sync({"a": "a"}, into=None)["into"] == str(tmp_path)


def test_a_second_sync_waits_for_the_first(far: Far) -> None:
    entries = {"a": file("a")}
    with far.begin(entries) as first:
        given, told = ends(first)
        told.readline()  # it has the lock
        with far.begin({"a": file("b", NEW)}) as second:
            given.write(files({"a": "a"}, entries, [0]))
            given.close()
            next_given, next_told = ends(second)
            assert json.loads(next_told.readline())["want"] == [0]
            assert first.wait() == 0
            next_given.write(files({"a": "b"}, {"a": file("b")}, [0]))
    assert far.files() == {"a": "b"}


@pytest.mark.lab  # it takes seconds
def test_one_that_waits_too_long_says_so(far: Far) -> None:
    with far.begin({"a": file("a")}) as first:
        ends(first)[1].readline()
        brief = (*far.argv[:-1], far.argv[-1].replace("_BUSY_SECONDS = 10", "_BUSY_SECONDS = 1"))
        assert brief != far.argv
        far.argv = brief
        with far.begin({"a": file("a")}) as second:
            assert second.wait() == BUSY


@pytest.mark.lab  # it takes a second
def test_a_hundred_thousand_files_are_compared_once_each() -> None:
    states = {f"d{n % 100}/{n}": file("x") for n in range(100_000)}
    brought = {name: [state, state, None] for name, state in states.items()}
    asked = []

    def look(name: str) -> list[Any]:
        asked.append(name)
        return states[name]

    plan = decide(dict(list(states.items())[:50_000]), brought, look, False)
    assert (len(plan.gone), len(plan.want), len(asked)) == (50_000, 0, 100_000)
