"""The recorder beside a session's server: what cells print is on the host, page or no page."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from websocket import create_connection

from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import Session, started, with_a_server

FOLDER = "/tmp/jlr-0"


@pytest.fixture(scope="module")
def here(containers: ContainerFactory) -> Container:
    """A container for all tests of this file; the first one's start launches Jupyter in it."""
    return containers()


def raw(here: Container) -> str:
    """Return all records of a session, as they were written."""
    return here.execute("sh", "-c", f"cat {FOLDER}/{here.name}/output/*.jsonl 2>/dev/null; :")


def records(here: Container) -> list[dict[str, Any]]:
    """Return all records of a session."""
    return [json.loads(line) for line in raw(here).splitlines()]


def text_of(here: Container, request: str) -> str:
    """Return what a request printed, as it was recorded."""
    mine = (one for one in records(here) if one["request"] == request)
    return "".join(one["content"]["text"] for one in mine if one["kind"] == "stream")


def has_ended(here: Container, request: str) -> bool:
    return any(one["request"] == request and one["kind"] == "end" for one in records(here))


def recorder(here: Container) -> list[str]:
    """Return the words of the session's recorder file: its pid, that one's start, the server's."""
    return here.execute("sh", "-c", f"cat {FOLDER}/{here.name}/recorder 2>/dev/null; :").split()


@pytest.mark.parametrize("drops", [60, LONG(200)])
def test_a_cell_is_recorded_with_its_notebook_and_its_id_and_drops_lose_no_line(
    file_laptop: Laptop, here: Container, drops: int
) -> None:
    session, lines = started(file_laptop, here), 15 * drops
    with session.notebook("work/analysis.ipynb") as kernel:
        kernel.await_start()
        code = f"import time\nfor i in range({lines}): print(i, flush=True); time.sleep(0.003)"
        request = kernel.send(code, cell="cell-7")
        kernel.socket.close()
        header = [f"Authorization: token {session.token}"]
        for _ in range(drops):  # a page that comes back and is cut off
            address = f"ws://{session.base}api/kernels/{kernel.id}/channels"
            page: Any = create_connection(address, header=header, timeout=60)
            page.shutdown()
        wait_until(lambda: has_ended(here, request), "the cell's end in the records", timeout=60)
    assert text_of(here, request) == "".join(f"{i}\n" for i in range(lines))
    mine = [one for one in records(here) if one["request"] == request]
    assert {(one["notebook"], one["cell"]) for one in mine} == {("work/analysis.ipynb", "cell-7")}
    assert [one["kind"] for one in mine if one["kind"] != "stream"] == ["code", "end"]
    assert mine[-1]["content"] == {"status": "ok"}
    modes = here.execute("sh", "-c", f"cd {FOLDER}/{here.name} && stat -c %a . output output/*")
    assert set(modes.split()) == {"700", "600"}, modes


@pytest.mark.parametrize(
    "code", ["print('x' * 60_000_000)", LONG("print(('x' * 79 + chr(10)) * 1_250_000)")]
)
def test_of_a_cell_that_prints_very_much_the_end_is_shown_and_how_much_is_left_out(
    file_laptop: Laptop, here: Container, code: str
) -> None:
    session, name = started(file_laptop, here), f"large{len(code)}.ipynb"
    with session.notebook(name) as kernel:
        kernel.await_start()
        request = kernel.send(f"{code}; print('end of it')")
        kernel.socket.close()
        wait_until(lambda: has_ended(here, request), "the cell's end in the records", timeout=60)
    shown = file_laptop.jlr("output", session.name, name)
    assert shown.status == 0
    assert 1_000_000 < len(shown.stdout) < 30_000_000
    assert "end of it" in shown.stdout[-200:]
    assert re.search(r"\d MB of older records are left out; `jlr output", shown.stderr)


