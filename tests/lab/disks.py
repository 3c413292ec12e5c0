"""Disks that are full, small or read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.lab.laptop import Laptop

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@contextmanager
def disk(folder: Path, *options: str) -> Iterator[None]:
    """Mount a small disk at a folder; processes that still use it do not keep it there."""
    mount("-t", "tmpfs", "-o", ",".join(("size=256k,mode=700", *options)), "jlr-lab", folder)
    try:
        yield
    finally:
        subprocess.run(("umount", "--lazy", folder), check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing new be written below a folder; files that are open stay so."""
    mount("--bind", folder, folder)
    try:
        mount("-o", "remount,bind,ro", folder)
        yield
    finally:
        subprocess.run(("umount", "--lazy", folder), check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    fill(folder)
    yield


def mount(*words: str | Path) -> None:
    subprocess.run(("mount", *words), check=True)


def fill(folder: Path) -> None:
    with (folder / "full").open("wb", 0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def state(laptop: Laptop) -> Path:
    return Path(laptop.environment["XDG_STATE_HOME"])
