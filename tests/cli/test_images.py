"""What the commands about images and registries pass on, and what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.hosts.requests import EngineChoice
from tests.cli.conftest import Jlr, Workflows, settle


@pytest.mark.parametrize(
    ("argv", "engine"),
    [
        ((), EngineChoice("podman", sudo=False)),
        (("--runtime", "docker"), EngineChoice("docker", sudo=False)),
        (("--sudo",), EngineChoice("podman", sudo=True)),
    ],
)
def test_the_engine_is_that_of_the_flags_or_of_the_settings(
    argv: tuple[str, ...], engine: EngineChoice, jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    settle(laptop, "[hosts.dgx]\nruntime = 'podman'\n")
    workflows.will("images.pull.push", None)
    assert jlr("image", "push", "dgx", "me/torch", *argv).code == 0
    assert workflows.arguments("images.pull.push")[3] == engine
    workflows.calls.clear()
    assert jlr("image", "pull", "dgx", "me/torch", "--runtime", "none").code == 2
    assert not workflows.calls


@pytest.mark.parametrize("other", ["--keep", "--password-stdin"])
def test_a_key_cannot_be_forgotten_and_given_at_once(
    other: str, jlr: Jlr, workflows: Workflows
) -> None:
    assert jlr("image", "login", "dgx", "--forget", other).code == 2
    assert not workflows.calls


def test_a_removal_is_never_guessed_and_images_that_are_files_are_refused(jlr: Jlr) -> None:
    assert "`jlr image rm`" not in jlr("image", "rmm", "dgx", "x").stderr
    assert jlr("image", "rm", "dgx").code == 2
    for argv in (("image", "rm", "dgx", "x.sif"), ("image", "prune", "dgx")):
        refused = jlr(*argv, "--runtime", "apptainer")
        assert refused.code == 2
        assert "images of `apptainer` are files" in refused.stderr
