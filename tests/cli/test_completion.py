"""Completion in the real shells, and the candidates of a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem

from jlremote.cli.completion import candidates
from jlremote.cli.completion import shell_answers as shells
from jlremote.editors import ssh_config as ssh_config_line
from jlremote.hosts import links
from jlremote.laptop.known_names import host_names
from jlremote.link.client import call
from jlremote.questions import NeverAsks
from tests.cli.conftest import Jlr, remember, settle
from tests.cli.terminal import Terminal
from tests.long import LONG


@pytest.mark.parametrize("shell", shells.SHELLS)
def test_the_script_of_a_shell_calls_jlr_and_shows_no_errors(shell: str, jlr: Jlr) -> None:
    outcome = jlr("completion", shell)
    assert outcome.code == 0
    assert f"{shell}_complete" in outcome.stdout
    assert "2>/dev/null" in outcome.stdout or "2>$null" in outcome.stdout


@pytest.mark.parametrize("shell", ["bash", LONG("zsh"), LONG("fish")])
def test_the_shell_that_runs_jlr_is_found(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    line = f"{sys.executable} -m jlremote completion; echo done"
    shown = subprocess.run((shell, "-c", line), capture_output=True, text=True, check=True)
    assert f"{shell}_complete" in shown.stdout


def test_without_a_parent_the_login_shell_counts(monkeypatch: pytest.MonkeyPatch, jlr: Jlr) -> None:
    monkeypatch.setattr(shells, "_parents", lambda: iter(["pwsh.exe", "bash"]))
    assert "Register-ArgumentCompleter" in jlr("completion").stdout
    monkeypatch.setattr(shells, "_parents", lambda: iter(["init"]))
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert "fish_complete" in jlr("completion").stdout
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    outcome = jlr("completion", "--install")
    assert outcome.code == 2
    assert "name it: `jlr completion bash`" in outcome.stderr


def test_powershell_gets_each_candidate_as_one_word() -> None:
    completer = shells.PowerShell(None, {}, "jlr", "_JLR_COMPLETE")  # type: ignore[arg-type]
    words = {
        "cont1:/data/": "cont1:/data/",
        "--image=a/b:1": "--image=a/b:1",
        "me@dgx": "me@dgx",
        "@lab": "'@lab'",
        "a$(calc)": "'a$(calc)'",
        "it's": "'it''s'",
        "0,3": "'0,3'",
    }
    told = {one: completer.format_completion(CompletionItem(one)).split("\n") for one in words}
    assert told == {one: ["plain", word, "_"] for one, word in words.items()}


def test_powershell_is_told_the_line_for_its_profile(jlr: Jlr, laptop: Path) -> None:
    outcome = jlr("completion", "--install", "powershell")
    file = laptop / "data" / "jlr" / "jlr.ps1"
    assert f"wrote {file}\n" in outcome.stdout
    assert f"Add-Content $PROFILE \". '{file}'\"\n" in outcome.stdout
    assert file.read_text().startswith("Register-ArgumentCompleter -Native -CommandName jlr ")


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
    assert host_names(str(ssh_config.with_name("missing"))) == []


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
        ("jlr st", ["start", "stop"]),
        ("jlr start ", ["gpu.lab.org", "dgx", "dgx-old", "login"]),
        ("jlr start d", ["dgx", "dgx-old"]),
        ("jlr start me@d", ["me@dgx", "me@dgx-old"]),
        ("jlr start dgx ", ["cont1", "twin"]),
        ("jlr --verbose --no-input start dgx c", ["cont1"]),
        ("jlr open ", ["cont1", "cont2", "gpu.lab.org/twin", "dgx/twin"]),
        ("jlr list dgx/", ["dgx/cont1", "dgx/twin"]),
        ("jlr shell d", ["dgx/cont1", "dgx/twin", "dgx", "dgx-old"]),
        (
            "jlr start dgx --runtime ",
            ["auto", "docker", "podman", "nvidia-docker", "apptainer", "singularity", "none"],
        ),
        ("jlr start dgx --runtime=d", ["--runtime=docker"]),
        ("jlr stop --co", ["--container"]),
        ("jlr completion ", ["bash", "zsh", "fish", "powershell"]),
        ("jlr run dgx --in ", ["cont1", "twin"]),
        ("jlr exec /etc/host.c", ["/etc/host.conf"]),
        ("jlr run login --image x --in c", ["cont2"]),
        ("jlr run login --in=c", ["--in=cont2"]),
        ("jlr start dgx --image ", []),
        ("jlr start --gpus ", ["auto", "all", "none"]),
        ("jlr start dgx --gpus=a", ["--gpus=auto", "--gpus=all"]),
    ],
)
def test_a_line_has_its_candidates(line: str, candidates: list[str], complete: Complete) -> None:
    assert complete(line) == candidates


def test_another_ssh_config_gives_other_hosts(complete: Complete, laptop: Path) -> None:
    (laptop / "other").write_text("Host elsewhere\n")
    assert complete(f"jlr --ssh-config {laptop}/other start e") == ["elsewhere"]


def test_profiles_and_pools_come_from_the_settings_and_nothing_from_what_cannot_be_read(
    complete: Complete, laptop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settle(laptop, "[profiles.torch]\n[profiles.jax]\n[pools.lab]\nhosts = ['dgx']\n")
    assert complete("jlr start dgx --profile t") == ["torch"]
    assert complete("jlr gpus @") == ["@lab"]
    assert complete("jlr proxy c") == ["cont1.jlr", "cont2.jlr"]
    assert "twin.dgx.jlr" in complete("jlr proxy t")
    config.write_text("not toml")
    assert complete("jlr start dgx --profile t") == []
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    assert complete("jlr open ") == []
    assert "dgx" in complete("jlr start ")


def test_a_host_that_is_not_connected_is_not_asked_and_no_link_begins(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a link was begun")

    monkeypatch.setattr(call, "start_link", refuse)
    assert complete("jlr start dgx --image ") == complete("jlr cp dgx:") == []


def test_a_host_that_does_not_answer_is_given_up(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    monkeypatch.setattr(candidates, "_SECONDS", 0.1)
    monkeypatch.setattr(links, "is_connected", lambda _: not never.wait(60))
    assert complete("jlr start dgx --gpus ") == ["auto", "all", "none"]
    never.set()


# Completes the names of hosts for `ssh`, which bash by itself does not.
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
# The startup file of a shell, below the home, and what it has before jlr comes.
STARTUP = {
    "bash": (".bashrc", f"PS1='ready> '; source {BASH_COMPLETION}\n"),
    "zsh": (".zshrc", "PS1='ready> '; bindkey -e\n"),
    "fish": ("config/fish/config.fish", "function fish_prompt; echo 'ready> '; end\n"),
}


def install(shell: str, jlr: Jlr) -> str:
    """Install the script for a shell, and run the command that it says; return the command."""
    shown = jlr("completion", "--install", shell).stdout
    command = "".join(line for line in shown.splitlines() if line.startswith("    ")).strip()
    if command:
        subprocess.run(("sh", "-c", command), check=True)
    return command


def test_what_a_shell_may_lack_is_told(laptop: Path, jlr: Jlr) -> None:
    assert install("bash", jlr)
    line = f". {laptop}/data/bash-completion/completions/jlr\n"
    assert (laptop / ".bashrc").read_text() == line
    assert install("fish", jlr) == ""


@pytest.fixture(params=["bash", LONG("zsh"), LONG("fish")])
def shell(
    request: pytest.FixtureRequest,
    ssh_config: Path,
    laptop: Path,
    jlr: Jlr,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Terminal]:
    """Give a new shell at its prompt, once the script is installed, with `jlr` on the PATH."""
    name = str(request.param)
    if not shutil.which(name) or (name == "bash" and not BASH_COMPLETION.exists()):
        pytest.skip(f"no {name} here, or not its package of completions")
    # The shells' own completions of ssh follow a loop for ever.
    ssh_config.write_text(ssh_config.read_text("utf-8").replace("INCLUDE config\n", ""), "utf-8")
    ssh_config_line.install(NeverAsks(""), lambda _: None, agreed=True)
    remember(("dgx", "cont1"))
    file, text = STARTUP[name]
    (laptop / file).parent.mkdir(parents=True, exist_ok=True)
    (laptop / file).write_text(text)
    install(name, jlr)
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    terminal = Terminal((name, "-i"), environment=environment)
    terminal.wait_for("ready> ")
    terminal.type("echo set''tled\n")
    terminal.wait_for("settled")
    terminal.wait_for("ready> ")
    yield terminal
    terminal.close()


TYPED = {
    "jlr disc\t": "jlr disconnect",
    "jlr start me@log\t": "jlr start me@login",
    "jlr open dgx/\t": "jlr open dgx/cont1",
    "jlr start dgx --runtime=do\t": "jlr start dgx --runtime=docker",
    "jlr --ssh-config /etc/host.c\t": "jlr --ssh-config /etc/host.conf",
    "jlr cp con\t": "jlr cp cont1:",
    "jlr cp /etc/host.c\t": "jlr cp /etc/host.conf",
    "ssh con\t": "ssh cont1.jlr",
    "scp -r dgx.\t": "scp -r dgx.jlr",
}


@pytest.mark.lab  # it takes a second
def test_a_shell_completes_the_typed_line(shell: Terminal) -> None:
    """The first line makes the shell load the script; the others find it there."""
    for typed, line in TYPED.items():
        shell.forget()
        # Then make the line a call of echo, with a mark that is not shown as it is typed.
        shell.type(f"{typed}\x01echo 'mark'\"ed\" \n")
        shell.wait_for(f"marked {line}")
        shell.wait_for("ready> ")
