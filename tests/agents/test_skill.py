"""The skill file is short and true: each of its commands does on a real session what it says."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jlremote.cli.commands import this_machine
from jlremote.errors import JlrError
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import Result, wait_until
from tests.sessions.parts import started

LINES = [line for line in this_machine.skill().splitlines() if line.startswith("jlr ")]


def test_each_command_of_the_file_does_what_it_says_on_the_leash(
    laptop: Laptop, container: ContainerFactory
) -> None:
    session = started(laptop, container())
    project = laptop.folder / "home" / "project"
    project.mkdir()
    (project / "train.py").write_text("print('loss 0.5')\n")

    def ran(line: str) -> Result:
        words = ("env", f"JLR_LEASH=lab/{session.name}", "sh", "-c", f"cd project && {line}")
        return laptop.run(*words, timeout=120)

    def recorded(line: str) -> bool:
        return "loss 0.5" in ran(line).stdout

    run = ""
    told: dict[str, Any] = {}
    for line in LINES:
        typed = line.replace("dgx", "lab").replace("cont1", session.name)
        typed = re.sub("run-[0-9a-f]{12}", run, typed)
        if " output " in line:  # the recorder may come later
            wait_until(partial(recorded, typed), "the record of the run")
        done = ran(typed)
        if " gpus " in line:  # the lab's host has none
            assert "nvidia-smi" in json.loads(done.stderr)["error"], done
            continue
        assert done.status == 0, (typed, done)
        told[line] = json.loads(done.stdout) if "--json" in line else done.stdout
        run = told[line]["run"] if "exec" in line and "run" in told[line] else run
    assert told[LINES[0]]["state"] == "up"
    for line, shown in (("exec dgx/cont1 -c", "'42'"), ("exec dgx/cont1 train", "loss 0.5")):
        (answer,) = (each for typed, each in told.items() if line in typed)
        assert shown in str(answer["outputs"])
    assert (project / "train.log").read_text() == "loss 0.5\n"


def test_the_file_is_short_and_is_written_only_over_one_of_its_own(tmp_path: Path) -> None:
    assert len(this_machine.skill().splitlines()) <= 150
    assert this_machine.skill().startswith("---\nname: jlr\ndescription: ")
    for agent, folder in this_machine.AGENTS.items():
        path = this_machine.write_skill(agent, tmp_path)
        assert path == tmp_path / folder / "skills/jlr/SKILL.md"
        path.write_text("changed\n" + path.read_text())
        this_machine.write_skill(agent, tmp_path)
        assert path.read_text() == this_machine.skill()
        path.write_text("mine")
        with pytest.raises(JlrError, match="was not written by jlr"):
            this_machine.write_skill(agent, tmp_path)
        assert path.read_text() == "mine"
