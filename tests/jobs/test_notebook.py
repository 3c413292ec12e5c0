"""A notebook as a job: its output as it comes, its executed copy, and the cell that failed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jlremote.remote.notebook_run import value_of
from jlremote.remote.sending import program
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import wait_until
from tests.mounts.parts import remember_session
from tests.sessions.parts import failed


def notebook(*cells: tuple[str, Sequence[str]]) -> str:
    """Return a notebook of code cells, each with its tags."""
    empty: dict[str, Any] = {"cell_type": "code", "outputs": [], "execution_count": None}
    code = [empty | {"source": text, "metadata": {"tags": list(tags)}} for text, tags in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": code})


@pytest.fixture(scope="module")
def session(containers: ContainerFactory, owner: Laptop) -> Container:
    """A session's container with JupyterLab."""
    made = containers()
    remember_session(owner, made.name, "docker")
    return made


def write(session: Container, path: str, text: str) -> None:
    session.execute("sh", "-c", f"cat > {path} <<'END'\n{text}\nEND")


def read(session: Container, path: str) -> Any:
    return json.loads(session.execute("cat", path))


def test_a_notebook_runs_to_its_end_with_its_parameters(owner: Laptop, session: Container) -> None:
    text = notebook(
        ("epochs, word = 1, 'none'", ["parameters"]),
        ("print(word * epochs)", []),
        ("import sys; print('to stderr', file=sys.stderr)\n6 * 7", []),
    )
    write(session, "/tmp/good.ipynb", text)
    words = ("--in", session.name, "/tmp/good.ipynb", "-p", "epochs=3", "-p", "word=it's ")
    ran = owner.jlr("run", "lab", *words)
    assert ran.status == 0, ran
    assert ran.stdout == "it's it's it's \n42\n"
    copy = f"lab/{session.name}:/tmp/good.executed.ipynb"
    for part in ("[3/4] print(word * epochs)", "to stderr", f"`{copy}`"):
        assert part in ran.stderr, ran
    assert "job lab/good-" in ran.stderr, ran
    assert "IPKernelApp" not in ran.stderr, ran
    assert owner.jlr("cp", copy, "got.ipynb").status == 0
    listed = json.loads(owner.jlr("job", "list", "lab", "--json").stdout)
    [job] = [one for one in listed if one["name"].startswith("good-")]
    assert job["command"] == "/tmp/good.ipynb epochs=3 'word=it'\"'\"'s '"
    cells = read(session, "/tmp/good.executed.ipynb")["cells"]
    assert cells[1]["metadata"]["tags"] == ["injected-parameters"]
    assert cells[3]["outputs"][-1]["data"]["text/plain"] in ("42", ["42"])
    assert "JLR_NOTEBOOK" not in json.dumps(cells)
    assert len(read(session, "/tmp/good.ipynb")["cells"]) == 3, "the notebook itself is left alone"


def test_a_cell_that_fails_is_named_and_what_came_before_it_is_kept(
    owner: Laptop, session: Container
) -> None:
    text = notebook(("print('before')", []), ("1 / 0", []), ("print('after')", []))
    write(session, "/tmp/bad.ipynb", text)
    ran = owner.jlr("run", "lab", "--in", session.name, "/tmp/bad.ipynb")
    assert (ran.status, ran.stdout) == (1, "before\n"), ran
    assert "cell 2 of 3 failed: ZeroDivisionError: division by zero" in ran.stderr
    cells = read(session, "/tmp/bad.executed.ipynb")["cells"]
    assert cells[0]["outputs"][0]["text"] in ("before\n", ["before\n"])
    assert cells[1]["outputs"][0]["ename"] == "ZeroDivisionError"
    assert not cells[2]["outputs"]


def test_a_kernel_that_is_missing_is_told_with_those_that_there_are(
    owner: Laptop, session: Container
) -> None:
    text = json.loads(notebook(("6 * 7", [])))
    text["metadata"] = {"kernelspec": {"name": "my-env", "display_name": "mine"}}
    write(session, "/tmp/mine.ipynb", json.dumps(text))
    words = ("run", "lab", "--in", session.name, "/tmp/mine.ipynb")
    ran = owner.jlr(*words)
    assert ran.status == 2, ran
    assert "no kernel `my-env` here; there is `python3`\nhint: `--kernel KIND`" in ran.stderr, ran
    ran = owner.jlr(*words, "-k", "python3")
    assert (ran.status, ran.stdout) == (0, "42\n"), ran
    failed(owner.jlr("run", "lab", "-k", "python3", "--", "ls"), 2, "`-k` is for a notebook")


