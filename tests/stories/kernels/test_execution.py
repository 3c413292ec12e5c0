"""What `jlr exec` asks a kernel, and what it tells where that is busy, lost or gone."""

from __future__ import annotations

import base64
import queue
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jlremote.errors import Busy, JlrError, LinkLost, NotFound, Usage
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.kernels import execution, lab, remote_kernel
from jlremote.kernels.execution import ExecRequest, execute
from jlremote.kernels.remote_kernel import Message, decoded
from jlremote.laptop.sessions import SessionRecord
from jlremote.output import runs
from jlremote.output.recorded_files import Record
from jlremote.output.runs import Run, runs_of
from tests.stories.parts import Notes, context

AGAIN = "a new connection"
OWN = Kernel("jlr-exec", "idle", "2026-01-02T03:04:05Z", id="k1")


@dataclass
class FakeKernel:
    """A kernel that answers what a test says, and its socket.

    Attributes:
        script: by the kind of a request what the kernel tells then; more than once in turn.
        sent: what it was asked.
        reach: the way back after a loss.
    """

    script: dict[str, list[list[Any]]]
    events: queue.Queue[Any] = field(default_factory=queue.Queue)
    sent: list[Message] = field(default_factory=list)
    reach: Callable[[], object] = lambda: None
    left: bool = False

    def begin(self) -> None:
        self.events.put(self)

    def send(self, data: str | bytes) -> None:
        message = decoded(data)
        self.sent.append(message)
        for told in (self.script.get(message.kind) or [[]]).pop(0):
            event = told(message) if callable(told) else told
            self.events.put(self if event == AGAIN else event)

    def leave(self, socket: object) -> None:
        self.left = True

    @property
    def kinds(self) -> list[str]:
        return [message.kind for message in self.sent]


def says(kind: str, channel: str = "iopub", **content: Any) -> Callable[[Message], Message]:
    return lambda asked: Message(channel, {"msg_type": kind}, asked.header, {}, content, [])


