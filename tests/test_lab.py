"""The lab's parts are real, unprivileged, separate from other runs, and gone afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.lab import images
from tests.lab.accounts import Account, claimed_account
from tests.lab.engine import Engine
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.place import LabError, PrivateFolder
from tests.lab.programs import PATIENCE, wait_ended, wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.long import LONG

REPOSITORY = Path(__file__).parent.parent


def test_ssh_logs_in_as_the_lab_user_and_not_as_root(laptop: Laptop, account: Account) -> None:
    answer = laptop.ssh("lab", "id -un; id -u; pwd")
    assert answer.stdout.split() == [account.name, str(account.uid), str(account.home)], answer
    assert account.uid != 0


def test_a_recipe_that_changed_changes_the_images_that_stand_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, line in (("plain", "FROM lab/debian"), ("jupyter", "FROM lab/plain")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(f"{line}\n")
    monkeypatch.setattr(images, "RECIPES", tmp_path)
    before = images.recipe_hash("lab/jupyter")
    (tmp_path / "plain" / "Dockerfile").write_text("FROM lab/debian\nRUN true\n")
    assert images.recipe_hash("lab/jupyter") != before


def test_nothing_of_an_account_outlives_its_use(
    engine: Engine, sshd: SSHServer, keys: Keys
) -> None:
    with claimed_account() as other:
        argv = ("setsid", "--fork", "sleep", "600")
        subprocess.run(argv, user=other.uid, extra_groups=(), check=True)
        wait_until(lambda: bool(other.processes()), "the start of a process of the account")
    assert other.processes() == []


def test_a_laptop_reports_processes_that_had_to_be_killed(laptop: Laptop) -> None:
    argv = ("sh", "-c", "trap '' TERM; echo; exec sleep 600")
    with subprocess.Popen(argv, env=laptop.environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert laptop.shut_down(patience=0.2)[0].startswith(f"{process.pid}: ")


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


def test_the_folder_of_a_killed_run_is_deleted_by_the_next() -> None:
    mine = PrivateFolder("mine")
    script = """
import os
from tests.lab.place import LabError, PrivateFolder, Say
print(PrivateFolder("killed").path, flush=True)
os.kill(os.getpid(), 9)
"""
    argv = (sys.executable, "-c", script)
    killed = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    left = Path(killed.stdout.splitlines()[-1])  # it may have waited first, and said so
    assert left.exists()
    PrivateFolder("next").remove()
    assert not left.exists()
    assert mine.path.exists()
    mine.remove()


def test_a_link_that_a_forked_command_begins_is_as_if_it_had_been_started(laptop: Laptop) -> None:
    assert laptop.jlr("list", "lab").status == 0
    [link] = laptop.processes()
    assert link.cmdline()[-4:] == ["-m", "jlremote.link", "lab", str(laptop.ssh_config)]
    assert laptop.environment.items() <= link.environ().items()
    assert os.getsid(link.pid) == link.pid, "a session of its own"
    assert link.cwd() == "/"
    assert link.open_files()
    for file in link.open_files():  # and none of the process that it was forked from
        assert Path(file.path).is_relative_to(laptop.folder)
