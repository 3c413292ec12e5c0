"""The local port: the next one when it is taken, the same one ever after, or exactly the one."""

from __future__ import annotations

import json
import os
import random

from jlremote.laptop.sessions import PortRecord, SessionRecord, save
from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port, held
from tests.lab.remote_host import Keys
from tests.link.desk import at_desk
from tests.link.servers import start_inside
from tests.sessions.parts import Session, failed, start, started


def reserve(laptop: Laptop, first: int, last: int) -> None:
    """Have the laptop keep ports for a session on another host, whose link is down."""
    ports = tuple(PortRecord(number, number) for number in range(first, last + 1))
    with at_desk(laptop):
        save(SessionRecord("away", "kept", "none", 8888, ports=ports, forwarded=False))


def test_a_port_that_is_taken_is_told_with_its_holder_and_the_next_is_kept_from_then_on(
    laptop: Laptop, container: ContainerFactory
) -> None:
    # All laptops of this machine look for a port from 8888 on. What another test takes between two
    # starts would not be there the second time, so this laptop looks where no other one gets to.
    reserve(laptop, 8888, random.randrange(8950, 8980))
    here = container("lab/plain")
    start_inside(here, 8888)
    first = started(laptop, here, "--port", str(free_port())).port
    assert laptop.jlr("stop", here.name).status == 0
    start_inside(here, 8888)
    with held(first):
        said = start(laptop, "lab", here.name)
        assert said.status == 0, said
        assert f"port {first} is in use by" in said.stderr, said
        assert f"(process {os.getpid()})" in said.stderr, said
    second = json.loads(laptop.jlr("list", here.name, "--json").stdout)["local_port"]
    assert second != first
    assert laptop.jlr("stop", here.name).status == 0
    start_inside(here, 8888)
    assert started(laptop, here).port == second


def test_an_exact_port_is_used_or_refused(laptop: Laptop, session: Session) -> None:
    here, exact, other = session.name, free_port(), free_port()
    assert started(laptop, here, "--port", str(exact)).port == exact
    with held(other):
        refused = start(laptop, "lab", here, "--port", str(other))
        failed(refused, 7, f"port {other} is in use by", f"process {os.getpid()}")
        settings = laptop.settle(f"[hosts.lab]\nport = {other}\n")
        failed(start(laptop, "lab", here), 7, "is in use by", "leave out `port` of `[hosts.lab]`")
        settings.unlink()
    assert started(laptop, here, "--port", str(other)).port == other
    with held(exact):
        pass  # released when the session moved


def test_sessions_on_one_host_and_on_two_live_side_by_side(
    laptop: Laptop,
    container: ContainerFactory,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
) -> None:
    laptop.add_host("second", another_sshd(), account, key=keys.private)
    one, two = container(), container()
    sessions = [started(laptop, one), started(laptop, two), started(laptop, one, host="second")]
    assert len({session.port for session in sessions}) == 3
    for session in (sessions[0], sessions[2]):
        with session.notebook("side.ipynb") as kernel:
            hostname = kernel.run("__import__('os').uname().nodename")
            assert hostname == repr(one.inspect("{{.Config.Hostname}}"))
    assert sessions[0].born() == sessions[2].born() != sessions[1].born()
    listed = json.loads(laptop.jlr("list", "--json").stdout)
    assert [(report["host"], report["name"], report["state"]) for report in listed] == [
        ("second", one.name, "up"),
        ("lab", two.name, "up"),
        ("lab", one.name, "up"),
    ]
    # What else is there the host tells, which is the same one under another name.
    there = json.loads(laptop.jlr("list", "second", "--json").stdout)
    assert {report["host"] for report in there} == {"second"}
    assert [r["name"] for r in there if r["url"]] == [one.name]
    assert two.name in {report["name"] for report in there}
    failed(laptop.jlr("url", one.name), 2, f"`lab/{one.name}`", f"`second/{one.name}`")
    assert laptop.jlr("url", f"lab/{one.name}").stdout.strip() == sessions[0].url
    links = [process for process in laptop.processes() if "jlremote.link" in process.cmdline()]
    assert len(links) == 2
    for verb in ("stop", "rm", "restart"):
        failed(laptop.jlr(verb, "second", "--yes"), 6, "is a host", f"`second/{one.name}`")
    inside = laptop.jlr("run", "--in", f"second/{one.name}", "--", "cat", "/etc/hostname")
    assert inside.stdout.strip() == one.inspect("{{.Config.Hostname}}"), inside
    laptop.add_host(two.name, another_sshd(), account, key=keys.private)
    a_host_of_the_sessions_name_is_told(laptop, two, account)


def a_host_of_the_sessions_name_is_told(laptop: Laptop, two: Container, account: Account) -> None:
    name, node = two.name, two.inspect("{{.Config.Hostname}}") + "\n"
    inside = laptop.jlr("shell", name, "--", "cat", "/etc/hostname")
    assert inside.stdout == node
    assert f"`{name}` is taken as the session `lab/{name}`; `{name}/` is the host" in inside.stderr
    assert laptop.jlr("shell", f"{name}/", "--", "id", "-un").stdout == f"{account.name}\n"
    there = laptop.jlr("list", name, "--json")
    assert {report["host"] for report in json.loads(there.stdout)} <= {name}
    told = laptop.jlr("run", name, "--runtime", "none", "--", "id", "-un")
    assert told.stdout == f"{account.name}\n"
    assert f"`{name}` is taken as the host; the session is `lab/{name}`" in told.stderr
