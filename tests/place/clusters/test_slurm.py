"""The text of Slurm's commands, and what is made of their answers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.errors import Usage
from jlremote.place.clusters.scheduler import GpuJob, GpuNodes, Resources, SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import read_gpus
from jlremote.place.host.contract import Completed
from jlremote.place.host.process_mark import STAYS
from tests.lab.programs import write_program
from tests.place.host.shells import run_sh


def submitted(folder: Path, answer: str, *, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the script of a submission with an `sbatch` that gives this answer."""
    program = folder / "sbatch"
    write_program(
        program,
        f'#!/bin/sh\nprintf "%s\\n" "$@" >{folder}/argv\ncat >{folder}/script\n'
        f"cat <<'END'\n{answer}\nEND\nexit {status}\n",
    )
    wanted = Resources(gres="gpu:2", time="8:00:00", cpus="4", arguments=("--requeue",))
    script = f"echo hello | {{\n{SLURM.submit('t.jlr1', '/home/a%b/log', wanted)}}}"
    return run_sh("sh", script, PATH=f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("wanted", "gpus"),
    [
        (Resources(gres="gpu:a100:2"), True),
        (Resources(arguments=("--gpus-per-node=2",)), True),
        (Resources(gres="lustre:1,gpu"), True),
        (Resources(gres="gres:gpu:2"), True),
        (Resources(arguments=("-G2",)), True),
        (Resources(arguments=("--gpus", "a100:2")), True),
        (Resources(arguments=("--gres", "gpu:2")), True),
        (Resources(arguments=("--tres-per-task=cpu:4,gres/gpu:1",)), True),
        (Resources(gres="lustre:1", arguments=("--requeue",)), False),
        (Resources(gres="nogpu:1"), False),
        (Resources(account="gpuproject", arguments=("--nodelist=gpu07",)), False),
        (Resources(arguments=("--nodelist", "gpu07", "--job-name=gpu:1")), False),
        (Resources(arguments=("--gpu-bind=closest", "--comment=--gpus=2")), False),
        (Resources(arguments=("--tres-per-task=cpu:4", "--gres-flags=gpu")), False),
    ],
)
def test_words_that_ask_for_gpus_are_known(wanted: Resources, gpus: bool) -> None:
    assert wanted.asks_for_gpus == gpus


@pytest.mark.parametrize(
    ("answer", "listed", "id_"),
    [
        ("12", "", "12"),
        ("12;cluster2", "", "12"),
        ("2 messages of the day\n12\ngood luck, 3 GPUs are free", "12", "12"),
        ("Submitted batch job 12", "12", "12"),
        ("12\n4711", "12", "12"),
        ("your quota is fine", "", ""),
        ("12\n4711", None, ""),  # Slurm is silent
    ],
)
def test_among_words_of_the_site_the_id_is_that_of_the_jobs_name(
    tmp_path: Path, answer: str, listed: str | None, id_: str
) -> None:
    program = tmp_path / "squeue"
    write_program(
        program,
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/asked\n"
        f"printf 'JOBID\\n{listed}\\n'\nexit {int(listed is None)}\n",
    )
    done = submitted(tmp_path, answer)
    assert (done.returncode, done.stdout.strip()) == (0, id_)
    asked = tmp_path / "asked"
    assert not asked.exists() or "--name=t.jlr1" in asked.read_text().splitlines()


def test_only_what_was_asked_is_sent_and_the_persons_own_words_come_last(tmp_path: Path) -> None:
    submitted(tmp_path, "12")
    assert (tmp_path / "script").read_text() == "hello\n"
    assert (tmp_path / "argv").read_text().split("\n")[:-1] == [
        "--parsable",
        "--job-name=t.jlr1",
        "--no-requeue",
        "--export=HOME,USER,LOGNAME,LANG",
        "--gres=gpu:2",
        "--time=8:00:00",
        "--cpus-per-task=4",
        "--requeue",
        "--output=/home/a%%b/log",
    ]


@pytest.mark.parametrize("argument", ["--wrap=x", "--output=x", "--export=ALL", "-Jx", "--wait"])
def test_arguments_that_would_break_a_job_are_refused(argument: str) -> None:
    with pytest.raises(Usage, match="`jlr run` sets `-"):
        SLURM.submit("t.jlr1", "log", Resources(arguments=(argument,)))


def test_an_option_of_pyxis_is_refused_with_what_works_there() -> None:
    with pytest.raises(Usage, match="would not find its folder") as refused:
        SLURM.submit("t.jlr1", "log", Resources(arguments=("--container-image=torch",)))
    assert "`-- srun --container-image=IMAGE COMMAND`" in (refused.value.hint or "")


