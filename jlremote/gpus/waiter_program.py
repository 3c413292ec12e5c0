"""The program of a job that waits for GPUs on the host; it becomes the job's command.

It runs there by itself, as one file that `archive` makes: its modules are those that also choose
for the laptop, so both kinds of waiters follow one rule and stand in one queue. They keep to what
Python 3.8 has.

`.wait` in the job's folder is what it is to do, and is deleted as soon as it was read. `waiting`
says how it waits, for `jlr runs`: an object with its `place` in the queue and `why` it waits, in
words; `end` says why it has given up. The waiter of a `jlr start` tells with `start` what that
wants, and with `held` what it holds for it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from jlremote.errors import Busy, JlrError
from jlremote.gpus import leases, taking
from jlremote.gpus.assigned import Within
from jlremote.gpus.choice import Chosen, parse_request
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease
from jlremote.gpus.snapshot import CannotAsk
from jlremote.gpus.taking import Taken, Wish, with_gpus
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps, run_script
from jlremote.place.host.process_mark import VARIABLE
from jlremote.times import in_words

CREATION_SECONDS = 300.0  # an engine may be busy with other containers
ENDS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
_NOT_FOUND, _NOT_RUNNABLE = 127, 126


@dataclass(frozen=True)
class ThisHost:
    """The host itself; see `host.contract.Host`."""

    name: str

    @property
    def _environment(self) -> dict[str, str]:
        """The variables without the mark, by which the processes of a job are ended."""
        return {name: value for name, value in os.environ.items() if name != VARIABLE}

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run steps; scripts are given by stdin, as all users of the host can read arguments."""
        until, status, done = time.monotonic() + timeout, 0, {}
        for name, text in steps.items():
            script = f"status={status}\n(\n{text}\n) </dev/null\n"
            try:
                ended = subprocess.run(
                    ["/bin/sh", "-s"],
                    input=script.encode("utf-8", "surrogateescape"),
                    capture_output=True,
                    timeout=max(1.0, until - time.monotonic()),
                    check=False,
                    env=self._environment,
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
        within = Within(*plan["within"]) if plan["within"] else None
        host, own = ThisHost(plan["host"]), (os.getpid(), _own_start())
        self._wish = Wish(host, plan["name"], asked, engines, within=within, process=own)
        self._told: dict[str, Any] = {}
        self._first = {"start": plan["gpus"]} if "hold" in plan else {}
        self._leases: list[Lease] = []

    def wait(self) -> Taken:
        """Wait in the queue, and return what was taken.

        Raises:
            Busy: the time is over.
        """
        wish, first = self._wish, Busy(self._plan["why"])

        def attempt(word: str, seen: Inventory) -> Taken:
            return taking.take(wish, word, self._leases.append, lambda _: None, seen)

        limit = self._plan["seconds"]
        return taking.take_in_turn(wish, limit, attempt, self._tell, first, (CannotAsk,))

    def give_up(self) -> None:
        """Release what was taken."""
        for lease in self._leases:
            taking.release(self._wish.host, lease)

    def become(self, taken: Taken, command: list[str]) -> NoReturn:
        """Become the job's command, with the GPUs that were taken."""
        chosen = taken.chosen
        self._keep(taken.lease)
        self._begin(chosen)
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
        """Hold the GPUs for some time, in which the session's start takes them over."""
        chosen, lease, seconds = taken.chosen, taken.lease, int(self._plan["hold"])
        held = {kind: getattr(chosen, kind) for kind in ("uuids", "places")}
        self._keep(lease)
        held.update(word=lease and lease.word, boot=lease and lease.boot)
        names, until = ", ".join(chosen.places), in_words(seconds)
        self._write({"held": held, "why": f"GPU {names}: held for a `jlr start`, at most {until}"})
        time.sleep(seconds)
        self.end(f"gave up: its GPUs were held for {until}, and no `jlr start` took them")
        return Busy.exit_code

    def create(self, taken: Taken) -> int:
        """Create and start the job's container, which is the job from then on; return a status."""
        ends: list[int] = []
        host, lease = self._wish.host, taken.lease
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
            self.end(f"not begun: {done.complaint}")
            return done.status
        if ends:
            run_script(host, self._plan["remove"])
            return 128 + ends[0]
        self._leases.clear()
        # In one step: `jlr runs` shows the container, if it does not show this folder.
        gone = self._folder.with_name(f".{self._folder.name}-{os.getpid()}")
        self._folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        return 0

    def end(self, why: str) -> None:
        """Say why the job ends without having begun."""
        self._write({"end": why})

    def _keep(self, lease: Lease | None) -> None:
        """Let the lease last as long as this process."""
        if lease is not None:
            self._wish.host.run({"keep": leases.keep(lease, *self._wish.process)})

    def _tell(self, place: int, why: str) -> None:
        self._write({"place": place, "why": why})

    def _write(self, told: dict[str, Any]) -> None:
        if told == self._told:
            return
        self._told = told
        new = self._folder / ".waiting"
        new.write_text(json.dumps({**self._first, **told}), "ascii")
        new.replace(self._folder / "waiting")

    def _begin(self, chosen: Chosen) -> None:
        (self._folder / "gpus").write_text(",".join(chosen.places), "utf-8")
        with (self._folder / "began").open("r+") as began:  # its room on the disk was taken before
            began.write(f"{time.time():.0f}\n")
        (self._folder / "waiting").unlink()


def _own_start() -> str:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]


def main(arguments: list[str]) -> int:
    """Wait, and become the command; else return an exit status."""
    folder, *command = arguments
    file = Path(folder, ".wait")
    plan = json.loads(file.read_text("utf-8"))
    file.unlink()
    Path(sys.argv[0]).unlink()  # all modules are loaded
    for end in ENDS:
        signal.signal(getattr(signal, end), _ended)
    waiter = Waiter(Path(folder), plan)
    try:
        taken = waiter.wait()
        if "hold" in plan:
            return waiter.hold(taken)
        if "create" in plan:
            return waiter.create(taken)
        waiter.become(taken, command)
    except JlrError as failure:
        waiter.end(f"gave up: {failure.message}")
        return failure.exit_code
    finally:
        waiter.give_up()


def _ended(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
