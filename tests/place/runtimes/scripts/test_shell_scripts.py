"""The script of a shell or command, with a stand-in for the engine that runs it here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jlremote.errors import Usage
from jlremote.place.host import process_mark
from jlremote.place.runtimes.bare import Bare
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Attachment, Runtime
from jlremote.place.runtimes.scripts import shell_scripts

# Runs what follows the container's name, and notes its own arguments.
ENGINE = """\
#!/bin/sh
printf '%s\\n' "$@" >>"$CALLS"
while [ "$1" != cont1 ]; do
  case $1 in --env=?*=*) export "${1#--env=}";; esac
  shift
done
shift
exec "$@"
"""


def run(
    tmp_path: Path, runtime: Runtime, *argv: str, how: Attachment | None = None
) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "docker"
    program.write_text(ENGINE)
    program.chmod(0o755)
    script = shell_scripts.script(runtime, "cont1", how or Attachment(), argv, "word")
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "HOME": str(tmp_path),
        "SHELL": "/bin/sh",
    }
    return subprocess.run(
        ("sh", "-c", script), input="echo from-stdin\n", env=environment,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def test_in_a_container_the_process_carries_its_mark(tmp_path: Path) -> None:
    show = 'echo "$0=$JLR_MARK $$"'
    done = run(tmp_path, Containers(DOCKER), "sh", "-c", show)
    mark, _, pid = done.stdout.strip().partition(" ")
    assert mark == f"sh=word:{pid}"
    assert process_mark.VARIABLE == "JLR_MARK"


def test_on_the_host_itself_it_carries_none(tmp_path: Path) -> None:
    assert run(tmp_path, Bare(), "sh", "-c", 'echo "[$JLR_MARK]"').stdout == "[]\n"


def test_the_engine_is_given_the_options(tmp_path: Path) -> None:
    how = Attachment(user="1000:50", workdir="/data", detach_keys="ctrl-q")
    run(tmp_path, Containers(DOCKER), "true", how=how)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert {"exec", "--interactive", "--user=1000:50", "--workdir=/data"} <= set(calls)
    assert "--detach-keys=ctrl-q" in calls
    assert "--tty" not in calls, "without a terminal bytes stay bytes"


def test_on_the_host_itself_a_folder_may_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "my data").mkdir()
    for typed in ("~/my data", f"{tmp_path}/my data"):
        done = run(tmp_path, Bare(), "pwd", how=Attachment(workdir=typed))
        assert done.stdout == f"{tmp_path}/my data\n"


@pytest.mark.parametrize(
    ("how", "option"),
    [(Attachment(user="root"), "--user"), (Attachment(detach_keys="ctrl-q"), "--detach-keys")],
)
def test_on_the_host_itself_options_of_containers_are_usage(how: Attachment, option: str) -> None:
    with pytest.raises(
        Usage, match=f"`{option}` is for a container of an engine, and `cont1` runs without one"
    ):
        shell_scripts.script(Bare(), "cont1", how, ("true",), "word")
