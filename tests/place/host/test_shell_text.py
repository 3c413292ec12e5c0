"""Text for `sh`, run by the shells that hosts have, also behind `sudo`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from jlremote.place.host.shell_text import (
    KEEP_ODD_VARIABLES,
    TOOK_TOO_LONG,
    bounded,
    in_short,
    pause,
    stdin_of,
    typed_path,
    until_hang_up,
    wait_while,
)
from jlremote.place.host.sudo import SUDO, SUDO_IF_KNOWN, endable, given, programs
from tests.lab.programs import SYSTEM_PATH, lives, wait_until, write_program
from tests.place.host.parts import OLD_SUDO
from tests.place.host.shells import SHELLS, run_sh


@pytest.mark.parametrize("shell", SHELLS)
def test_waiting_ends_as_soon_as_the_condition_is_false(shell: str) -> None:
    text = wait_while('[ "$n" -lt 3 ]', 60, every=0.01, meanwhile="n=$((n + 1)); echo turn")
    done = run_sh(shell, f"n=0\n{text}echo after\n")
    assert done.stdout.split() == ["turn"] * 3 + ["after"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("too_long", "said", "status"),
    [("break", "after", 0), ("{ echo late; exit 7; }", "late", 7), ("exit 3", "", 3)],
)
def test_waiting_too_long_runs_the_given_command(
    shell: str, too_long: str, said: str, status: int
) -> None:
    text = wait_while("true", 0.03, every=0.01, too_long=too_long)
    done = run_sh(shell, f"{text}echo after\n")
    assert (done.stdout.strip(), done.returncode) == (said, status)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_variable_may_say_how_long_to_wait(shell: str) -> None:
    text = wait_while("true", "$1", every=0.01, meanwhile="echo turn", too_long="return 4")
    done = run_sh(shell, f"waits() {{\n{text}}}\nwaits 0; echo $?; set -- 1\n")
    assert done.stdout.split() == ["4"]


def test_a_pause_is_a_second_where_sleep_takes_whole_seconds_only() -> None:
    whole = 'sleep() { case $1 in *.*) echo "sleep: $1?" >&2; return 1;; esac; echo "slept $1"; }\n'
    done = run_sh("sh", whole + pause(0.1))
    assert (done.stdout.strip(), done.stderr) == ("slept 1", "")


def test_a_command_is_bounded_by_the_host_s_own_timeout() -> None:
    stand_in = f'timeout() {{ echo "bounded: $*"; return {TOOK_TOO_LONG}; }}\n'
    done = run_sh("sh", stand_in + bounded(("sleep", "30"), 1))
    assert (done.stdout, done.returncode) == ("bounded: 1 sleep 30\n", TOOK_TOO_LONG)


def test_a_host_without_timeout_runs_the_command_as_it_is() -> None:
    without = "command() { false; }\ntimeout() { echo never; }\n"
    assert run_sh("sh", without + bounded(("echo", "a b"), 1)).stdout == "a b\n"


ODD = {
    "app.mode": "it's\\ two\nlines'\n",
    "BASH_FUNC_hi%%": '() {  echo "hi"\n}',
    "a-b": "",
    "é": "ü",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("odd", [ODD, {}], ids=["odd", "none"])
def test_variables_with_names_that_are_not_for_shells_reach_a_command(
    shell: str, odd: dict[str, str]
) -> None:
    """One whose name is an option of `env` cannot, and it harms nothing."""
    script = f'{KEEP_ODD_VARIABLES}exec "$@"'
    environment = {"PATH": os.environ["PATH"], "OWN": "o w n", **odd, "-u": "OWN"}
    argv = (shell, "-c", script, shell, "env", "-0", "--")
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    found = dict(item.partition("=")[::2] for item in done.stdout.split("\0")[:-1])
    assert {name: found.get(name) for name in odd} == odd
    assert found["OWN"] == "o w n"
    assert "jlr_odd" not in found


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("/a/b", "/a/b"),
        ("/a b", "'/a b'"),
        ("~/my notes", "~/'my notes'"),
        ("~/x", "~/x"),
        ("~", "'~'"),
        ("~other/x", "'~other/x'"),
    ],
)
def test_a_path_is_shown_as_one_types_it(path: str, typed: str) -> None:
    assert typed_path(path) == typed


def test_a_script_is_shown_without_what_it_gives_to_stdin() -> None:
    secrets = "export A='s3same\nend-0123456789abcdef\n'\n", "s3same\n"
    script = "".join(f"cat {stdin_of(text)}echo done\n" for text in secrets)
    assert run_sh("sh", script).stdout == "".join(f"{text}done\n" for text in secrets)
    shown = in_short(script)
    assert "s3same" not in shown
    assert (shown.count("…\nend-"), shown.count("\necho done\n")) == (2, 2)
    assert in_short("cat <<'END'\nseen\nEND\n") == "cat <<'END'\nseen\nEND\n"


@pytest.mark.lab  # it takes seconds
def test_a_command_ends_though_sudo_passes_on_no_signals(tmp_path: Path) -> None:
    sudo = tmp_path / "sudo"
    write_program(sudo, OLD_SUDO)
    text = until_hang_up(endable((*SUDO, "sh", "-c", "echo $$; sleep 600")))
    with subprocess.Popen(
        ("sh", "-c", text),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": f"{tmp_path}:{SYSTEM_PATH}"},
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        process = psutil.Process(int(shell.stdout.readline()))
        shell.stdin.close()
        wait_until(lambda: not lives(process), "the end of what `sudo` runs")
        for sleeping in psutil.process_iter(["ppid"]):
            assert sleeping.info["ppid"] != process.pid


def test_a_script_needs_a_password_only_for_programs_behind_sudo() -> None:
    assert programs("sudo -A -k docker ps; timeout 5 sudo -A -k A=b podman ps") == {
        "docker",
        "podman",
    }
    assert programs("sudo -n -k docker ps; sudo -k -A docker; docker run sudo") == set()
    assert programs("sudo -n -k podman; sudo -k -A docker ps", SUDO_IF_KNOWN) == {"docker"}
    assert given("true\n", "it's").endswith("true\n")
