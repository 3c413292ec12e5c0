"""Notebooks of the laptop run on a session's kernels, by kernel spec and in a local JupyterLab."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.manager import KernelManager

from tests.lab.containers import Container
from tests.lab.engine import Engine
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.outages.parts import within
from tests.sessions.local_lab import local_lab
from tests.sessions.parts import Session

SECONDS = 90


@pytest.fixture
def spec(session: Session) -> Iterator[str]:
    """The name of the session's kernel spec on the laptop."""
    installed = session.laptop.jlr("local", "kernels", "install", session.name, "--json")
    assert installed.status == 0, installed
    [told] = json.loads(installed.stdout)
    assert (told["host"], told["session"], told["kind"]) == ("lab", session.name, "python3")
    yield str(told["name"])
    removed = session.laptop.jlr("local", "kernels", "remove", session.name)
    assert removed.status == 0, removed
    assert session.laptop.jlr("local", "kernels", "list", "--json").stdout.strip() == "[]"


@pytest.fixture
def program(spec: str, session: Session) -> list[str]:
    """The command that the spec names."""
    file = Path(session.laptop.environment["XDG_DATA_HOME"], "jupyter/kernels", spec, "kernel.json")
    text = file.read_text("utf-8")
    assert session.token not in text
    return list(json.loads(text)["argv"])


def kernels(session: Session) -> list[dict[str, Any]]:
    return list(session.ask("api/kernels"))


def hostname(session: Session, engine: Engine) -> str:
    return Container(engine, session.name).inspect("{{.Config.Hostname}}")


def test_nbconvert_runs_a_notebook_there(spec: str, session: Session, engine: Engine) -> None:
    home = session.laptop.folder / "home"
    code = "import platform, sys; print(platform.node()); print('wrong', file=sys.stderr)"
    cell = {"cell_type": "code", "id": "a", "source": code, "metadata": {}, "outputs": []}
    document = {"cells": [cell | {"execution_count": None}], "metadata": {}}
    text = json.dumps(document | {"nbformat": 4, "nbformat_minor": 5})
    (home / "here.ipynb").write_text(text, "utf-8")
    done = session.laptop.run(
        *(str(PROGRAMS / "jupyter-nbconvert"), "--to", "notebook", "--execute"),
        *(f"--ExecutePreprocessor.kernel_name={spec}", "--output", "there", "here.ipynb"),
        timeout=SECONDS,
    )
    assert done.status == 0, done
    [ran] = json.loads((home / "there.ipynb").read_text("utf-8"))["cells"]
    texts = {output["name"]: output["text"] for output in ran["outputs"]}
    assert texts == {"stdout": [f"{hostname(session, engine)}\n"], "stderr": ["wrong\n"]}
    wait_until(lambda: kernels(session) == [], "the end of its kernel there")


@contextmanager
def client_of(
    program: list[str], laptop: Laptop
) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """Start the spec's program as every client of Jupyter's does, and talk to it."""
    manager = KernelManager()
    spec = manager.kernel_spec
    assert spec is not None
    spec.argv, spec.interrupt_mode = program, "message"
    manager.start_kernel(env=laptop.environment, cwd=str(laptop.folder / "home"))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


def output_of(client: BlockingKernelClient, code: str, typed: str = "") -> tuple[str, str]:
    """Run code; return the status of the answer, and what was printed."""
    printed: list[str] = []

    def note(message: dict[str, Any]) -> None:
        printed.append(message["content"].get("text", ""))

    answer = client.execute_interactive(
        code, timeout=SECONDS, output_hook=note, stdin_hook=lambda _: client.input(typed)
    )
    return str(answer["content"]["status"]), "".join(printed)


def test_interrupt_restart_and_a_drop_are_as_with_a_kernel_of_this_machine(
    program: list[str], session: Session, sshd: SSHServer
) -> None:
    with client_of(program, session.laptop) as (manager, client):
        assert output_of(client, "kept = 6 * 7; print(kept)") == ("ok", "42\n")
        [first] = kernels(session)
        request = client.execute("import time; time.sleep(600)")
        wait_until(lambda: kernels(session)[0]["execution_state"] == "busy", "its being busy")
        manager.interrupt_kernel()
        while (answer := client.get_shell_msg(timeout=SECONDS))["parent_header"][
            "msg_id"
        ] != request:
            pass
        assert answer["content"]["ename"] == "KeyboardInterrupt"

        counting = "import time\nfor n in range(60): print(n, flush=True); time.sleep(0.05)"
        lost = client.execute(counting)
        wait_until(lambda: kernels(session)[0]["execution_state"] == "busy", "its being busy")
        sshd.drop_connections()
        lines = ""
        while "idle" not in lines:
            told = client.get_iopub_msg(timeout=SECONDS)
            if told["parent_header"].get("msg_id") == lost:
                lines += told["content"].get("text", told["content"].get("execution_state", ""))
        assert re.findall(r"^\d+$", lines.replace("busy", ""), re.MULTILINE) == [
            str(n) for n in range(60)
        ]
        assert output_of(client, "print(kept)") == ("ok", "42\n")

        manager.restart_kernel()
        client.wait_for_ready(timeout=SECONDS)
        assert output_of(client, "print('kept' in globals())") == ("ok", "False\n")
        wait_until(lambda: first["id"] not in [one["id"] for one in kernels(session)], "its end")
        manager.signal_kernel(signal.SIGKILL)
    wait_until(lambda: kernels(session) == [], "the end of a kernel whose program was killed")


