"""Every failure is one clear message on stderr and one exit code; no secret is logged."""

import contextlib
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jlremote import errors
from jlremote.__main__ import run_command
from jlremote.link.wire.link_files import LinkFiles
from tests.cli.conftest import Jlr, Workflows
from tests.lab.programs import PATIENCE
from tests.outages.parts import within

JLR = (sys.executable, "-m", "jlremote")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.JlrError, 1),
        (errors.Usage, 2),
        (errors.Bug, 3),
        (errors.HostKeyChanged, 4),
        (errors.LinkLost, 5),
        (errors.NotFound, 6),
        (errors.Busy, 7),
    ],
)
def test_each_kind_of_error_has_its_exit_code(
    error: type[errors.JlrError], code: int, jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("sessions.open.address", error("it failed", hint="mend it"))
    outcome = jlr("url")
    assert (outcome.code, outcome.stdout) == (code, "")
    if error is not errors.Bug:
        assert outcome.stderr == "error: it failed\nhint: mend it\n"


def test_a_log_has_no_arguments_or_variables(jlr: Jlr, workflows: Workflows, laptop: Path) -> None:
    url = "http://127.0.0.1:1/?token=5ec2e7"
    workflows.will("sessions.start.start", KeyError(f"password='hunter2' at {url}"))
    outcome = jlr("start", "dgx", "--env", "HF=s3same", "--no-input")
    assert outcome.code == 3
    assert "Traceback" not in outcome.stderr
    [log] = re.findall(r"the details are in `([^`]+)`", outcome.stderr)
    text = Path(log).read_text()
    assert Path(log).is_relative_to(laptop / "state" / "jlr")
    assert stat.S_IMODE(Path(log).stat().st_mode) == 0o600
    assert "KeyError" in text
    assert "command: start" in text
    for secret in ("5ec2e7", "hunter2", "s3same"):
        assert secret not in text + outcome.stderr


def test_a_bug_is_reported_even_if_its_log_cannot_be_written(
    jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    workflows.will("sessions.open.address", KeyError("odd"))
    outcome = jlr("url")
    assert outcome.code == 3
    assert "KeyError: 'odd'" in outcome.stderr
    assert "its log cannot be written" in outcome.stderr


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("strat", "no such command `strat`", "did you mean `jlr start`?"),
        ("xyzzy", "no such command `xyzzy`", "`jlr --help` lists the commands"),
        ("top", "no such command `top`", "did you mean `jlr gpus`?"),
        ("unmout", "no such command `unmout`", "`jlr --help` lists the commands"),
        ("start dgx --imag x", "no such option `--imag`", "did you mean `--image`?"),
        ("start dgx --port abc", "`abc` is not a port (1-65535)", "`jlr start -h`"),
        # what destroys is not offered
        ("stop --remov", "no such option `--remov`", "`jlr stop -h`"),
        ("stop --al", "no such option `--al`", "`jlr stop -h`"),
        ("start x --prune", "no such option `--prune`", "`jlr start -h` shows"),
        ("logs --tail x", ": `x` is not a whole number of at least 0", "`jlr logs -h`"),
        ("gpus x --watch nan", "`nan` is not a number from 0.1 to 3600", "`jlr gpus"),
        ("shell x --detach-keys c-p", "`--detach-keys` cannot be `c-p`", "ctrl-p"),
        ("start dgx --gpus ''", "`--gpus` has no value", "leave it out"),
        ("start x --env-file /", "`--env-file`: `/` is a directory", "jlr start -h"),
        ("start --image", "`--image` requires an argument", "`jlr start -h` shows"),
        ("run x --imag y ls", "no such option `--imag`", "did you mean `--image`?"),
        ("run x ls -l", "no such option `-l`", "after `--`: `jlr run … -- COMMAND`"),
        ("run dgx", "the command is missing", "`jlr run dgx … -- COMMAND`"),
        ("run h --detach-keys ctrl-a -- ls", "`--detach-keys` needs `-t`", "Ctrl-C asks"),
        ("run h --slurm --label -- ls", "`--label` needs a launcher", "--launcher srun"),
        ("run h --slurm --launcher none --label -- ls", "needs a launcher", "--launcher srun"),
        ("run h --slurm --gpus 1 -- ls", "`--gpus` is not for a cluster", "--gres gpu:N"),
        ("run h --slurm --sudo -- ls", "without a container engine", "leave out `--runtime`"),
        ("run h --slurm --in c -- ls", "`--in` and `--slurm` cannot be", "one of the two"),
        ("run h --in c -v /a:/b -- ls", "`--in` creates none", "one of the two"),
        ("forward 0", "`0` is not a port (1-65535)", "`jlr forward -h`"),
        ("forward abc:1", "`abc` is not a port", "`jlr forward -h`"),
        ("forward c x", "`x` is not a port", "`jlr forward -h`"),
        ("forward 1 --remove 2", "already names the port", "`jlr forward SESSION --remove 2`"),
        ("forward c 1 --remove 2", "already names the port", "`jlr forward c --remove 2`"),
        ("forward c --host", "`--host` needs a port", "as in `jlr forward 5432 --host`"),
        ("forward c 6006 --auto", "`--auto` and `PORT` cannot be combined", "one of the two"),
        ("forward --auto --remove 6", "`--auto` and `--remove` cannot", "one of the two"),
        ("output --save x.ipynb -f", "`--save` and `--follow` cannot", "one of the two"),
        ("output --save x.ipynb --tail 2", "`--save` and `--tail` cannot", "one of the two"),
        ("output --force", "`--force` is for `--save`", "add `--save"),
        ("exec", "one of `-c CODE` and FILE is needed", "`jlr exec -c 1+1`"),
        ("exec c x.py -c 1", "one of `-c CODE` and FILE is needed", "`jlr exec -c 1+1`"),
        ("exec -c 1 --out missing", "`missing` does not exist", "`jlr exec -h`"),
        ("exec -c 1 --timeout soon", "`--timeout`", "30m"),
        ("exec -k ir --notebook a.ipynb", "are two kernels", "leave out one"),
        ("doctor --report here.ipynb", "`here.ipynb` exists already", "name a new file"),
    ],
)
def test_usage_errors_have_the_form_of_all_errors(
    line: str, message: str, hint: str, jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    (laptop / "here.ipynb").touch()
    with contextlib.chdir(laptop):
        outcome = jlr(*shlex.split(line))
    error, usage, told = outcome.stderr.splitlines()
    assert (outcome.code, outcome.stdout, workflows.calls) == (2, "", [])
    assert usage.startswith("usage: jlr ")
    assert error.startswith("error: ")
    assert message in error
    assert told.startswith("hint: ")
    assert hint in told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run h --launcher srun -- ls", "`--launcher` needs `--slurm`"),
        ("run h --cancel-on-interrupt -- ls", "`--cancel-on-interrupt` needs `--slurm`"),
        ("image login dgx --forget --keep", "`--forget` goes with neither"),
        ("image login dgx --forget --password-stdin", "`--forget` goes with neither"),
        ("output --save missing/x.ipynb", "there is no folder `missing`"),
        ("output --save pyproject.toml", "`pyproject.toml` exists"),
        ("start h c extra", "unexpected argument `extra`"),
        ("start h c -- --cap-add A alpine", "unexpected argument `alpine`"),
        ("start h c -- --name other", "`--name` cannot be given after `--`"),
        ("start h c -- --entrypoint=sh", "`--entrypoint` cannot be given after `--`"),
    ],
)
def test_a_wrong_call_reaches_no_workflow(
    line: str, message: str, jlr: Jlr, workflows: Workflows
) -> None:
    outcome = jlr(*line.split())
    assert (outcome.code, outcome.stdout, workflows.calls) == (2, "", [])
    assert message in outcome.stderr


