"""What the tests of jobs and of sessions on the cluster share."""

from __future__ import annotations

import base64
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab.cluster import NODES, Cluster
from tests.lab.place import private_folder
from tests.lab.programs import run


def until(lines: Iterator[str], part: str) -> str:
    """Return the first line with `part`, and fail with all lines if there is none."""
    before = []
    for line in lines:
        if part in line:
            return line
        before.append(line)
    raise AssertionError(f"no `{part}` in {before}")


@contextmanager
def busy(cluster: Cluster) -> Iterator[str]:
    """Give all nodes to bob for the time of a `with` block; yield the id of his job."""
    argv = ("sbatch", "--parsable", "--nodes=2", "--exclusive", "--time=60", "--output=/dev/null")
    bobs = cluster.run("login", *argv, "--chdir=/tmp", "--wrap=sleep 1200", user="bob")
    try:
        cluster.wait_state(bobs, "RUNNING")
        yield bobs
    finally:
        cluster.slurm("scancel", bobs)


@contextmanager
def stand_in(cluster: Cluster, machine: str, program: str, text: str) -> Iterator[None]:
    """Put a shell script before a program of a machine for the time of a `with` block.

    In it `REAL` is the path of the program itself.
    """
    place = f"/usr/local/bin/{program}"
    real = cluster.run(machine, "sh", "-c", f"readlink -f $(command -v {program})")
    was_link = cluster.try_run(machine, "test", "-e", place).status == 0
    script = "#!/bin/sh\n" + text.replace("REAL", real)
    write = f'rm -f {place}; printf %s "$1" >{place}; chmod 755 {place}'
    cluster.run(machine, "sh", "-c", write, "sh", script)
    try:
        yield
    finally:
        cluster.run(machine, *(("ln", "-sf", real, place) if was_link else ("rm", place)))


@contextmanager
def driver(cluster: Cluster) -> Iterator[None]:
    """Give the nodes NVIDIA's library for the time of a `with` block; it is another one."""
    libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    place = f"{libraries}/libcuda.so.1"
    make = f"base64 -d >{place}; ldconfig"
    with private_folder("driver") as folder:
        library = folder / "libcuda.so.1"
        shutil.copy(f"{libraries}/libdl.so.2", library)
        run("patchelf", "--set-soname", library.name, str(library))
        text = base64.b64encode(library.read_bytes()).decode()
    try:
        for node in NODES:
            cluster.run(node, "sh", "-c", f"printf %s {text} | {make}")
        yield
    finally:
        for node in NODES:
            cluster.run(node, "sh", "-c", f"rm {place}; ldconfig")


@contextmanager
def startup_line(cluster: Cluster, line: str) -> Iterator[None]:
    """Have alice's shells run a line when they start, for the time of a `with` block."""
    files = "/home/alice/.bashrc", "/home/alice/.bash_profile"
    write = 'line=$1; shift; printf "%s\\n" "$line" | tee "$@" >/dev/null'
    cluster.run("login", "sh", "-c", write, "sh", line, *files, user="alice")
    try:
        yield
    finally:
        cluster.run("login", "rm", *files)
