"""A Jupyter that another start, or a person, is just starting is waited for and not doubled."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import Result
from tests.long import LONG
from tests.sessions.parts import SERVER, Session, start, started

NEW = ("--image", "lab/jupyter", "--runtime", "docker")
JUPYTER = "jupyter-lab"


def servers_inside(here: Container) -> list[str]:
    """Return the pids of the Jupyter servers in a container."""
    lines = here.engine.docker("top", here.name, "-eo", "pid,args").splitlines()[1:]
    words = [line.split() for line in lines]
    # The interpreter and its script; the shells that launch it have both in their own script.
    return [pid for pid, *argv in words if any(JUPYTER in word for word in argv[1:2])]


def answers_at_once(laptops: tuple[Laptop, ...], *words: str) -> list[Result]:
    """Return what all laptops say that start the same session at the same moment."""
    with ThreadPoolExecutor(len(laptops)) as pool:
        answers = list(pool.map(lambda laptop: start(laptop, "lab", *words), laptops))
    for answer in answers:
        assert answer.status == 0, answer
    return answers


def at_once(laptops: tuple[Laptop, ...], *words: str) -> list[Session]:
    """Start the same session from all laptops at the same moment."""
    answers = answers_at_once(laptops, *words, "--json")
    reports = (json.loads(answer.stdout) for answer in answers)
    return [Session(*pair) for pair in zip(laptops, reports, strict=True)]


@pytest.fixture
def both(laptop: Laptop, other_laptop: Laptop) -> tuple[Laptop, Laptop]:
    """Two laptops of one person that are connected already."""
    for each in (laptop, other_laptop):
        assert each.jlr("list", "lab").status == 0
    return laptop, other_laptop


ROUNDS = pytest.mark.parametrize("rounds", [1, LONG(10)])


@ROUNDS
def test_two_laptops_that_start_the_same_new_container_have_one_server(
    both: tuple[Laptop, Laptop], container: ContainerFactory, engine: Engine, rounds: int
) -> None:
    for _ in range(rounds):
        name = container.name()
        one, other = at_once(both, name, *NEW)
        assert one.born() == other.born()
        assert len(servers_inside(Container(engine, name))) == 1


def test_a_jupyter_that_is_being_started_by_hand_is_waited_for(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container("lab/slow", options=("--env", "LAB_DELAY=4"))
    here.engine.docker("exec", "--detach", here.name, *SERVER, "--ip=0.0.0.0")
    session = started(laptop, here)
    assert session.base.endswith("/theirs/")
    assert len(servers_inside(here)) == 1


@ROUNDS
def test_two_laptops_that_stop_the_same_container_both_succeed(
    both: tuple[Laptop, Laptop], container: ContainerFactory, rounds: int
) -> None:
    """The container of the slower one may end while it is asked for programs."""
    here = container()
    at_once(both, here.name)
    stopped = both[0].jlr("stop", here.name)
    assert stopped.status == 0, stopped
    for _ in range(rounds):
        here.engine.docker("start", here.name)
        with ThreadPoolExecutor(len(both)) as pool:
            stop = ("stop", here.name, "--container", "--yes")
            stops = [pool.submit(laptop.jlr, *stop) for laptop in both]
        for stopped in (each.result() for each in stops):
            assert stopped.status == 0, stopped
        assert not here.running
