"""`--wait`: starts of two users queue for the GPUs of a host, whose hardware is stood in for."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from jlremote.gpus.leases import PLACE_SECONDS, QueueTicket, ahead, read_queue
from jlremote.place.host.kept_jobs import WAITERS_PROGRAM, WAITERS_PYTHON
from jlremote.remote import sending
from tests.gpus.conftest import GpuHost
from tests.gpus.parts import asked, jobs_of, run
from tests.lab.accounts import all_leases
from tests.lab.containers import ContainerFactory
from tests.lab.desktop import Desktop, desktop
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import failed
from tests.sources import PACKAGE, ours

GPU = "GPU-1"
BOOT = "b-1"
JOB = ("run", "lab", "--runtime", "none", "--rm")


def link(kind: str, word: str, since: float, owner: str = "ada", count: int = 1) -> list[str]:
    """Return the fields that the host prints for a link of the queue."""
    alive = "7 (python3) S " + "1 " * 18 + "0 1"
    target = f"jlr:s-{word}:{BOOT}:{count}:0"
    return [f"{kind}-{GPU}+{word}", f"{owner} {since:.0f}", target, alive, owner]


def test_who_came_first_is_first_while_signs_of_life_are_fresh() -> None:
    now = 10_000.0
    found = [
        *(link("queue", "b", 100), link("waits", "b", now - 5)),
        *(link("queue", "a", 200, "bert", 2), link("waits", "a", now - 5, "bert")),
        *(link("queue", "gone", 50), link("waits", "gone", now - PLACE_SECONDS - 1)),
        link("queue", "silent", 60),
        *(link("queue", "forged", 10), link("waits", "forged", now, "mallory")),
    ]
    queue, dead = read_queue(found, GPU, now, BOOT)
    assert [(one.word, one.user, one.count) for one in queue] == [("b", "ada", 1), ("a", "bert", 2)]
    assert {name.rpartition("+")[2] for name in dead} == {"gone", "silent", "forged"}
    assert [one.word for one in ahead(queue, "a")] == ["b"]
    assert ahead(queue, None) == queue
    assert read_queue(found, "GPU-2", now, BOOT)[0] == ()
    assert read_queue(found, GPU, now, "another boot")[0] == ()


def test_a_place_of_a_process_ends_with_it_as_far_as_it_can_be_seen() -> None:
    now = 10_000.0
    queues = {}
    for stat in (*(f"7 (python3) S {'1 ' * 18}{start} 1" for start in (555, 556)), ""):
        for seen in (stat, f"hidden\n{stat}"):
            sign = link("waits", "a", now - 5)
            found = [link("queue", "a", 100), [*sign[:2], f"jlr:s-a:{BOOT}:7:555", seen, "ada"]]
            queues[seen] = [one.word for one in read_queue(found, GPU, now, BOOT)[0]]
    assert list(queues.values()) == [["a"], ["a"], [], ["a"], [], ["a"]]


def test_a_place_keeps_its_time_while_its_start_shows_that_it_waits(shared: Path) -> None:
    ticket = QueueTicket(GPU, "cont1", 2, "w", BOOT, 7, "555")
    folder = shared / "jlr-gpus-0"
    assert run(ticket.stand(), shared).returncode == 0
    arrival, sign = (folder / f"{kind}-{GPU}+w" for kind in ("queue", "waits"))
    arrived, shown = arrival.lstat().st_ctime_ns, sign.lstat().st_ctime_ns
    assert run(ticket.stand(), shared).returncode == 0
    assert arrival.lstat().st_ctime_ns == arrived
    assert sign.lstat().st_ctime_ns > shown
    assert run(ticket.leave(), shared).returncode == 0
    assert not list(folder.iterdir())


def seen_at(laptop: Laptop, desk: Desktop) -> Laptop:
    laptop.environment["DBUS_SESSION_BUS_ADDRESS"] = desk.address
    return laptop


@contextmanager
def waiting(laptop: Laptop, *words: str) -> Iterator[subprocess.Popen[str]]:
    begun = laptop.spawn(*words)
    try:
        yield begun
    finally:
        begun.kill()
        begun.communicate()


def queue_of(laptop: Laptop) -> list[str]:
    return [one["session"] for one in asked(laptop)["queue"]]


def await_queue(laptop: Laptop, *names: str) -> None:
    """Wait until these are in the queue, and until places of the next second come behind them."""
    wait_until(lambda: queue_of(laptop) == list(names), f"the queue {names}")
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second, "the next second")


def test_a_start_waits_behind_others_and_begins_when_its_gpus_are_free(
    ada: Laptop, bert: Laptop, gpu_host: GpuHost
) -> None:
    """A later request for one GPU does not overtake an earlier one for two."""
    gpu_host.gpus.occupy(0, os.getpid(), memory=70000)
    words = ("sh", "-c", "echo got $CUDA_VISIBLE_DEVICES")
    big = (*JOB, "--name", "big", "--gpus", "auto:2", "--wait", "--notify", "--", *words)
    small = (*JOB, "--name", "small", "--gpus", "auto", "--wait=10m", "--", *words)
    with desktop() as desk, waiting(seen_at(ada, desk), *big) as first:
        await_queue(ada, "big")
        late = bert.jlr(*JOB, "--gpus", "auto", "--", "true")
        failed(late, 7, "others already wait", "`big`", "--wait")
        with waiting(bert, *small) as second:
            wait_until(lambda: queue_of(ada) == ["big", "small"], "the second in the queue")
            shown = ada.jlr("gpus", "lab").stdout
            assert "WAITING" in shown
            gpu_host.gpus.free(0)
            told = first.communicate(timeout=60)[0]
            assert first.returncode == 0, told
            assert told.endswith(f"got {','.join(gpu_host.gpus.uuids)}\n"), told
            assert "number 1 in the queue: 2 GPUs were asked for" in told
            told = second.communicate(timeout=60)[0]
            assert second.returncode == 0, told
            assert "number 2 in the queue: others already wait" in told
            assert "got GPU-" in told
        assert ("lab", "2 GPUs became free: `big` begins") in desk.shown
    assert queue_of(ada) == []


def test_a_wait_ends_with_its_time_or_ctrl_c_and_leaves_no_place(
    ada: Laptop, gpu_host: GpuHost
) -> None:
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
    failed(ada.jlr(*JOB, "--gpus", "auto", "--wait=1s", "--", "true"), 7, "no GPUs after 1s")
    assert queue_of(ada) == []
    with waiting(ada, *JOB, "--name", "left", "--gpus", "auto", "--wait", "--", "true") as left:
        wait_until(lambda: queue_of(ada) == ["left"], "the place in the queue")
        left.send_signal(2)
        left.communicate(timeout=30)
        assert left.returncode == 130
    assert queue_of(ada) == []
    failed(ada.jlr(*JOB, "--wait", "--", "true"), 2, "`--wait` needs `--gpus`", "--gpus auto")


def test_a_detached_job_waits_on_the_host_whatever_becomes_of_the_laptop(
    ada: Laptop, bert: Laptop, gpu_host: GpuHost
) -> None:
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
    script = "echo got $CUDA_VISIBLE_DEVICES $SECRET; grep SigIgn /proc/$$/status; exit 3"
    wanted = ("--gpus", "auto:2", "--wait", "-d", "--env", "SECRET=word")
    begun = ada.jlr(*JOB[:-1], "--name", "far", *wanted, "--", "sh", "-c", script)
    assert begun.status == 0, begun
    assert begun.stdout == "far\n"
    assert "`far` waits on the host: 2 GPUs were asked for" in begun.stderr
    await_queue(ada, "far")
    with waiting(bert, *JOB, "--name", "near", "--gpus", "auto", "--wait", "--", "true") as near:
        wait_until(lambda: queue_of(bert) == ["far", "near"], "one queue for both kinds")
        found = jobs_of(ada)["far"]
        assert (found["state"], found["place"], found["gpus"]) == ("waiting", 1, "auto:2")
        assert "GPU 0: " in str(found["reason"])
        shown = ada.jlr("job", "list", "lab")
        assert "waiting" in shown.stdout
        assert "`lab/far`: number 1 in the queue: 2 GPUs" in shown.stderr
        with waiting(ada, "job", "attach", "far") as attached:
            ada.jlr("disconnect", "lab", "--yes")
            attached.kill()
        gpu_host.gpus.free(0)
        gpu_host.gpus.free(1)
        told = near.communicate(timeout=60)[0]
        assert near.returncode == 0, told
    seen = ada.jlr("job", "attach", "far")
    gpus = ",".join(gpu_host.gpus.uuids)
    assert (seen.status, seen.stdout) == (3, f"got {gpus} word\nSigIgn:\t{0:016}\n"), seen
    assert queue_of(ada) == []
    assert ada.jlr("rm", "far", "--yes").status == 0


def test_jobs_in_containers_wait_on_the_host_as_others_do(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    """The link is killed while they wait; each gets one GPU, in the order of arrival."""
    inside, image, odd = container.name(), container.name(), container.name()
    all_gpus = ("--gpus", "all", "--name", inside)
    engine.docker("run", "--detach", *all_gpus, "lab/plain", "sleep", "1d")
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
    wanted = ("--gpus", "auto", "--wait", "-d", "--env", "SECRET=word", "--name")
    shell = ("--", "sh", "-c", "echo $SECRET $CUDA_VISIBLE_DEVICES; exit 3")
    begun = ada.jlr("run", "lab", "--in", inside, *wanted, "inner", *shell)
    assert begun.status == 0, begun
    await_queue(ada, "inner")
    begun = ada.jlr("run", "lab", "--image", "lab/plain", *wanted, image, *shell)
    assert begun.status == 0, begun
    await_queue(ada, "inner", image)
    assert ada.jlr("run", "lab", "--image", "lab/plain", *wanted, odd, *shell).status == 0
    wait_until(lambda: queue_of(ada) == ["inner", image, odd], "the third in the queue")
    again = ada.jlr("run", "lab", "--image", "lab/plain", *wanted, image, *shell)
    failed(again, 7, "already exists")
    assert jobs_of(ada)[image]["place"] == 2
    engine.docker("create", "--name", odd, "lab/plain")
    for process in ada.processes():
        process.kill()  # the link
    with (
        waiting(ada, "logs", "-f", image) as logs,
        waiting(ada, "job", "attach", image) as attached,
    ):
        gpu_host.gpus.free(0)
        seen = ada.jlr("job", "attach", "inner")
        assert (seen.status, seen.stdout) == (3, f"word {gpu_host.gpus.uuids[0]}\n"), seen
        told = attached.communicate(timeout=60)[0]
        assert attached.returncode == 3, told
        assert "number " in told
        assert logs.communicate(timeout=60)[0].endswith("word\n")
    found = jobs_of(ada)[image]
    assert (found["state"], found["container"], found["place"]) == ("ended", image, None)
    assert found["gpus"] in ("0", "1")
    wait_until(partial(has_ended, ada, odd), "the end of the job that cannot begin")
    assert str(jobs_of(ada)[odd]["detail"]).startswith("not begun: ")
    assert "already in use" in ada.jlr("logs", odd).stderr
    engine.docker("rm", odd)
    for name in ("inner", image, odd):
        assert ada.jlr("rm", name, "--yes").status == 0
    assert queue_of(ada) == []


def has_ended(laptop: Laptop, name: str) -> bool:
    return bool(jobs_of(laptop)[name]["state"] == "ended")


def test_a_job_that_waits_on_the_host_is_stopped_killed_or_gives_up(
    ada: Laptop, gpu_host: GpuHost
) -> None:
    for gpu in (0, 1):
        gpu_host.gpus.occupy(gpu, os.getpid(), memory=70000)
    in_image, plain = ("--image", "lab/plain"), JOB[2:4]
    for where, name, wait in (
        (in_image, "stopped", "--wait"),
        (plain, "killed", "--wait"),
        (plain, "late", "--wait=1s"),
    ):
        wanted = (*where, "--gpus", "auto", wait, "-d", "--name", name)
        assert ada.jlr("run", "lab", *wanted, "--", "true").status == 0
    terminal = (*in_image, "--gpus", "auto", "--wait", "-d", "-t")
    failed(ada.jlr("run", "lab", *terminal, "--", "sh"), 2, "leave out `--detach`")
    wait_until(lambda: set(queue_of(ada)) == {"stopped", "killed"}, "the places")
    done = ada.jlr("stop", "stopped", "--yes")
    assert done.status == 0, done
    assert "took it out of the queue" in done.stdout + done.stderr
    pid = next(
        int(target.split(":")[3])
        for link in all_leases()
        if link.name.startswith(f"waits-{gpu_host.gpus.uuids[0]}")
        if ":killed:" in (target := str(link.readlink()))
    )
    os.kill(pid, 9)
    wait_until(lambda: queue_of(ada) == [], "an empty queue")
    for name, state in (("stopped", "stopped"), ("killed", "stopped"), ("late", "gave up")):
        wait_until(partial(has_ended, ada, name), f"the end of {name}")
        assert str(jobs_of(ada)[name]["detail"]).partition(":")[0] == state
        row = next(
            line for line in ada.jlr("job", "list", "lab").stdout.splitlines() if name in line
        )
        assert state in row
    late = ada.jlr("job", "attach", "late")
    assert late.status == 7, late
    assert "gave up: no GPUs after 1s: a GPU was asked for" in late.stderr
    assert ada.jlr("job", "list", "lab", "--clean", "--yes").status == 0


def test_jlr_wait_ends_once_as_many_gpus_are_free(ada: Laptop, gpu_host: GpuHost) -> None:
    gpu_host.gpus.occupy(0, os.getpid(), memory=70000)
    one = ada.jlr("wait", "lab", "--for", "gpus", "--json")
    told = {"name": "lab", "happened": "gpus", "exit_code": 0, "detail": "free: GPU 1"}
    assert (one.status, json.loads(one.stdout)) == (0, told), one
    two = ("wait", "lab", "--for", "gpus=2")
    failed(ada.jlr(*two, "--timeout", "1s"), 124, "`jlr wait lab --for gpus=2 --timeout 1s`")
    failed(ada.jlr("wait", "lab", "--for", "gpus=3"), 6, "has 2 GPUs")
    failed(ada.jlr("wait", "lab", "--for", "gpus=all"), 2, "cannot wait for GPUs `all`")
    with waiting(ada, *two, "--verbose") as late:
        assert late.stdout is not None
        while "while :; do" not in (line := late.stdout.readline()):
            assert line, "it has ended"
        gpu_host.gpus.free(0)
        said = late.communicate(timeout=60)[0]
        assert (late.returncode, "`lab`: free: GPU 0, 1" in said) == (0, True), said


def test_its_modules_have_no_newer_syntax_than_the_oldest_python() -> None:
    needed, left = set[str](), {WAITERS_PROGRAM}
    while left:
        needed |= left
        left = {other for module in left for other in ours(module)} - needed
    for module in needed:
        text = (PACKAGE / f"{module.partition('.')[2].replace('.', '/')}.py").read_text("utf-8")
        for node in ast.walk(ast.parse(text, feature_version=WAITERS_PYTHON)):
            # `list[int]()` is of Python 3.9.
            assert not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)), module


@pytest.mark.lab
@pytest.mark.skipif(sys.platform != "linux", reason="it runs on hosts")
def test_the_program_starts_in_each_python_that_is_here(tmp_path: Path) -> None:
    program = tmp_path / "waiter"
    program.write_text(sending.program(WAITERS_PROGRAM), "ascii")
    found = [f"python3.{minor}" for minor in range(WAITERS_PYTHON[1], 15)]
    for python in filter(shutil.which, ["python3", *found]):
        if subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode:
            continue  # pyenv's stand-in for one that is not installed
        argv = [python, "-I", str(program), str(tmp_path / "none")]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert "none/.wait" in done.stderr, (python, done)
