"""Start-up time of commands that need no host: `python -m tests.bench.startup [ROUNDS]`.

The measure is `python -c 'import click'` in the same rounds, each a new process, because machines
and their caches differ; the medians are compared. Exit code 1 says that a target was missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.bench.start import run_to_its_end, timed

ROUNDS = 40
TARGET = 1.5
MEASURE = "python -c 'import click'"

JLR = (str(Path(sys.executable).with_name("jlr")),)
COMMANDS = {
    MEASURE: ((sys.executable, "-c", "import click"), None),
    "jlr --version": ((*JLR, "--version"), None),
    "jlr --help": ((*JLR, "--help"), None),
    "complete `jlr st`": (JLR, "jlr st"),
    "complete `jlr start dgx --`": (JLR, "jlr start dgx --"),
    "complete `jlr start d`": (JLR, "jlr start d"),
    "complete `jlr open c`": (JLR, "jlr open c"),
}


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as home:
        surroundings = laptop(Path(home))
        taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(rounds):
            for name, (argv, line) in COMMANDS.items():
                asked = {"_JLR_COMPLETE": "bash_complete", "COMP_LINE": line} if line else {}
                taken[name].append(timed(partial(run_to_its_end, argv, surroundings | asked)))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"| command | median of {rounds} | to `import click` | target |\n|---|---|---|---|")
    for name, median in medians.items():
        ratio = median / medians[MEASURE]
        print(f"| {name} | {median * 1000:.0f} ms | {ratio:.2f} | {TARGET} |")
    return int(max(medians.values()) > TARGET * medians[MEASURE])


def laptop(home: Path) -> dict[str, str]:
    """Return an environment with an ssh config and ten sessions."""
    names = {"state": "XDG_STATE_HOME", "config": "XDG_CONFIG_HOME", "run": "XDG_RUNTIME_DIR"}
    surroundings = os.environ | {variable: str(home / name) for name, variable in names.items()}
    (home / ".ssh").mkdir()
    hosts = "".join(f"Host dgx{number}\n  User me\n" for number in range(50))
    (home / ".ssh" / "config").write_text(hosts)
    save = (
        "from jlremote.laptop.sessions import SessionRecord, save\n"
        "for n in range(10): save(SessionRecord('dgx', f'cont{n}', 'docker', 8888 + n))"
    )
    subprocess.run([sys.executable, "-c", save], env=surroundings, check=True)
    return surroundings | {"HOME": str(home)}


if __name__ == "__main__":
    sys.exit(main())
