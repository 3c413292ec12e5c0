"""The mark by which a process in a container is found again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.place.host import process_mark


@contextmanager
def marked(word: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that marks itself, and one of its own that inherits the mark."""
    script = f"{process_mark.MARK_ITSELF}exec sh -c 'sleep 60 & echo begun; wait'"
    with subprocess.Popen(
        ("sh", "-c", script),
        env={**os.environ, process_mark.VARIABLE: word},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_signal_reaches_the_group_of_the_marked_process_and_no_other() -> None:
    with marked("one-word") as found, marked("one-word-more") as other:
        subprocess.run(process_mark.signal_argv("one-word", "TERM"), check=True, timeout=30)
        assert found.wait(timeout=30) == -signal.SIGTERM
        assert other.poll() is None


def test_a_signal_to_a_process_that_has_ended_reaches_nothing() -> None:
    argv = process_mark.signal_argv("a-word-of-no-process", "KILL")
    assert subprocess.run(argv, check=False, timeout=30, stderr=subprocess.PIPE).stderr == b""


def test_the_signal_may_follow_as_the_last_argument() -> None:
    assert process_mark.signal_argv("word", "HUP") == (*process_mark.signal_argv("word"), "HUP")
