"""`python -m tests.lab up`: the remote host by hand, until Ctrl-C."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from contextlib import ExitStack

from tests.lab import apptainer, images
from tests.lab.accounts import claimed_account
from tests.lab.engine import running_engine
from tests.lab.laptop import Laptop
from tests.lab.place import LabError
from tests.lab.programs import missing
from tests.lab.remote_host import new_keys, new_laptop, running_sshd


def main() -> int:
    """Run `up` or `build` and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("verb", choices=("up", "build"), help="`build` makes the images and ends")
    parser.add_argument("--shell", default="/bin/bash", help="the login shell of the lab's user")
    options = parser.parse_args()
    if reasons := missing():
        sys.exit("lab: " + "; ".join(reasons) + " (`tests/run` installs what it can)")
    # The end of a session, or of a job in the background, must stop the lab like Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        build() if options.verb == "build" else up(options.shell)
    except LabError as failure:
        sys.exit(f"lab: {failure}")
    except KeyboardInterrupt:
        return 130
    return 0


def build() -> None:
    """Build the images that are missing."""
    with running_engine() as engine:
        images.ensure(engine, print)
        if not apptainer.missing():
            apptainer.ensure(engine, print)


def up(shell: str) -> None:
    """Start everything, say how to use it, and wait."""
    with ExitStack() as stack:
        engine = stack.enter_context(running_engine())
        images.ensure(engine, print)
        account = stack.enter_context(claimed_account(shell))
        keys = stack.enter_context(new_keys())
        server = stack.enter_context(running_sshd(engine, keys))
        laptop = stack.enter_context(new_laptop(server, account, keys))
        print(instructions(laptop, engine.url), flush=True)
        signal.pause()


def instructions(laptop: Laptop, engine: str) -> str:
    """Return the text to paste into another terminal."""
    exports = "\n".join(
        f"export {name}={shlex.quote(text)}" for name, text in laptop.environment.items()
    )
    return f"""
# the host is `lab`: ssh -F {laptop.ssh_config} lab
# its engine, from here: docker -H {engine} ps
# the laptop's environment, for another terminal:
{exports}
# Ctrl-C here ends all of it
"""


if __name__ == "__main__":
    sys.exit(main())
