"""The lab's parts are real, unprivileged, separate from other runs, and gone afterwards."""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.lab.engine import Engine
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.place import LabError
from tests.lab.programs import PATIENCE, wait_ended, wait_until
from tests.long import LONG

REPOSITORY = Path(__file__).parent.parent


@pytest.mark.lab  # it takes seconds
def test_a_forked_jlr_says_and_returns_what_a_started_one_does() -> None:
    made = Laptop()
    made.environment["JLR_PORT"] = "8901"
    calls = (
        ("config", "--json"),
        ("list",),
        ("bogus",),
        ("url", "ü"),
        ("--json", "image", "login", "h"),
    )
    with ThreadPoolExecutor() as pool:  # forks beside each other
        forked = list(pool.map(lambda words: made.jlr(*words), calls))
    assert forked == [made.run(str(PROGRAMS / "jlr"), *words) for words in calls]
    assert "8901" in forked[0].stdout
    settings = Path(made.environment["XDG_CONFIG_HOME"]) / "jlr" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(settings)  # to read it waits for somebody who writes
    with pytest.raises(LabError, match="took more than 1 s"):
        made.jlr("config", timeout=1)
    made.remove()


@pytest.mark.parametrize("shell", ["/bin/bash", LONG("/bin/sh")])
def test_a_shell_in_the_lab_has_jlr_and_a_host_and_leaves_nothing(
    engine: Engine, shell: str
) -> None:
    environment = {**os.environ, "SHELL": shell, "TERM": "dumb"}
    opened = pexpect.spawn(
        sys.executable,
        ["-m", "tests.lab"],
        cwd=str(REPOSITORY),
        env=environment,
        encoding="utf-8",
        timeout=90,
    )
    opened.expect(r"laptop:\s+(\S+) ")
    assert isinstance(opened.match, re.Match)
    folder = Path(opened.match[1])
    opened.expect(r"\(lab\).*\$ ")
    opened.sendline("jlr start lab work --json; echo ended=$?")
    opened.expect("ended=0")
    opened.sendline("jlr list --json | grep '\"state\"'; docker ps --format 'name={{.Names}}'")
    opened.expect('"state": "up"')
    opened.expect(r"name=(jlrlab\d+-work)\s")
    assert isinstance(opened.match, re.Match)
    name = opened.match[1]
    started = psutil.Process(opened.pid).children(recursive=True)
    opened.sendline("exit 3")
    opened.expect(pexpect.EOF)
    opened.close()
    assert opened.exitstatus == 3
    assert not folder.exists()
    assert wait_ended(started, PATIENCE) == []

    def left() -> str:
        lists = (("ps", "--all"), ("network", "ls"))
        return "".join(engine.docker(*w, "--quiet", "--filter", f"name={name}") for w in lists)

    wait_until(lambda: not left(), "the end of a removal that may be under way")