def test_output_comes_while_a_cell_runs_and_ctrl_c_keeps_it(
    owner: Laptop, session: Container
) -> None:
    write(session, "/tmp/long.ipynb", notebook(("import time\nprint('go')\ntime.sleep(600)", [])))
    words = ("run", "lab", "--in", session.name, "/tmp/long.ipynb")
    with owner.terminal(str(PROGRAMS / "jlr"), *words) as terminal:
        terminal.expect("go", timeout=60)
        terminal.sendintr()
        terminal.expect_exact("(y/N) ")
        terminal.sendline("y")
        terminal.expect("interrupted in cell 1 of 1", timeout=60)
    top = ("top", session.name, "-eo", "pid,args")
    wait_until(lambda: "ipykernel" not in session.engine.docker(*top), "the kernel's end")
    assert read(session, "/tmp/long.executed.ipynb")["cells"][0]["outputs"][0]["name"] == "stdout"


@pytest.mark.lab
def test_what_a_kernel_prints_faster_than_it_is_shown_is_not_dropped(tmp_path: Path) -> None:
    path, done = tmp_path / "fast.ipynb", tmp_path / "done"
    code = "import pathlib\nfor n in range(3000): print(n, 'x' * 2000, flush=True)\n"
    path.write_text(notebook((f"{code}pathlib.Path({str(done)!r}).touch()", [])))
    argv = (sys.executable, "-c", program("jlremote.remote.notebook_run"), str(path))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        wait_until(done.exists, "the cell's end", timeout=60)
        assert running.stdout is not None
        assert [int(line.split()[0]) for line in running.stdout] == list(range(3000))


def test_what_is_no_notebook_or_has_no_nbclient_is_told(
    owner: Laptop, session: Container, inside: Container
) -> None:
    failed(owner.jlr("run", "lab", "ls"), 2, "`ls` is not a notebook", "-- ls")
    both = owner.jlr("run", "lab", "a.ipynb", "--", "ls")
    failed(both, 2, "either a notebook or a command")
    failed(owner.jlr("run", "lab", "a.ipynb", "-p", "x"), 2, "`x` is not a parameter")
    failed(owner.jlr("run", "lab", "-p", "x=1", "--", "ls"), 2, "`-p` is for a notebook")
    missing = owner.jlr("run", "lab", "--in", session.name, "/nowhere.ipynb")
    assert missing.status == 2, missing
    assert "cannot read the notebook `/nowhere.ipynb`: No such file" in missing.stderr
    (owner.folder / "home" / "here.ipynb").write_text(notebook(("6 * 7", [])), encoding="utf-8")
    here = ("run", "lab", "--in", session.name, "here.ipynb")
    not_there = owner.jlr(*here)
    assert not_there.status == 2, not_there
    assert "`here.ipynb` is a file of this machine: `--sync .` sends" in not_there.stderr
    assert owner.jlr("cp", "here.ipynb", f"lab/{session.name}:").status == 0
    assert owner.jlr(*here).stdout == "42\n"
    (proj := owner.folder / "home" / "proj").mkdir()
    (proj / "other.ipynb").write_text(notebook(("6 * 8", [])), encoding="utf-8")
    line = f"jlr run lab --in {session.name} --sync . --back 'other.exec*' other.ipynb"
    ran = owner.run("sh", "-c", f"cd proj && PATH={PROGRAMS}:$PATH && {line}")
    assert ran.stdout == "48\n", ran
    assert "48" in (proj / "other.executed.ipynb").read_text("utf-8")
    without = owner.jlr("run", "lab", "--in", inside.name, "a.ipynb")
    assert without.status == 2, without
    assert "has no nbclient" in without.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-1e-3", -1e-3),
        ("true", True),
        ("None", None),
        ("[1, 2]", [1, 2]),
        ("a b", "a b"),
    ],
)
def test_a_parameter_is_a_literal_or_text(text: str, value: object) -> None:
    assert value_of(text) == value
