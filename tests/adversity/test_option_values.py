"""Values that this machine can refuse: before a host is asked, and with the way to write them."""

from __future__ import annotations

import click
import pytest

from tests.adversity.parts import bounded
from tests.cli.conftest import Jlr, jlr, laptop
from tests.cli.tree import COMMANDS, command
from tests.long import LONG

__all__ = ["jlr", "laptop"]

NEW = ("start", "dgx", "cont2", "--image", "torch")
RUN = ("run", "dgx", "--image", "torch")
START_JOB, JOB = ("start", "dgx", "cont2", "--slurm"), ("run", "dgx", "--slurm")
OF_CLUSTERS = {
    "--partition": (" ", "a b", "a\nb", "-x", "/"),
    "--account": ("a b", "=", "ü"),
    "--qos": ("a b", ":"),
    "--nodes": ("0", "-1", "two", "1 2", "1.5"),
    "--ntasks": ("0", "-1", "9" * 20, "many"),
    "--cpus": ("0", "-1", "1.5", "x"),
    "--mem": ("-1", "much", "1.5G", "32 G", "32P"),
    "--gres": ("-1", "gpu 1", ":", "gpu:1\n"),
    "--time": ("-1", "late", "8h", "8:00:00 ", "1:2:3:4", "1-"),
    "--module": (" ", "-x", "a b", "a\nb"),
    "--sbatch-arg": (" ", "a\nb", "\x1b[31m"),
}
OF_CONTAINERS = {
    "--env": ("1A=", "=x", "A B=1", "", "A\nB=1", "-x=1"),
    "--user": ("a b", "-1", "a:b:c", "/", "=root"),
    "--ipc": ("a b", "-1", "container:"),
    "--network": ("a b", "-x", "=", "a\nb"),
    "--shm-size": ("much", "-1", "..", "9" * 20),
    "--log-opt": ("max-size", "=", "a b=1"),
    "--ulimit": ("memlock", "memlock=x", "=1"),
    "--workdir": ("work", " ", "a\nb", "~"),
    "--volume": ("data", ":", "/data:x", "a\nb:/x"),
    "--gpus": ("=", "1A=", "a b", "-1", "0", "auto:0"),
    "--install": ("-x", "", " ", "a\nb"),
    "--image": ("Torch", " ", "a b", "torch:", "-x", "a\nb"),
    "--image-folder": (" ", "a\nb"),
    "--runtime": ("", "dockr"),
    "--profile": ("", "none"),
}
OTHERS = [
    (*JOB, "-i", "--", "cat"),
    (*START_JOB, "--runtime", "docker"),
    *((*RUN, "--name", value, "--", "true") for value in ("", " ", "a b", "-x", "a/b", "x" * 200)),
    *((*JOB, "--array", value, "--", "true") for value in ("", "x", "3-1", "1-5:0", "-1", "1\n2")),
    *((*NEW, "--port", value) for value in ("0", "-1", "65536", "http", "", "9" * 30)),
    *((*NEW, "--idle-stop", value) for value in ("", "-1h", "soon", "1h 2")),
    *(("exec", "cont1", "-c", "1", "--timeout", value) for value in ("", "soon", "-1")),
    *((*NEW, "--python", value) for value in ("", " ", "a\nb")),
    *((*NEW, "--browser", value) for value in ("", " ", "a\nb")),
    *(("shell", "-u", value, "cont1", "true") for value in ("a b", "-1", "a\nb", "=root")),
    *(("shell", "-w", value, "cont1", "true") for value in (" ", "a\nb")),
    *(("image", "rm", "dgx", value, "-y") for value in ("", "Torch", "a b", "a\nb", "torch:")),
    *(("image", "build", "dgx", ".", "-t", value) for value in ("", "Torch", "a b")),
    *(("image", verb, "dgx", value) for verb in ("pull", "push") for value in ("", "Torch", "a b")),
    *(("doctor", "dgx", "--image", value) for value in (" ", "Torch", "a\nb")),
    ("doctor", "dgx", "--report", "missing/report.txt"),
    *(("forward", "cont1", value) for value in ("0", "-1", "x", "70000", "1:2:3", "", "9" * 30)),
    *(("logs", "cont1", "--tail", value) for value in ("-1", "x", "", "1.5")),
    *(("logs", "cont1", "--since", value) for value in ("", "soon", "-1h")),
    *(("gpus", "dgx", "--watch=" + value) for value in ("0", "-1", "x", "nan")),
    *(("job", "attach", "dgx/j", "--detach-keys", value) for value in ("", "ctrl-1", "ab", "a,,b")),
    *(("config", "set", "time", value) for value in ("late", "-1")),
    *(("config", "set", "mem", value) for value in ("much", "1 G")),
    *(("config", "set", "module", value) for value in ("-x", "a b")),
]
ON_CREATION = [(*NEW, name, value) for name, values in OF_CONTAINERS.items() for value in values]
ON_CLUSTERS = [
    (*START_JOB, name, value) for name, values in OF_CLUSTERS.items() for value in values
]
OF_JOBS = [
    *((*RUN, "--env", value, "--", "true") for value in OF_CONTAINERS["--env"]),
    *((*JOB, "--time", value, "--", "true") for value in OF_CLUSTERS["--time"]),
]


@pytest.mark.usefixtures("no_host_answers")
@pytest.mark.parametrize("refused", [ON_CREATION, ON_CLUSTERS, OF_JOBS, OTHERS])
def test_an_odd_value_is_refused_before_the_host_is_asked(
    refused: list[tuple[str, ...]], jlr: Jlr
) -> None:
    for words in refused:
        outcome = jlr(*words)
        assert outcome.code == 2, (words, outcome)
        assert "Connect" not in outcome.stderr, words
        assert "hint: " in outcome.stderr or "usage: " in outcome.stderr, (words, outcome)


@pytest.mark.usefixtures("no_host_answers")
@pytest.mark.parametrize("value", [" ", LONG("a\nb"), "x" * 5000, LONG("\x1b[31m")])
def test_no_text_of_an_option_is_a_bug(value: str, jlr: Jlr) -> None:
    for name in COMMANDS:
        for one in command(name).params:
            if isinstance(one, click.Option) and not one.is_flag:
                with bounded(60):
                    typed = f"{max(one.opts, key=len)}={value}"
                    outcome = jlr(*name.split(), typed, "dgx", "cont1")
                assert outcome.code != 3, (name, one.name, outcome)


@pytest.mark.usefixtures("no_host_answers")
def test_a_value_that_a_site_may_take_is_passed_on(jlr: Jlr) -> None:
    for option, value in (
        *(("--time", value) for value in ("30", "8:00:00", "2-0", "1-12:30", "UNLIMITED", "")),
        *(("--mem", value) for value in ("0", "16000", "32G", "500mb")),
        *(("--nodes", value) for value in ("2", "1-4", "2k")),
        *(("--gres", value) for value in ("gpu:1", "gpu:a100:2,shard:1", "none")),
        *(("--partition", value) for value in ("gpu", "gpu,long", "a100-80g")),
        ("--module", "cuda/12.4"),
        ("--account", "me@lab"),
    ):
        assert jlr(*START_JOB, option, value).code == 5, (option, value)
