"""A real link: one process for all commands, that comes when it is needed and goes when not."""

from __future__ import annotations

import json
import multiprocessing.connection as sockets
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from typing import Any

import pytest

from jlremote.errors import JlrError, NeedsAuthentication
from jlremote.hosts.links import begin
from jlremote.link.client import call
from jlremote.link.client.call import NoLink
from jlremote.link.wire.protocol import NotProved, authenticate_link
from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, load
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk, logins
from tests.link.fakes import Call, FakePerson, until
from tests.link.servers import HostServers
from tests.outages.parts import within

SQUARE = 'print(link.run({"square": f"echo $(({sys.argv[2]} * {sys.argv[2]}))"})["square"].stdout)'


def test_ten_commands_at_once_are_one_link_and_ten_right_answers(
    desk: Desk, sshd: SSHServer
) -> None:
    before = sshd.log_text()
    how: dict[str, Any] = {"stdout": -1, "text": True, "env": desk.laptop.environment}
    argvs = [desk.command(str(number), code=SQUARE) for number in range(10)]
    commands = [subprocess.Popen(argv, **how) for argv in argvs]
    answers = [int(command.communicate(timeout=60)[0]) for command in commands]
    assert answers == [number * number for number in range(10)]
    assert len(desk.processes()) == 1
    assert logins(sshd, before) == 1


def test_of_twenty_commands_that_need_a_password_one_asks_for_it(
    desk: Desk, another_sshd: SSHServerFactory, account: Account
) -> None:
    account.set_password("correct horse")
    server = another_sshd("PasswordAuthentication yes")
    desk.laptop.add_host("asking", server, account)
    people = [FakePerson("correct horse") for _ in range(20)]
    desks = [Desk(desk.laptop, "asking", person) for person in people]
    calls = [Call(lambda desk=desk: desk.run("id -un")) for desk in desks]  # type: ignore[misc]
    assert {call.result() for call in calls} == {f"{account.name}\n"}
    assert sum(len(person.questions) for person in people) == 1
    assert logins(server) == 1


def test_a_killed_link_comes_back_with_its_sessions_on_their_ports(
    desk: Desk, servers: HostServers
) -> None:
    names = ("one", "two")
    pids = [servers.start(name) for name in names]
    ports = [desk.start(name).local_port for name in names]
    first = desk.process()
    first.kill()
    first.wait(PATIENCE)
    # Even of many commands at once none may find the new link without them.
    calls = [Call(lambda: desk.link().status(connect=True)) for _ in range(10)]
    for status in [each.result() for each in calls]:
        forwards = [status.forward(name) for name in names]
        assert [forward.local_port for forward in forwards if forward] == ports
    assert [desk.server_pid(desk.forward(name)) for name in names] == pids
    assert desk.process().pid != first.pid


def test_forwards_that_a_killed_command_did_not_restore_are_restored_by_the_next(
    desk: Desk, servers: HostServers
) -> None:
    servers.start("one")
    port = desk.start("one").local_port
    desk.process().kill()
    until(lambda: not desk.processes(), "the end of the link")
    with pytest.raises(NoLink):
        desk.link().status()
    # A command that ends between the start of the link and the restoring.
    call.start_link(desk.files)
    assert desk.link().status().forwards == ()
    with within(10):
        assert desk.run("echo here") == "here\n"
        assert desk.forward("one").local_port == port


def test_a_start_begins_the_link_once_and_not_where_one_lives(desk: Desk) -> None:
    begin(desk.host, desk.context)
    until(lambda: desk.leftovers(), "a link that listens")
    assert desk.run("echo here") == "here\n"
    first = desk.process()
    begin(desk.host, desk.context)
    assert desk.run("echo here") == "here\n"
    assert desk.process() == first


def test_an_idle_link_leaves_and_leaves_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JLR_LINK_IDLE", "1")
    desk.run("true")
    until(lambda: not desk.processes(), "the end of the link")
    assert desk.leftovers() == []


def test_a_link_that_may_not_ask_says_so_and_leaves_at_once(
    desk: Desk, another_sshd: SSHServerFactory, account: Account
) -> None:
    desk.laptop.add_host("asking", another_sshd("PasswordAuthentication yes"), account)
    desk.host = "asking"
    with pytest.raises(NeedsAuthentication):
        desk.run("true")
    until(lambda: not desk.processes(), "the end of the link")


def test_a_link_whose_files_were_tidied_away_is_found_again(
    desk: Desk, servers: HostServers
) -> None:
    """As `/run/user` is at the last logout; the port was held by an unreachable link."""
    pid = servers.start("one")
    desk.start("one")
    forward, link = desk.forward("one"), desk.process().pid
    shutil.rmtree(desk.files.socket.parent)
    until(lambda: len(desk.leftovers()) == 2, "its files")
    assert desk.run("echo well") == "well\n"
    assert desk.forward("one").local_port == forward.local_port
    assert desk.server_pid(forward) == pid
    assert desk.process().pid == link
    desk.link().shut_down()
    until(lambda: not desk.processes(), "its end")
    assert desk.leftovers() == []


