"""What the recorder costs a cell that prints.

`python -m tests.bench.recorder [ROUNDS]` prints the table of docs/lasting.md: a cell of a real
kernel prints 100,000 lines, with and without a recorder beside it, in turns. Each number is the
best round, as other work on the machine only ever adds: the time, and the kernel's own CPU time,
which other work hardly changes. Exit code 1 says that the latter missed the target, or that a line
was lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from jlremote.output import recorder_program

ROUNDS = 9
LINES = 100_000
TARGET = 1.02
TIMED = """\
import time
began = time.perf_counter(), time.process_time()
{}
took = time.perf_counter() - began[0], time.process_time() - began[1]
"""
WAYS = {
    "as Python buffers": f"for i in range({LINES}): print('line', i)",
    "each line flushed": f"for i in range({LINES}): print('line', i, flush=True)",
}


@contextmanager
def recorded(runtime: Path, session: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the recorder beside this process, which stands for the server; end it afterwards."""
    argv = (sys.executable, recorder_program.__file__, str(os.getpid()), str(runtime), str(session))
    running = subprocess.Popen(argv)
    try:
        while not (session / "recorder").exists():
            time.sleep(0.05)
        time.sleep(1)  # it subscribes
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


def seconds(client: BlockingKernelClient, code: str) -> tuple[float, float]:
    """Return how long code takes in the kernel, and its CPU time."""
    client.execute(TIMED.format(code), reply=True, timeout=600)
    asked = {"took": "took"}
    reply = client.execute("", silent=True, user_expressions=asked, reply=True, timeout=60)
    took, cpu = literal_eval(reply["content"]["user_expressions"]["took"]["data"]["text/plain"])
    return float(took), float(cpu)


def printed(session: Path) -> int:
    """Return how many lines were recorded."""
    texts = (json.loads(line) for path in session.glob("output/*.jsonl") for line in path.open())
    return sum(one["content"]["text"].count("\n") for one in texts if one["kind"] == "stream")


def measure(folder: Path, rounds: int) -> bool:
    """Print the table; return whether the target was reached and no line was lost."""
    session, runtime = folder, folder / "runtime"
    runtime.mkdir()
    facts = {"port": 9, "base_url": "/", "token": ""}  # nothing answers, so no path is known
    (runtime / f"jpserver-{os.getpid()}.json").write_text(json.dumps(facts))
    os.environ["JUPYTER_RUNTIME_DIR"] = str(runtime)
    manager = KernelManager(connection_file=str(runtime / "kernel-bench.json"))
    manager.start_kernel(stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    client.iopub_channel.stop()  # nothing but the recorder hears the cell
    good = True
    try:
        print(
            "| a cell that prints 100,000 lines | alone | recorded | CPU time | recorded | ratio |"
        )
        print("|---|---|---|---|---|---|")
        for way, code in WAYS.items():
            alone, beside = list[tuple[float, float]](), list[tuple[float, float]]()
            for _ in range(rounds):
                alone.append(seconds(client, code))
                with recorded(runtime, session):
                    before = printed(session)
                    beside.append(seconds(client, code))
                lost = LINES - (printed(session) - before)
                good = good and lost == 0
                if lost:
                    print(f"{lost} lines were not recorded", file=sys.stderr)
            (time_1, cpu_1), (time_2, cpu_2) = (
                map(min, zip(*each, strict=True)) for each in (alone, beside)
            )
            ratio = cpu_2 / cpu_1
            good = good and ratio <= TARGET
            cells = (f"{one:.2f} s" for one in (time_1, time_2, cpu_1, cpu_2))
            print(f"| {way} | {' | '.join(cells)} | {ratio:.3f} |", flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    return good


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if measure(Path(folder), rounds) else 1)
