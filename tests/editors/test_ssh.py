"""Real ssh clients on the link's SSH server, all in one session."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jlremote.ssh.channels.channel_registry import KEPT
from tests.cli.terminal import Terminal
from tests.editors.conftest import SECONDS, Clients, end
from tests.lab.accounts import Account
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.sessions.parts import started
from tests.shell.parts import running


def test_a_command_runs_as_the_sessions_user_in_its_folder_with_its_environment(
    clients: Clients, account: Account
) -> None:
    done = clients.ssh(clients.name, "hostname; id -un; pwd; echo $OURS; echo oops >&2; exit 7")
    host = clients.inside.execute("hostname").strip()
    assert done.returncode == 7, done
    assert done.stdout.decode().split() == [host, "root", "/srv", "here"]
    assert done.stderr == b"oops\n"
    by_host = clients.ssh(f"{clients.inside.name}.lab.jlr", "hostname")
    assert by_host.stdout.decode().strip() == host
    there = clients.ssh("lab.jlr", "id -un; pwd")
    assert there.stdout.decode().split() == [account.name, str(account.home)]


def test_bytes_quotes_and_exit_codes_arrive_as_they_are(clients: Clients) -> None:
    data = os.urandom(5_000_001)
    done = clients.ssh(clients.name, "tee /dev/stderr; sha256sum", given=data)
    digest = hashlib.sha256(b"").hexdigest()
    assert done.stdout == data + f"{digest}  -\n".encode()
    assert done.stderr == data
    words = "printf '[%s]' 'it'\\''s' \"$((1+1)) é\" '\x1b[31m' 'two  words'"
    told = clients.ssh(clients.name, words)
    assert told.stdout.decode() == "[it's][2 é][\x1b[31m][two  words]"
    assert clients.ssh(clients.name, "kill -KILL $$").returncode == 137
    allowed = clients.ssh(
        *("-o", "SetEnv=LC_TIME=de_DE SECRET=x GIT_PROTOCOL=version=2"),
        *(clients.name, "echo $LC_TIME $GIT_PROTOCOL [$SECRET]"),
    )
    assert allowed.stdout == b"de_DE version=2 []\n"


def test_twelve_clients_at_once_wait_their_turn(clients: Clients) -> None:
    with ThreadPoolExecutor(12) as pool:
        asked = [f"sleep 0.2; echo {number}" for number in range(12)]
        answers = pool.map(lambda line: clients.ssh(clients.name, line), asked)
    assert [int(done.stdout or -1) for done in answers] == list(range(12))


def test_a_terminal_has_its_size_and_its_programs_end_with_it(clients: Clients) -> None:
    argv = ("ssh", "-F", str(clients.config), "-t", clients.name)
    terminal = Terminal(argv, environment=clients.laptop.environment | {"TERM": "xterm-256color"})
    try:
        terminal.wait_for(":/srv# ")
        terminal.type("stty size; echo $TERM; sleep 617\r")
        terminal.wait_for("24 80\r\nxterm-256color\r\n")
        wait_until(lambda: running(clients.inside, "sleep 617"), "the command's start")
        terminal.type("\x03")
        terminal.wait_for("^C")
        terminal.resize(31, 77)
        terminal.type("until [ \"$(stty size)\" = '31 77' ]; do sleep .1; done; echo big $((1))\r")
        terminal.wait_for("big 1")
        terminal.type("sleep 618\r")
        wait_until(lambda: running(clients.inside, "sleep 618"), "the command's start")
        terminal.type("\r~.")  # the escape begins a line; `sleep` reads nothing
        terminal.process.wait(SECONDS)
        wait_until(lambda: not running(clients.inside, "sleep 618"), "the end of what ran there")
    finally:
        terminal.close()


def test_a_session_that_does_not_run_and_keys_of_others_are_refused(clients: Clients) -> None:
    gone = clients.ssh("no-such.lab.jlr", "true")
    assert gone.returncode == 255
    assert b"neither a session nor a container `no-such` on `lab`" in gone.stderr
    stranger = clients.laptop.make_key("stranger")
    ours = clients.config.read_text("utf-8").splitlines()
    key = next(line.split()[1] for line in ours if "IdentityFile" in line)
    config = clients.laptop.folder / "stranger_config"
    config.write_text("\n".join(ours).replace(key, str(stranger)) + "\n", encoding="utf-8")
    refused = clients.run("ssh", "-F", str(config), clients.name, "true")
    assert refused.returncode == 255
    assert b"Permission denied (publickey)" in refused.stderr


def test_another_user_of_the_laptop_reaches_neither_key_nor_link(clients: Clients) -> None:
    """They run this user's `jlr proxy` with all that they may know of it."""
    other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    key = clients.config.read_text("utf-8").partition("IdentityFile ")[2].split()[0]
    assert clients.run(*other, "cat", key).returncode == 1
    proxy = clients.run(*other, "jlr", "proxy", clients.name, given=b"SSH-2.0-other\r\n")
    assert proxy.returncode != 0
    assert not proxy.stdout
    assert clients.run("jlr", "proxy", clients.name, given=b"SSH-2.0-us\r\n").stdout[:4] == b"SSH-"