@pytest.mark.parametrize("argv", [("start", "a b", "c1"), ("list", "a b"), ("gpus", "a b")])
def test_what_is_no_host_is_refused_before_a_link_begins(argv: tuple[str, ...], jlr: Jlr) -> None:
    outcome = jlr(*argv)
    assert outcome.code == 2
    assert outcome.stderr.startswith("error: `a b` is not a host: it holds blanks"), outcome
    assert not LinkFiles("a b", None).key.exists()


@pytest.mark.parametrize(
    ("argv", "failure", "error", "code"),
    [
        (("open",), errors.NotFound("no `x`\x7f", hint="mend it"), "no `x`\x7f", 6),
        (("list", "dgx"), errors.JlrError("it failed"), "it failed", 1),
        (("--verbose", "stop", "--all"), KeyboardInterrupt(), "interrupted", 130),
        (("list",), KeyError("odd"), "KeyError: 'odd'", 3),
        (("strat",), None, "no such command `strat`", 2),
        (("--json", "ls"), None, "no such option `--json`", 2),
        (("exec", "x.py"), None, "cannot read `x.py`: no such file", 6),
        (("run", "dgx", "a.ipynb", "-t"), None, "`-t` and `--json` cannot be combined", 2),
    ],
)
def test_an_error_under_json_is_one_object_on_stderr(
    argv: tuple[str, ...],
    failure: BaseException,
    error: str,
    code: int,
    jlr: Jlr,
    workflows: Workflows,
) -> None:
    for name in ("sessions.open.address", "listing.listing.reports", "sessions.stop.stop_all"):
        workflows.will(name, failure)
    outcome = jlr(*argv, "--json")
    told = json.loads(outcome.stderr)
    assert (outcome.code, told["exit"], set(told)) == (code, code, {"error", "hint", "exit"})
    assert error in told["error"]
    assert len(outcome.stderr.strip().splitlines()) == 1
    assert "\x7f" not in outcome.stderr
    assert jlr("shell", "--", "--json").stderr.startswith("error: ")  # that one is not jlr's


