"""Runs a command whose orphans become children of this process, until the command ends.

Orphans are processes that outlive their parent. The kernel gives them to process 1, and one that
also left its job's group and mark could not be told from other programs. Linux has "subreapers"
for it (prctl(2)).

As a program it does so in a container, where the arguments are a word and the command. SIGTERM
tells it that all is to end: after the command it ends what that has left. The command ends at a
signal to its group, this process does not.
"""

import contextlib
import os
import signal
import time
from typing import Callable, List

_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_CAUGHT = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
# Python ignores the first two, and programs inherit what is ignored.
_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *_CAUGHT)
_TURN_SECONDS, _TERM_TURNS, _TURNS = 0.2, 10, 40


class Adopter:
    """This process as the parent of orphans."""

    def __init__(self) -> None:
        self.ends_all = False
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for each in _CAUGHT:
            signal.signal(each, self._note)

    def _note(self, number: int, _frame: object) -> None:
        self.ends_all = self.ends_all or number == signal.SIGTERM

    def wait(self, child: int) -> int:
        """Wait for a child and return its exit code, 128 + N for signal N."""
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == child:
                killed = os.WIFSIGNALED(status)
                code: int = 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
                return code

    def end_rest(self) -> None:
        """End all children if that was asked for: SIGTERM, and SIGKILL after two seconds.

        All that the command began is a child, or becomes one with the end of its parent.
        """
        for turn in range(_TURNS if self.ends_all else 0):
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            pids = map(int, filter(str.isdigit, os.listdir("/proc")))
            rest = [pid for pid in pids if facts(pid)[1:2] == [str(os.getpid())]]
            for pid in rest:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGTERM if turn < _TERM_TURNS else signal.SIGKILL)
            if not rest:
                return
            time.sleep(_TURN_SECONDS)


def begin(command: List[bytes], prepare: Callable[[], object]) -> int:
    """Begin a command in a new process, after `prepare` there; return its number."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _CAUGHT)
    child: int = os.fork()
    if not child:
        try:
            prepare()
            become(command)
        finally:
            os._exit(127)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def become(command: List[bytes]) -> None:
    """Run a command in place of this process, with no signal caught, ignored or blocked.

    A shell says what is wrong with one that cannot be run, and runs one that has no `#!`.
    """
    for each in _DEFAULT:
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _CAUGHT)
    try:
        os.execvp(command[0], command)  # noqa: S606 - there is no shell between
    except OSError as failure:
        if isinstance(failure, FileNotFoundError) and b"/" not in command[0]:
            os.write(2, command[0] + b": command not found\n")
            os._exit(127)
        os.execv("/bin/sh", [b"sh", b"-c", b'exec "$@"', b"sh", *command])  # noqa: S606


def facts(pid: int) -> List[str]:
    """Return the fields of `/proc/PID/stat` from the state on; none of an ended process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[:1] == ["Z"] else fields


def main(arguments: List[str]) -> int:
    """Run the command behind the first argument, and end as it does."""
    adopter = Adopter()
    code = adopter.wait(begin([os.fsencode(word) for word in arguments[1:]], lambda: None))
    adopter.end_rest()
    return code
