"""The search for an image in which a host can try its containers' network."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.doctor import network
from jlremote.place.runtimes.engine.kinds import DOCKER

# An image is called by how its container ends.
PROGRAM = """\
#!/bin/sh
case "$1 $2" in
  "image ls") case "$*" in *dangling=false*) cat images;; esac;;
  "image inspect") shift 4; for image; do echo "${image%%-*} $image"; done;;
  run*) echo "$5" >>tried; echo "refused $5" >&2; exit "${5##*-}";;
esac
"""


def searched(folder: Path, images: str) -> tuple[int, str, str]:
    """Return how the search on a host with these images ends, what it says and what it tried."""
    (folder / "images").write_text(images, encoding="utf-8")
    (folder / "tried").touch()
    program = folder / "docker"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-s"],
        input=network.ask_in_new_container(DOCKER),
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stderr, " ".join((folder / "tried").read_text("utf-8").split())


@pytest.mark.parametrize(
    ("images", "status", "tried"),
    [
        ("10-127 9-0 11-0", 0, "9-0"),
        ("1-127 2-126 3-5 4-1 5-1 6-1 7-3 8-0", 3, "1-127 2-126 3-5 4-1 5-1 6-1 7-3"),
        ("1-125 2-0", 0, "1-125 2-0"),
        ("1-125 2-127 3-125 4-0", 125, "1-125 2-127 3-125"),
        ("1-127 2-125", 125, "1-127 2-125"),
        ("1-127 2-5", 5, "1-127 2-5"),
        ("", 5, ""),
    ],
)  # fmt: skip
def test_the_smallest_image_that_can_answer_does(
    images: str, status: int, tried: str, tmp_path: Path
) -> None:
    said = f"refused {tried.split()[-1]}\n" if status == 125 else ""
    assert searched(tmp_path, images) == (status, said, tried)


def test_the_search_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_SEARCH_SECONDS", 0)
    assert searched(tmp_path, "1-0") == (5, "", "")
