"""Every version of Jupyter works the same, launched by jlr or started by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import product
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.jupyter.parts import AGES, Age
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.place import LabError
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.long import LONG, WANTED
from tests.sessions.parts import Kernel, Session, failed, start, started

TRIES = 5


# Between the oldest and the newest, versions differ less from these than they do.
ALWAYS = ("Notebook 6", "JupyterLab 4")
BY_HAND = ("Notebook 6",)
# Its package brings JupyterLab's along, and so it has its programs in a folder of their own.
NOTEBOOK_7 = Age("notebook7", "jupyter-notebook", "ServerApp", "tree", "tree")
LINKS = (
    "mkdir -p /opt/notebook7/bin && cd /opt/jupyter/bin && ln -s $PWD/python3 $PWD/jupyter "
    "$PWD/jupyter-notebook $PWD/jupyter-kernelspec /opt/notebook7/bin"
)
LAUNCHED = {**AGES, "Notebook 7": NOTEBOOK_7}


def each_of(ages: dict[str, Age], always: Sequence[str] = ALWAYS) -> pytest.MarkDecorator:
    """Run a test for each of these, most of them with `JLR_LONG=1` only."""
    given = [
        pytest.param(age, id=name) if name in always else LONG(age, id=name)
        for name, age in ages.items()
    ]
    return pytest.mark.parametrize("age", given)


@pytest.fixture(scope="module")
def laptop(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    """A laptop that lasts as long as this module."""
    with new_laptop(sshd, account, keys) as fresh:
        yield fresh


@pytest.fixture(scope="module")
def running(containers: ContainerFactory) -> dict[Age, Container]:
    """Containers whose own process is a server, begun together as each takes its seconds."""
    wanted = [age for name, age in AGES.items() if WANTED or name in BY_HAND]
    return {age: containers("lab/ages", *age.command(), options=age.options) for age in wanted}


def page_of(url: str) -> str:
    """Return the page that a URL leads to, having seen that it is one of Jupyter's."""
    with urlopen(url.strip(), timeout=30) as answer:
        assert b"Jupyter" in answer.read()
        return str(answer.url).partition("?")[0].rstrip("/").rpartition("/")[2]


def kernels(session: Session) -> dict[str, str]:
    """Return the states of the kernels that `jlr list` tells, by notebook."""
    told = json.loads(session.laptop.jlr("list", session.name, "--json").stdout)
    return {kernel["notebook"]: kernel["state"] for kernel in told["kernels"]}


@contextmanager
def heard_of(session: Session, path: str) -> Iterator[Kernel]:
    """Give a kernel whose state the server knows; JupyterLab 3 takes some for starting for ever."""
    for _ in range(TRIES):
        with session.notebook(path) as kernel:
            kernel.await_start()
            try:
                wait_until(lambda: kernel.state() == "idle", "its state")
            except LabError:
                continue
            yield kernel
            return
    raise LabError(f"the server hears of no kernel of {path}")


def tells_kernels(session: Session) -> None:
    """Check that kernels are listed, busy and idle, and that a busy one is not stopped."""
    with heard_of(session, "idle.ipynb") as idle, heard_of(session, "busy.ipynb") as busy:
        assert idle.run("6 * 7") == "42"
        busy.keep_busy()
        wait_until(lambda: idle.state() == "idle", "the kernel's being idle")
        assert kernels(session) == {"idle.ipynb": "idle", "busy.ipynb": "busy"}
        failed(session.laptop.jlr("stop", session.name, "--container", "--yes"), 7, "`busy.ipynb`")


def limits_pages_alone(session: Session) -> None:
    """Check that a page is spared what floods it, and that other programs get all."""
    flood = "for _ in range(40): print('x' * 99_999, flush=True)"
    with heard_of(session, "flood.ipynb") as page:
        assert "rate exceeded" in page.run(flood)
        with page.reached_anew(from_page=False) as program:
            program.await_start()
            assert len(program.run(flood)) == 4_000_000


