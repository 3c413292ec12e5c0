"""`jlr exec` on real parts: code runs in a lasting kernel of a session, once, and is recorded."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, Result
from tests.outages.parts import sshd_of
from tests.sessions.parts import Session, failed, started, with_a_server

SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(600)\nprint('end')"
RUN = re.compile(r"run-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def here(containers: ContainerFactory) -> Container:
    return containers()


@pytest.fixture
def session(file_laptop: Laptop, here: Container) -> Session:
    return started(file_laptop, here)


def execute(session: Session, *words: str, stdin: str | None = None) -> Result:
    return session.laptop.jlr("exec", session.name, *words, stdin=stdin)


def begun(session: Session, *words: str) -> subprocess.Popen[str]:
    """Return `jlr exec` of code that says `begun`, once it has said so."""
    running = session.laptop.spawn("exec", session.name, *words)
    assert running.stdout is not None
    while "begun" not in (line := running.stdout.readline()):
        assert line, "it has ended"
    return running


def said(running: subprocess.Popen[str]) -> tuple[str, int]:
    """Return what a command says until it ends, and its exit code."""
    with running:
        assert running.stdout is not None
        return running.stdout.read(), running.wait(PATIENCE)


def test_two_that_come_first_share_one_kernel_whose_variables_stay(session: Session) -> None:
    with ThreadPoolExecutor() as pool:
        code = "import os, sys; print(os.getpid()); print('err', file=sys.stderr)"
        both = list(pool.map(lambda _: execute(session, "-c", code), range(2)))
    assert [one.status for one in both] == [0, 0], both
    assert both[0].stdout == both[1].stdout
    assert "err\n" in both[0].stderr
    assert len([one for one in session.ask("api/sessions") if one["path"] == "jlr-exec"]) == 1
    assert len(session.ask("api/kernels")) == 1
    assert execute(session, "-c", "x = 40").stdout == ""
    assert execute(session, "-", stdin="x + 2").stdout == "42\n"
    wrong = execute(session, "-c", "print('before')\nx / 0")
    assert (wrong.status, wrong.stdout) == (1, "before\n"), wrong
    assert "ZeroDivisionError: division by zero" in wrong.stderr
    assert "\x1b" not in wrong.stderr
    assert "jlr-exec [5]" in session.output_with("ZeroDivisionError")
    other = execute(session, "--kernel", "python3", "-c", "x")
    assert other.status == 1, other
    assert "NameError: name 'x' is not defined" in other.stderr, other
    failed(execute(session, "-k", "ir", "-c", "x"), 6, "Jupyter has no kernel `ir`, but `python3`")


def test_a_file_and_the_cells_of_a_notebook_run_up_to_the_first_that_fails(
    session: Session, tmp_path: Path
) -> None:
    script = tmp_path / "here.py"
    script.write_text("def f(n):\n    return n + 1\n\n\nprint('ü', f(1))\n", "utf-8")
    assert execute(session, str(script)).stdout == "ü 2\n"
    codes = ["%%capture told\nprint('kept')", "print(told.stdout, f(2))", "1/0", "print('never')"]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": one} for one in codes]
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": "# Title"})
    notebook = tmp_path / "here.ipynb"
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    notebook.write_text(json.dumps(content))
    ran = execute(session, str(notebook))
    assert (ran.status, ran.stdout) == (1, "kept\n 3\n"), ran
    failed(execute(session, str(tmp_path / "missing.py")), 6, "cannot read", "-c CODE")


def test_a_folder_is_sent_first_and_the_code_runs_in_it(session: Session, tmp_path: Path) -> None:
    (proj := tmp_path / "it's").mkdir()
    (proj / "helper.py").write_text("print('brought')\n")
    (proj / "train.py").write_text("import helper; print(open('helper.py').read())")
    ran = execute(session, str(proj / "train.py"), "--sync", str(proj))
    assert ran.stdout == "brought\nprint('brought')\n\n", ran
    assert execute(session, "-c", "print(len(open('helper.py').read()))").stdout == "17\n"


def test_an_object_is_bounded_and_says_how_to_get_the_rest(
    session: Session, tmp_path: Path
) -> None:
    code = "from IPython.display import HTML, display\ndisplay(HTML('<b>bold</b>'))\n6 * 7"
    told = json.loads(execute(session, "-c", code, "--json", "--out", str(tmp_path)).stdout)
    assert (told["status"], told["truncated"], told["notebook"]) == ("ok", None, "jlr-exec")
    assert told["outputs"][1]["data"] == {"text/plain": "42"}
    [file] = told["files"]
    assert Path(file).read_text() == "<b>bold</b>"
    assert Path(file).name == f"{told['run']}-1.html"
    many = execute(session, "-c", "for n in range(100000): print(n)\n1/0", "--json")
    told = json.loads(many.stdout)
    assert (many.status, told["status"]) == (1, "error")
    assert len(many.stdout) < 100_000
    assert told["outputs"][0]["text"].endswith("\n99999\n")
    rest = told["truncated"].split()
    assert rest[:2] == ["jlr", "output"]
    [whole] = json.loads(session.laptop.jlr(*rest[1:]).stdout)
    assert whole["run"] == told["run"]
    assert whole["outputs"][0]["text"].startswith("0\n1\n2\n")
    lines = execute(session, "-c", "print('one')", "--json-lines").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["code", "stream", "end"]
    assert events[1]["content"] == {"name": "stdout", "text": "one\n"}
    assert events[2]["content"] == {"status": "ok"}


def test_code_runs_on_after_the_time_and_is_picked_up(session: Session) -> None:
    code = "import time\nfor n in range(8):\n    print(n, flush=True)\n    time.sleep(1)"
    late = execute(session, "-c", code, "--timeout", "3s")
    assert late.status == 7, late
    assert late.stdout.startswith("0\n")
    run = RUN.findall(late.stderr)[0]
    assert f"after 3s: `{run}` runs on\nhint: `jlr output -f" in late.stderr
    failed(execute(session, "-c", "1", "--no-wait"), 7, "is busy", "--no-wait")
    follows = re.findall(r"`jlr (output -f \S+ \S+)`", late.stderr)[0]
    rest = session.laptop.jlr(*follows.split())
    assert rest.status == 0, rest
    assert [line for line in rest.stdout.splitlines() if line.isdecimal()] == list("01234567")
    again = execute(session, "-c", "n")
    assert again.stdout == "7\n"


def test_code_that_was_left_running_is_interrupted(session: Session) -> None:
    running = begun(session, "-c", SLOW)
    running.kill()
    said(running)
    done = session.laptop.jlr("exec", session.name, "--interrupt")
    assert (done.status, done.stdout) == (0, "interrupted the kernel of `jlr-exec`\n"), done
    assert "begun" in session.output_with("KeyboardInterrupt")
    failed(execute(session, "--interrupt", "-c", "1"), 2, "runs no code", "leave out")
    failed(execute(session, "--interrupt", "--notebook", "x.ipynb"), 6, "no kernel runs for")


def test_ctrl_c_interrupts_the_code_and_a_second_one_leaves_it(session: Session) -> None:
    running = begun(session, "-c", SLOW)
    running.send_signal(signal.SIGINT)
    told, code = said(running)
    assert code == 130, told
    assert "KeyboardInterrupt" in told
    stubborn = SLOW.replace("time.sleep(600)", "\ntry: time.sleep(600)\nexcept: time.sleep(3)")
    running = begun(session, "-c", stubborn)
    running.send_signal(signal.SIGINT)
    assert running.stdout is not None
    while "Ctrl-C again leaves it running" not in running.stdout.readline():
        pass
    waiting = session.laptop.spawn("exec", session.name, "-c", "print('next')")
    running.send_signal(signal.SIGINT)
    told, code = said(running)
    assert code == 130, told
    assert "runs on; `jlr output -f" in told
    run = RUN.findall(told)[0]
    assert session.laptop.jlr("output", "-f", session.name, run).status == 0
    told, code = said(waiting)
    assert (code, told.splitlines()[-1], "is busy; waiting" in told) == (0, "next", True), told


def test_input_is_asked_on_a_terminal_which_what_is_printed_cannot_drive(session: Session) -> None:
    code = r"print('\x1b]52;c;aGk=\x07hello', input('\x1b[2JWho? ')); '\x1b]0;t\x07'; 1/0"
    refused = execute(session, "-c", code)
    assert refused.status == 1
    assert "StdinNotImplementedError" in refused.stderr
    with session.laptop.terminal("jlr", "exec", session.name, "-c", code) as terminal:
        terminal.expect_exact("Who?")
        terminal.sendline("Ada")
        told = str(terminal.before)
        terminal.expect_exact("hello Ada")
        told += str(terminal.before)
        terminal.expect(pexpect.EOF)
        told += str(terminal.before)
        assert "ZeroDivisionError" in told
        assert "\x1b]" not in told
        assert "\x1b[2J" not in told


def test_an_answer_that_a_cut_has_lost_is_given_again_and_only_to_its_question(
    session: Session,
) -> None:
    code = "print(input('first? '), input('second? '))"
    with session.laptop.terminal("jlr", "exec", session.name, "-c", code) as terminal:
        terminal.expect_exact("first?")
        pid = sshd_of(session.laptop)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        terminal.sendline("Ada")
        terminal.expect_exact("second?")
        terminal.sendline("Bob")
        terminal.expect_exact("Ada Bob")
        terminal.expect(pexpect.EOF)


def test_the_kernel_of_a_notebook_is_taken_and_its_death_is_told(session: Session) -> None:
    with session.notebook("work/train.ipynb") as kernel:
        kernel.await_start()
        kernel.run("loss = 0.5")
        assert execute(session, "--notebook", "train.ipynb", "-c", "loss").stdout == "0.5\n"
        assert "train.ipynb [2]" in session.output_with("0.5")
        died = execute(session, "--notebook", "train.ipynb", "-c", "import os; os._exit(1)")
        failed(died, 1, "its kernel died or was restarted", "jlr output")
    failed(execute(session, "--notebook", "tarin.ipynb", "-c", "1"), 6, "no kernel runs for")


def test_at_a_server_that_jlr_did_not_launch_a_cut_loses_no_line_unsaid(
    laptop: Laptop, container: ContainerFactory
) -> None:
    session = started(laptop, with_a_server(container))
    assert execute(session, "-c", "import time").status == 0
    code = "print('begun', flush=True)\nfor n in range(40): print(n, flush=True); time.sleep(0.1)"
    running = begun(session, "-c", code)
    pid = sshd_of(laptop)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    told, code_of_exit = said(running)
    if code_of_exit == 0:
        lines = told
    else:
        [words] = set(re.findall(r"`jlr (output \S+ run-\w+)`", told))
        lines = laptop.jlr(*words.replace("output", "output -f").split()).stdout
    numbers = [line for line in lines.splitlines() if line.isdecimal()]
    assert numbers == [str(number) for number in range(40)], told
