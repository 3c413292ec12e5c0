"""The lab's parts are real, unprivileged, separate from other runs, and gone afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pexpect
import psutil
import pytest
from playwright.sync_api import BrowserContext

from tests.conftest import SSHServerFactory
from tests.lab import apptainer, images
from tests.lab.accounts import Account, claimed_account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine, running_engine
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.line import Line
from tests.lab.place import LabError, PrivateFolder, Say
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer

REPOSITORY = Path(__file__).parent.parent


def test_ssh_logs_in_as_the_lab_user_and_not_as_root(laptop: Laptop, account: Account) -> None:
    answer = laptop.ssh("lab", "id -un; id -u; pwd")
    assert answer.stdout.split() == [account.name, str(account.uid), str(account.home)], answer
    assert account.uid != 0


def test_docker_over_ssh_is_the_labs_engine(laptop: Laptop, container: ContainerFactory) -> None:
    here = container("lab/plain")
    answer = laptop.ssh("lab", "docker ps --format '{{.Names}}'")
    assert here.name in answer.stdout.split(), answer


def test_a_container_is_reached_at_its_bridge_address_from_the_host(
    laptop: Laptop, container: ContainerFactory
) -> None:
    web = container("lab/plain", "python3", "-m", "http.server", "8000")
    script = f"python3 -c \"import urllib.request as u; print(u.urlopen('http://{web.address}:8000').status)\""
    wait_until(
        lambda: laptop.ssh("lab", script).stdout.strip() == "200", "an answer from the container"
    )


def test_the_jupyter_image_runs_a_current_jupyterlab(laptop: Laptop) -> None:
    answer = laptop.ssh("lab", "docker run --rm lab/jupyter jupyter lab --version", timeout=60)
    assert int(answer.stdout.split(".")[0]) >= 4, answer


def test_apptainer_runs_the_labs_image_without_root(
    laptop: Laptop, engine: Engine, say: Say
) -> None:
    if reasons := apptainer.missing():
        pytest.skip("; ".join(reasons))
    image = apptainer.ensure(engine, say)
    path = apptainer.environment()["PATH"]
    answer = laptop.ssh(
        "lab", f"PATH={path} apptainer exec {image} sh -c 'id -u; jupyter --version'"
    )
    assert answer.stdout.split()[0] not in ("0", ""), answer
    assert "jupyterlab" in answer.stdout, answer


def test_the_plain_image_has_python_and_no_jupyter(laptop: Laptop) -> None:
    answer = laptop.ssh("lab", "docker run --rm lab/plain sh -c 'python3 -V; command -v jupyter'")
    assert answer.stdout.startswith("Python 3."), answer
    assert answer.status != 0
    assert "jupyter" not in answer.stdout


def test_the_broken_image_prints_why_and_ends(engine: Engine) -> None:
    answer = engine.try_docker("run", "--rm", "lab/broken", "jupyter", "lab")
    assert answer.status == 1
    assert len(answer.stderr.splitlines()) == 3, answer


def test_the_slow_image_starts_late_and_then_runs_the_real_jupyter(engine: Engine) -> None:
    began = time.monotonic()
    words = ("jupyter", "lab", "--version")
    version = engine.docker("run", "--rm", "--env", "LAB_DELAY=2", "lab/slow", *words)
    assert time.monotonic() - began > 2
    assert version == engine.docker("run", "--rm", "lab/jupyter", *words)


def test_the_engine_takes_the_options_for_gpus(engine: Engine) -> None:
    argv = (
        "run",
        "--rm",
        "--gpus",
        '"device=0,2"',
        "lab/plain",
        "printenv",
        "NVIDIA_VISIBLE_DEVICES",
    )
    assert engine.docker(*argv) == "0,2"


def test_pip_works_in_a_container(engine: Engine) -> None:
    pip = "/tmp/v/bin/pip download -q --no-deps -d /tmp/w click"
    script = f"python3 -m venv /tmp/v && {pip} && ls /tmp/w"
    assert engine.docker("run", "--rm", "lab/plain", "sh", "-c", script).startswith("click-")


def test_images_are_built_once(engine: Engine) -> None:
    said: list[str] = []
    images.ensure(engine, said.append)
    assert said == []


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


def test_two_accounts_at_once_are_two_users_with_the_shells_asked_for(
    engine: Engine, account: Account, sshd: SSHServer, keys: Keys, laptop: Laptop
) -> None:
    with claimed_account("/usr/bin/fish") as other:
        assert other.name != account.name
        laptop.add_host("fishy", sshd, other, key=keys.private)
        answer = laptop.ssh("fishy", "echo $version; id -un")
    assert answer.stdout.splitlines()[0].startswith("3."), answer
    assert answer.stdout.split()[-1] == other.name


def test_nothing_of_an_account_outlives_its_use(
    engine: Engine, sshd: SSHServer, keys: Keys
) -> None:
    with claimed_account() as other:
        argv = ("setsid", "--fork", "sleep", "600")
        subprocess.run(argv, user=other.uid, extra_groups=(), check=True)
        wait_until(lambda: bool(other.processes()), "the start of a process of the account")
    assert other.processes() == []


def test_an_sshd_restarted_keeps_its_port_and_keys(laptop: Laptop, sshd: SSHServer) -> None:
    sshd.restart()
    answer = laptop.ssh("lab", "echo back")
    assert answer.stdout == "back\n", answer


def test_dropped_connections_end_the_client_and_not_the_server(
    laptop: Laptop, another_sshd: SSHServerFactory, keys: Keys, account: Account
) -> None:
    server = another_sshd()
    laptop.add_host("second", server, account, key=keys.private)
    argv = ("ssh", "-F", str(laptop.ssh_config), "second", "echo here; sleep 60")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "here\n"
        server.drop_connections()
        assert client.wait(timeout=10) == 255
    assert laptop.ssh("second", "true").status == 0
    server.stop()
    assert laptop.ssh("second", "true").status == 255


def test_a_host_is_reached_through_a_line(
    laptop: Laptop, line: Line, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("far", sshd, account, key=keys.private, port=line.port)
    assert laptop.ssh("far", "echo through").stdout == "through\n"
    assert line.connections == 1
    line.take_down()
    assert "Connection refused" in laptop.ssh("far", "true").stderr


def test_a_password_lets_in_where_the_server_takes_passwords(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account
) -> None:
    laptop.add_host("password", another_sshd("PasswordAuthentication yes"), account)
    account.set_password("correct horse")
    with ask(laptop, "password") as terminal:
        terminal.expect("password: ")
        terminal.sendline("wrong")
        terminal.expect("try again")
        terminal.sendline("correct horse")
        terminal.expect("inside")


def test_a_one_time_code_is_good_once(
    laptop: Laptop, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    both = "AuthenticationMethods publickey,keyboard-interactive"
    server = another_sshd(both, one_time_codes=("12345678", "87654321"))
    laptop.add_host("codes", server, account, key=keys.private)
    for code, answer in (("12345678", "inside"), ("12345678", "code:"), ("87654321", "inside")):
        with ask(laptop, "codes") as terminal:
            terminal.expect("Verification code: ")
            terminal.sendline(code)
            terminal.expect(answer)
    assert server.codes is not None
    assert server.codes.remaining() == []


def ask(laptop: Laptop, alias: str) -> AbstractContextManager[pexpect.spawn[str]]:
    """Run `ssh` in a terminal, where it asks its questions."""
    return laptop.terminal("ssh", "-F", str(laptop.ssh_config), alias, "echo inside")


def test_an_unknown_host_key_is_not_accepted(
    laptop: Laptop, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.known_hosts.write_text("")
    answer = laptop.ssh("lab", "true")
    assert answer.status == 255
    assert "Host key verification failed" in answer.stderr


def test_a_laptop_ends_what_was_started_on_it(laptop: Laptop) -> None:
    laptop.run("sh", "-c", "setsid --fork sleep 600 >/dev/null 2>&1")
    wait_until(lambda: len(laptop.processes()) == 1, "the start of a process of the laptop")
    assert laptop.shut_down() == []
    assert laptop.processes() == []


def test_a_laptop_reports_processes_that_had_to_be_killed(laptop: Laptop) -> None:
    argv = ("sh", "-c", "trap '' TERM; echo; exec sleep 600")
    with subprocess.Popen(argv, env=laptop.environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert laptop.shut_down(patience=0.2)[0].startswith(f"{process.pid}: ")


def test_the_browser_of_a_laptop_records_what_it_opens(laptop: Laptop) -> None:
    laptop.run(sys.executable, "-m", "webbrowser", "http://127.0.0.1:1/a?b")
    assert laptop.opened() == ["http://127.0.0.1:1/a?b"]


def test_a_forked_jlr_says_and_returns_what_a_started_one_does() -> None:
    made = Laptop()
    made.environment["JLR_PORT"] = "8901"
    calls = (("config", "--json"), ("list",), ("bogus",), ("url", "ü"), ("--json", "login", "h"))
    with ThreadPoolExecutor() as pool:  # forks beside each other
        forked = list(pool.map(lambda words: made.jlr(*words), calls))
    assert forked == [made.run(str(PROGRAMS / "jlr"), *words) for words in calls]
    assert "8901" in forked[0].stdout
    with pytest.raises(LabError, match="took more than 0 s"):
        made.jlr("list", timeout=0.001)
    made.remove()


def test_containers_of_a_test_are_removed_and_no_others(engine: Engine) -> None:
    mine, theirs = ContainerFactory(engine, "lab-mine-"), ContainerFactory(engine, "lab-theirs-")
    try:
        mine("lab/plain")
        kept = theirs("lab/plain")
        assert mine.remove_all() == ["lab-mine-1"]
        assert kept.running
    finally:
        theirs.remove_all()


def test_a_second_user_of_the_engine_leaves_it_running(engine: Engine) -> None:
    with running_engine() as same:
        assert same.process() == engine.process()
    assert engine.answers()


def test_chromium_shows_a_page(chromium: BrowserContext, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto("data:text/html,<p id=x>6*7=</p><script>x.textContent+=6*7</script>")
    assert page.inner_text("#x") == "6*7=42"


def test_the_lab_by_hand_ends_with_ctrl_c_and_leaves_nothing(engine: Engine) -> None:
    argv = (sys.executable, "-m", "tests.lab", "up")
    with subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as playground:
        assert playground.stdout is not None
        lines = iter(playground.stdout.readline, "")
        hint = next(line for line in lines if "ssh -F" in line)
        config = Path(hint.split("-F ")[1].split()[0])
        assert config.exists()
        started = psutil.Process(playground.pid).children(recursive=True)
        assert started
        playground.send_signal(2)
        assert playground.wait(timeout=30) == 130
    assert not config.exists()
    assert [child for child in started if child.is_running()] == []
    assert engine.answers()


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
    left = Path(killed.stdout.strip())
    assert left.exists()
    PrivateFolder("next").remove()
    assert not left.exists()
    assert mine.path.exists()
    mine.remove()
