"""The program that waits for GPUs on the host; as a detached job it becomes the job's command.

It runs there as one file with the modules that also choose on the laptop, so one rule holds for
all. They keep to what Python 3.8 has.

`.wait` in the job's folder is what it is to do, and is deleted as soon as it was read. `waiting`
says how it waits: an object with its `place` in the queue and `why` it waits, in words; `end` says
why it has given up. The waiter of a command that stays says with `start` what that wants, and with
`held` what it holds for it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from jlremote.errors import Busy, JlrError
from jlremote.gpus import leases, taking
from jlremote.gpus.assigned import RunningContainer
from jlremote.gpus.choice import CannotTell, parse_request
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease, QueueTicket, ahead
from jlremote.gpus.snapshot import CannotAsk, read, snapshot_script
from jlremote.gpus.taking import Taken, Wish, with_gpus
from jlremote.place.host import contract
from jlremote.place.host.contract import Completed, Steps, attempt, run_script
from jlremote.place.host.process_mark import VARIABLE
from jlremote.remote.orphans import facts
from jlremote.times import in_words

PAUSE_SECONDS = 5.0
CREATION_SECONDS = 300.0  # an engine may be busy with other containers
ENDS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
_NOT_FOUND, _NOT_RUNNABLE = 127, 126


@dataclass(frozen=True)
class ThisHost:
    """The host itself, on which this program runs."""

    name: str

    def run(
        self,
        steps: Steps,
        *,
        timeout: float = contract.SCRIPT_SECONDS,
        limit: int = contract.OUTPUT_BYTES,
    ) -> dict[str, Completed]:
        """Run steps; scripts are given by stdin, as all users of the host can read arguments."""
        until, status, done = time.monotonic() + timeout, 0, {}
        # Without the mark that ends a job's processes.
        unmarked = {name: value for name, value in os.environ.items() if name != VARIABLE}
        for name, text in steps.items():
            script = f"status={status}\n(\n{text}\n) </dev/null\n"
            try:
                ended = subprocess.run(
                    ["/bin/sh", "-s"],
                    input=script.encode("utf-8", "surrogateescape"),
                    capture_output=True,
                    timeout=max(1.0, until - time.monotonic()),
                    check=False,
                    env=unmarked,
                    start_new_session=True,  # what ends the job must not leave half of a step
                )
            except subprocess.TimeoutExpired as late:
                raise CannotAsk(f"`{self.name}` took too long") from late
            status = ended.returncode % 256
            printed = (ended.stdout[:limit], ended.stderr[:limit])
            done[name] = Completed(status, *(text.decode("utf-8", "replace") for text in printed))
        return done


class Waiter:
    """A job that waits in the queue."""

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self._folder, self._plan = folder, plan
        asked, engines = parse_request(plan["gpus"]), [tuple(argv) for argv in plan["engines"]]
        within = RunningContainer(*plan["within"]) if plan["within"] else None
        self.host = ThisHost(plan["host"])
        self._wish = Wish(self.host, plan["name"], asked, engines, within=within)
        self._process = (os.getpid(), facts(os.getpid())[19])
        self.leases: list[Lease] = []

    def wait(self) -> Taken:
        """Take GPUs as soon as it is this job's turn in the queue.

        Raise `Busy` if the time is over, `NotFound` if the host no longer has such GPUs.
        """
        wish, last = self._wish, Busy(self._plan["why"])
        ticket = None
        until = time.monotonic() + self._plan["seconds"]
        try:
            while time.monotonic() < until:
                with suppress(CannotAsk, CannotTell):
                    if ticket is None:
                        word = secrets.token_hex(4)
                        now = taking.ask(wish.host, wish.engines, within=wish.within)
                        who = (wish.name, wish.count, word, now.boot, *self._process)
                        ticket = QueueTicket(now.line, *who)
                    inventory = self._stand(ticket)
                    place = len(ahead(inventory.queue, ticket.word)) + 1
                    try:
                        return taking.take(
                            wish, ticket.word, self.leases.append, lambda _: None, inventory
                        )
                    except Busy as busy:
                        last = busy
                        self.write({"place": place, "why": last.message})
                time.sleep(min(PAUSE_SECONDS, max(0.0, until - time.monotonic())))
        finally:
            if ticket is not None:
                attempt(self.host, ticket.leave())
        raise Busy(f"no GPUs after {in_words(int(self._plan['seconds']))}: {last.message}")

    def _stand(self, ticket: QueueTicket) -> Inventory:
        wish = self._wish
        steps = {"stand": ticket.stand(), "gpus": snapshot_script(wish.engines)}
        done = self.host.run(steps, timeout=taking.ASK_SECONDS)
        if done["stand"].status != 0:
            complaint = done["stand"].complaint
            raise JlrError(f"cannot wait for GPUs on `{self.host.name}`: {complaint}")
        return read(done["gpus"].stdout, wish.host.name, wish.within)

    def become(self, taken: Taken, command: list[str]) -> NoReturn:
        chosen = taken.chosen
        self._keep(taken.lease)
        (self._folder / "gpus").write_text(",".join(chosen.places), "utf-8")
        with (self._folder / "began").open("r+") as began:  # its room on the disk was taken before
            began.write(f"{time.time():.0f}\n")
        (self._folder / "waiting").unlink()
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(chosen.uuids)
        argv = [with_gpus(word, chosen) for word in command]
        # Python ignores these, and programs inherit what is ignored.
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        try:
            os.execvp(argv[0], argv)  # noqa: S606  # the job's own command
        except OSError as failure:
            print(f"{argv[0]}: {failure.strerror}", file=sys.stderr)  # noqa: T201  # as a shell
            missing = isinstance(failure, FileNotFoundError)
            sys.exit(_NOT_FOUND if missing else _NOT_RUNNABLE)

    def hold(self, taken: Taken) -> int:
        """Hold the GPUs until the start that waits for them takes them over."""
        chosen, lease, seconds = taken.chosen, taken.lease, int(self._plan["hold"])
        held = {kind: getattr(chosen, kind) for kind in ("uuids", "places")}
        self._keep(lease)
        held.update(word=lease and lease.word, boot=lease and lease.boot)
        names, until = ", ".join(chosen.places), in_words(seconds)
        self.write({"held": held, "why": f"GPU {names}: held for its command, at most {until}"})
        time.sleep(seconds)
        self.write({"end": f"gave up: its GPUs were held for {until}, and no command took them"})
        return Busy.exit_code

    def create(self, taken: Taken) -> int:
        """Create and start the job's container, which is the job from then on; return a status."""
        ends: list[int] = []
        host, lease = self.host, taken.lease
        for end in ENDS:  # the container is whole or is not there
            signal.signal(getattr(signal, end), lambda number, _: ends.append(number))
        keep = {} if lease is None else {"lease": leases.keep_for(lease, self._plan["pid"])}
        for script in self._plan["create"]:
            steps = {"create": with_gpus(script, taken.chosen), **keep}
            done = host.run(steps, timeout=CREATION_SECONDS)["create"]
            if done.status != self._plan["again"]:
                break
        if done.status != 0:
            print(done.stderr, end="", file=sys.stderr)  # noqa: T201  # it is the job's
            self.write({"end": f"not begun: {done.complaint}"})
            return done.status
        if ends:
            run_script(host, self._plan["remove"])
            return 128 + ends[0]
        self.leases.clear()
        # In one step: `jlr job list` shows the container, if it does not show this folder.
        gone = self._folder.with_name(f".{self._folder.name}-{os.getpid()}")
        self._folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        return 0

    def _keep(self, lease: Lease | None) -> None:
        if lease is not None:
            self.host.run({"keep": leases.keep(lease, *self._process)})

    def write(self, state: dict[str, Any]) -> None:
        new = self._folder / ".waiting"
        new.write_text(json.dumps({**self._plan["first"], **state}), "ascii")
        new.replace(self._folder / "waiting")


def main(arguments: list[str]) -> int:
    """Wait for GPUs, then become the job's command; else return an exit status."""
    folder, *command = arguments
    file = Path(folder, ".wait")
    plan = json.loads(file.read_text("utf-8"))
    file.unlink()
    Path(sys.argv[0]).unlink()  # all modules are loaded
    for end in ENDS:
        signal.signal(getattr(signal, end), lambda number, _: sys.exit(128 + number))
    waiter = Waiter(Path(folder), plan)
    try:
        taken = waiter.wait()
        if "hold" in plan:
            return waiter.hold(taken)
        if "create" in plan:
            return waiter.create(taken)
        waiter.become(taken, command)
    except JlrError as failure:
        waiter.write({"end": f"gave up: {failure.message}"})
        return failure.exit_code
    finally:
        for lease in waiter.leases:
            attempt(waiter.host, leases.release(lease))
