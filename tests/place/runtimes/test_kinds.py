"""The engines: values that begin every argv of theirs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.engine_errors import EngineMissing, engine_error
from jlremote.place.runtimes.engine.kinds import ENGINES
from tests.sources import modules

PROGRAMS = ("docker", "podman", "nvidia-docker")
MAY_SPELL_IT = {"jlremote.place.runtimes.engine.kinds"}  # which holds the table


def test_the_old_tool_only_creates_and_docker_does_the_rest() -> None:
    for sudo, words in (("", ()), ("sudo ", ("sudo", "-A", "-k"))):
        engine = ENGINES[f"{sudo}nvidia-docker"]
        assert engine("create", "x") == (*words, "nvidia-docker", "create", "x")
        assert engine("exec", "x", "a b") == (*words, "docker", "exec", "x", "a b")
        assert engine() == (*words, "docker")
        assert engine.shown("rm", "x") == f"{sudo}docker rm x"
        assert engine.everyday == ENGINES[f"{sudo}docker"]
    told = ENGINES["nvidia-docker"].with_variables(NV_GPU="0")
    assert told("create") == ("env", "NV_GPU=0", "nvidia-docker", "create")
    assert all(e.everyday == e for name, e in ENGINES.items() if "nvidia" not in name)


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("sh: 1: nvidia-docker: not found", "nvidia-docker"),
        ("env: 'nvidia-docker': No such file or directory", "nvidia-docker"),
        ("env: \u2018nvidia-docker\u2019: No such file or directory", "nvidia-docker"),
        ("bash: docker: command not found", "docker"),
    ],
)
def test_it_is_told_which_of_the_two_is_not_there(said: str, missing: str) -> None:
    error = engine_error(ENGINES["nvidia-docker"], Completed(127, "", said))
    assert isinstance(error, EngineMissing)
    assert error.message == f"`{missing}` was not found on the host"


def beginnings(tree: ast.Module) -> Iterator[str]:
    """Give the first words of everything that may be an argv, or a command line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_only_engines_begin_their_argvs() -> None:
    spelt = {
        module
        for module, tree in modules().items()
        if any(word in PROGRAMS for word in beginnings(tree))
    }
    assert spelt <= MAY_SPELL_IT