@pytest.mark.parametrize("command", [LONG("start --no-browser lab"), "output"])
def test_a_dead_recorder_is_noticed_and_started_again(
    file_laptop: Laptop, here: Container, command: str
) -> None:
    session = started(file_laptop, here)
    wait_until(lambda: len(recorder(here)) == 4, "the recorder")
    with session.notebook("died.ipynb") as kernel:
        kernel.await_start()
        kernel.run("1")
        pid = recorder(here)[0]
        # With the shell that would run it again, as if the machine's memory had run out.
        here.execute("sh", "-c", f"kill -9 $(cut -d ' ' -f 4 /proc/{pid}/stat) {pid}")
        assert "its recorder has ended" in file_laptop.jlr("list", here.name).stdout
        again = file_laptop.jlr(*command.split(), here.name)
        assert f"the recorder of `{here.name}` had ended and was started again" in again.stderr
        wait_until(lambda: recorder(here)[:1] not in ([], [pid]), "the recorder's next start")
        request = kernel.send("print('after')")
        wait_until(lambda: has_ended(here, request), "the cell's end in the records")
        [lost] = [
            one for one in records(here) if (one["kind"], one["kernel"]) == ("lost", kernel.id)
        ]
        assert lost["content"]["why"] == "the recorder did not run"
        assert lost["content"]["from"] <= lost["content"]["until"] <= lost["time"]


def test_a_cell_that_runs_is_listed_and_told_as_ended_once_its_container_was_killed(
    file_laptop: Laptop, container: ContainerFactory
) -> None:
    """As where docker itself is restarted, without live restore."""
    own = container()
    session = started(file_laptop, own)
    with session.notebook("dead.ipynb") as kernel:
        kernel.await_start()
        kernel.send("import time; print('so far', flush=True); time.sleep(600)")
        assert "running for" in session.output_with("so far")

        def running() -> Any:
            told = json.loads(file_laptop.jlr("list", session.name, "--json").stdout)
            return told["kernels"][0]["running"]

        wait_until(lambda: running() is not None, "the list's telling what runs")
        assert 1 <= (running() or 0) < 60
        assert " dead.ipynb " in file_laptop.jlr("list").stdout
        own.engine.docker("kill", own.name)
        own.engine.docker("start", own.name)
        for again in (False, True):
            if again:  # the next server's recorder tells it, also to those who follow it
                started(file_laptop, own)
                wait_until(lambda: '"state":"gone"' in raw(own), "the next recorder's word")
            told = file_laptop.jlr("output", own.name)
            assert told.status == 1, told
            assert "so far" in told.stdout
            assert "ended: its kernel is gone; last heard of after" in told.stdout
            [run] = json.loads(file_laptop.jlr("output", own.name, "--json").stdout)
            assert (run["status"], run["ended"] is None) == ("gone", False)
        assert raw(own).count('"state":"gone"') == 1


def test_a_server_of_somebody_else_is_recorded_from_start_on_and_no_other_kernel(
    file_laptop: Laptop, container: ContainerFactory
) -> None:
    here = with_a_server(container)
    session = started(file_laptop, here)
    wait_until(lambda: len(recorder(here)) == 4, "the recorder")
    with session.notebook("theirs.ipynb") as kernel:
        kernel.await_start()
        request = kernel.send("print(6 * 7)")
        wait_until(lambda: has_ended(here, request), "the cell's end in the records")
    assert text_of(here, request) == "42\n"
    assert {one["notebook"] for one in records(here) if one["request"] == request} == {
        "theirs.ipynb"
    }
    quiet = with_a_server(container)
    started(file_laptop, quiet, "--no-record")
    assert recorder(quiet) == []


def test_without_recording_nothing_is_left(
    file_laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    session: Session = started(file_laptop, here, "--no-record")
    with session.notebook("secret.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
    assert recorder(here) == ["off"]
    assert "output" not in here.execute("sh", "-c", f"ls {FOLDER}/{here.name}").split()
    assert "recorder.py" not in here.execute("sh", "-c", "cat /proc/[0-9]*/cmdline")
    started(file_laptop, here)  # it stays off until the server ends
    assert recorder(here) == ["off"]
