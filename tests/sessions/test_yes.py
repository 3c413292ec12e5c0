"""What deletes or ends work wants a yes in a script, and names what would be lost."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pytest

from tests.cli.tree import COMMANDS, command
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import started

# Each command that asks, as it would destroy something here, and what it names: SESSION, IMAGE, JOB
# (which runs), ENDED (which has ended) and FOLDER (in use) are those of `Here`.
DESTROYING: dict[str, list[tuple[str, ...]]] = {
    "stop": [("SESSION", "--force"), ("SESSION", "--container"), ("--all",)],
    "rm": [("SESSION",)],
    "restart": [("SESSION", "--force"), ("SESSION", "--container")],
    "job list": [("lab", "--clean")],
    "job stop": [("JOB", "--force")],
    "job rm": [("JOB",), ("ENDED",)],
    "mount": [("--unmount", "FOLDER", "--force"), ("--unmount", "--all")],
    "disconnect": [("lab",), ("--all",)],
    "image rm": [("lab", "IMAGE:one")],
    "image prune": [("lab",)],
    "config ssh": [("remove",)],
}
NAMED = {
    "stop": "the kernel of `nb.ipynb`",
    "rm": "the kernel of `nb.ipynb`",
    "restart": "the kernel of `nb.ipynb`",
    "job list": "ENDED",
    "job stop": "JOB: sleep 600",
    "job rm": "lab/",
    "mount": "FOLDER",
    "disconnect": "sleep 601'` in lab",
    "image rm": "IMAGE:one",
    "image prune": "PRUNED",
    "config ssh": ".ssh/config",
}
# These end and delete nothing, or no more than they are told to by its name: `cp`, as scp, and
# `image build` and `image save`, as docker, give a name that is there to something else; `output`
# wants `--force` for that.
OTHERS = {
    *(
        "start",
        "open",
        "url",
        "list",
        "logs",
        "output",
        "shell",
        "run",
        "exec",
        "cp",
        "sync",
        "forward",
        "code",
    ),
    *("job logs", "job attach", "wait", "image list", "image pull", "image build"),
    *("image save", "image push", "image login", "local lab", "local kernels", "gpus", "doctor"),
    *("config show", "config set", "config notify", "demo", "completion", "proxy"),
    *("agent install", "mcp"),
}


@dataclass(frozen=True)
class Here:
    """A laptop with something of each kind to lose."""

    laptop: Laptop
    names: dict[str, str]

    def meant(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(name, value)
        return text


@pytest.fixture(scope="module")
def here(engine: Engine, file_laptop: Laptop, containers: ContainerFactory) -> Iterator[Here]:
    laptop, ends = file_laptop, ExitStack()
    with ends:
        container = containers("lab/jupyter")
        session = started(laptop, container)
        ends.enter_context(session.notebook("nb.ipynb"))
        jobs = [f"{container.name}-{each}" for each in ("job", "ended")]
        for job, words in zip(jobs, (("sleep", "600"), ("true",)), strict=True):
            begin = ("run", "lab", "--runtime", "none", "--name", job, "--detach", "--", *words)
            assert laptop.jlr(*begin).status == 0
            ends.callback(laptop.jlr, "job", "rm", f"lab/{job}", "--force", "--yes")
        wait_until(lambda: "ended" in laptop.jlr("job", "list", "lab").stdout, "the job's end")
        names = {"SESSION": f"lab/{session.name}", "ENDED": f"lab/{jobs[1]}"}
        names |= {"JOB": f"lab/{jobs[0]}", "FOLDER": mounted(laptop, ends)}
        names |= images(engine, container, ends)
        assert laptop.jlr("config", "ssh", "install", "--yes").status == 0
        shell = laptop.popen("shell", "lab", "echo begun; sleep 601", stdout=subprocess.PIPE)
        ends.callback(shell.communicate)
        ends.callback(shell.kill)
        assert shell.stdout.readline() == b"begun\n"
        yield Here(laptop, names)


def mounted(laptop: Laptop, ends: ExitStack) -> str:
    folder = laptop.folder / "home" / "mounted"
    assert laptop.jlr("mount", str(folder), "lab:.").status == 0
    ends.callback(laptop.jlr, "mount", "--unmount", str(folder), "--force", "--yes")
    user = ends.enter_context(subprocess.Popen(("sleep", "602"), cwd=folder))
    ends.callback(user.kill)
    return str(folder)


def images(engine: Engine, container: Container, ends: ExitStack) -> dict[str, str]:
    name = f"lab-yes-{secrets.token_hex(4)}"
    named = engine.docker("commit", container.name, f"{name}:one").strip()
    unnamed = engine.docker("commit", "--message", name, container.name).strip()
    for image in (named, unnamed):
        ends.callback(engine.try_docker, "image", "rm", image)
    return {"IMAGE": name, "PRUNED": unnamed.removeprefix("sha256:")[:12]}


@pytest.mark.parametrize(
    ("path", "words"), [(path, words) for path, each in DESTROYING.items() for words in each]
)
def test_a_script_is_refused_without_a_yes_and_told_what_would_be_lost(
    here: Here, path: str, words: tuple[str, ...]
) -> None:
    refused = here.laptop.jlr(*path.split(), *map(here.meant, words))
    assert refused.status == 1, refused
    assert here.meant(NAMED[path]) in refused.stderr, refused
    assert "`--yes`" in refused.stderr, refused


def test_no_input_on_a_terminal_is_no_yes_either(here: Here) -> None:
    job = here.names["JOB"]
    with here.laptop.terminal("jlr", "job", "rm", job, "--no-input") as screen:
        screen.expect_exact(f"this would be lost: the running job {job}: sleep 600")
        screen.expect(pexpect.EOF)


def test_after_all_refusals_everything_is_there(here: Here, engine: Engine) -> None:
    laptop, names = here.laptop, here.names
    assert laptop.jlr("url", names["SESSION"]).status == 0
    listed = laptop.jlr("job", "list", "lab").stdout
    assert all(names[job].removeprefix("lab/") in listed for job in ("JOB", "ENDED"))
    assert Path(names["FOLDER"]).is_mount()
    for image in [f"{names['IMAGE']}:one", names["PRUNED"]]:
        assert engine.try_docker("image", "inspect", image).status == 0


def test_each_command_asks_or_is_known_to_destroy_nothing_unasked() -> None:
    assert {*DESTROYING, *OTHERS} == set(COMMANDS)
    asking = {path for path in COMMANDS if "yes" in [each.name for each in command(path).params]}
    assert asking == set(DESTROYING)
