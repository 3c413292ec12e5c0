"""What of a folder is sent to be built: `.dockerignore` as docker reads it, and a sound archive."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.images.build_context import BuildContext, ignores, read_context, read_rules
from jlremote.laptop.tar_archive import PIECE_BYTES
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import run
from tests.long import LONG

FILES = (
    "Dockerfile",
    "a.py",
    "a.md",
    "README.md",
    "data/big.bin",
    "data/keep.txt",
    "data/deep/er/x.py",
    "data/deep/y.txt",
    "src/main.py",
    "src/main.pyc",
    "src/.git/config",
    ".git/config",
    "we ird/näme.txt",
    "#hash",
    "tmp1",
    "tmp22",
)


def tree(folder: Path, names: Iterable[str] = FILES) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY . /srv\n")
    return folder


def packed(context: BuildContext) -> bytes:
    pieces = context.archive()
    return b"".join(pieces)


def unpacked(context: BuildContext) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(packed(context)))


def files(context: BuildContext) -> set[str]:
    return {info.name for info in unpacked(context) if info.isfile()}


@pytest.mark.parametrize(
    ("rules", "path", "left_out"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/main.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "data/deep/er/x.py", True),
        ("data", "data/deep/y.txt", True),
        ("/data/", "data/deep/y.txt", True),
        ("./data", "data/big.bin", True),
        ("data/**/y.txt", "data/deep/y.txt", True),
        ("data/**", "data/big.bin", True),
        ("data/*", "data/deep/y.txt", True),
        ("*/deep", "data/deep/y.txt", True),
        ("deep", "data/deep/y.txt", False),
        ("tmp?", "tmp1", True),
        ("tmp?", "tmp22", False),
        ("tmp[0-9]", "tmp1", True),
        ("tmp[^0-9]", "tmp1", False),
        ("# tmp1", "tmp1", False),
        ("\\#hash", "#hash", True),
        ("*\n!README.md", "README.md", False),
        ("*\n!README.md", "a.md", True),
        ("*.md\n!README.md\nREADME*", "README.md", True),
        ("data\n!data/keep.txt", "data/keep.txt", False),
        ("!a.py", "a.py", False),
        ("  a.py  ", "a.py", True),
        ("\ufeffa.py", "a.py", True),
        ("a.py\r", "a.py", True),
        ("**.py", "src/main.py", True),
        ("a..py", "a.py", False),
        ("x/../a.py", "a.py", True),
        ("a+b(c)|d{e}$", "a+b(c)|d{e}$", True),
    ],
)
def test_a_rule_leaves_out_what_docker_would(rules: str, path: str, left_out: bool) -> None:
    assert ignores(read_rules(rules), path) is left_out


def test_an_exception_of_nothing_is_refused_with_its_line() -> None:
    with pytest.raises(Usage, match=r"line 2 of `\.dockerignore`"):
        read_rules("a\n!")


@pytest.mark.timeout(10)
@pytest.mark.parametrize("many", ["*a" * 40, "**a" * 40, "**/a/" * 40, "*?" * 40, "*[ab]" * 40])
def test_a_pattern_of_many_stars_takes_no_time(many: str) -> None:
    rules = read_rules(f"{many}b\n{many}c")
    for path in ("a" * 250, "a/" * 250 + "a"):
        assert not ignores(rules, path)


RULES = (
    "*.md\n!README.md\n**/*.pyc\n**/.git\n.git\ntmp?\ndata/**\n!data/keep.txt\n",
    "*\n!src\n!data/keep.txt\n",
    LONG("Dockerfile\n.dockerignore\nwe*\ndata\n!data/deep\n"),
    LONG("**\n!src/main.py\n"),
)


@pytest.mark.parametrize("rules", RULES)
def test_the_image_holds_what_dockers_own_build_would_put_in_it(
    rules: str, laptop: Laptop, engine: Engine, folder: Path, name: str
) -> None:
    tree(folder)
    (folder / ".dockerignore").write_text(rules)
    engine.docker("build", "--quiet", "--tag", f"{name}:docker", str(folder))
    built = laptop.jlr("image", "build", "lab", str(folder), "-t", f"{name}:jlr")
    assert built.status == 0, built
    assert content(engine, f"{name}:jlr") == content(engine, f"{name}:docker")


def content(engine: Engine, image: str) -> list[str]:
    """Return the files of an image, with their modes and owners."""
    made = engine.docker("create", image, "nothing")
    archive = run("sh", "-c", f"docker -H {engine.url} export {made} | tar --list --verbose srv")
    engine.docker("rm", made)
    columns = (line.split(None, 5) for line in archive.splitlines())
    return sorted(
        f"{mode} {owner} {path}" for mode, owner, _, _, _, path in columns if path[-1] != "/"
    )


def test_a_dockerfile_from_outside_is_sent_but_not_copied(
    laptop: Laptop, engine: Engine, folder: Path, name: str
) -> None:
    tree(folder, ["a.py"])
    other = folder.parent / "gpu.Dockerfile"
    other.write_text("FROM scratch\nCOPY . /srv\nLABEL from=elsewhere\n")
    built = laptop.jlr("image", "build", "lab", str(folder), "-t", name, "-f", str(other))
    assert built.status == 0, built
    label = engine.docker("image", "inspect", "--format", "{{.Config.Labels.from}}", name)
    assert label == "elsewhere"
    paths = [line.split("/", 2)[-1] for line in content(engine, name)]
    assert paths == ["Dockerfile", "a.py"]


def test_the_archive_has_files_folders_links_and_modes_and_belongs_to_root(tmp_path: Path) -> None:
    tree(tmp_path, ["run.sh", "empty/x"])
    (tmp_path / "run.sh").chmod(0o750)
    (tmp_path / "empty/x").unlink()
    (tmp_path / "link").symlink_to("../elsewhere")
    long = "n" * 200 + "/" + "ü" * 60
    odd = os.fsdecode(b"\xff\xfe")
    tree(tmp_path, [long])
    (tmp_path / odd).touch()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        archive = unpacked(read_context(tmp_path, None))
    members = {info.name: info for info in archive if info.name != "."}
    assert members.keys() == {"Dockerfile", "run.sh", "empty", "link", "n" * 200, long, odd, "pipe"}
    assert members["run.sh"].mode == 0o750
    assert members["link"].linkname == "../elsewhere"
    assert members["empty"].isdir()
    assert members["pipe"].isfifo()
    assert {(info.uid, info.gid) for info in members.values()} == {(0, 0)}
    assert archive.extractfile(long).read().decode() == f"{long}\n"  # type: ignore[union-attr]


def test_a_dockerfile_that_is_no_unicode_is_sent_as_it_is(tmp_path: Path) -> None:
    outside = tmp_path / "Dockerfile"
    outside.write_bytes(b"FROM x\n# \xfc\n")
    context = read_context(tree(tmp_path / "project"), outside)
    with unpacked(context) as archive:
        sent = archive.extractfile(context.dockerfile)
        assert sent is not None
        assert sent.read() == outside.read_bytes()


def test_no_piece_is_larger_than_it_may_be_and_small_ones_go_together(tmp_path: Path) -> None:
    tree(tmp_path, [])
    (tmp_path / "big").write_bytes(bytes(3 * PIECE_BYTES + 5))
    for number in range(50):
        (tmp_path / f"small{number}").write_bytes(bytes(30_000))
    context = read_context(tmp_path, None)
    sizes = [len(piece) for piece in context.archive()]
    assert max(sizes) <= PIECE_BYTES
    size = 3 * PIECE_BYTES + 5 + 50 * 30_000 + (tmp_path / "Dockerfile").stat().st_size
    assert context.size == size
    assert len(sizes) <= size // PIECE_BYTES + 2, "small ones go with their neighbours"


def test_a_file_that_grows_is_sent_as_long_as_it_was_and_one_that_shrinks_is_an_error(
    tmp_path: Path,
) -> None:
    tree(tmp_path, ["log"])
    context = read_context(tmp_path, None)
    (tmp_path / "log").write_text("log\nand more")
    with unpacked(context) as archive:
        assert archive.extractfile("log").read() == b"log\n"  # type: ignore[union-attr]
    (tmp_path / "log").write_text("")
    with pytest.raises(JlrError, match="changed while it was copied"):
        packed(context)


def test_a_missing_folder_or_dockerfile_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no folder"):
        read_context(tmp_path / "nowhere", None)
    with pytest.raises(NotFound, match="no `Dockerfile` in ") as refused:
        read_context(tmp_path, None)
    assert "-f FILE" in (refused.value.hint or "")


def test_the_dockerfiles_own_ignore_file_comes_first(tmp_path: Path) -> None:
    tree(tmp_path, ["a", "b"])
    (tmp_path / ".dockerignore").write_text("a\n")
    (tmp_path / "Dockerfile.dockerignore").write_text("b\n")
    assert files(read_context(tmp_path, None)) >= {"a", "Dockerfile", ".dockerignore"}
    assert "b" not in files(read_context(tmp_path, None))
