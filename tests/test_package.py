"""The sdist and the wheel: what is in them, and that `jlr` runs from an installed wheel."""

from __future__ import annotations

import email
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hatch_build import COMPLETIONS, ROOT, man_pages
from jlremote import __version__
from tests.long import LONG

STEM = f"jlremote-{__version__}"
SCRIPTS = Path(sys.executable).parent

pytestmark = pytest.mark.lab


def run(*argv: str | Path, cwd: Path, **variables: str) -> str:
    """Run a program outside the checkout, and return its output."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        argv, cwd=cwd, env=environment | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Built:
    """What was built: the sdist from the checkout, and the wheel from the unpacked sdist."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    build = (sys.executable, "-m", "hatchling", "build", "-d", folder, "-t")
    run(*build, "sdist", cwd=ROOT)
    with tarfile.open(folder / f"{STEM}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    run(*build, "wheel", cwd=folder / STEM)
    return Built(folder / f"{STEM}.tar.gz", folder / f"{STEM}-py3-none-any.whl")


def test_the_sdist_has_every_file_but_the_ways_to_build_here(built: Built) -> None:
    known = run("git", "ls-files", cwd=ROOT).splitlines()
    with tarfile.open(built.sdist) as packed:
        found = {name.partition("/")[2] for name in packed.getnames()}
    left_out = {name for name in known if name not in found}
    assert {name.partition("/")[0] for name in left_out} <= {".ci", ".github"}


def test_the_wheel_has_the_program_its_licence_man_pages_and_completions(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    shared = {f"share/man/man1/{name}" for name in man_pages()} | {*COMPLETIONS.values()}
    assert {f"{STEM}.data/data/{path}" for path in shared} <= names
    assert f"{STEM}.dist-info/licenses/LICENSE" in names
    program = {path.relative_to(ROOT).as_posix() for path in (ROOT / "jlremote").rglob("*.py")}
    others = {name for name in names - program if not name.startswith(STEM)}
    assert program <= names
    data = {f"jlremote/cli/completion/{name}" for name in ("jlr.bash", "_jlr")}
    assert others == data | {"jlremote/agents/skill.md"}


def test_the_metadata_name_the_extras_and_no_address_that_is_none(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        metadata = email.message_from_bytes(wheel.read(f"{STEM}.dist-info/METADATA"))
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("Provides-Extra", [])) == {"demo", "kernels", "mcp", "test"}
    assert metadata["Requires-Python"] == ">=3.11"
    assert [url for url in metadata.get_all("Project-URL", []) if "example" in url] == []


def by_pip(package: str, folder: Path) -> Path:
    run(sys.executable, "-m", "venv", "env", cwd=folder)
    run(folder / "env/bin/python", "-m", "pip", "install", "--quiet", package, cwd=folder)
    return folder / "env"


def by_uv(package: str, folder: Path) -> Path:
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    install = ("tool", "install", "--quiet", "--python", sys.executable)
    run(SCRIPTS / "uv", *install, package, cwd=folder, **places)
    assert (folder / "bin/jlr").exists()
    return folder / "tools/jlremote"


def by_pipx(package: str, folder: Path) -> Path:
    names = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man"}
    places = {name: str(folder / value) for name, value in names.items()}
    install = ("install", "--quiet", "--python", sys.executable)
    run(SCRIPTS / "pipx", *install, package, cwd=folder, **places)
    assert (folder / "bin/jlr").exists()
    assert (folder / "man/man1/jlr-start.1").exists()  # where `man` looks for a user's pages
    return folder / "pipx/venvs/jlremote"


@pytest.mark.parametrize("install", [by_uv, LONG(by_pip), LONG(by_pipx)])
def test_jlr_runs_from_the_installed_wheel(
    install: Callable[[str, Path], Path], built: Built, tmp_path: Path
) -> None:
    """With the packages of an extra, and without a file of the checkout."""
    environment = install(f"jlremote[kernels] @ {built.wheel.as_uri()}", tmp_path)
    assert run(environment / "bin/jlr", "--version", cwd=tmp_path) == f"jlr {__version__}\n"
    assert "Try jlr on this machine" in run(environment / "bin/jlr", "demo", "--help", cwd=tmp_path)
    where = "import jlremote, zmq; print(jlremote.__file__)"
    told = run(environment / "bin/python", "-c", where, cwd=tmp_path)
    assert Path(told.strip()).is_relative_to(environment)
    assert (environment / "share/man/man1/jlr.1").exists()


@pytest.mark.long
def test_the_demo_runs_from_the_wheel(built: Built, tmp_path: Path) -> None:
    """As the README says, and by `uvx`; ended by Ctrl-C."""
    package = f"jlremote[demo] @ {built.wheel.as_uri()}"
    words = ("tool", "run", "--from", package, "jlr")
    assert run(SCRIPTS / "uv", *words, "--version", cwd=tmp_path) == f"jlr {__version__}\n"
    demo = ("demo", "--no-browser")
    own = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("STATE", "CONFIG", "DATA")}
    (tmp_path / "run").mkdir(mode=0o700)
    own["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    argv = (SCRIPTS / "uv", *words, *demo)
    with subprocess.Popen(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=os.environ | own
    ) as started:
        assert started.stdout
        shown = started.stdout.readline()
        started.send_signal(signal.SIGINT)
    assert shown.startswith("http://")
    assert started.returncode == 0
