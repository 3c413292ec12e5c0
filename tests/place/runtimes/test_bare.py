"""Runtime `none`: JupyterLab on the host itself, as an ordinary user, behind a real sshd."""

from __future__ import annotations

import json
import pwd
import signal
import socket
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from websocket import WebSocket, create_connection

from jlremote.jupyter import scripts
from jlremote.jupyter.configuration import HOST_PORT
from jlremote.jupyter.discovery import read_probe
from jlremote.place.runtimes.processes import Bare
from tests.conftest import SSHServerFactory
from tests.demo.person import ignores
from tests.lab.accounts import Account, program_name
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import lives, wait_until
from tests.lab.remote_host import Keys, new_laptop
from tests.link.conftest import clean_laptop as clean_laptop
from tests.long import LONG
from tests.sessions.parts import Session, failed, start, started

NOBODY = 65534
STATE = Path(".local/state/jlr/servers") / socket.gethostname()


@pytest.fixture
def laptop(clean_laptop: Laptop) -> Laptop:
    return clean_laptop


@pytest.fixture
def none_runs(account: Account) -> None:
    """End the servers of earlier tests, with all else that the account runs."""
    account.end_processes()


def bare(laptop: Laptop, name: str, environment: Path, *words: str) -> Session:
    """Start a session without containers."""
    return started(laptop, name, "--runtime", "none", "--python", str(environment), *words)


def server_of(account: Account) -> psutil.Process:
    """Return the one JupyterLab of the account."""
    (server,) = servers_of(account)
    return server


def servers_of(account: Account) -> list[psutil.Process]:
    found = []
    for process in account.processes():
        with suppress(psutil.Error):  # it may have just ended
            if "jupyterlab" in process.cmdline():
                found.append(process)
    return found


def listening(server: psutil.Process) -> list[tuple[str, int]]:
    """Return the addresses and TCP ports on which a process listens."""
    return [c.laddr for c in server.net_connections() if c.status == psutil.CONN_LISTEN]


def connected(path: Path, user: int) -> str:
    """Return how an attempt of another user to connect to a unix socket ends."""
    ask = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    argv = (
        "setpriv",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        ask,
    )
    return subprocess.run((*argv, path), capture_output=True, text=True, timeout=30).stderr


def terminal(session: Session) -> WebSocket:
    """Open a terminal as JupyterLab does."""
    name = session.ask("api/terminals", {})["name"]
    socket = create_connection(
        f"ws://{session.base}terminals/websocket/{name}",
        header=[f"Authorization: token {session.token}"],
        timeout=30,
    )
    socket.send(json.dumps(["set_size", 30, 100, 0, 0]))
    return socket


def type_in(socket: WebSocket, text: str, until: str) -> None:
    """Type, and wait until the terminal shows something."""
    socket.send(json.dumps(["stdin", text]))
    shown = ""
    while until not in shown:
        kind, *content = json.loads(socket.recv())
        shown += content[0] if kind == "stdout" else ""


def test_jupyter_outlives_the_connection_and_hears_ctrl_c(
    laptop: Laptop, account: Account, environment: Path
) -> None:
    session = bare(laptop, "work", environment, "--port", str(free_port()))
    server = server_of(account)
    assert (session.report["container"], session.report["runtime"]) == (None, "none")
    assert not ignores(server, signal.SIGINT)
    assert not listening(server)
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
        session.output_with("42")
    laptop.jlr("disconnect", "lab")
    again = bare(laptop, "work", environment)
    assert (again.born(), again.port) == (session.ask("api/status")["started"], session.port)
    with closing(terminal(session)) as shell:
        type_in(shell, "sleep 300\r", "sleep 300")
        wait_until(lambda: "sleep" in map(program_name, server.children(recursive=True)), "sleep")
        type_in(shell, "\x03", "^C")
        type_in(shell, "echo status=$?\r", "status=130")


def test_on_a_home_that_machines_share_another_machine_s_server_is_not_ours(
    laptop: Laptop, account: Account, environment: Path
) -> None:
    """The other machine is this one under another name: there the process id would even fit."""
    bare(laptop, "work", environment)
    assert len(read_probe(probe(account)).servers) == 1
    assert read_probe(probe(account, "hostname another")).servers == ()


def test_the_session_s_folder_is_private_and_stop_leaves_only_its_log(
    laptop: Laptop, account: Account, environment: Path
) -> None:
    session = bare(laptop, "work", environment)
    folder = account.home / STATE / "work"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in files} == {0}
    assert session.token not in (folder / "jupyter.log").read_text()
    # Another user neither finds a port nor enters, now and after the server's end.
    [sock] = (folder / "runtime").glob(f"{scripts.SOCKET}*")
    assert sock.stat().st_mode & 0o777 == 0o600
    assert not listening(server_of(account))
    assert "PermissionError" in connected(sock, NOBODY)
    assert connected(sock, account.uid) == ""
    family = [server_of(account), *server_of(account).children(recursive=True)]
    laptop.jlr("stop", "work").checked()
    wait_until(lambda: not any(map(lives, family)), "the recorder's end, too")
    assert not (folder / "runtime").exists()
    assert "PermissionError" in connected(sock, NOBODY)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", session.port), timeout=5)
    assert laptop.jlr("stop", "work").status == 0


