"""What the commands about jobs, mounts and shells pass on, and what they print."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.errors import LinkLost
from jlremote.hosts.requests import Scheduled, StopRequest
from jlremote.laptop import sessions
from jlremote.laptop.sessions import MountRecord, SessionRecord
from jlremote.mounts.known_mounts import MountReport
from jlremote.mounts.mount import MountRequest
from jlremote.place.clusters.scheduler import Resources
from jlremote.place.host.job import Job
from jlremote.place.runtimes.place import Place
from tests.cli.conftest import Jlr, Workflows, settle

TRAIN = Job("train-3f2a", "running", "python train.py", since=time.time() - 7300, gpus="0,1")
ENDED = Job("sweep", "ended", "./sweep.sh", exit_code=3, container="sweep")
MOUNT = MountReport(MountRecord("/home/me/proj", "/raid/me", "dgx", "cont1", None, False, 0), "up")
FOUND = SimpleNamespace(job=TRAIN, selector="dgx/train-3f2a", host=SimpleNamespace(name="dgx"))


def test_jobs_are_listed_with_their_exit_codes(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("jobs.known_jobs.listed", [("dgx", TRAIN), ("lab", ENDED)])
    heading, train, sweep = jlr("job", "list").stdout.splitlines()
    assert heading.split() == ["JOB", "HOST", "STATE", "SINCE", "GPUS", "WHERE", "COMMAND"]
    assert train.split()[:5] == ["train-3f2a", "dgx", "running", "2h", "0,1"]
    assert sweep.split() == ["sweep", "lab", "exit", "3", "sweep", "./sweep.sh"]
    facts = json.loads(jlr("job", "list", "--json").stdout)
    assert facts == [{"host": "dgx"} | TRAIN.to_json(), {"host": "lab"} | ENDED.to_json()]
    assert re.fullmatch(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}Z", facts[0]["since"])


HPC = """
[defaults]
image = "an-engines"
[hosts.hpc]
slurm = true
account = "physics"
nodes = 2
gres = "gpu:1"
module = ["CUDA/12", "Python"]
[profiles.big]
gres = "gpu:8"
time = "8:00:00"
sbatch-arg = ["--mail-type=END"]
"""


@pytest.mark.parametrize(
    ("words", "wanted", "modules"),
    [
        ((), Resources(account="physics", nodes="2", gres="gpu:1"), ("CUDA/12", "Python")),
        (
            ("--account", "", "--profile", "big", "--nodes", "1", "--module", "R"),
            Resources(nodes="1", gres="gpu:1", time="8:00:00", arguments=("--mail-type=END",)),
            ("CUDA/12", "Python", "R"),
        ),
        (
            ("--gres", "", "--nodes", "", "--module", "", "--module", "R"),
            Resources(account="physics"),
            ("R",),
        ),
    ],
)
def test_what_a_job_asks_for_comes_from_the_settings_unless_a_flag_says_more(
    words: tuple[str, ...],
    wanted: Resources,
    modules: tuple[str, ...],
    jlr: Jlr,
    workflows: Workflows,
    laptop: Path,
) -> None:
    settle(laptop, HPC)
    workflows.will("jobs.begin.run", [FOUND])
    workflows.will("jobs.follow.follow", (0, FOUND))
    assert jlr("run", "hpc", *words, "--", "true").code == 0
    request = workflows.arguments("jobs.begin.run")[0]
    assert request.scheduled == Scheduled(wanted, modules)
    assert request.wanted.image is None
    workflows.calls.clear()
    outcome = jlr("run", "hpc", "--no-slurm", "--runtime", "none", "--", "true")
    assert outcome.code == 0
    assert workflows.arguments("jobs.begin.run")[0].scheduled is None


@pytest.mark.parametrize("command", [("job", "attach", "train"), ("run", "dgx", "--", "true")])
def test_a_job_as_json_is_told_at_its_end(
    command: tuple[str, ...], jlr: Jlr, workflows: Workflows
) -> None:
    def shown(
        found: Any, show: Callable[[str, bytes], None], *_: Any, **__: Any
    ) -> tuple[int, Any]:
        workflows.will("jobs.known_jobs.find", LinkLost("the host is asked no more"))
        show("stdout", b"begun\n")
        return 1, SimpleNamespace(job=ENDED, host=FOUND.host)

    workflows.will("jobs.known_jobs.find", FOUND)
    workflows.will("jobs.begin.run", [FOUND])
    workflows.will("jobs.follow.follow", shown)
    outcome = jlr(*command[:2], "--json", *command[2:])
    assert (outcome.code, outcome.stderr) == (1, "begun\n")
    assert json.loads(outcome.stdout) == {"host": "dgx"} | ENDED.to_json()


@pytest.mark.parametrize(("argv", "removed"), [(("--rm",), 1), ((), 0)])
def test_a_job_is_removed_after_its_end_only_with_rm(
    argv: tuple[str, ...], removed: int, jlr: Jlr, workflows: Workflows
) -> None:
    found = SimpleNamespace(job=replace(TRAIN, state="waiting"), selector="dgx/x")
    at_end = SimpleNamespace(job=replace(ENDED, remove=bool(removed)), host=FOUND.host)
    for name, answer in (
        ("begin.run", [found]),
        ("follow.follow", (0, at_end)),
        ("known_jobs.remove", None),
    ):
        workflows.will(f"jobs.{name}", answer)
    assert jlr("run", "dgx", *argv, "--", "true").code == 0
    request = workflows.arguments("jobs.begin.run")[0]
    assert request.remove == bool(removed)
    assert request.wanted.options.remove is None, "the engine must keep it until it is read"
    deleted = [given for name, given, _ in workflows.calls if name == "jobs.known_jobs.remove"]
    assert deleted == [(at_end,)] * removed, "what it became after its wait"


def test_a_job_is_stopped_by_name_and_has_no_container(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("jobs.known_jobs.meant", FOUND)
    workflows.will("jobs.known_jobs.stop", ["stopped", "deleted"])
    assert jlr("rm", "train").stdout == "dgx/train-3f2a: stopped, deleted\n"
    assert workflows.arguments("jobs.known_jobs.stop")[1] == StopRequest(remove=True)
    refused = jlr("stop", "train", "--container")
    assert refused.code == 2
    assert "`train` is a job" in refused.stderr


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        (("~/x", "me@dgx:/raid"), MountRequest("~/x", None, "/raid", True, host="me@dgx")),
        (("dgx:work", "x"), MountRequest("x", None, "work", True, host="dgx")),
        (("dgx:", "./a:b"), MountRequest("./a:b", None, "~", True, host="dgx")),
        (("dgx/cont1:/data", "x"), MountRequest("x", "dgx/cont1", "/data")),
        (("~/x", "cont1:data"), MountRequest("~/x", "cont1", "data")),
        (("x", "cont1:"), MountRequest("x", "cont1")),
        (("x", "me@dgx/other:/data"), MountRequest("x", "me@dgx/other", "/data")),
        (("./data/x:y",), MountRequest("./data/x:y")),
        (("dgx/cont1", "~/x"), MountRequest("~/x", "dgx/cont1")),
        (("cont1", "x"), MountRequest("x", "cont1")),
        (("unknown", "~/x"), MountRequest("~/x", "unknown")),
        (("x", "cont1"), MountRequest("x", "cont1")),
        (("x", "y"), MountRequest("x", "y")),
    ],
)
def test_what_is_mounted_may_come_before_the_local_folder(
    words: tuple[str, ...], request_: MountRequest, jlr: Jlr, workflows: Workflows
) -> None:
    sessions.save(SessionRecord("dgx", "cont1", "docker", 8888))
    workflows.will("mounts.mount.mount", MOUNT)
    assert jlr("mount", *words).code == 0
    assert workflows.arguments("mounts.mount.mount")[0] == request_


def test_without_a_folder_the_mounts_are_listed(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("mounts.known_mounts.reports", [MOUNT])
    heading, line = jlr("mount").stdout.splitlines()
    assert heading.split("  ")[0] == "MOUNTED AT"
    assert line.split() == ["/home/me/proj", "dgx:/raid/me", "cont1", "up"]
    workflows.will("mounts.known_mounts.reports", [])
    assert jlr("mount").stderr.startswith("nothing is mounted; `jlr mount LOCAL`")
    for words in ("--read-only", "dgx:/raid"):
        refused = jlr("mount", words)
        assert (refused.code, "LOCAL is missing" in refused.stderr) == (2, True)


def test_unmount_needs_a_folder_or_all_and_tells_each(jlr: Jlr, workflows: Workflows) -> None:
    assert [jlr("mount", "--unmount", *argv).code for argv in ((), ("x", "--all"))] == [2, 2]
    workflows.will("mounts.known_mounts.unmount", "/home/me/x")
    assert jlr("mount", "--unmount", "x").stdout == "unmounted /home/me/x\n"
    workflows.will("mounts.known_mounts.unmount_all", ["/a", "/b"])
    assert jlr("mount", "--unmount", "--all", "--force").stdout == "unmounted /a\nunmounted /b\n"
    assert workflows.calls[-1][2] == {"force": True, "yes": False}
    workflows.will("mounts.known_mounts.unmount_all", [])
    assert jlr("mount", "--unmount", "--all").stderr == "nothing is mounted\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("cont1", "htop"), "htop"),
        (("cont1", "-u", "root", "rsync", "--server", "-v", ".", "a b"), "rsync --server -v . a b"),
        (("-u", "root", "cont1", "git-upload-pack '/a b'"), "git-upload-pack '/a b'"),
        (("cont1", "-uroot", "git", "log", "--", "a"), "git log -- a"),
        (("cont1", "-u", "root"), None),
        (("cont1",), None),
    ],
)
def test_a_shell_takes_a_line_without_two_dashes_as_ssh_does(
    words: tuple[str, ...], line: str | None, jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("sessions.shell.shell", 0)
    assert jlr("shell", *words).code == 0
    request, _, _ = workflows.arguments("sessions.shell.shell")
    command = () if line is None else ("sh", "-c", line)
    assert (request.where, request.command) == ("cont1", command)


def test_an_editor_of_the_settings_that_is_missing_is_named_as_a_setting(
    jlr: Jlr, workflows: Workflows, laptop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(laptop, "[defaults]\neditor = 'zed'\n")
    workflows.will("editors.code.place_of", (None, Place("docker", "cont1", selector="dgx/cont1")))
    monkeypatch.setenv("PATH", str(laptop))
    missing = jlr("code", "cont1", "/data")
    assert missing.code == 6
    assert "Zed is not installed here" in missing.stderr
    assert "or choose another editor by `editor` of `[defaults]`" in missing.stderr
    flag = jlr("code", "cont1", "/data", "--editor", "cursor").stderr
    assert "Cursor is not installed here" in flag
    assert "or choose another editor by `--editor`" in flag
