"""A folder of 1,000 files and 20 MB: `python -m tests.bench.folder [ROUNDS [MILLISECONDS …]]`.

`jlr sync` into a container, and rsync to the host by an open connection of ssh. Each time is that
beyond a command of its own that does nothing there: `jlr shell cont1 true`, and `ssh lab true`. The
last row is of `--watch`: from a save until a program of the container sees it. The exit code is 1
if a goal was missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from tests.bench.start import timed
from tests.bench.streams import THERE, Streams, open_streams, run

FILES, BYTES = 1000, 20_000
GOALS = {"first": 0.5, "unchanged": 0.1, "one changed": 0.1}
SAVES, SAVED_SECONDS = 10, 1.0


class Folder:
    def __init__(self, streams: Streams) -> None:
        self._streams, self._session = streams, streams.session
        self._top = top = streams.folder / "proj"
        for number in range(FILES):
            path = top / f"d{number % 20}" / f"{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(BYTES))
        (top / ".gitignore").write_text("*.pyc\n__pycache__/\n/out/\n")
        self._edits = 0

    def rounds(self, number: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return the seconds of jlr and of rsync for each kind of goal."""
        ours = ("jlr", "sync", str(self._top), f"{self._session}:{THERE}-{number}")
        shell = " ".join(self._streams.ssh)
        theirs = ("rsync", "-a", "-e", shell, f"{self._top}/", f"lab:{THERE}-{number}")
        idle = ("jlr", "shell", self._session, "true")
        return self._times(ours, idle), self._times(theirs, (*self._streams.ssh, "lab", "true"))

    def _times(self, argv: tuple[str, ...], idle: tuple[str, ...]) -> dict[str, float]:
        found = {}
        for kind in GOALS:
            if kind == "one changed":
                self._edits += 1
                (self._top / "d3" / "3.py").write_text(f"{self._edits}" * 100)
            own = min(self._streams.seconds(idle) for _ in range(2))
            found[kind] = self._streams.seconds(argv) - own
        return found

    def saved(self) -> float:
        """Return the seconds from a save until it is seen there, with `--watch`: a median."""
        into, found = f"{THERE}-watched", []
        argv = ("jlr", "sync", str(self._top), f"{self._session}:{into}", "--watch")
        watching = subprocess.Popen(argv, stderr=subprocess.DEVNULL, env=self._streams.environment)
        try:
            for save in range(SAVES + 1):
                text = f"until grep -qsx saved-{save} {into}/d3/3.py; do sleep 0.01; done"
                seeing = (*self._streams.by_hand, f"sh -c 'echo; {text}'")
                with subprocess.Popen(seeing, stdout=-1, env=self._streams.environment) as seen:
                    assert seen.stdout is not None
                    seen.stdout.readline()
                    (self._top / "d3" / "3.py").write_text(f"saved-{save}\n")
                    found.append(timed(seen.wait))
        finally:
            watching.terminate()
            watching.wait()
        return statistics.median(found[1:])  # the first one waits for the first sync


def measure(milliseconds: int, rounds: int) -> bool:
    """Print the rows of one line; return whether a goal was missed."""
    missed = False
    with open_streams(milliseconds) as (streams, line):
        folder = Folder(streams)
        found = [folder.rounds(number) for number in range(rounds)]
        saved = folder.saved()
    for kind, goal in GOALS.items():
        ours, theirs = (statistics.median(pair[way][kind] for pair in found) for way in (0, 1))
        missed |= ours > goal
        print(f"| {line}: {kind} | {theirs:.2f} | {ours:.2f} | ≤ {goal} |", flush=True)
    print(f"| {line}: saved, with `--watch` | | {saved:.2f} | ≤ {SAVED_SECONDS} |", flush=True)
    return missed or saved > SAVED_SECONDS


if __name__ == "__main__":
    sys.exit(run(measure, "seconds | rsync | jlr sync | wanted"))
