"""What the commands about images and registries pass on, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jlremote.hosts.requests import EngineChoice
from jlremote.images.build import BuildReport, BuildRequest
from jlremote.images.removal import RemovalReport, StoredImage
from jlremote.images.save import SaveReport
from tests.cli.conftest import Jlr, Workflows, settle

ID = "sha256:" + "0123456789ab" + "0" * 52


def test_a_host_without_images_names_the_command_that_pulls_one(
    jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("images.save.images", [])
    outcome = jlr("image", "list", "dgx")
    assert (outcome.code, outcome.stdout) == (0, "")
    assert outcome.stderr == "no images on dgx; `jlr image pull dgx IMAGE` pulls one\n"


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


def test_build_passes_on_its_folder_tags_and_arguments(
    jlr: Jlr, workflows: Workflows, tmp_path: Path
) -> None:
    workflows.will("images.build.build", BuildReport("dgx", ("a", "b:2"), ID, 1_200_000))
    outcome = jlr(
        *("image", "build", "dgx", str(tmp_path), "-t", "a", "-t", "b:2"),
        *("-f", "gpu.Dockerfile", "--build-arg", "BASE=x"),
    )
    assert outcome.stdout == "a, b:2: 0123456789ab, 1.2 MB\n"
    assert workflows.arguments("images.build.build")[0] == BuildRequest(
        "dgx", tmp_path, ("a", "b:2"), Path("gpu.Dockerfile"), ("BASE=x",), EngineChoice()
    )


def test_save_tells_what_is_not_in_the_image_and_which_variables_are(
    jlr: Jlr, workflows: Workflows
) -> None:
    report = SaveReport("dgx", "me/torch", ID, 5_000, ("/data (volume)",), ("HF_TOKEN", "X"))
    workflows.will("images.save.save", report)
    outcome = jlr("image", "save", "cont1", "me/torch")
    assert outcome.stdout == "me/torch: 0123456789ab, 5 kB\n"
    assert outcome.stderr.splitlines() == [
        "not in the image: /data (volume)",
        "the image contains these variables with their values: HF_TOKEN, X",
    ]
    assert (
        json.loads(jlr("image", "save", "cont1", "me/torch", "--json").stdout) == report.to_json()
    )


@pytest.mark.parametrize("other", ["--keep", "--password-stdin"])
def test_a_key_cannot_be_forgotten_and_given_at_once(
    other: str, jlr: Jlr, workflows: Workflows
) -> None:
    assert jlr("image", "login", "dgx", "--forget", other).code == 2
    assert not workflows.calls


@pytest.mark.parametrize("verb", ["rm", "prune"])
def test_a_removal_says_what_went(verb: str, jlr: Jlr, workflows: Workflows) -> None:
    function = {"rm": "remove"}.get(verb, verb)
    image = StoredImage(ID, ("me/torch:1",), "2026-01-02", 9_000_000)
    report = RemovalReport("dgx", (image,), ("me/torch:2",))
    workflows.will(f"images.removal.{function}", report)
    argv = ("image", verb, "dgx", *(("me/torch:1",) if verb == "rm" else ()))
    stayed = "removed the name me/torch:2; its image stays"
    assert jlr(*argv).stdout == f"deleted me/torch:1\n{stayed}\n"
    told = json.loads(jlr(*argv, "--json").stdout)
    assert told["deleted"] == [{"id": ID, "names": ["me/torch:1"], "size": 9_000_000}]
    assert (told["host"], told["untagged"]) == ("dgx", ["me/torch:2"])


def test_a_removal_is_never_guessed_and_images_that_are_files_are_refused(jlr: Jlr) -> None:
    assert "`jlr image rm`" not in jlr("image", "rmm", "dgx", "x").stderr
    assert jlr("image", "rm", "dgx").code == 2
    for argv in (("image", "rm", "dgx", "x.sif"), ("image", "prune", "dgx")):
        refused = jlr(*argv, "--runtime", "apptainer")
        assert refused.code == 2
        assert "images of `apptainer` are files" in refused.stderr
