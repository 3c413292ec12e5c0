"""`jlr demo` from end to end: JupyterLab answers, and afterwards only one's own files are left."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pexpect
import pytest

from tests.demo.person import (
    Demo,
    bare_path,
    ignores,
    processes_of,
    start_demo,
    traces,
    wait_for_no_trace,
)
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import lives, wait_until
from tests.sessions.parts import Session, failed

pytestmark = pytest.mark.lab


# Starts a demo; the arguments are those of `start_demo`.
RunDemo = Callable[..., Demo]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bare_path(tmp_path_factory.mktemp("bare") / "bin")


@pytest.fixture
def machine(programs: str) -> Iterator[Laptop]:
    """A machine with nothing but Python: no engine, no `ssh`, no ssh configuration."""
    laptop = Laptop()
    laptop.environment |= {"PATH": programs, "TMPDIR": str(laptop.folder / "tmp")}
    (laptop.folder / "tmp").mkdir()
    del laptop.environment["JLR_SSH_CONFIG"]
    yield laptop
    stubborn = laptop.shut_down()
    laptop.remove()
    assert not stubborn


@pytest.fixture
def run_demo(machine: Laptop) -> Iterator[RunDemo]:
    """Run `jlr demo`; what a failed test leaves is ended."""
    demos: list[Demo] = []

    def run(*words: str, before: str = "") -> Demo:
        demos.append(start_demo(machine, *words, before=before))
        return demos[-1]

    yield run
    for demo in demos:
        demo.kill()


def kept(machine: Laptop) -> list[str]:
    return sorted(path.name for path in (machine.folder / "tmp").glob("jlr-demo-*/*"))


def test_other_commands_reach_its_host_by_name_alone_and_jlr_stop_ends_it(
    machine: Laptop, run_demo: RunDemo
) -> None:
    demo = run_demo()
    session = demo.session()
    words = "a demo already runs", f"`jlr stop demo/{session.name}`"
    failed(machine.jlr("demo", "--no-browser"), 7, *words)
    listed = machine.jlr("url")
    assert listed.stdout.strip() == session.url.replace("/tree/welcome.ipynb", ""), listed
    job = machine.jlr("run", "demo", "--runtime", "none", "--", "echo", "here")
    assert (job.status, job.stdout) == (0, "here\n"), job.stderr
    none = ("--runtime", "none", "--python", sys.executable, "--no-browser")
    second = machine.jlr("start", "demo", "second", *none)
    assert second.status == 0, second.stderr
    assert machine.jlr("open", "second", "--no-browser").status == 0
    assert machine.jlr("stop", "second").status == 0
    stopped = machine.jlr("stop", session.name)
    assert (stopped.status, demo.end()[0]) == (0, 0), stopped
    wait_until(lambda: all("second" in left for left in traces(machine)), "the end of all else")


def test_in_the_background_of_a_machine_with_only_python_a_kernel_answers_until_ctrl_c(
    machine: Laptop, run_demo: RunDemo
) -> None:
    """A shell without job control makes what it starts with `&` ignore Ctrl-C, and what that
    starts in turn: no Ctrl-C would work in JupyterLab's terminals either."""
    demo = run_demo(before="trap '' INT")
    session = demo.session()
    servers = processes_of(machine, "jupyterlab")
    assert servers
    assert not any(ignores(server, signal.SIGINT) for server in servers)
    assert (session.report["runtime"], session.report["state"]) == ("none", "up")
    assert session.ask("api/status")["kernels"] == 0
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
        opened = urlsplit(session.url).path.rpartition("/lab/tree/")[2]
        cells = session.ask(f"api/contents/{opened}")["content"]["cells"]
        [code] = [cell for cell in cells if cell["cell_type"] == "code"]
        assert "Python 3" in kernel.run(code["source"])
        kernel.send("import time; time.sleep(600)")
        wait_until(lambda: '"busy"' in machine.jlr("list", "--json").stdout, "the kernel's work")
        failed(machine.jlr("stop"), 7, "a.ipynb")
        demo.interrupt()  # which spares no busy kernel
        wait_until(lambda: not processes_of(machine, "jupyterlab"), "the end of Jupyter")
        demo.interrupt()  # a second one does not cut the cleaning short
        status, told = demo.end()
        assert status == 0
        assert "trying again" not in told, "nothing waits on"
    wait_for_no_trace(machine)
    left = [*(machine.folder / "home").iterdir(), *(machine.folder / "tmp").glob("jlr-demo-*")]
    assert left == []


@pytest.mark.long
def test_in_a_terminal_ctrl_c_reaches_all_and_ends_the_demo_well(machine: Laptop) -> None:
    """The terminal sends it to every process of the demo's group, not only to the demo."""
    with machine.terminal(str(PROGRAMS / "jlr"), "demo", "--no-browser") as terminal:
        terminal.expect(
            r"http://demo-[a-z0-9-]+\.localhost:\d+/demo-[0-9a-f]+/lab/tree/welcome.ipynb\?token="
        )
        terminal.expect("Ctrl-C ends the demo")
        (machine.folder / "run" / "jlr" / "demo" / "files" / "mine.txt").touch()
        terminal.sendintr()
        terminal.expect(r"what you made in the demo is in `(\S+)`")
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert (terminal.exitstatus, terminal.signalstatus) == (0, None)
    wait_for_no_trace(machine)


def test_ctrl_c_ends_a_demo_that_is_still_starting(machine: Laptop, run_demo: RunDemo) -> None:
    demo = run_demo()
    wait_until(lambda: bool(processes_of(machine, "jupyterlab")), "the launch of Jupyter", 60)
    demo.interrupt()
    assert demo.end()[0] == 130
    wait_for_no_trace(machine)


def test_the_next_demo_clears_up_after_one_that_was_killed_and_lasts_as_long_as_its_terminal(
    machine: Laptop, run_demo: RunDemo
) -> None:
    killed = run_demo()
    killed.session().write_notebook("mine.ipynb", "6 * 7")
    [folder] = (machine.folder / "tmp").glob("jlr-demo-*")
    killed.kill()
    left = processes_of(machine, "jupyterlab")
    assert left, "nothing to clear up"
    demo = run_demo()
    session = demo.session()
    wait_until(lambda: not any(map(lives, left)), "the end of what was left")
    born = session.born()
    (link,) = processes_of(machine, "jlremote.link")
    link.kill()
    wait_until(lambda: answers(session), "the next link")
    assert session.born() == born
    assert [path.name for path in folder.iterdir()] == ["mine.ipynb"]
    session.write_notebook("welcome.ipynb", "'another text'")
    demo.process.send_signal(signal.SIGHUP)  # as the end of its terminal does
    assert demo.end()[0] == 128 + signal.SIGHUP
    wait_for_no_trace(machine)
    assert kept(machine) == ["mine.ipynb", "welcome.ipynb"]


def answers(session: Session) -> bool:
    try:
        return bool(session.born())
    except OSError:
        return False


def test_without_the_extra_the_demo_says_what_to_install(machine: Laptop) -> None:
    hidden = (
        "import sys; sys.modules['jupyterlab'] = None\n"
        "from jlremote.__main__ import main; sys.exit(main())"
    )
    refused = machine.run(sys.executable, "-c", hidden, "demo")
    failed(refused, 1, "`jupyterlab`", "-m pip install jupyterlab")
