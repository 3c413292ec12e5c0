"""A registry's key on its way to an engine: scripts run by the shell of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.images.registry_keys import with_key_to_login, with_keys
from jlremote.images.transfers import surviving_disconnect
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES, Engine
from tests.lab.programs import PATIENCE

CONFIG = '{"auths": {"nvcr.io": {"auth": "c2VjcmV0"}}}'


@pytest.fixture(autouse=True)
def no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Name a daemon, so that no docker is asked for one, and a place for folders."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///none")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def run(script: str, stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("sh", "-c", script),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_only_the_user_may_read_the_keys() -> None:
    look = 'ls -ld "$DOCKER_CONFIG" "$DOCKER_CONFIG/config.json" | cut -c 1-10'
    done = run(with_keys(DOCKER, lambda _: look), f"{CONFIG}\n")
    assert done.stdout.split() == ["drwx------", "-rw-------"]


def test_without_keys_on_stdin_the_command_is_not_run() -> None:
    done = run(with_keys(DOCKER, lambda _: "echo ran"), "")
    assert (done.returncode, done.stdout) == (74, "")


@pytest.mark.parametrize("key", ["secret", "with $HOME `id` \\ 'quotes\"", "ünï"])
def test_a_login_reads_the_key_as_it_is(key: str) -> None:
    assert run(with_key_to_login("cat"), f"{key}\n").stdout == f"{key}\n"


def test_behind_sudo_the_folder_is_named_on_the_command_line() -> None:
    told: list[Engine] = []

    def command(engine: Engine) -> str:
        told.append(engine)
        return "true"

    script = with_keys(ENGINES["sudo docker"], command)
    shown = command_line(told[0]("pull", "x"))
    assert "DOCKER_CONFIG=/tmp/jlr-" in shown
    assert shown.split("DOCKER_CONFIG=")[1].split()[0] in script
    assert "c2VjcmV0" not in script


def test_a_command_survives_the_end_of_its_reader(tmp_path: Path) -> None:
    done = tmp_path / "done"
    endless = f"i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i + 1)); done; touch {done}"
    script = surviving_disconnect(f"{{ {endless}; }}")
    with subprocess.Popen(("sh", "-c", script), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        process.wait(PATIENCE)
    assert done.exists()


def test_a_surviving_command_keeps_its_output_and_status() -> None:
    done = run(surviving_disconnect("{ echo out; echo err >&2; (exit 5); }"), "")
    assert (done.returncode, sorted(done.stdout.split())) == (5, ["err", "out"])
