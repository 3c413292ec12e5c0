"""`python -m tests.lab`: a shell on a laptop that knows a remote host; its exit ends both."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.lab import apptainer, browser, images, windows
from tests.lab.accounts import claimed_account
from tests.lab.cluster import running_cluster
from tests.lab.engine import running_engine
from tests.lab.laptop import Laptop
from tests.lab.place import LabError
from tests.lab.programs import missing
from tests.lab.remote_host import new_keys, new_laptop, running_sshd

PROMPTS = {
    "home/.bashrc": "PS1='(lab) \\w $ '\n",
    "home/.zshrc": "PS1='(lab) %~ $ '\n",
    "config/fish/config.fish": "function fish_prompt; echo -n '(lab) > '; end\n",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("build", nargs="?", choices=["build"], help="only make the images")
    parser.add_argument("--cluster", action="store_true", help="a Slurm cluster too: `hpc`")
    parser.add_argument("--browser", action="store_true", help="open pages in Chromium")
    parser.add_argument("--login-shell", default="/bin/bash", help="of the user of `lab`")
    options = parser.parse_args()
    if reasons := missing():
        sys.exit("lab: " + "; ".join(reasons) + " (`tests/run` installs what it can)")
    # The end of a session, or of a job in the background, must stop the lab like Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return build() if options.build else shell(options)
    except LabError as failure:
        sys.exit(f"lab: {failure}")
    except KeyboardInterrupt:
        return 130


def build() -> int:
    with running_engine() as engine:
        images.ensure(engine, print)
        if not apptainer.missing():
            apptainer.ensure(engine, print)
    if not windows.missing():
        windows.ensure(print)
    return 0


def shell(options: argparse.Namespace) -> int:
    """Start the lab's parts, run the person's shell among them, and return its exit status."""
    with ExitStack() as stack:
        engine = stack.enter_context(running_engine())
        images.ensure(engine, print)
        account = stack.enter_context(claimed_account(options.login_shell))
        keys = stack.enter_context(new_keys())
        server = stack.enter_context(running_sshd(engine, keys))
        # Names of containers are the account's own, so that these can be removed and no others.
        stack.callback(engine.remove_containers, f"{account.name}-")
        laptop = stack.enter_context(new_laptop(server, account, keys))
        laptop.settle(f'[defaults]\nname = "{account.name}-{{name}}"\nimage = "lab/jupyter"\n')
        if options.cluster:
            cluster = stack.enter_context(running_cluster(engine, keys, print))
            cluster.add_to(laptop, "hpc", keys)
        if options.browser:
            open_pages(laptop)
        print(description(laptop, options), flush=True)
        return run_shell(laptop, {"DOCKER_HOST": engine.url})


def open_pages(laptop: Laptop) -> None:
    """Let `BROWSER` be Chromium: a window, or a picture of the page where there is no display."""
    where = f"--headless --virtual-time-budget=20000 --screenshot={laptop.folder}/page.png"
    program = shlex.join((str(browser.CHROMIUM), *browser.FLAGS))
    Path(laptop.environment["BROWSER"]).write_text(
        f'#!/bin/sh\nset -- --user-data-dir={laptop.folder}/profile "$1"\n'
        f'[ "$DISPLAY" ] || set -- {where} "$@"\n'
        f'{program} "$@" >{laptop.folder}/chromium.log 2>&1 &\n',
        encoding="utf-8",
    )


def description(laptop: Laptop, options: argparse.Namespace) -> str:
    page = f"Chromium; without a display, {laptop.folder}/page.png"
    return f"""\
host:     lab, by `jlr start lab work`, or ssh -F $JLR_SSH_CONFIG lab
cluster:  {"hpc, by `jlr run hpc --slurm -- hostname`" if options.cluster else "add --cluster"}
engine:   `docker ps` shows its containers; the image is lab/jupyter
browser:  {page if options.browser else f"add --browser; addresses go to {laptop.folder}/opened"}
laptop:   {laptop.folder} has its home, settings, records and logs
`exit` ends and removes all of this."""


def run_shell(laptop: Laptop, more: dict[str, str]) -> int:
    for name, text in PROMPTS.items():
        path = laptop.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    ours = ("TERM", "COLORTERM", "DISPLAY", "XAUTHORITY")
    kept = {name: os.environ[name] for name in ours if name in os.environ}
    program = os.environ.get("SHELL") or "/bin/sh"
    environment = {**kept, **laptop.environment, **more, "SHELL": program, "PS1": "(lab) $ "}
    # Ctrl-C is for what runs in the shell. A handler, unlike SIG_IGN, is not inherited.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.call(program, env=environment, cwd=laptop.folder / "home")
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
