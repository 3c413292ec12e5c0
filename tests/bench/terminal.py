"""How soon a terminal of `jlr shell` answers again: `python -m tests.bench.terminal`.

That of ssh never does, so it is not beside it. The exit code is 1 if the goal was missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import closing, suppress

from tests.bench.parts import lab
from tests.cli.terminal import Terminal
from tests.lab.network import Network
from tests.lab.remote_host import new_laptop
from tests.outages.conftest import add_far
from tests.outages.parts import link_of
from tests.shell.parts import LOST, shell

ROUNDS, GOAL_SECONDS = 5, 2.0


def answered(terminal: Terminal, number: int) -> float:
    """Return the seconds until the shell has answered a line with a number that is new."""
    began = time.monotonic()
    while f"is {number}." not in terminal.screen:
        terminal.type(f"echo is $(({number})).\r")
        with suppress(AssertionError):
            terminal.wait_for(f"is {number}.", seconds=0.1)
    return time.monotonic() - began


def main() -> int:
    back, killed = [], []
    with (
        lab() as parts,
        closing(Network(parts.sshd.port)) as network,
        new_laptop(*parts.host) as laptop,
    ):
        add_far(laptop, network, *parts.host)
        for _ in range(ROUNDS):
            with shell(laptop, "far") as terminal:
                answered(terminal, 1)
                network.take_down()
                terminal.wait_for(LOST)
                network.bring_up()
                back.append(answered(terminal, 2))
                terminal.forget()
                link_of(laptop).kill()
                terminal.wait_for(LOST)
                killed.append(answered(terminal, 3))
    for what, found in ("network back", back), ("link killed", killed):
        print(f"{what}: {statistics.median(found):.2f} s, at most {max(found):.2f} s")
    return int(max(back) > GOAL_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