@pytest.mark.usefixtures("none_runs")
def test_where_ssh_reaches_no_socket_jupyter_gets_a_port_that_nobody_holds(
    another_sshd: SSHServerFactory, account: Account, keys: Keys, environment: Path
) -> None:
    strict = another_sshd("AllowStreamLocalForwarding no")
    holders = []
    for port in range(HOST_PORT, HOST_PORT + 3):
        with suppress(OSError):  # somebody else holds it already
            holders.append(socket.create_server(("127.0.0.1", port)))
    with new_laptop(strict, account, keys) as laptop:
        session = bare(laptop, "work", environment)
        ((address, port),) = listening(server_of(account))
        assert address == "127.0.0.1"
        assert port not in {holder.getsockname()[1] for holder in holders}
        assert session.ask("api/status")
        laptop.jlr("stop", "work").checked()
    assert not servers_of(account)
    for holder in holders:
        holder.close()


@pytest.mark.usefixtures("none_runs")
def test_a_server_of_another_user_is_not_taken_for_ours(
    laptop: Laptop, account: Account, environment: Path
) -> None:
    """Another process has the old server's id, and another one its old port."""
    listener = socket.create_server(("127.0.0.1", 0))
    facts = {"port": listener.getsockname()[1], "base_url": "/work/", "token": "stale", "pid": 1}
    runtime = STATE / "work" / "runtime"
    stale = f"mkdir -p {runtime}; cat >{runtime}/jpserver-1.json"
    assert laptop.ssh("lab", stale, stdin=json.dumps(facts)).status == 0
    session = bare(laptop, "work", environment)
    assert session.token != "stale"
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()


@pytest.mark.usefixtures("none_runs")
@pytest.mark.parametrize("way", [LONG("folder"), "name"])
def test_a_conda_environment_is_found_by_its_folder_and_by_its_name(
    laptop: Laptop, account: Account, environment: Path, way: str
) -> None:
    laptop.ssh("lab", "mkdir -p miniconda3/envs && ln -sfn ~/env miniconda3/envs/lab")
    named = str(environment) if way == "folder" else "lab"
    session = started(laptop, f"conda-{way}", "--runtime", "none", "--conda-env", named)
    assert session.ask("api/status")
    argv = server_of(account).cmdline()
    assert Path(argv[0]).resolve() == (environment / "bin/python").resolve()
    found = laptop.jlr("run", "lab", "--in", session.name, "--", "sh", "-c", "command -v python")
    assert found.stdout == f"{Path(argv[0]).parent}/python\n", found
    assert laptop.jlr("shell", "lab", "--", "sh", "-c", "command -v python").stdout != found.stdout


@pytest.mark.usefixtures("none_runs")
def test_a_conda_in_the_home_folder_needs_no_login_shell(
    laptop: Laptop, account: Account, environment: Path
) -> None:
    program = f"#!{environment}/bin/python\nfrom jupyterlab.labapp import main\nmain()\n"
    write = "cat >miniforge3/bin/jupyter-lab && chmod +x miniforge3/bin/jupyter-lab"
    assert laptop.ssh("lab", f"mkdir -p miniforge3/bin; {write}", stdin=program).status == 0
    try:
        session = started(laptop, "forge", "--runtime", "none")
    finally:
        laptop.ssh("lab", "rm -r miniforge3")
    with session.notebook("conda.ipynb") as kernel:
        path = kernel.run("import os; print(os.environ['PATH'])")
    assert path.startswith(f"{account.home}/miniforge3/bin:")


@pytest.mark.usefixtures("none_runs")
def test_a_python_without_jupyterlab_is_an_error_and_leaves_no_process(
    laptop: Laptop, account: Account
) -> None:
    words = ("work", "--runtime", "none", "--python", "/usr/bin/python3")
    failed(start(laptop, "lab", *words), 6, "there is no JupyterLab")
    assert not servers_of(account)


def probe(account: Account, before: str = ":") -> str:
    """Return what the probe tells in a UTS namespace of its own, as the account's user."""
    ask = scripts.probe(Bare(), "work")
    group = pwd.getpwuid(account.uid).pw_gid
    user = f"--reuid {account.uid} --regid {group} --clear-groups"
    login = f"{before}; HOME={account.home} exec setpriv {user} sh -s"
    done = subprocess.run(
        ("unshare", "--uts", "env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", login),
        input=ask, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    return done.stdout
