"""The contract of every runtime."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import Usage
from jlremote.place.runtimes.runtime import Attachment, Runtime
from jlremote.place.runtimes.scripts import shell_scripts
from jlremote.place.runtimes.table import AUTO, runtime_named, runtimes

EVERY = pytest.mark.parametrize("runtime", runtimes().values(), ids=runtimes().keys())


@EVERY
def test_a_name_that_is_no_folder_is_refused_in_printable_words(runtime: Runtime) -> None:
    for name in ("", "-x", ".x", "a b", "a/b", "../x", "a\n", "$(id)", "naïve"):
        with pytest.raises(Usage, match="invalid name") as refusal:
            runtime.check_name(name)
        assert refusal.value.message.isprintable()
        assert ("ï" in refusal.value.message) == ("ï" in name), "a letter is shown as it is"


@EVERY
@given(script=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_script_is_one_argument_of_the_command_that_runs_it(
    runtime: Runtime, script: str
) -> None:
    for text in (runtime.inside("cont1", script), runtime.detached("cont1", script)):
        assert shlex.split(text)[-1] == script


@pytest.mark.parametrize("how", [Attachment(user="root"), Attachment(detach_keys="ctrl-q")])
def test_on_the_host_itself_options_of_containers_are_usage(how: Attachment) -> None:
    with pytest.raises(Usage, match="` is for a container of an engine, and `cont1` runs without"):
        shell_scripts.script(runtime_named("none"), "cont1", how, ("true",), "word")


def test_auto_is_docker_until_the_host_was_asked() -> None:
    assert runtime_named(AUTO).name == "docker"
    assert runtime_named(AUTO, sudo=True).name == "sudo docker"
    assert runtime_named("sudo podman", sudo=True).name == "sudo podman"


@pytest.mark.parametrize(("name", "sudo"), [("pbs", False), ("none", True), ("", False)])
def test_an_unknown_runtime_is_refused_with_those_there_are(name: str, sudo: bool) -> None:
    with pytest.raises(Usage, match=f"there is no runtime `{name}`") as refusal:
        runtime_named(name, sudo=sudo)
    assert "docker, podman" in (refusal.value.hint or "")
