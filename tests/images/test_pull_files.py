"""`jlr image pull` with Apptainer: whole files only, one at a time, and no key is left behind."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.images.conftest import Layers
from tests.images.parts import Registry, log_in, login_words
from tests.lab import apptainer
from tests.lab.accounts import Account, program_name
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say
from tests.lab.programs import wait_until

FLAGS = ("--runtime", "apptainer")
WORKSPACE = "workspace/images"
ECHO = ("sh", "-c", "echo ok")


@pytest.fixture
def files(
    laptop: Laptop, account: Account, engine: Engine, say: Say, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The folder of images on a host that has Apptainer on its PATH."""
    if reasons := apptainer.missing():
        pytest.skip("; ".join(reasons))
    apptainer.ensure(engine, say)
    # The lab's registry has no TLS; a site would say the same for all in /etc/profile.d.
    lines = f"export PATH={apptainer.environment()['PATH']} APPTAINER_NOHTTPS=true\n"
    startup = account.home / ".bashrc"
    before = startup.read_text()
    startup.write_text(lines + before)
    monkeypatch.setitem(laptop.environment, "JLR_IMAGE_FOLDER", WORKSPACE)
    yield account.home / WORKSPACE
    startup.write_text(before)
    shutil.rmtree(account.home / WORKSPACE, ignore_errors=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("[!.]*"))


def writers(account: Account) -> list[psutil.Process]:
    return [p for p in account.processes() if program_name(p) == "mksquashfs"]


def test_a_private_image_becomes_a_file_in_the_workspace_and_is_listed(
    laptop: Laptop,
    registry: Registry,
    layers: Layers,
    keychain: None,
    account: Account,
    files: Path,
) -> None:
    layers("me/plain:1", 2_000_000)
    image = f"docker://{registry.name}/me/plain:1"
    refused = laptop.jlr("image", "pull", "lab", image, *FLAGS, timeout=120)
    assert (refused.status, f"cannot pull `{image}`" in refused.stderr) == (4, True), refused
    assert names(files) == []
    words = login_words(registry.name, *FLAGS)
    # A registry that gives no tokens refuses a wrong key only when it is asked for an image.
    unproved = laptop.jlr(*words, stdin="wrong")
    assert (unproved.status, "accepts the key" in unproved.stdout) == (0, False), unproved
    assert "the first pull tests it" in unproved.stdout
    refused = laptop.jlr("image", "pull", "lab", image, *FLAGS, timeout=120)
    assert (refused.status, f"`jlr image login lab {registry.name} " in refused.stderr) == (4, True)
    right = laptop.jlr(*words, stdin=registry.key)
    assert right.status == 0, right
    done = laptop.jlr("image", "pull", "lab", image, *FLAGS, "--json", timeout=300)
    assert done.status == 0, done
    assert json.loads(done.stdout)["size"] > 1_000_000
    (name,) = names(files)
    assert name.endswith("+me+plain@1.sif")
    (listed,) = json.loads(laptop.jlr("image", "list", "lab", *FLAGS, "--json").stdout)
    assert (listed["repository"].split("/", 1)[1], listed["tag"]) == ("me/plain", "1")
    noted = "`jlr image list lab --runtime apptainer` lists those that are files: 1"
    assert noted in laptop.jlr("image", "list", "lab").stderr
    laptop.environment["JLR_IMAGE_FOLDER"] = f"{WORKSPACE}/else"
    done = laptop.jlr("image", "pull", "lab", image, timeout=300)
    assert f"{image}: {files / 'else' / name}, " in done.stdout, "the path is whole"
    listed = laptop.jlr("image", "list", "lab", *FLAGS, "--json").stdout
    del laptop.environment["JLR_IMAGE_FOLDER"]
    assert json.loads(listed)[0]["id"] == str(files / "else" / name)
    shutil.rmtree(files / "else")
    kept = [path for path in account.home.rglob("*.json") if registry.key in path.read_text()]
    assert not kept
    assert {path.name for path in files.iterdir()} == {f".jlr-{account.uid}", name}
    own = files / f".jlr-{account.uid}"
    assert list((own / "cache").iterdir())
    assert not list(own.glob("*.part"))


# A shell, and as much that nothing compresses as the writing takes a second for.
SMALL = """\
FROM lab/plain AS whole
FROM scratch
COPY --from=whole /usr/bin/dash /bin/sh
COPY --from=whole /lib64/ld-linux-x86-64.so.2 /lib64/
COPY --from=whole /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/
COPY big /
"""


def test_a_pull_that_is_killed_leaves_no_image_and_the_next_one_makes_it(
    laptop: Laptop,
    registry: Registry,
    keychain: None,
    account: Account,
    files: Path,
    tmp_path: Path,
    name: str,
) -> None:
    (tmp_path / "big").write_bytes(os.urandom(40_000_000))
    (tmp_path / "Dockerfile").write_text(SMALL)
    registry.engine.docker("build", "--quiet", "--tag", name, str(tmp_path))
    image = f"docker://{registry.push(name, f'me/{secrets.token_hex(3)}:1')}"
    log_in(laptop, registry)
    with laptop.spawn("image", "pull", "lab", image, *FLAGS) as pulling:
        wait_until(lambda: writers(account), "the writing of the file", timeout=60)
        for writer in writers(account):
            writer.kill()  # as a host does that lacks memory
        assert pulling.wait(timeout=60) == 1
    assert names(files) == []
    again = laptop.jlr("run", "lab", "--image", image, *FLAGS, "--", *ECHO, timeout=300)
    assert (again.status, again.stdout) == (0, "ok\n"), again
    assert "another user" not in again.stderr
    [name] = names(files)
    os.chown(files / name, 65534, 65534)
    others = laptop.jlr("run", "lab", "--image", image, *FLAGS, "--", *ECHO, timeout=300)
    assert (others.status, others.stdout) == (0, "ok\n"), others
    told = (
        f"`{files / name}` belongs to `nobody`, another user of `lab`, who can change what it runs"
    )
    assert told in others.stderr


def test_what_cannot_be_done_with_files_is_one_clear_error(laptop: Laptop, files: Path) -> None:
    pushed = laptop.jlr("image", "push", "lab", "me/x:1", *FLAGS)
    assert pushed.status == 2, pushed
    assert "`--runtime apptainer` cannot do that: its images are files" in pushed.stderr
    typed = laptop.jlr("image", "pull", "lab", "me/x:1", *FLAGS)
    assert "`docker://me/x:1` pulls it from a registry" in typed.stderr, typed