@pytest.mark.parametrize("argument", ["--array=1-3", "-a1-3", "--array"])
def test_an_array_is_refused_where_its_jobs_would_not_be_known(argument: str) -> None:
    with pytest.raises(Usage, match="makes several jobs") as refused:
        SLURM.submit("t.jlr1", "log", Resources(arguments=(argument,)))
    assert "--array 0-7" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "answer",
    [
        Completed(1, "", "sbatch: error: Batch job submission failed: Socket timed out"),
        Completed(1, "", "sbatch: error: Unable to contact slurm controller (connect failure)"),
        Completed(124, "", ""),
        Completed(0, "", ""),
    ],
)
def test_a_lost_answer_is_unknown_and_not_refused(answer: Completed) -> None:
    assert isinstance(SLURM.refusal(answer), SchedulerSilent)


def row(*columns: str) -> str:
    return "".join(f"{column:<200}" for column in columns)


def test_free_gpus_are_those_of_open_nodes() -> None:
    head = row("HOSTNAMES", "PARTITION", "GRES", "GRES_USED", "STATE")
    used = "gpu:nvidia_h100_80gb_hbm3:3(IDX:0-2)"
    lines = [
        head,
        row("n1", "gpu", "gpu:nvidia_h100_80gb_hbm3:4(S:0-1)", used, "mixed"),
        row("n2", "gpu", "gpu:nvidia_h100_80gb_hbm3:4(S:0-1)", "gpu:0", "drained"),
        row("n3", "old", "gpu:2", "gpu:1(IDX:0)", "idle*"),
        row("n4", "cpu", "(null)", "(null)", "idle"),
    ]
    assert read_gpus("\n".join(lines) + "\x1dJOBID\x1dalice\n").nodes == (
        GpuNodes("cpu", "", 1, 0, 0),
        GpuNodes("gpu", "nvidia_h100_80gb_hbm3", 2, 8, 1),
        GpuNodes("old", "gpu", 1, 2, 1),
    )
    denied = "slurm_load_jobs error: Access/permission denied"
    for silent, words in (
        ("slurm_load_node: Unable to contact slurm controller\x1dJOBID", "answer: slurm_load_n"),
        ("\n".join(lines) + "\x1d", "does not answer: squeue printed nothing"),
        ("\n".join(lines) + f"\x1d{denied}", f"does not show you this: {denied}"),
    ):
        with pytest.raises(SchedulerSilent, match=words):
            read_gpus(f"{silent}\x1dalice\n")


def test_ones_own_jobs_come_first_and_a_node_of_two_partitions_counts_once() -> None:
    head = row("HOSTNAMES", "PARTITION", "GRES", "GRES_USED", "STATE")
    nodes = (row("n1", part, "gpu:a100:8", "gpu:a100:7(IDX:0-6)", "mixed") for part in ("a", "b"))
    jobs = (
        "7\x1fbob\x1fa\x1fgres:gpu:a100:1\x1f2\x1fn[1-2]\x1f1795390731",
        "8\x1falice\x1fa\x1fgres/gpu=4\x1f1\x1fn1\x1fN/A",
        "9\x1fcarol\x1fa\x1fN/A\x1f1\x1fn1\x1fN/A",
    )
    queue = "\n".join(("JOBID\x1fUSER\x1fPARTITION", *jobs))
    told = read_gpus("\n".join((head, *nodes)) + f"\x1d{queue}\x1dalice\n")
    assert told.jobs == (
        GpuJob("alice", "8", "a", 4, "n1", None),
        GpuJob("bob", "7", "a", 2, "n[1-2]", 1795390731.0),
    )
    assert told.hidden == 1


def test_slurm_is_found_on_the_path_of_login_shells_among_their_words(tmp_path: Path) -> None:
    programs = tmp_path / "slurm"
    programs.mkdir()
    write_program(programs / "sbatch", "#!/bin/sh\necho slurm 22.05.8\n")
    write_program(programs / "squeue", "#!/bin/sh\necho JOBID\n")
    profile = f"echo welcome\nPATH=$PATH:{programs}\nexport PATH\n"
    (tmp_path / ".bash_profile").write_text(profile)
    done = run_sh("sh", SLURM.presence(), HOME=str(tmp_path), PATH="/usr/bin:/bin")
    found = SLURM.read_presence(done.stdout)
    assert found is not None
    assert (found.version, found.complaint) == ("slurm 22.05.8", None)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("12.0 sh\n12.batch batch", 0),
        ("slurm_load_jobs error: Invalid job id specified", 0),
        ("slurm_load_jobs error: Socket timed out", STAYS),
    ],
)
def test_steps_are_over_only_if_slurm_says_so(tmp_path: Path, said: str, status: int) -> None:
    for program, text in (
        ("sbatch", ""),
        ("squeue", f"echo '{said}'; case '{said}' in *error*) exit 1;; esac"),
        ("scancel", f'echo "$@" >{tmp_path}/cancelled'),
    ):
        write_program(tmp_path / program, f"#!/bin/sh\n{text}\n")
    done = run_sh("sh", SLURM.end_steps("12", "mark"), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (done.returncode, "timed out" in done.stderr) == (status, status != 0), done
    assert not (tmp_path / "cancelled").exists(), "the steps of others stay"
