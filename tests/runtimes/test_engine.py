"""An engine's command is a value, and whoever builds an argv begins with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jlremote.runtimes.engine import DOCKER
from tests.test_ladder import MODULES

PROGRAMS = ("docker", "podman", "nvidia-docker")
# The first one holds the table; the demo asks an engine of this machine.
MAY_SPELL_IT = {"jlremote.runtimes.engine", "jlremote.demo.engine"}


def test_an_engine_begins_every_argv_with_its_command() -> None:
    assert DOCKER("start", "cont1") == ("docker", "start", "cont1")
    assert DOCKER.shown("rm", "a b") == "docker rm 'a b'"


def beginnings(tree: ast.Module) -> Iterator[str]:
    """Give the first words of everything that may be an argv, or a command line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_nobody_else_spells_an_engine_at_the_beginning_of_an_argv() -> None:
    spelt = {
        module
        for module, tree in MODULES.items()
        if any(word in PROGRAMS for word in beginnings(tree))
    }
    assert spelt <= MAY_SPELL_IT
