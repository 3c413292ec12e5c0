"""Reading a session's records: which notebook is meant, what is missing, and losses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.errors import JlrError, LinkLost, NotFound, Usage
from jlremote.jupyter.api import Kernel
from jlremote.laptop.sessions import SessionRecord
from jlremote.output import reading, recorded_files
from jlremote.output.reading import chosen, followed, recorded
from jlremote.output.recorded_files import Record
from jlremote.output.view import ending
from jlremote.selection import session_selection
from tests.output.parts import line
from tests.stories.parts import Notes, context

KNOWN = ["work/train.ipynb", "old/train.ipynb", "test.ipynb", None]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("work/train.ipynb", "work/train.ipynb"),
        ("k/train.ipynb", "work/train.ipynb"),
        ("test.ipynb", "test.ipynb"),
        ("st.ipynb", "test.ipynb"),
    ],
)
def test_a_notebook_is_called_by_its_path_or_a_unique_end(typed: str, name: str) -> None:
    assert chosen(typed, KNOWN) == name


def test_a_notebook_that_is_not_clear_is_asked_for() -> None:
    with pytest.raises(Usage) as several:
        chosen("train.ipynb", KNOWN)
    assert several.value.hint == "type more of it: `work/train.ipynb`, `old/train.ipynb`"
    with pytest.raises(NotFound) as missing:
        chosen("tset.ipynb", KNOWN)
    assert missing.value.hint == "did you mean `test.ipynb`?"
    with pytest.raises(NotFound) as empty:
        chosen("a.ipynb", [None])
    assert empty.value.hint == "no cell has run"
    with pytest.raises(NotFound) as hostile:
        chosen("a.ipynb", ["$(evil)"])
    assert hostile.value.hint == "known: `'$(evil)'`"


class Host:
    """A host that prints what was announced, one part a script, and breaks if there is no status.

    Attributes:
        scripts: the scripts that it was given.
    """

    def __init__(self, *printed: tuple[bytes, int | None]) -> None:
        self._printed = iter(printed)
        self.scripts: list[str] = []

    def status(self) -> Any:
        return SimpleNamespace(forward=lambda _: SimpleNamespace(local_port=1, server=None))

    @contextmanager
    def process(self, script: str) -> Iterator[Any]:
        self.scripts.append(script)
        data, status = next(self._printed)
        yield _Process(data, status)


class _Process:
    def __init__(self, data: bytes, status: int | None) -> None:
        self._data, self.status = data, status

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        yield ("stdout" if self.status in (0, None) else "stderr"), self._data
        if self.status is None:
            raise LinkLost("the connection broke")


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that lets a session be read from a host that prints so."""

    def answer(
        *printed: tuple[bytes, int | None], served: bool | None = True, state: str = "busy"
    ) -> Host:
        host, session = Host(*printed), SessionRecord("dgx", "cont1", "none", 8888)
        monkeypatch.setattr(reading, "link_of", lambda *_: host)
        monkeypatch.setattr(reading, "recording", SimpleNamespace(revive=lambda *_: served))
        monkeypatch.setattr(session_selection, "chosen", lambda *_: session)
        monkeypatch.setattr(reading, "PAUSES", (0.0,))
        api = SimpleNamespace(kernels=lambda: [Kernel("a.ipynb", state, "", id="k")])
        monkeypatch.setattr(reading, "JupyterApi", lambda *_: api)
        return host

    return answer


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (recorded_files.MISSING, "`dgx/cont1` has no recorded output", "`jlr start dgx cont1` rec"),
        (recorded_files.OFF, "started with `--no-record`", "`jlr stop dgx/cont1`, then `jlr start"),
        (1, "cannot read what `dgx/cont1` printed: \\[31mno such container", "`jlr list dgx/"),
    ],
)
def test_what_is_not_recorded_is_told_with_what_to_do(
    asking: Any, status: int, message: str, hint: str
) -> None:
    asking((b"\\[31mno such\x07 container\n", status))
    with pytest.raises(JlrError) as failure:
        recorded(None, None, context())
    assert message in failure.value.message
    assert (failure.value.hint or "").startswith(hint)
    assert isinstance(failure.value, NotFound) == (status != 1)


