"""Completion in the real shells, and the candidates of a line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jlremote.cli.completion import shell_answers as shells
from jlremote.editors import ssh_config as ssh_config_line
from jlremote.laptop.known_names import host_names
from jlremote.questions import NeverAsks
from tests.cli.conftest import Jlr, remember, settle
from tests.cli.terminal import Terminal
from tests.long import LONG

SCRIPTS = Path(__file__).parents[2] / "completions"  # links to the files that the package ships


@pytest.mark.parametrize("shell", shells.SCRIPTS)
def test_the_script_of_a_shell_names_its_shell_and_calls_jlr(shell: str, jlr: Jlr) -> None:
    outcome = jlr("completion", shell)
    assert outcome.code == 0
    assert f"# Completion of jlr for {shell}" in outcome.stdout
    assert f"_JLR_COMPLETE={shell}_complete" in outcome.stdout


@pytest.fixture
def ssh_config(laptop: Path) -> Path:
    folder = laptop / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "config").write_text(
        "Include conf.d/*.conf\n"
        "Host dgx dgx-old *.lab !bad  # a comment\n"
        "    User me\n"
        "Host=login\n"
        "Match host x\n"
        "INCLUDE config\n"
    )
    (folder / "conf.d" / "lab.conf").write_text('host\t"gpu.lab.org"\n')
    return folder / "config"


def test_hosts_come_from_the_ssh_config_and_what_it_includes(ssh_config: Path) -> None:
    assert host_names(str(ssh_config)) == ["gpu.lab.org", "dgx", "dgx-old", "login"]


def test_without_an_ssh_config_there_are_no_hosts(laptop: Path) -> None:
    assert host_names(str(laptop / "missing")) == []


Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, ssh_config: Path) -> Complete:
    """Complete a line as a shell's script would, and return the candidates."""
    remember(("dgx", "cont1"), ("login", "cont2"), ("gpu.lab.org", "twin"), ("dgx", "twin"))

    def candidates(line: str) -> list[str]:
        monkeypatch.setenv("COMP_LINE", line)
        from jlremote.cli.program import jlr

        completer = shells.Bash(jlr, {}, "jlr", "_JLR_COMPLETE")
        return [item.value for item in completer.get_completions(*completer.get_completion_args())]

    return candidates


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("jlr st", ["start", "status", "stop"]),
        ("jlr start ", ["gpu.lab.org", "dgx", "dgx-old", "login"]),
        ("jlr start d", ["dgx", "dgx-old"]),
        ("jlr start me@d", ["me@dgx", "me@dgx-old"]),
        ("jlr start dgx ", ["cont1", "twin"]),
        ("jlr --verbose --no-input start dgx c", ["cont1"]),
        ("jlr open ", ["cont1", "cont2", "gpu.lab.org/twin", "dgx/twin"]),
        ("jlr stop c", ["cont1", "cont2"]),
        ("jlr status dgx/", ["dgx/cont1", "dgx/twin"]),
        ("jlr shell d", ["dgx/cont1", "dgx/twin", "dgx", "dgx-old"]),
        (
            "jlr start dgx --runtime ",
            ["auto", "docker", "podman", "nvidia-docker", "apptainer", "singularity", "none"],
        ),
        ("jlr start dgx --runtime=d", ["--runtime=docker"]),
        ("jlr stop --r", ["--remove"]),
        ("jlr completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_a_line_completes_to_its_candidates(
    line: str, candidates: list[str], complete: Complete
) -> None:
    assert complete(line) == candidates


def test_another_ssh_config_gives_other_hosts(complete: Complete, laptop: Path) -> None:
    (laptop / "other").write_text("Host elsewhere\n")
    assert complete(f"jlr --ssh-config {laptop}/other start e") == ["elsewhere"]


def test_profiles_and_pools_come_from_the_settings(complete: Complete, laptop: Path) -> None:
    config = settle(laptop, "[profiles.torch]\n[profiles.jax]\n[pools.lab]\nhosts = ['dgx']\n")
    assert complete("jlr start dgx --profile t") == ["torch"]
    assert complete("jlr gpus @") == ["@lab"]
    assert complete("jlr proxy c") == ["cont1.jlr", "cont2.jlr"]
    assert "twin.dgx.jlr" in complete("jlr proxy t")
    config.write_text("not toml")
    assert complete("jlr start dgx --profile t") == []


def test_unreadable_state_has_no_candidates(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    assert complete("jlr open ") == []
    assert "dgx" in complete("jlr start ")


# Completes the names of hosts for `ssh`, which bash by itself does not.
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
START = {
    "bash": ("bash", "--noprofile", "--norc", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "-i"),
}
PREPARE = {
    "bash": f"PS1='ready> '; source {BASH_COMPLETION}\nsource {{folder}}/jlr.bash\n",
    "zsh": "PS1='ready> '; bindkey -e\n"
    "fpath=({folder} $fpath); autoload -U compinit; compinit -D\n",
    "fish": "function fish_prompt; echo 'ready> '; end; source {folder}/jlr.fish\n",
}


@pytest.fixture(params=["bash", LONG("zsh"), LONG("fish")])
def shell(
    request: pytest.FixtureRequest, ssh_config: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminal]:
    """Give a shell at its prompt, with the project's script and `jlr` on the PATH."""
    name = str(request.param)
    if not shutil.which(name) or (name == "bash" and not BASH_COMPLETION.exists()):
        pytest.skip(f"no {name} here, or not its package of completions")
    # The shells' own completions of ssh follow a loop for ever.
    ssh_config.write_text(ssh_config.read_text("utf-8").replace("INCLUDE config\n", ""), "utf-8")
    ssh_config_line.install(NeverAsks(""), lambda _: None, agreed=True)
    remember(("dgx", "cont1"))
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    terminal = Terminal(START[name], environment=environment)
    terminal.type(PREPARE[name].format(folder=SCRIPTS))
    terminal.wait_for("ready> ")
    terminal.type("echo set''tled\n")
    terminal.wait_for("settled")
    terminal.wait_for("ready> ")
    yield terminal
    terminal.close()


TYPED = {
    "jlr disc\t": "jlr disconnect",
    "jlr start log\t": "jlr start login",
    "jlr start me@log\t": "jlr start me@login",
    "jlr start dgx con\t": "jlr start dgx cont1",
    "jlr open c\t": "jlr open cont1",
    "jlr open dgx/\t": "jlr open dgx/cont1",
    "jlr start dgx --runtime do\t": "jlr start dgx --runtime docker",
    "jlr start dgx --runtime=do\t": "jlr start dgx --runtime=docker",
    "jlr stop --con\t": "jlr stop --container",
    "jlr --ssh-config /etc/host.c\t": "jlr --ssh-config /etc/host.conf",
    "jlr cp con\t": "jlr cp cont1:",
    "jlr cp /etc/host.c\t": "jlr cp /etc/host.conf",
    "ssh con\t": "ssh cont1.jlr",
    "scp -r dgx.\t": "scp -r dgx.jlr",
}


def test_a_shell_completes_the_typed_line(shell: Terminal) -> None:
    """The first line makes the shell load the script; the others find it there."""
    for typed, line in TYPED.items():
        shell.forget()
        # Then make the line a call of echo, with a mark that is not shown as it is typed.
        shell.type(f"{typed}\x01echo 'mark'\"ed\" \n")
        shell.wait_for(f"marked {line}")
        shell.wait_for("ready> ")