def test_a_name_is_one_word_of_the_proxys_command(clients: Clients, tmp_path: Path) -> None:
    """ssh refuses most signs in a name; a version that takes them runs nothing of it clients."""
    noted, program = tmp_path / "noted", tmp_path / "program"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >>{noted}\n")
    program.chmod(0o755)
    (tmp_path / "other.jlr").touch()
    text = clients.config.read_text(encoding="utf-8")
    [command] = re.findall("ProxyCommand (.*)", text)
    config, called = tmp_path / "config", f"{program} proxy {command.split()[-1]}"
    config.write_text(text.replace(command, called))
    names = [
        "o*.jlr",
        "[o]ther.jlr",
        "~.jlr",
        "#.jlr",
        "$(touch x).jlr",
        "`touch x`.jlr",
        '";x".jlr',
    ]
    for name in names[:4]:
        ssh = ("ssh", "-F", str(config), name)
        subprocess.run(ssh, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False)
    for name in names[4:]:
        subprocess.run(("sh", "-c", f"exec {called.replace('%n', name)}"), cwd=tmp_path, check=True)
    assert noted.read_text().splitlines() == [word for name in names for word in ("proxy", name)]
    assert not (tmp_path / "x").exists()


def test_a_broken_connection_ends_commands_and_not_the_client(
    clients: Clients, sshd: SSHServer
) -> None:
    shared = ("-o", f"ControlPath={clients.laptop.folder}/lasting")
    master = clients.popen(*shared, "-o", "ControlMaster=yes", "-N", clients.name)
    try:
        checked = ("-O", "check", clients.name)
        wait_until(lambda: clients.ssh(*shared, *checked).returncode == 0, "the master", SECONDS)
        lost = clients.popen(*shared, clients.name, "echo begun; sleep 621")
        assert lost.stdout is not None
        assert lost.stdout.readline() == b"begun\n"
        sshd.drop_connections()
        told, _ = lost.communicate(timeout=SECONDS)
        assert lost.returncode == 255
        assert told.startswith(b"jlr: the connection broke while a command ran"), told
        again = clients.ssh(*shared, clients.name, "echo again")
        assert again.stdout == b"again\n", again
    finally:
        end(master)


@pytest.mark.long
def test_a_spent_budget_is_told(clients: Clients) -> None:
    lasting = [clients.popen(clients.name, "echo begun; sleep 622") for _ in range(KEPT)]
    try:
        begun = [process.stdout.readline() for process in lasting if process.stdout]
        assert begun.count(b"begun\n") >= KEPT - 1, "a relay may have one of them"
        refused = clients.ssh(clients.name, "true")
        assert refused.returncode == 255
        assert b"jlr: 8 terminals, logs, mounts or forwards into containers are open" in (
            refused.stderr
        )
    finally:
        for process in lasting:
            end(process)
    wait_until(lambda: not running(clients.inside, "sleep 622"), "the clients' end", SECONDS)
    assert clients.ssh(clients.name, "true").returncode == 0


def test_disconnect_tells_of_the_clients_that_it_ends(clients: Clients) -> None:
    inside = clients.popen(clients.name, "echo begun; sleep 623")
    outside = clients.popen("lab.jlr", "echo begun; sleep 623")
    try:
        for process in (inside, outside):
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
        told = clients.laptop.jlr("disconnect", "lab")
        assert told.status == 1, told
        place = f"lab/{clients.inside.name}"
        named = told.stderr.partition("be lost: ")[2].splitlines()[0]
        assert sorted(named.split("; ")) == ["ssh clients in lab", f"ssh clients in {place}"]
        assert clients.laptop.jlr("disconnect", "lab", "--yes").status == 0
        for process in (inside, outside):
            process.communicate(timeout=SECONDS)
            assert process.returncode == 255
    finally:
        for process in (inside, outside):
            if process.poll() is None:
                end(process)
    started(clients.laptop, clients.inside)  # for those that come later


def test_docker_reaches_the_hosts_engine(clients: Clients) -> None:
    program = clients.laptop.folder / "ssh"
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {clients.config} "$@"\n', "utf-8")
    program.chmod(0o755)
    path = f"PATH={clients.laptop.folder}:{clients.laptop.environment['PATH']}"
    docker = ("env", path, "DOCKER_HOST=ssh://lab.jlr", "docker")
    done = clients.run(*docker, "inspect", "--format={{.Id}}", clients.inside.name)
    assert (
        done.stdout.decode().strip()
        == clients.inside.engine.docker("inspect", "--format={{.Id}}", clients.inside.name).strip()
    ), done


def test_a_stop_of_the_session_ends_its_clients(clients: Clients) -> None:
    client = clients.popen("-o", "ServerAliveInterval=0", "-N", "-v", clients.name)
    assert client.stdout is not None
    while b"Entering interactive session" not in client.stdout.readline():
        assert client.poll() is None
    stopped = clients.laptop.jlr("stop", f"lab/{clients.inside.name}")
    assert stopped.status == 0, stopped
    client.communicate(timeout=SECONDS)
    assert client.returncode == 255
    started(clients.laptop, clients.inside)  # for those that come later
