"""How soon a terminal of `jlr shell` answers again: `python -m tests.bench.terminal`.

That of ssh never does, so it is not beside it. The exit code is 1 if the goal was missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import ExitStack, suppress

from tests.cli.terminal import Terminal
from tests.lab.accounts import claimed_account
from tests.lab.engine import running_engine
from tests.lab.network import Network
from tests.lab.remote_host import new_keys, new_laptop, running_sshd
from tests.outages.conftest import add_far
from tests.outages.parts import link_of
from tests.shell.parts import LOST, shell

ROUNDS, GOAL_SECONDS = 5, 2.0


def answered(terminal: Terminal) -> float:
    """Return the seconds until the shell has answered a line."""
    began = time.monotonic()
    while "is 42" not in terminal.screen:
        terminal.type("echo is $((6 * 7))\r")
        with suppress(AssertionError):
            terminal.wait_for("is 42", seconds=0.1)
    terminal.forget()
    return time.monotonic() - began


def main() -> int:
    times: dict[str, list[float]] = {"network back": [], "link killed": []}
    with ExitStack() as stack:
        engine = stack.enter_context(running_engine())
        account, keys = stack.enter_context(claimed_account()), stack.enter_context(new_keys())
        sshd = stack.enter_context(running_sshd(engine, keys))
        network = Network(sshd.port)
        stack.callback(network.close)
        laptop = stack.enter_context(new_laptop(sshd, account, keys))
        add_far(laptop, network, sshd, account, keys)
        terminal = stack.enter_context(shell(laptop, "far"))
        answered(terminal)
        for _ in range(ROUNDS):
            network.take_down()
            terminal.wait_for(LOST)
            network.bring_up()
            times["network back"].append(answered(terminal))
            link_of(laptop).kill()
            terminal.wait_for(LOST)
            times["link killed"].append(answered(terminal))
    for what, found in times.items():
        print(f"{what}: {statistics.median(found):.2f} s, at most {max(found):.2f} s")
    return int(max(times["network back"]) > GOAL_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