def test_an_interrupt_during_first_imports_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressed:
        """Stands in the way of one module, as Ctrl-C while it loads."""

        @staticmethod
        def find_spec(name: str, *_rest: object) -> None:
            if name == "jlremote.cli.boundary":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "jlremote.cli.boundary", raising=False)
    monkeypatch.setattr("sys.meta_path", [Pressed, *sys.meta_path])
    assert run_command() == 130


def test_a_command_ends_after_what_was_registered_and_before_modules_are_taken_apart() -> None:
    script = (
        "import atexit, sys\n"
        "from jlremote.__main__ import main\n"
        "class Module:\n"
        "    def __del__(self): print('taken apart')\n"
        "module = Module()\n"
        "status = main()\n"
        "atexit.register(print, 'registered')\n"
        "sys.exit(status)"
    )
    argv = [sys.executable, "-c", script, "no-such-command"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "registered\n")
    assert "no such command `no-such-command`" in done.stderr


def test_a_broken_pipe_prints_no_error(process: Jlr) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*JLR, "completion", "bash"], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize("argv", [("completion", "bash"), ("--help",), ("--version",)])
@within(5)
def test_a_full_disk_behind_stdout_is_one_clear_error(argv: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*JLR, *argv], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: no space left on device\n"


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_RUNTIME_DIR"])
def test_an_unwritable_state_folder_is_one_clear_error(
    variable: str, process: Jlr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/proc/self/fdinfo")
    outcome = process("--no-input", "stop")
    assert outcome.code in (1, 6)
    assert outcome.stderr.startswith("error: ")
    assert "Traceback" not in outcome.stderr


def test_a_command_killed_by_a_signal_unwinds_and_exits_with_its_number() -> None:
    script = (
        "import sys, time\nfrom jlremote.cli import boundary\n"
        "from jlremote.sessions import open\n"
        "def wait(*_):\n"
        "    try: print('waiting', flush=True); time.sleep(60)\n"
        "    finally: print('unwound', flush=True)\n"
        "open.address = wait; sys.argv = ['jlr', 'url']; sys.exit(boundary.run())"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"waiting\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b"unwound\n"
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_an_object_is_freed_is_not_lost(number: signal.Signals) -> None:
    script = (
        "import signal, sys, time\nfrom jlremote.cli import boundary\n"
        "from jlremote.sessions import open\n"
        "class Freed:\n"
        f"    def __del__(self): signal.raise_signal({number.value}); time.sleep(0)\n"
        "def wait(*_): Freed(); time.sleep(60)\n"
        "open.address = wait; sys.argv = ['jlr', 'url']; sys.exit(boundary.run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr.strip()) == (128 + number, "")


def test_a_command_under_nohup_ignores_sighup() -> None:
    script = (
        "import signal, sys; from jlremote.cli import boundary\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); sys.argv = ['jlr', '--version']\n"
        "boundary.run(); print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "True"