def test_a_program_that_knows_the_ports_and_not_the_key_does_not_cost_the_variables(
    program: list[str], session: Session
) -> None:
    deep = b"[" * 200_000
    with client_of(program, session.laptop) as (_, client):
        assert output_of(client, "kept = 6 * 7; print(kept)") == ("ok", "42\n")
        for name in ("shell", "control", "stdin", "hb"):
            peer: zmq.Socket[bytes]
            heart: zmq.Socket[bytes]
            with zmq.Context.instance().socket(zmq.DEALER) as peer:
                peer.connect(f"tcp://127.0.0.1:{getattr(client, f'{name}_port')}")
                peer.send_multipart([b"<IDS|MSG>", b"", deep, deep, deep, deep])
                peer.send_multipart([b"no delimiter"])
                peer.send_multipart([b"<IDS|MSG>"])
                # Its pings come back behind what it sent before, if anything answers.
                with zmq.Context.instance().socket(zmq.REQ) as heart:
                    heart.connect(f"tcp://127.0.0.1:{client.hb_port}")
                    heart.send(b"ping")
                    assert heart.poll(SECONDS * 1000)
        assert output_of(client, "print(kept)") == ("ok", "42\n")


def test_a_kind_of_kernel_that_is_gone_is_told_with_those_that_there_are(
    program: list[str], session: Session, tmp_path: Path
) -> None:
    connection, _ = write_connection_file(str(tmp_path / "connection.json"), key=b"secret")
    words = [connection if word == "{connection_file}" else word for word in program]
    words[words.index("python3")] = "julia"
    ran = session.laptop.run(*words, timeout=SECONDS)
    assert ran.status == 6, ran
    assert "has no kernel `julia`, but `python3`\nhint: `jlr local kernels" in ran.stderr


FLOOD = "for _ in range(100): print('x' * 99_999, flush=True)"


def test_cells_print_and_are_told_as_much_as_with_a_kernel_of_this_machine(
    program: list[str], session: Session
) -> None:
    """Jupyter's own limits are 1 MB a second for output, and 10 MiB for a message."""
    with client_of(program, session.laptop) as (_, client), within(20):
        status, printed = output_of(client, FLOOD)
        assert (status, len(printed)) == ("ok", 10_000_000)
        assert output_of(client, "print(len(input()))", "é" * 9_000_000) == ("ok", "9000000\n")


def test_the_jupyterlab_of_the_laptop_has_its_files_here_and_its_kernels_there(
    session: Session, engine: Engine, sshd: SSHServer
) -> None:
    home = session.laptop.folder / "home"
    (home / "only-here.txt").write_text("here", "utf-8")
    with local_lab(session) as lab:
        assert lab.server.ask("api/contents/only-here.txt")["content"] == "here"
        with lab.server.notebook("a.ipynb") as kernel:
            node = kernel.run("import platform; platform.node()")
            assert node == repr(hostname(session, engine))
            assert len(kernel.run(FLOOD)) == 10_000_000
            assert kernel.run(f"'x' * {12 << 20}") == repr("x" * (12 << 20))
            sshd.drop_connections()
            kernel.await_start()
            assert kernel.run("platform.node()") == node


def test_what_trusting_an_image_means_is_said_once_and_its_token_is_in_no_environment(
    session: Session,
) -> None:
    state = Path(session.laptop.environment["XDG_STATE_HOME"], "jlr/lab")
    shutil.rmtree(state, ignore_errors=True)
    with local_lab(session) as lab:
        assert "unless you trust the author of the image" in lab.said
        for kind in ("cmdline", "environ"):
            facts = Path(f"/proc/{lab.process.pid}/{kind}").read_text("utf-8")
            assert session.token not in facts
    with local_lab(session) as lab:
        assert "unless you trust" not in lab.said
    kept = [path for path in state.rglob("*") if path.is_file()]
    assert [path for path in kept if session.token.encode() in path.read_bytes()] == []