def test_only_the_notebook_that_was_asked_for_is_shown(asking: Any) -> None:
    """The first records of a kernel may come before its notebook is known."""
    other = {"kernel": "k2", "notebook": "b.ipynb", "request": "r2"}
    early = line("code", {"code": "1", "execution_count": 1}, notebook=None)
    told = early + line("stream", {"text": "mine\n"}) + line("stream", {"text": "not\n"}, **other)
    asking((b"\x1e1 0\n" + told + b"\x1e\n", 0))
    [run] = recorded(None, "a.ipynb", context()).runs
    assert (run.notebook, run.code) == ("a.ipynb", "1")
    later = line("stream", {"text": "later\n"}) + line("stream", {"text": "not\n"}, **other)
    asking((b"\x1e1 0\n" + told + b"\x1e\n\x1e1 99\n" + later, None), (b"no", 1))
    assert texts(followed(None, "a.ipynb", context())) == ["", "mine\n", None, "later\n"]


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (True, "running for"),
        (False, "ended: its kernel is gone; last heard of after 2s"),
        (None, "cannot tell whether it runs; last heard of after 2s"),
    ],
)
def test_a_cell_runs_only_where_its_kernel_is_known_to_be_there(
    asking: Any, served: bool | None, words: str
) -> None:
    began = line("code", {"code": "1", "execution_count": 1})
    told = b"\x1e1 0\n" + began + line("stream", {"text": "a\n"}, time=3.0) + b"\x1e\n"
    asking((told, 0), served=served)
    [run] = recorded(None, None, context()).runs
    assert words in ending(run)
    asking((told, None), (b"no", 1), served=served)
    kinds: list[str] = []
    with pytest.raises(JlrError, match="cannot read"):
        kinds.extend(record.kind for record in followed(None, None, context()) if record)
    assert kinds == ["code", "stream", *(["kernel"] if served is False else [])]


def test_what_the_recorder_still_writes_of_a_run_that_has_ended_is_awaited(asking: Any) -> None:
    run = "run-0123456789ab"
    began = line("code", {"code": "1", "execution_count": 1}, request=run)
    ends = line("end", {"status": "ok"}, request=run)
    none, first, rest = b"\x1e\n", b"\x1e1 0\n" + began, b"\x1e1 %d\n" % len(began) + ends
    asking((first + none, 0), (rest + none, 0), state="idle")
    assert [one.status for one in recorded(None, None, context()).runs] == ["ok"]
    asking((none, 0), (first + none, 0), (rest + none, 0), state="idle")
    assert [one.status for one in recorded(None, run, context()).runs] == ["ok"]
    asking((first + none, 0), (none, 0), state="idle")  # its end was lost
    assert [one.status for one in recorded(None, None, context()).runs] == ["running"]


def texts(records: Iterator[Record | None]) -> list[str | None]:
    """Return the texts of records until the reading fails."""
    found: list[str | None] = []
    with pytest.raises(JlrError, match="cannot read"):
        found.extend(record.text("text") if record else None for record in records)
    return found


def test_a_loss_is_noted_once_and_nothing_comes_twice(asking: Any) -> None:
    first, second = line("stream", {"text": "é\n"}), line("stream", {"text": "2\n"})
    torn, notes = b"\x1e5 0\n" + first + b"\x1e\n\x1e5 99\n" + second[:-5], Notes()
    host = asking((torn, None), (b"", None), (b"\x1e5 98\n" + second, None), (b"", 1))
    assert texts(followed(None, None, context(notes))) == ["é\n", None, "2\n"]
    read = f" 5:{len(first)} "
    for seen, script in zip((" ", read, read), host.scripts, strict=False):
        assert f'seen="{seen}"' in script
    assert notes.notes[0] == "the connection broke; `dgx/cont1` keeps recording; trying again"


def test_a_run_of_exec_is_shown_alone_and_followed_to_its_end(asking: Any) -> None:
    run, other = "run-0123456789ab", {"request": "run-ba9876543210"}
    of_run = {"request": run, "notebook": "jlr-exec"}
    began = line("code", {"code": "1", "execution_count": 1}, **of_run)
    began += line("stream", {"text": "not\n"}, **other)
    goes_on = line("stream", {"text": "mine\n"}, **of_run)
    ends = line("end", {"status": "ok"}, **of_run) + goes_on.replace(b"mine", b"late")
    host = asking((b"\x1e1 0\n" + began + goes_on + b"\x1e\n", 0))
    [found] = recorded(None, run, context(), end_only=True).runs
    assert found.request == run
    assert "piece=" not in host.scripts[0], "it may be in an older piece"
    asking((b"\x1e1 0\n" + began + b"\x1e\n\x1e1 999\n" + goes_on + ends, 0))
    kinds = [record and record.kind for record in followed(None, run, context())]
    assert kinds == ["code", None, "stream", "end"]
    asking((b"\x1e1 0\n" + began + goes_on + ends + b"\x1e\n", 0))
    kinds = [record and record.kind for record in followed(None, run, context())]
    assert kinds == ["code", "stream", "end", "stream", None]
    asking((b"\x1e1 0\n" + began + b"\x1e\n", 0), (b"\x1e\n", 0))
    with pytest.raises(NotFound, match="no run `run-00") as missing:
        recorded(None, "run-000000000000", context())
    assert missing.value.hint == "`jlr output -f dgx/cont1 run-000000000000` waits for it"
