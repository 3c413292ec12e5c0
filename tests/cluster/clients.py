"""Clients of ssh, copies and local kernels, on a session in an allocation."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor

import pexpect

from tests.lab.laptop import PROGRAMS
from tests.lab.programs import Result, wait_until
from tests.sessions.parts import Session

CELL = "import platform; print('ran on', platform.node())"


def check_clients(session: Session, node: str, environment: str) -> None:
    """Check that `ssh` and copies reach the node, both ways, and change no byte.

    Each command there has the session's module or conda environment.
    """
    laptop, name, home = session.laptop, session.name, session.laptop.folder / "home"
    config, data = home / "clients_config", os.urandom(1_000_001)
    config.write_text(laptop.jlr("config", "ssh").stdout, encoding="utf-8")
    (home / "data").write_bytes(data)
    there = secrets.token_hex(4)

    def ran(*argv: str, stdin: str = "", status: int = 0) -> Result:
        return laptop.run(*argv, stdin=stdin).checked(status)

    ssh, look = ("ssh", "-F", str(config)), "command -v jupyter-lab"
    shell = ("--", "sh", "-c", look)
    ways = (
        laptop.jlr("shell", name, *shell),
        laptop.jlr("run", "zih", "--in", name, *shell),
        ran(*ssh, f"{name}.jlr", look),
    )
    assert [done.stdout for done in ways] == [f"{environment}/bin/jupyter-lab\n"] * 3, ways
    with laptop.terminal("jlr", "shell", name) as screen:
        screen.sendline(f"echo =$({look})= =${{JLR_PATH-none}}=")
        screen.expect_exact(f"={environment}/bin/jupyter-lab= =none=")
        screen.sendline("exit")
        screen.expect(pexpect.EOF)
    answered = ran(*ssh, f"{name}.jlr", "uname -n; printf oops >&2; exit 3", status=3)
    assert answered.stdout == f"{node}\n"
    assert "oops" in answered.stderr
    assert ran(*ssh, f"{name}.jlr", "cat", stdin="no end of line").stdout == "no end of line"
    given = ("-o", "SetEnv=LC_TIME=de_DE")
    told = ran(*ssh, *given, f"{name}.jlr", 'echo "$LC_TIME"; cat', stdin="rest").stdout
    assert told == "de_DE\nrest"
    assert "/dev/pts/" in ran(*ssh, "-tt", f"{name}.jlr", "tty").stdout
    assert "de_DE" in ran(*ssh, *given, "-tt", f"{name}.jlr", 'echo "$LC_TIME"').stdout

    assert laptop.jlr("cp", "data", f"{name}:{there}").status == 0
    copies = {
        "cp": (str(PROGRAMS / "jlr"), "cp", f"{name}:{there}", "cp"),
        "scp": ("scp", "-F", str(config), f"{name}.jlr:{there}", "scp"),
        "rsync": ("rsync", "-e", " ".join(ssh), f"{name}.jlr:{there}", "rsync"),
    }
    copies = {copy: argv for copy, argv in copies.items() if shutil.which(argv[0])}
    with ThreadPoolExecutor() as pool:
        copying = [pool.submit(ran, *argv) for argv in copies.values()]
        for copy, copied in zip(copies, copying, strict=True):
            copied.result()
            assert (home / copy).read_bytes() == data, copy

    code = ran(str(PROGRAMS / "jlr"), "code", name, "--print").stdout
    assert code == f"code --folder-uri vscode-remote://ssh-remote+{name}.jlr/home/alice\n"


def check_local_kernel(session: Session, node: str) -> None:
    """Check that a notebook of the laptop runs on the node."""
    laptop, name, home = session.laptop, session.name, session.laptop.folder / "home"
    [kernel] = json.loads(laptop.jlr("local", "kernels", "install", name, "--json").stdout)
    cell = {"cell_type": "code", "id": "a", "source": CELL, "metadata": {}, "outputs": []}
    document = {"cells": [cell | {"execution_count": None}], "metadata": {}}
    (home / "n.ipynb").write_text(json.dumps(document | {"nbformat": 4, "nbformat_minor": 5}))
    nbconvert = (str(PROGRAMS / "jupyter-nbconvert"), "--to", "notebook", "--execute", "--inplace")
    words = (f"--ExecutePreprocessor.kernel_name={kernel['name']}", "n.ipynb")
    laptop.run(*nbconvert, *words).checked()
    assert f"ran on {node}" in (home / "n.ipynb").read_text("utf-8")


def check_recorder(session: Session, command: str) -> None:
    """Check that a recorder that has ended on the node is told, and runs again by a command."""
    laptop, place = session.laptop, f"{session.report['host']}/{session.name}"
    own = f"~/.local/state/jlr/slurm/servers/{session.name}/recorder"
    with session.notebook("again.ipynb") as kernel:
        # With the shell that would run it again.
        words = f"set -- $(cat {own}); kill -9 $(cut -d ' ' -f 4 /proc/$1/stat) $1"
        kernel.run(f"import os; os.system({words!r})")
        told = "its recorder has ended"
        assert told in laptop.jlr("list", place).stdout
        again = laptop.jlr(*command.split(), session.name).stderr
        assert f"the recorder of `{session.name}` had ended and was started again" in again
        wait_until(lambda: told not in laptop.jlr("list", place).stdout, "its next start")
        assert kernel.run("print('recorded', 'again')") == "recorded again\n"
        session.output_with("\nrecorded again")