def test_a_link_that_was_replaced_leaves_its_port_to_the_new_one(
    desk: Desk, laptop: Laptop, servers: HostServers
) -> None:
    servers.start("one")
    desk.start("one")
    first, url = desk.process().pid, laptop.jlr("url").stdout
    shutil.rmtree(desk.files.socket.parent)
    assert desk.run("echo well") == "well\n"
    until(lambda: first not in [link.pid for link in desk.processes()], "the end of the first")
    assert laptop.jlr("url").stdout == url
    assert desk.process().pid != first


def test_connections_leave_the_link_the_descriptors_that_it_needs(
    desk: Desk, servers: HostServers, sshd: SSHServer
) -> None:
    pid = servers.start("one")
    desk.start("one")
    forward = desk.forward("one")
    resource.prlimit(desk.process().pid, resource.RLIMIT_NOFILE, (64, 64))
    with ExitStack() as many:
        for _ in range(100):
            address = ("127.0.0.1", forward.local_port)
            many.enter_context(socket.create_connection(address))
        with within(10):
            assert desk.run("echo well") == "well\n"
            sshd.drop_connections()
            assert desk.run("echo well") == "well\n"
    assert desk.server_pid(forward) == pid


def test_mute_callers_block_no_command_and_keep_no_link_alive(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JLR_LINK_IDLE", "1")
    desk.run("true")
    mute = [sockets.Client(str(desk.files.socket)) for _ in range(3)]
    with within(10):
        assert desk.run("echo in") == "in\n"
    until(lambda: not desk.processes(), "the end of the link")
    for caller in mute:
        caller.close()


def test_a_stranger_without_the_key_is_told_nothing(file_desk: Desk) -> None:
    file_desk.run("true")
    with sockets.Client(str(file_desk.files.socket)) as stranger, pytest.raises(NotProved):
        authenticate_link(stranger, b"not the key")
    assert file_desk.run("echo still") == "still\n"


def test_a_stopped_link_is_a_clear_error_in_time_and_works_when_it_goes_on(
    file_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call.ANSWER_SECONDS <= 12
    monkeypatch.setattr(call, "ANSWER_SECONDS", 1.0)
    file_desk.run("true")
    process = file_desk.process()
    process.suspend()
    began = time.monotonic()
    with pytest.raises(JlrError, match="does not answer") as caught:
        file_desk.run("true")
    assert time.monotonic() - began < 4 * load()
    assert caught.value.hint is not None
    process.resume()
    assert file_desk.run("echo on") == "on\n"
    assert file_desk.process().pid == process.pid


def test_a_link_that_is_stopped_hides_no_other_hosts_sessions(
    desk: Desk, laptop: Laptop, servers: HostServers, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("other", sshd, account, key=keys.private)
    for name, host in (("one", "lab"), ("two", "other")):
        servers.start(name)
        Desk(laptop, host).start(name)
    [link] = [process for process in desk.processes() if "lab" in process.cmdline()]
    link.suspend()
    try:
        listed = laptop.jlr("list", "--json")
    finally:
        link.resume()
    told = {report["name"]: report for report in json.loads(listed.stdout)}
    assert listed.status == 0, listed
    assert told["one"]["state"] == "down"
    assert "does not answer" in told["one"]["detail"]
    assert told["two"]["state"] == "up"


def test_a_script_that_prints_for_ever_is_cut_and_ended(
    file_desk: Desk, servers: HostServers
) -> None:
    began = time.monotonic()
    with pytest.raises(JlrError, match="more than 1 MiB"):
        file_desk.link().run({"flood": "exec yes 'jlr flood'"}, limit=1 << 20)
    assert time.monotonic() - began < 10 * load()
    until(lambda: not servers.running("yes"), "the end of `yes`")


def test_a_script_that_takes_too_long_is_ended(file_desk: Desk, servers: HostServers) -> None:
    before = servers.running("sleep")  # an earlier test that failed may have left one
    with pytest.raises(JlrError, match=r"did not finish within 0\.5 s"):
        file_desk.link().run({"nap": "exec sleep 1000"}, timeout=0.5)
    until(lambda: set(servers.running("sleep")) <= set(before), "the end of `sleep`")


def test_the_links_files_are_the_users_alone(file_desk: Desk) -> None:
    file_desk.run("true")
    for path in (file_desk.files.socket.parent, file_desk.files.key, file_desk.files.log):
        assert path.stat().st_mode & 0o077 == 0


def test_ctrl_c_in_the_terminal_that_started_it_does_not_reach_the_link(file_desk: Desk) -> None:
    file_desk.run("true")
    process = file_desk.process()
    assert os.getsid(process.pid) == process.pid
    process.send_signal(signal.SIGINT)
    assert file_desk.run("echo on") == "on\n"
    assert file_desk.process().pid == process.pid
