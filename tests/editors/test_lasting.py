"""What ends a client, and what it outlasts: a stop, a broken connection, a spent budget."""

from __future__ import annotations

import pytest

from jlremote.ssh.channels.channel_registry import KEPT
from tests.editors.conftest import SECONDS, Clients, end
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.sessions.parts import started
from tests.shell.parts import running


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
