"""The network of a container beside that of the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.doctor.session_checks import ASK, judge_network
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.kinds import DOCKER


def said(stdout: str = "", status: int = 0, stderr: str = "") -> Completed:
    return Completed(status, stdout, stderr)


def test_the_network_is_judged_by_that_of_containers() -> None:
    for on_host, inside, mark, word in (
        (0, 0, "ok", "reach pypi.org"),
        (0, 3, "warning", "cannot resolve"),
        (0, 4, "warning", "cannot connect"),
        (0, 124, "warning", "in 8 s"),
        (3, 3, "warning", "the host itself cannot resolve `pypi.org`"),
        (3, 5, "warning", "the host itself cannot resolve `pypi.org`"),
        (4, 4, "warning", "the host itself cannot connect to `pypi.org`"),
        (124, 124, "warning", "the host itself does not reach `pypi.org` in 8 s"),
        (0, 5, "skipped", "not tried in the container: it has neither Python nor `getent`"),
        (5, 3, "skipped", "not tried: it takes Python or `getent`"),
        (6, 3, "skipped", "not tried: the host reaches `pypi.org` by a proxy"),
        (0, 6, "skipped", "not tried: containers reach `pypi.org` by a proxy"),
    ):
        judged = judge_network(DOCKER, said(status=on_host), said(status=inside))
        assert judged.mark == mark
        assert word in judged.text
        assert bool(judged.mend) == (mark == "warning"), "a warning says what to do"
    for engine in (None, DOCKER):  # without a container to ask
        judged = judge_network(engine, said(), None)
        assert (judged.mark, judged.text) == ("ok", "the host reaches pypi.org")
    assert judge_network(None, said(status=3), None).mark == "warning"
    judged = judge_network(DOCKER, said(status=3), said(status=3))
    [told] = judged.mend
    assert told == (
        "`cat /etc/resolv.conf` there shows its name servers, `getent hosts pypi.org` tries them; "
        "where it is meant to use a proxy, set `https_proxy` in /etc/environment there"
    )


@pytest.mark.parametrize(
    ("python", "proxy", "status"),
    [
        ("exit 0", "", 0),
        ("exit 1", "", 3),
        ('case "$2" in *create_connection*) exit 1; esac', "", 4),
        ("exit 1", "http://proxy:3128", 6),
        ('case "$2" in *create_connection*) exit 1; esac', "http://proxy:3128", 6),
    ],
)
def test_names_are_asked_for_before_the_way_and_a_proxy_excuses_both(
    python: str, proxy: str, status: int, tmp_path: Path
) -> None:
    program = tmp_path / "python3"
    program.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "https_proxy": proxy}
    done = subprocess.run(["sh", "-c", ASK], env=environment, check=False)
    assert done.returncode == status
