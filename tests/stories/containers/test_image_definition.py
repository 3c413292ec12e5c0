"""What a job on a cluster does before it enters an image that it is to pull itself."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.containers import image_definition
from jlremote.errors import JlrError
from jlremote.hosts.requests import Scheduled
from jlremote.place.clusters.scheduler import Resources
from jlremote.place.host.contract import Completed
from tests.stories.parts import FakeHost

IMAGE = "docker://nvcr.io/a/b:1"


def start(pull_on: str, image: str | None) -> Any:
    how = Scheduled(Resources(), pull_on=pull_on)
    return SimpleNamespace(
        host=None,
        runtime=SimpleNamespace(program="apptainer", has_images=True),
        request=SimpleNamespace(host="zih", image=image, image_folder=None, scheduled=how),
    )


@pytest.mark.parametrize(("pull_on", "image"), [("login", IMAGE), ("job", "x.sif"), ("job", None)])
def test_a_job_pulls_only_what_is_in_a_registry_and_when_asked_to(
    pull_on: str, image: str | None
) -> None:
    assert image_definition.pulled_first(start(pull_on, image)) == ("", "")


@pytest.mark.parametrize("status", [0, 4])
def test_a_missing_image_is_pulled_with_the_key_which_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    file, files = tmp_path / "b@1.sif", "jlremote.images.image_files"
    made = f"touch {shlex.quote(str(file))}; exit {status}"
    pull = f'IFS= read -r key; echo "pulled with $key"; {made}'
    monkeypatch.setattr(f"{files}.place", lambda *_: str(file))
    monkeypatch.setattr(f"{files}.puller", lambda *_: (pull, b"secret\n"))
    text, key = image_definition.pulled_first(start("job", IMAGE))
    assert "secret" not in text
    for told in ("pulled with secret\n", ""):  # the second time it is there
        (tmp_path / ".key").write_text(key)
        script = f"directory={shlex.quote(str(tmp_path))}\n{text}\necho entered"
        done = subprocess.run(("sh", "-c", script), capture_output=True, text=True, check=False)
        failed = status != 0 and told != ""
        assert done.stderr.startswith(told)
        assert ("the job cannot pull `docker://" in done.stderr) == failed
        assert ("`jlr image login zih " in done.stderr) == failed
        assert (done.returncode, done.stdout) == ((status, "") if failed else (0, "entered\n"))
        assert not (tmp_path / ".key").exists()


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("WARNING: x\n\x1b[91mERROR  : Requesting a set\n\x1b[0m", "Requesting a set"),
        ("FATAL:   cannot open\nINFO:    Cleaning up\n", "cannot open"),
        ("no such thing\n\x1b[0m", "no such thing"),
    ],
)
def test_an_image_is_refused_in_the_programs_own_words(stderr: str, said: str) -> None:
    begun = start("login", None)
    begun.host = FakeHost("zih", {"script": Completed(1, "", stderr)})
    with pytest.raises(JlrError, match=f"cannot use the image `box`: {said}"):
        image_definition._run_trial(begun, "box", "true", elsewhere=False)
