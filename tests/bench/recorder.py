"""What the recorder costs a cell that prints.

`python -m tests.bench.recorder [ROUNDS]` prints the table of docs/speed.md: a cell of a real
kernel prints, with and without a recorder beside it, in turns, once with no other listener and once
with one, as Jupyter is. The kernel has a core to itself, so that its CPU time varies less. Times
are medians; each ratio is the median of the rounds, whose two cells ran one after the other, with
the lowest and the highest. `all` has the CPU time of the whole kernel, `own` leaves out the threads
of ZeroMQ's that send. Exit code 1 says that the whole kernel's ratio missed the target in some row,
or that a line was lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from jlremote.jupyter import recorder
from jlremote.remote import sending

ROUNDS = 10
TARGET = 1.02
# Seconds: of the clock, of CPU time of the kernel's own threads, and of those that send.
Cost = tuple[float, float, float]
LISTENER = """\
import sys, zmq
listener = zmq.Context().socket(zmq.SUB)
listener.setsockopt(zmq.SUBSCRIBE, b"")
listener.connect(sys.argv[1])
while True: listener.recv_multipart()
"""
WAYS = {
    (100_000, "100,000 lines, as Python buffers"): "for i in range({}): print('line', i)",
    (5_000, "5,000 lines, each flushed"): "for i in range({}): print('line', i, flush=True)",
}


@contextmanager
def recorded(runtime: Path, session: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the recorder beside this process, which stands for the server; end it afterwards."""
    program = session / recorder.PROGRAM_FILE
    program.write_text(sending.program(recorder.PROGRAM))
    argv = (sys.executable, program, str(os.getpid()), runtime, session)
    running = subprocess.Popen(argv)
    try:
        while not (session / "recorder").exists():
            time.sleep(0.05)
        time.sleep(1)  # it subscribes
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Return the CPU time of a kernel's own threads, and of those that send for it."""
    own = sending = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        seconds = int((thread / "schedstat").read_text().split()[0]) / 1e9
        if (thread / "comm").read_text().startswith("ZMQ"):
            sending += seconds
        else:
            own += seconds
    return own, sending


def cost(client: BlockingKernelClient, pid: int, code: str) -> Cost:
    began, before = time.perf_counter(), cpu_seconds(pid)
    client.execute(code, reply=True, timeout=600)
    took, after = time.perf_counter() - began, cpu_seconds(pid)
    return took, after[0] - before[0], after[1] - before[1]


def printed(session: Path) -> int:
    texts = (json.loads(line) for path in session.glob("output/*.jsonl") for line in path.open())
    return sum(one["content"]["text"].count("\n") for one in texts if one["kind"] == "stream")


def one_round(
    run: Callable[[str], Cost], session: Path, code: str, count: int, turn: int
) -> tuple[Cost, Cost]:
    """Return what a cell takes alone and recorded; every other time the latter comes first."""
    cell = code.format(count)
    alone = None if turn % 2 else run(cell)
    with recorded(session / "runtime", session):
        before = printed(session)
        beside = run(cell)
    if lost := count - (printed(session) - before):
        raise LookupError(f"{lost} lines were not recorded")
    return alone or run(cell), beside


def measure(folder: Path, rounds: int) -> bool:
    session, runtime = folder, folder / "runtime"
    runtime.mkdir()
    facts = {"port": 9, "base_url": "/", "token": ""}  # nothing answers, so no path is known
    (runtime / f"jpserver-{os.getpid()}.json").write_text(json.dumps(facts))
    os.environ["JUPYTER_RUNTIME_DIR"] = str(runtime)
    manager = KernelManager(connection_file=str(runtime / "kernel-bench.json"))
    os.sched_setaffinity(0, {0})
    manager.start_kernel(stderr=subprocess.DEVNULL)
    os.sched_setaffinity(0, {1})
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    client.iopub_channel.stop()
    facts = json.loads(Path(manager.connection_file).read_text("utf-8"))
    address = f"tcp://{facts['ip']}:{facts['iopub_port']}"
    assert isinstance(manager.provisioner, LocalProvisioner)
    run = partial(cost, client, manager.provisioner.pid or 0)
    good = True
    try:
        print("| a cell prints | others listen | time | recorded | all | recorded | ratio | own |")
        print("|---|---|---|---|---|---|---|---|")
        for others in (0, 1):
            with listeners(address, others):
                for (count, way), code in WAYS.items():
                    pairs = [one_round(run, session, code, count, turn) for turn in range(rounds)]
                    good = row(f"{way} | {others}", pairs) and good
    except LookupError as lost:
        print(lost, file=sys.stderr)
        good = False
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    return good


@contextmanager
def listeners(address: str, count: int) -> Iterator[None]:
    running = [subprocess.Popen((sys.executable, "-c", LISTENER, address)) for _ in range(count)]
    try:
        time.sleep(1)  # they subscribe
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def row(begin: str, pairs: list[tuple[Cost, Cost]]) -> bool:
    whole = [(one[1] + one[2], two[1] + two[2]) for one, two in pairs]
    own = [(one[1], two[1]) for one, two in pairs]
    clock = [(one[0], two[0]) for one, two in pairs]
    times = [f"{median(each):.2f} s" for both in (clock, whole) for each in zip(*both, strict=True)]
    ratios = [sorted(two / one for one, two in both) for both in (whole, own)]
    told = [f"{median(each):.3f} ({each[0]:.2f} to {each[-1]:.2f})" for each in ratios]
    print(f"| {begin} | {' | '.join((*times, *told))} |", flush=True)
    return median(ratios[0]) <= TARGET


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if measure(Path(folder), rounds) else 1)
