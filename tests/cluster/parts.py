"""What the tests of jobs and of sessions on the cluster share."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.lab.cluster import NODES, Cluster
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.ports import free_port
from tests.lab.programs import run, wait_until
from tests.sessions.parts import Session, started


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


def name() -> str:
    """Return a name that no other test has."""
    return f"job-{secrets.token_hex(3)}"


def job(laptop: Laptop, called: str) -> dict[str, Any]:
    """Return a job as `jlr job list --json` shows it."""
    listed = laptop.jlr("job", "list", "zih", "--json")
    found: dict[str, Any] = next(j for j in json.loads(listed.stdout) if j["name"] == called)
    return found


def detached(laptop: Laptop, *options: str, command: tuple[str, ...] = ("sleep", "300")) -> str:
    """Submit a job and return its name."""
    called = name()
    words = ("run", "zih", "--slurm", "--detach", "--name", called, *options, "--", *command)
    laptop.jlr(*words).checked()
    return called


def running(laptop: Laptop, called: str) -> None:
    wait_until(lambda: job(laptop, called)["state"] == "running", "the start of the job")


def said_up(laptop: Laptop, called: str) -> None:
    """Wait for the command itself: in Slurm's words a job runs before a node has its script.

    A job that ends in between has no exit code.
    """
    wait_until(lambda: laptop.jlr("logs", called).stdout == "up\n", "the start of the command")


JUPYTER = ("--slurm", "--module", "jupyter", "--cpus", "1")


def on_node(number: int) -> tuple[str, ...]:
    return (*JUPYTER, f"--sbatch-arg=--nodelist=node{number}")


def user(called: str) -> tuple[str, ...]:
    """Return what begins a script of a user."""
    return ("setpriv", "--reuid", called, "--regid", called, "--clear-groups", "sh", "-c")


def listed(laptop: Laptop, called: str, *host: str) -> dict[str, Any]:
    """Return a session as `jlr list --json` shows it."""
    found: dict[str, Any] = next(
        each
        for each in json.loads(laptop.jlr("list", *host, "--json").stdout)
        if each["name"] == called
    )
    return found


def started_together(laptop: Laptop, *options: tuple[str, ...]) -> list[Session]:
    """Start a session with each of the options; much of a start is waiting."""
    with ThreadPoolExecutor() as pool:
        # The ports are this thread's: to claim them is not for several at once.
        words = [(name(), *each, "--port", str(free_port())) for each in options]
        starts = [pool.submit(started, laptop, *each, host="zih") for each in words]
        return [each.result() for each in starts]


def jobs(cluster: Cluster, called: str) -> list[str]:
    """Return the states of all jobs of a session, as Slurm has them."""
    asked = cluster.slurm("squeue", "--states=all", "--noheader", "--format=%j %T")
    ours = (f"{called}.", f"{called}+next.")
    return [line.split()[1] for line in asked.splitlines() if line.startswith(ours)]