IDLE = says("status", execution_state="idle")
DONE = says("execute_reply", "shell", status="ok")
READY = says("kernel_info_reply", "shell", status="ok")
ENDS = [says("execute_input", code="?", execution_count=3), says("status"), IDLE, DONE]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs code in a kernel with a script."""

    def run(
        script: dict[str, list[list[Any]]],
        state: str = "idle",
        notes: Notes | None = None,
        most: int | None = None,
        **how: Any,
    ) -> tuple[FakeKernel, list[Record], JlrError | None]:
        fake, records = FakeKernel(script), list[Record]()

        def remote(_kernel: str, _api: object, reach: Any, _wake: object) -> FakeKernel:
            fake.reach = reach
            return fake

        forward = SimpleNamespace(local_port=1, server=SimpleNamespace(ours=True))
        session = SessionRecord("dgx", "cont1", "docker", 8888)
        monkeypatch.setattr(remote_kernel, "answering", lambda *_: (session, forward, ""))
        monkeypatch.setattr(execution, "KernelSocket", FakeKernel)
        monkeypatch.setattr(execution, "RemoteKernel", remote)
        known = replace(OWN, state=state)
        monkeypatch.setattr(execution, "of_exec", lambda *_: known)
        try:
            request = ExecRequest(None, how.pop("cells", ("code",)), **how)
            _, told = execute(request, context(notes))
            records.extend(islice(told, most))
            told.close()
        except JlrError as error:
            return fake, records, error
        return fake, records, None

    return run


def test_a_cell_is_told_from_its_number_to_its_end_and_no_other_one(ran: Any) -> None:
    other = Message("iopub", {"msg_type": "stream"}, {"msg_id": "other"}, {}, {"text": "x"}, [])
    output = says("stream", name="stdout", text="a")
    fake, records, _ = ran({"execute_request": [[ENDS[0], other, output, *ENDS[1:]]]})
    assert [record.kind for record in records] == ["code", "stream", "end"]
    assert records[0].content == {"code": "code", "execution_count": 3}
    [asked] = fake.sent
    assert {record.request for record in records} == {asked.id}
    assert asked.content["stop_on_error"] is False, "cells of a page may wait"
    assert fake.left


def test_after_a_loss_the_code_is_not_asked_for_again(ran: Any) -> None:
    script: dict[str, list[list[Any]]] = {"execute_request": [[AGAIN]]}
    fake, _, error = ran(script | {"kernel_info_request": [[READY]]})
    assert fake.kinds == ["execute_request", "kernel_info_request"]
    run = fake.sent[0].id
    assert error.message == f"the connection was lost, and with it how `{run}` ended"
    assert error.hint == f"`jlr output dgx/cont1 {run}` shows what is recorded of it"
    script = {"execute_request": [[ENDS[0], AGAIN, *ENDS[1:]], ENDS]}
    script |= {"kernel_info_request": [[READY]]}
    fake, records, error = ran(script, cells=("1", "2"))
    assert (error, [record.kind for record in records]) == (None, ["code", "end"] * 2)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([says("status", execution_state="restarting")], "its kernel died or was restarted"),
        ([NotFound("the kernel has ended there")], "the kernel has ended there"),
        ([says("execute_reply", "shell", status="aborted")], "did not run the code"),
    ],
)
def test_an_end_that_is_no_result_is_told(ran: Any, answers: list[Any], words: str) -> None:
    fake, records, error = ran({"execute_request": [[*ENDS[:1], *answers]]})
    assert words in error.message
    if "did not run" not in words:
        assert [run.status for run in runs_of(records).all()] == ["ended"]
        assert error.message.startswith(f"`{fake.sent[0].id}` has ended")
        assert error.hint == f"`jlr output dgx/cont1 {fake.sent[0].id}` shows what it printed"


def test_a_busy_kernel_is_asked_once_it_is_free(ran: Any) -> None:
    notes = Notes()
    script = {"kernel_info_request": [[READY]], "execute_request": [ENDS]}
    fake, records, _ = ran(script, "busy", notes)
    assert fake.kinds == ["kernel_info_request", "execute_request"]
    assert records[-1].content == {"status": "ok"}
    assert notes.notes == ["the kernel is busy; waiting for the cell that runs"]
    for how, words in (({"waits": False}, "is busy"), ({"seconds": 0.1}, "was not run")):
        fake, _, error = ran({}, "busy", **how)
        assert isinstance(error, Busy)
        assert words in error.message
        assert "execute_request" not in fake.kinds


def test_a_run_whose_reader_has_gone_is_named(ran: Any) -> None:
    notes = Notes()
    fake, _, _ = ran({"execute_request": [[says("status"), *ENDS[:1]]]}, notes=notes, most=1)
    run = fake.sent[0].id
    assert notes.notes == [f"`{run}` runs on; `jlr output -f dgx/cont1 {run}` shows the rest"]
    assert fake.left


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_ctrl_c_before_the_code_runs_interrupts_no_other_cell(ran: Any, state: str) -> None:
    def interrupts(_: Message) -> Message:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it was ignored")

    kind = "execute_request" if state == "idle" else "kernel_info_request"
    with pytest.raises(KeyboardInterrupt) as told:
        ran({kind: [[interrupts]]}, state)
    words = "waits for another cell, and will run" if state == "idle" else "the code was not run"
    assert words in str(told.value)


def test_a_loss_is_told_once_and_a_session_that_ended_is_an_end(
    ran: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes()
    fake, _, _ = ran({"execute_request": [ENDS]}, notes=notes)
    answers = iter([LinkLost("the connection broke"), LinkLost("again"), JlrError("it is dead")])

    def answering(*_: object) -> Any:
        raise next(answers)

    monkeypatch.setattr(remote_kernel, "answering", answering)
    for expected in (LinkLost, LinkLost, NotFound):
        with pytest.raises(expected):
            fake.reach()
    assert notes.notes == [f"the connection broke; `{fake.sent[0].id}` goes on; trying again"]


@dataclass
class Api:
    """The kernels of a Jupyter.

    Attributes:
        kernels: those that have a path.
        late: one that another command starts at the same moment, before ours.
        ended: the ids of those that were ended.
    """

    kernels: list[Kernel]
    late: list[Kernel] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def kernels_with_paths(self) -> tuple[Kernel, ...]:
        return tuple(self.kernels)

    def start_kernel(self, _kind: str | None, path: str) -> str:
        self.kernels += [*self.late, Kernel(path, "starting", "", id="new")]
        return "new"

    def end_kernel(self, kernel: str) -> None:
        self.ended.append(kernel)
        self.kernels = [each for each in self.kernels if each.id != kernel]


NOTEBOOK = Kernel("work/train.ipynb", "idle", "", id="n1")


@pytest.mark.parametrize(
    ("api", "taken", "ended"),
    [
        (Api([NOTEBOOK, OWN]), "k1", []),
        (Api([NOTEBOOK]), "new", []),
        (Api([], late=[OWN]), "k1", ["new"]),
        (Api([replace(OWN, state="dead")]), "new", ["k1"]),
    ],
)
def test_exec_has_one_kernel_which_is_started_once(api: Api, taken: str, ended: list[str]) -> None:
    assert execution.of_exec(cast("JupyterApi", api), context()).id == taken
    assert api.ended == ended


def test_a_notebook_is_called_by_its_path_or_its_end() -> None:
    twin = replace(NOTEBOOK, notebook="old/train.ipynb", id="n2")
    api = cast("JupyterApi", Api([NOTEBOOK, OWN, twin]))
    assert execution.of_notebook("work/train.ipynb", api).id == "n1"
    assert execution.of_notebook("old/train.ipynb", api).id == "n2"
    with pytest.raises(Usage, match="several notebooks are called"):
        execution.of_notebook("train.ipynb", api)
    with pytest.raises(NotFound, match="no kernel runs for a notebook `eval"):
        execution.of_notebook("eval.ipynb", api)
    with pytest.raises(NotFound) as none:
        execution.of_notebook("eval.ipynb", cast("JupyterApi", Api([])))
    assert "`jlr open`" in str(none.value.hint)


def test_images_and_html_become_files_of_our_names(tmp_path: Path) -> None:
    png = base64.encodebytes(b"\x89PNG").decode()
    data = {"text/plain": "x", "image/png": png, "text/html": ["<b>", "x"], "image/gif": "é"}
    files = runs.save_rich({"data": data}, tmp_path, "run-1-1")
    assert [Path(file).name for file in files] == ["run-1-1.png", "run-1-1.html"]
    assert [Path(file).read_bytes() for file in files] == [b"\x89PNG", b"<b>x"]
    with pytest.raises(Usage, match="exists"):
        runs.save_rich({"data": data}, tmp_path, "run-1-1")


def test_of_many_outputs_the_end_is_kept() -> None:
    run = Run("k", "r", 0.0)
    picture = {"output_type": "display_data", "data": {"text/plain": "p" * 50}, "metadata": {}}
    run.add(picture)
    for number in range(1000):
        run.add({"output_type": "stream", "name": "stdout", "text": f"{number}\n"})
    assert run.keep_end(100)
    run.add({"output_type": "stream", "name": "stdout", "text": "more\n"})
    [left] = run.saved_outputs()
    assert left["text"].endswith("999\nmore\n")
    assert len(left["text"]) == 105
    assert not run.keep_end(105)


@pytest.mark.lab
def test_a_module_in_the_folder_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page may have written it."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    for name in ("jupyterlab", "tornado", "json5"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('code of the folder')")
    command = (*lab._jupyterlab(), "--version")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.partition(".")[0]) >= 4
