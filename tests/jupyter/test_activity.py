"""What works in a container is told, and what only waits is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.jupyter import activity
from jlremote.jupyter.activity import Activity
from jlremote.jupyter.scripts import LAUNCH_MARK
from jlremote.place.host.contract import FIELD, RECORD
from jlremote.place.host.process_mark import ADOPTER, CARRIER
from tests.link.fakes import new_server

SERVER = replace(new_server(1), pid=20)
OWN_TEXT = 'directory="/tmp/jlr-$(id -u)"'


def seen(*processes: tuple[int, int, int, int, str]) -> Activity:
    """Return what the script would print of (pid, parent, session, terminal, arguments).

    A `~` is a space within an argument.
    """
    printed = [f"self{FIELD}9{RECORD}"]
    for pid, parent, session, terminal, words in processes:
        stat = f"{pid} (a) b) S {parent} {pid} {session} {terminal} -1 0 0\n"
        argv = words.replace(" ", "\0").replace("~", " ")
        printed.append(f"process{FIELD}{stat}{FIELD}{argv}\0{RECORD}")
    return activity.read("".join(printed))


INIT = (1, 0, 1, 0, "/sbin/docker-init -- sleep infinity")
IDLE = (
    INIT,
    (2, 1, 2, 0, "sleep infinity"),
    (9, 0, 9, 0, "sh -c look"),
    (10, 9, 9, 0, "tr -d x"),
    (19, 0, 19, 0, f"sh -c {OWN_TEXT}; {LAUNCH_MARK}"),
    (20, 19, 19, 0, "python jupyter-lab"),
    (21, 20, 21, 0, "python -m ipykernel_launcher"),
    (22, 21, 22, 1, "bash of !command"),
    (23, 20, 23, 34816, "/bin/bash"),
)


SLEEP = (31, 30, 30, 0, "sleep 64")


def adopted(terminal: int, words: str) -> tuple[int, int, int, int, str]:
    return (30, 0, 30, terminal, f"python -IS -c . {ADOPTER} {words}")


def test_a_program_in_a_terminal_of_jupyterlab_is_told_and_nothing_of_an_idle_session() -> None:
    found = seen(*IDLE)
    assert [*found.terminals(SERVER), *found.others((SERVER,), OWN_TEXT)] == []
    found = seen(*IDLE, (24, 23, 23, 34816, "python train.py"))
    assert list(found.terminals(SERVER)) == ["`python train.py` in a terminal of JupyterLab"]


@pytest.mark.parametrize(
    ("process", "told"),
    [
        (((30, 0, 30, 34817, "/bin/bash"),), "an open shell"),
        (((30, 0, 30, 34817, "bash"), (31, 30, 30, 34817, "htop")), "an open shell with `htop`"),
        ((adopted(34817, "bash"), (31, 30, 30, 34817, "bash")), "an open shell"),
        ((adopted(0, "sleep 64"), SLEEP), "the job `sleep 64`"),
        (((30, 0, 30, 0, f"sh -c carry {CARRIER} sleep 64"), SLEEP), "the program `sleep 64`"),
        (((30, 0, 30, 0, "python -m pkg.train"),), "the program `python -m pkg.train`"),
        # it was begun in a terminal, and went on after its end
        (((30, 1, 25, 0, "python train.py"),), "the program `python train.py`"),
    ],
)
def test_shells_jobs_and_programs_of_the_container_are_told(
    process: tuple[tuple[int, int, int, int, str], ...], told: str
) -> None:
    found = seen(*IDLE, *process)
    assert list(found.others((SERVER,), OWN_TEXT)) == [told]


@pytest.mark.parametrize(
    ("main", "told"),
    [
        (((1, 0, 1, 0, "sleep infinity"),), ()),
        (((1, 0, 1, 0, "tail -f /dev/null"),), ()),
        (((1, 0, 1, 34816, "/bin/bash"),), ()),
        (((1, 0, 1, 0, "python train.py"),), ("the program `python train.py`",)),
        ((INIT, (2, 1, 2, 0, "python train.py")), ("the program `python train.py`",)),
        (((1, 0, 1, 0, "sh -c loop"), (2, 1, 1, 0, "sleep 1")), ("the program `sh -c loop`",)),
        (((1, 0, 1, 0, "bash train.sh"),), ("the program `bash train.sh`",)),
        (((1, 0, 1, 0, "tini -- jupyter"), (20, 1, 1, 0, "jupyter-lab")), ()),
        (((20, 0, 20, 0, "jupyter-lab"),), ()),
    ],
)
def test_the_main_process_is_told_unless_it_only_waits(
    main: tuple[tuple[int, int, int, int, str], ...], told: tuple[str, ...]
) -> None:
    assert tuple(seen(*main).others((SERVER,), OWN_TEXT)) == told


def test_a_server_is_the_main_process_also_below_an_init() -> None:
    assert seen((1, 0, 1, 0, "tini -- jupyter"), (20, 1, 1, 0, "jupyter-lab")).is_main(SERVER)
    assert seen((1, 0, 1, 0, "jupyter-lab")).is_main(replace(SERVER, pid=1))
    assert not seen(*IDLE).is_main(SERVER)


def test_what_runs_by_ssh_or_in_an_image_is_told_and_not_what_is_above() -> None:
    """On a node of a cluster these processes are the user's own."""
    came = (
        (30, 0, 30, 0, "sshd:~ada@notty"),
        (31, 30, 31, 0, "python train.py"),
        (40, 0, 40, 0, "sshd-session:~ada@pts/0"),
        (50, 0, 50, 0, "Apptainer~runtime~parent:~torch.sif"),
        (51, 50, 50, 0, "/usr/libexec/apptainer/bin/squashfuse_ll -f torch.sif /mnt"),
        (41, 40, 41, 34817, "-bash"),
    )
    found = seen(*IDLE, *came)
    assert list(found.others((SERVER,), OWN_TEXT)) == [
        "the program `python train.py`",
        "an open shell",
    ]


@pytest.mark.parametrize(
    "words",
    [
        *("runc init", "/proc/self/exe init", ""),
        "python /tmp/jlr-0/cont1/output/jlr_recorder.py 20",
        "sh -c again sh python /tmp/jlr-0/cont1/output/jlr_recorder.py 20",
    ],
)
def test_what_just_enters_the_container_and_the_recorder_are_not_told(words: str) -> None:
    assert list(seen(*IDLE, (30, 0, 30, 0, words)).others((SERVER,), OWN_TEXT)) == []


def test_what_is_no_process_is_passed_over() -> None:
    zombie = f"process{FIELD}7 (x) Z 1 7 7 0 -1 0{FIELD}{RECORD}"
    printed = f"{zombie}process{FIELD}nonsense{FIELD}{RECORD}other{RECORD}self{FIELD}5{RECORD}"
    assert activity.read(printed) == Activity((), 5)
