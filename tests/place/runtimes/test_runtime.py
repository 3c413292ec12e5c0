"""The contract of every runtime."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import Usage
from jlremote.place.runtimes.runtime import Attachment, Runtime
from jlremote.place.runtimes.table import AUTO, runtime_named, runtimes

EVERY = pytest.mark.parametrize("runtime", runtimes().values(), ids=runtimes().keys())
NAME = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{1,60}", fullmatch=True)


@EVERY
def test_a_runtime_is_found_by_its_own_name(runtime: Runtime) -> None:
    assert runtime_named(runtime.name) is runtime


@EVERY
def test_a_message_names_the_container_or_the_host(runtime: Runtime) -> None:
    expected = "the container `cont1`" if runtime.has_containers else "`dgx`"
    expected = "the job of `cont1`" if runtime.in_jobs else expected
    assert runtime.place("cont1", "dgx") == expected


@EVERY
@given(name=NAME)
def test_a_plain_name_is_taken(runtime: Runtime, name: str) -> None:
    try:
        runtime.check_name(name)
    except Usage as refused:
        pytest.fail(refused.message)


@EVERY
@pytest.mark.parametrize("name", ["", "-x", ".x", "a b", "a/b", "../x", "a\n", "$(id)", "naïve"])
def test_a_name_that_is_no_folder_is_refused_in_printable_words(
    runtime: Runtime, name: str
) -> None:
    with pytest.raises(Usage, match=r"invalid (container|session) name") as refusal:
        runtime.check_name(name)
    assert refusal.value.message.isprintable()


@EVERY
@given(script=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_script_is_one_argument_of_the_command_that_runs_it(
    runtime: Runtime, script: str
) -> None:
    for text in (runtime.inside("cont1", script), runtime.detached("cont1", script)):
        assert shlex.split(text)[-1] == script


@EVERY
def test_a_command_is_run_as_it_is_without_options(runtime: Runtime) -> None:
    argv = runtime.attached("cont1", ("echo", "a b"), Attachment(), {"X": "1 2"})
    assert argv[-2:] == ("echo", "a b")
    assert any("X=1 2" in word for word in argv)


def test_auto_is_docker_until_the_host_was_asked() -> None:
    assert runtime_named(AUTO).name == "docker"
    assert runtime_named(AUTO, sudo=True).name == "sudo docker"
    assert runtime_named("sudo podman", sudo=True).name == "sudo podman"


@pytest.mark.parametrize(("name", "sudo"), [("pbs", False), ("none", True), ("", False)])
def test_an_unknown_runtime_is_refused_with_those_there_are(name: str, sudo: bool) -> None:
    with pytest.raises(Usage, match=f"there is no runtime `{name}`") as refusal:
        runtime_named(name, sudo=sudo)
    assert "docker, podman" in (refusal.value.hint or "")