def answers_outside(address: str, base: str) -> str:
    """Return all that a server answers to those who do not know the path that it has."""
    told = []
    for method, path, host in product(
        ("GET", "POST", "OPTIONS"),
        ("/", "/lab", "/tree", "/login", "/api/status", "/static/a.js", "/files/a", base[:-1], "*"),
        (f"{address}:8888", "localhost:8888", "evil.example:8888"),
    ):
        with closing(HTTPConnection(address, 8888, timeout=30)) as connection:
            connection.request(method, path, headers={"Host": host, "Accept": "text/html"})
            answer = connection.getresponse()
            told.append(f"{answer.status} {answer.headers} {answer.read().decode()}")
    assert {each[:3] for each in told} == {"404"}
    return "\n".join(told)


@each_of(LAUNCHED)
def test_every_version_is_launched_with_its_own_token_and_ended(
    laptop: Laptop, containers: ContainerFactory, age: Age
) -> None:
    here = containers("lab/ages", options=age.options)
    if age is NOTEBOOK_7:
        here.execute("sh", "-c", LINKS)
    session = started(laptop, here)
    assert page_of(session.url) == age.launched
    assert page_of(laptop.jlr("open", session.name, "tmp", "--no-browser").stdout) == "tmp"
    assert len(session.token) == 48
    arguments = here.engine.docker("top", here.name, "-eo", "pid,args")
    assert age.program in arguments
    assert session.token not in arguments
    assert session.token not in laptop.jlr("logs", session.name, "--tail", "1000").stdout
    base = urlsplit(session.base).path
    assert base.strip("/") not in answers_outside(here.address, base)
    tells_kernels(session)
    session.output_with("42")
    limits_pages_alone(session)
    assert laptop.jlr("stop", session.name).status == 0
    assert age.program not in here.engine.docker("top", here.name, "-eo", "pid,args")
    assert here.running


# `sessions/test_by_hand` has one of the newest.
@each_of(AGES, BY_HAND)
def test_a_server_started_by_hand_is_found_and_left_running(
    laptop: Laptop, running: dict[Age, Container], age: Age
) -> None:
    here = running[age]
    here.await_output("is running at")
    session = started(laptop, here)
    assert session.base.endswith("/theirs/")
    assert page_of(session.url) == age.found
    assert kernels(session) == {}
    assert "left Jupyter running" in laptop.jlr("stop", session.name).stdout
    assert here.running


@pytest.mark.parametrize("name", [LONG("Notebook 6"), "JupyterLab 4"])
def test_a_server_that_is_open_to_all_is_forwarded_only_when_that_is_allowed(
    laptop: Laptop, containers: ContainerFactory, name: str
) -> None:
    age = AGES[name]
    here = containers("lab/ages", *age.command(f"--{age.family}.token="), options=age.options)
    here.await_output("is running at")
    words = ("every user of `lab`", "neither token nor password", "--allow-unauthenticated")
    failed(start(laptop, "lab", here.name), 1, *words)
    assert here.name not in laptop.jlr("list", "--json").stdout
    session = started(laptop, here, "--allow-unauthenticated")
    assert session.report["access"] == "open"
    assert page_of(laptop.jlr("url", here.name).stdout) == age.found
    told = json.loads(laptop.jlr("list", here.name, "--json").stdout)
    assert (told["state"], told["access"], told["kernels"]) == ("up", "open", [])
    assert "open to all users of `lab`" in laptop.jlr("list").stdout


@pytest.mark.long
def test_an_old_server_with_a_password_asks_for_it_in_the_browser(
    laptop: Laptop, containers: ContainerFactory
) -> None:
    age = AGES["JupyterLab 2"]
    password = ("--NotebookApp.password=sha1:c0ffee:0123456789abcdef", "--NotebookApp.token=")
    here = containers("lab/ages", *age.command(*password), options=age.options)
    here.await_output("is running at")
    session = started(laptop, here)
    assert session.report["access"] == "password"
    assert page_of(session.url) == "login"
    told = json.loads(laptop.jlr("list", session.name, "--json").stdout)
    assert (told["state"], told["access"], told["kernels"]) == ("up", "password", None)
    assert "asks for a password" in laptop.jlr("list", session.name).stdout
    failed(laptop.jlr("stop", session.name, "--container"), 7, "password", "--force")
