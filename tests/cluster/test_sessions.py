"""Sessions as Slurm's jobs on the lab's cluster, as users who are not root."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pexpect
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.cluster.clients import check_clients, check_local_kernel, check_recorder
from tests.cluster.conftest import known_to
from tests.cluster.parts import (
    JUPYTER,
    busy,
    detached,
    driver,
    job,
    jobs,
    listed,
    name,
    on_node,
    running,
    started_together,
    until,
    user,
)
from tests.jobs.parts import Leavers
from tests.jupyter.ports.parts import following
from tests.lab.browser import SECONDS, open_notebook, run_cell
from tests.lab.cluster import LOGINS, USERS, Cluster
from tests.lab.desktop import Desktop, desktop
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import PATIENCE, wait_until
from tests.lab.remote_host import Keys
from tests.long import LONG, WANTED
from tests.sessions.parts import Session, failed, start, started

NEW_LAPTOPS = True


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@contextmanager
def watch(laptop: Laptop, called: str) -> Iterator[subprocess.Popen[str]]:
    """Run `jlr list --watch --json` for the time of a `with` block."""
    with laptop.spawn("list", called, "--watch", "--json") as watching:
        try:
            yield watching
        finally:
            watching.send_signal(signal.SIGINT)
    assert watching.returncode == 0


def watched(watching: subprocess.Popen[str], state: str, reason: str | None = None) -> Any:
    """Return the next report of `jlr list --watch --json` with a state and a reason."""
    assert watching.stdout
    told = (json.loads(line) for line in watching.stdout)
    return next(each for each in told if (each["state"], each["reason"]) == (state, reason))


def check_commands(session: Session, gpus: str) -> None:
    """Check that commands in a session are steps of its job, which have its GPUs."""
    called, job = session.name, session.report["job"]
    text = 'echo "$CUDA_VISIBLE_DEVICES of $SLURM_JOB_ID"; cat; exit 3'
    for words, typed in ((("shell", called), "typed\n"), (("run", "zih", "--in", called), "")):
        done = session.laptop.jlr(*words, "--", "sh", "-c", text, stdin="typed\n")
        assert (done.status, done.stdout) == (3, f"{gpus} of {job}\n{typed}"), done
    chosen = ("run", "zih", "--in", called, "--gpus", "auto", "--", "true")
    failed(session.laptop.jlr(*chosen), 2, f"`--gpus auto` is not for a job in `zih/{called}`")
    assert "jupyter" in session.laptop.jlr("logs", called).stdout


def check_stop_is_refused(session: Session) -> None:
    """Check that a shell and a job, which end with the session's job, are named before."""
    laptop, called, inside = session.laptop, session.name, name()
    with laptop.terminal("jlr", "shell", called) as shell:
        shell.sendline("echo $((6 * 7))")
        shell.expect_exact("42")
        failed(laptop.jlr("stop", called), 7, f"`zih/{called}` runs an open shell")
        shell.sendline("exit")
        shell.expect(pexpect.EOF)
    laptop.jlr("run", "zih", "--in", called, "--name", inside, "-d", "--", "sleep", "64").checked()
    failed(laptop.jlr("stop", called), 7, f"`zih/{called}` runs the program `sleep 64`")
    assert laptop.jlr("rm", f"zih/{inside}", "--yes").status == 0


def test_a_kernel_answers_on_a_node_and_a_second_start_joins_until_stop(
    cluster: Cluster, zih: Laptop
) -> None:
    """By ssh to the node; processes are tracked by cgroups where the machine has the old ones."""
    called = name()
    words = (*on_node(1), "--time", "20", "--gres", "gpu:1")
    session: Session = started(zih, called, *words, host="zih")
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
        assert kernel.run("__import__('socket').gethostname()") == "'node1'"
        assert "a.ipynb [1], " in session.output_with("'node1'")
        said = "sorted(k for k in __import__('os').environ if k.startswith('SLURM_'))"
        kept = "['SLURM_CONF', 'SLURM_GPUS_ON_NODE', 'SLURM_JOB_GPUS', 'SLURM_JOB_ID']"
        assert kernel.run(said) == kept
        gpus = kernel.run("__import__('os').environ['CUDA_VISIBLE_DEVICES']").strip("'")
        assert gpus in ("0", "1")
        tasks = "['srun', '--ntasks=1', 'uname', '-n']"
        ran = kernel.run(f"__import__('subprocess').run({tasks}, capture_output=True).stdout")
        assert ran == r"b'node1\n'", "tasks of its own can be started in a kernel"
    check_commands(session, gpus)
    check_clients(session, "node1", "/opt/jupyter")
    if WANTED:
        check_local_kernel(session, "node1")
        check_recorder(session, "start --no-browser zih")
    # With a new socket: Jupyter closes one that answers no ping, and it is read in `run` only.
    with session.notebook("a.ipynb") as kernel:
        kernel.keep_busy()
        assert "`a.ipynb`" in failed(zih.jlr("stop", called), 7, "has busy kernels")
        kernel.interrupt()
        wait_until(lambda: kernel.state() == "idle", "the end of the kernel's work")
    shown = listed(zih, called)
    assert (shown["state"], shown["node"], shown["reason"]) == ("up", "node1", None)
    assert 1000 < shown["time_left"] <= 1200
    assert re.search(rf"  {shown['job']}, on node1, 1\dm\d*s? left", zih.jlr("list").stdout)
    again = started(zih, called, host="zih")
    assert again.url == session.url
    assert jobs(cluster, called) == ["RUNNING"]
    check_stop_is_refused(session)
    assert f"cancelled job {shown['job']}" in str(zih.jlr("stop", called))
    wait_until(lambda: jobs(cluster, called) == ["CANCELLED"], "the end of what ran on the node")
    assert "a.ipynb [1], " in session.output_with("'node1'"), "the host still has its folder"
    failed(zih.jlr("start", "zih", called), 6, "was stopped with `jlr stop`", "--slurm")
    refused = cluster.try_run("login", *user("alice"), "ssh -o BatchMode=yes node1 true")
    assert "you have no active jobs on this node" in refused.stderr, "pam_slurm_adopt looks at jobs"


def test_startup_files_of_a_node_change_no_byte(
    cluster: Cluster, zih: Laptop, stack: ExitStack
) -> None:
    """They run for each `ssh` to a node, where some print, and others become another shell."""
    called = name()
    session: Session = started(zih, called, *on_node(1), host="zih")
    home, data, bashrc = zih.folder / "home", os.urandom(100_001), "/home/alice/.bashrc"
    (home / "sent").write_bytes(data)
    stack.callback(cluster.run, "login", "rm", bashrc)
    for line in ("exec cat", "exit 0", "echo welcome; echo oops >&2"):
        text = f"[ $(uname -n) = login ] || {{ {line}; }}"
        cluster.run("login", "sh", "-c", f"echo '{text}' >{bashrc}")
        for words in (("sent", f"{called}:{called}"), (f"{called}:{called}", "got")):
            zih.jlr("cp", *words).checked()
        assert (home / "got").read_bytes() == data
        cluster.run("login", "rm", f"/home/alice/{called}")
        (home / "got").unlink()
    assert f"cancelled job {session.report['job']}" in zih.jlr("stop", called).stdout


@pytest.mark.parametrize("number", [1, LONG(2)])
@pytest.mark.parametrize(
    ("how", "ignore"), [LONG((), False), LONG((), True), (("--force", "--yes"), False)]
)
def test_stop_leaves_nothing_of_a_job_in_a_session(
    cluster: Cluster, zih: Laptop, number: int, how: tuple[str, ...], ignore: bool
) -> None:
    session, inside = started(zih, name(), *on_node(number), host="zih"), name()
    leavers = Leavers(ignore=ignore)
    words = ("--in", session.name, "--name", inside, "--detach", "--", "sh", "-c", leavers.script)
    zih.jlr("run", "zih", *words).checked()
    told = "begun\n" * leavers.count
    wait_until(lambda: zih.jlr("logs", inside).stdout == told, "all that it begins")
    zih.jlr("stop", f"zih/{inside}", *how, timeout=120).checked()
    assert leavers.left() == []
    assert jobs(cluster, session.name) == ["RUNNING"], "the session goes on"


def test_a_kernel_answers_in_an_image_and_its_definition_is_used_again(
    cluster: Cluster, zih: Laptop
) -> None:
    if cluster.image is None:
        pytest.skip("this machine cannot have Apptainer")
    called, words = name(), ("--slurm", "--cpus", "1", "--gres", "gpu:1")
    first = start(zih, "zih", called, "--image", str(cluster.image), "-e", "WORD=xyzzy", *words)
    unproved = f"the session `{called}` cannot use its GPUs: it has their devices, and not the"
    assert unproved in " ".join(first.stderr.split()), first
    session = started(zih, called, host="zih")
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("__import__('ipykernel').__file__").startswith("'/opt/jupyter/")
        assert kernel.run("__import__('os').environ['WORD']") == "'xyzzy'"
        gpus = kernel.run("__import__('os').environ['CUDA_VISIBLE_DEVICES']").strip("'")
        check_commands(session, gpus)
    assert zih.jlr("stop", called).status == 0
    with driver(cluster):
        proved = start(zih, "zih", called, *words)
    assert (proved.status, "cannot use its GPUs" in proved.stderr) == (0, False), proved
    again = started(zih, called, host="zih")
    assert again.report["image"] == str(cluster.image)
    # Slurm's accounting may keep the script.
    kept = cluster.run("controller", "sh", "-c", "cat /var/spool/slurmctld/hash.*/job.*/*")
    assert "jupyter-lab" in kept
    assert "xyzzy" not in kept
    assert zih.jlr("rm", called, "--yes").status == 0
    folder = cluster.run("login", "ls", "/home/alice/.local/state/jlr/slurm/servers")
    assert called not in folder


def test_a_session_waits_in_the_queue_and_another_laptop_joins_it(
    cluster: Cluster, zih: Laptop, other: Laptop, stack: ExitStack
) -> None:
    """And it waits again when it is requeued, which is allowed here; `status --watch` sees it."""
    called = name()
    folder = f"/home/alice/.local/state/jlr/slurm/jobs/{called}"
    cut_off = f"mkdir -p {folder}; cd {folder}; touch command mark; touch -d 2020-01-01 mark"
    cluster.run("login", "sh", "-c", cut_off, user="alice")
    # By ssh to the node: steps of a job that is put back end by Slurm's KillWait alone.
    start = ("start", "zih", *on_node(1), "--no-browser")
    first = (called, "--sbatch-arg=--requeue", "--port", str(free_port()))
    with busy(cluster), zih.spawn(*start, *first) as waiting:
        assert waiting.stdout
        lines = iter(waiting.stdout.readline, "")
        told = until(lines, "waits:")
        assert "the resources that it asks for are in use" in told or "higher priority" in told
        waiting.send_signal(signal.SIGINT)
        assert f"the job of `zih/{called}` stays; `jlr start zih {called}`" in "".join(lines)
        assert waiting.wait(PATIENCE) == 130
        for laptop, host in ((zih, ()), (other, ("zih",))):
            shown = listed(laptop, called, *host)
            assert shown["state"] == "queued"
            assert shown["reason"] in shown["detail"]
        another = name()
        with zih.spawn(*start, another, "--cancel-on-interrupt") as cancelled:
            assert cancelled.stdout
            lines = iter(cancelled.stdout.readline, "")
            until(lines, "waits:")
            cancelled.send_signal(signal.SIGINT)
            assert "cancelled the job" in "".join(lines)
        assert jobs(cluster, another) == ["CANCELLED"]
        watching = stack.enter_context(watch(zih, called))
        watched(watching, "queued", listed(zih, called)["reason"])
    cluster.run("login", "rm", f"{folder}/id")  # as if its submission had been cut off
    joined = started(other, called, *JUPYTER, host="zih")
    assert jobs(cluster, called) == ["RUNNING"]
    wait_until(lambda: listed(zih, called)["state"] == "up", "the session on the first laptop")
    born = joined.born()
    assert Session(zih, listed(zih, called)).born() == born
    up = watched(watching, "up")
    assert (up["node"][:4], up["url"]) == ("node", listed(zih, called)["url"])
    cluster.slurm("scontrol", "requeue", up["job"])
    watched(watching, "queued", "its start time has not come")
    cluster.slurm("scontrol", "update", f"jobid={up['job']}", "starttime=now")
    anew = watched(watching, "up")
    assert (anew["job"], anew["local_port"]) == (up["job"], up["local_port"])
    assert Session(zih, anew).token != Session(zih, up).token
    assert Session(zih, anew).born() != born
    assert other.jlr("stop", called).status == 0
    assert listed(zih, called)["state"] == "stopped"


def test_the_end_of_a_job_is_told_before_and_named_after(cluster: Cluster, zih: Laptop) -> None:
    session, other = started_together(zih, (*on_node(1), "--time", "10"), on_node(2))
    cancelled, failed_node = session.name, other.name
    for told in (session.report, listed(zih, cancelled), listed(zih, cancelled, "zih")):
        assert re.search(r"its time limit ends it in [789]m", told["detail"]), told
    update = ("scontrol", "update", "nodename=node2")
    cluster.slurm(*update, "state=drain", "reason=disk")
    assert listed(zih, failed_node)["state"] == "up", "a drained node ends no job"
    cluster.slurm(*update, "state=undrain")
    left = zih.jlr("wait", cancelled, "--for", "time-left=15m", "--json")
    assert (left.status, json.loads(left.stdout)["happened"]) == (0, "time-left"), left
    assert zih.jlr("wait", cancelled, "--for", "idle").status == 0
    failed(zih.jlr("wait", cancelled, "--timeout", "2s"), 124, f"zih/{cancelled}")
    with zih.spawn("wait", cancelled) as waiting:
        cluster.slurm("scancel", str(session.report["job"]))
        said = waiting.communicate(timeout=90)[0]
        assert (waiting.returncode, "job-ended" in said or "has ended" in said) == (0, True), said
    cluster.slurm(*update, "state=down", "reason=test")
    ended(session, "CANCELLED: it was cancelled", "; its last output: ")
    ended(other, "NODE_FAIL: a node that it ran on failed")
    cluster.wait_ready()
    words = ("start", "zih", cancelled, *on_node(1)[:1], "--cpus", "1", "--no-browser")
    failed(zih.jlr(*words), 1, "exit code 1", "No module named jupyterlab", "`--module`")


def check_warning(cluster: Cluster, session: Session, desk: Desktop) -> None:
    """Check that the desktop and each command tell of a time limit, when that is near."""
    zih = session.laptop
    assert "time limit" not in zih.jlr("url", session.name).stderr
    assert not desk.shown
    # An administrator takes some of it, which the next question to Slurm tells.
    cluster.slurm("scontrol", "update", f"jobid={session.report['job']}", "timelimit=15")
    soon = re.compile("its time limit ends it in 1[0-4]m")  # a loaded machine takes a minute
    assert soon.search(listed(zih, session.name)["detail"])
    assert started(zih, session.name, host="zih").url == session.url
    ((title, text),) = desk.wait()
    assert title == f"zih/{session.name}"
    assert soon.match(text)
    assert text.endswith(f"; `jlr start zih/{session.name} --renew` queues a successor")
    assert soon.search(zih.jlr("url", session.name).stderr)


def page(session: Session) -> str:
    """Return what a browser shows at the session's address."""
    try:
        with urlopen(
            Request(session.url, headers={"Accept": "text/html"}), timeout=PATIENCE
        ) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return html.unescape(error.read().decode())
    except (OSError, HTTPException) as broken:
        return str(broken)


def ended(session: Session, *words: str) -> None:
    """Check that each way to a session says how its job ended, the open page first."""
    called, laptop = session.name, session.laptop
    wait_until(lambda: f"its job ended: {words[0]}" in page(session), f"{words} on the page", 60)
    shown = listed(laptop, called)
    assert (shown["state"], shown["url"]) == ("job-ended", None)
    status = json.loads(laptop.jlr("list", called, "--json").stdout)
    failures = (("start", "zih", called), 6), (("url", called), 1), (("open", called), 1)
    told = [failed(laptop.jlr(*argv), code) for argv, code in failures]
    for text in (page(session), shown["detail"], status["detail"], *told):
        assert all(word in text for word in words), text


def test_ends_by_slurm_are_named_wherever_a_session_is_asked_for(
    cluster: Cluster, zih: Laptop
) -> None:
    """And its time limit is told before that ends it."""
    on_scavenge = ("--partition", "scavenge", *on_node(1)[:3], "--cpus", "3", *on_node(1)[-1:])
    others = (*on_node(2), "--mem", "600M"), on_node(2), (*on_node(2), "--time", "20")
    with desktop() as shown:
        zih.environment["DBUS_SESSION_BUS_ADDRESS"] = shown.address
        preempted, too_big, killed, limited = started_together(zih, on_scavenge, *others)
        check_warning(cluster, limited, shown)
    del zih.environment["DBUS_SESSION_BUS_ADDRESS"]
    # Slurm looks at limits every half minute; the other ends come meanwhile.
    cluster.slurm("scontrol", "update", f"jobid={limited.report['job']}", "endtime=now")
    # With cgroups one process is killed: the server, if the kernel is told so.
    server = f"$(cat ~/.local/state/jlr/slurm/servers/{too_big.name}/pid)"
    text = "import time; x = bytearray(900 << 20); time.sleep(300)"
    too_big.run_in_terminal(f'echo 1000 >"/proc/{server}/oom_score_adj"; python3 -c "{text}"')
    command = ("--exclusive", "--nodelist=node1", "--output=/dev/null", "--wrap=sleep 300")
    cluster.run("login", "sbatch", "--chdir=/tmp", *command, user="bob")
    killed.run_in_terminal(f"kill -9 $(cat ~/.local/state/jlr/slurm/servers/{killed.name}/pid)")
    ended(preempted, "PREEMPTED: a job of higher priority preempted it")
    ended(too_big, "OUT_OF_MEMORY: it used more memory than it had asked for")
    wait_until(lambda: "exit code 137; its last output" in page(killed), "the end by a signal")
    ended(limited, "TIMEOUT: its time limit was reached")


def test_a_successor_takes_over_name_and_port_when_the_job_is_over(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name()
    session = started(zih, called, *on_node(1), "-e", "WORD=xyzzy", host="zih")
    first = session.report["job"]
    after = json.loads(zih.jlr("start", called, "--renew", "--json").stdout)
    assert (after["follows"], after["name"]) == (first, called)
    failed(zih.jlr("start", called, "--renew"), 7, f"job {after['job']} follows job {first}")
    for told in (listed(zih, called), listed(zih, called, "zih")):
        assert (told["state"], told["job"]) == ("up", first)
        assert f"job {after['job']} follows it" in told["detail"]
    cluster.slurm("scancel", str(first))
    cluster.wait_state(str(first), "CANCELLED")
    joined = started(zih, called, host="zih")
    assert (joined.report["job"], joined.report["local_port"]) == (
        after["job"],
        session.report["local_port"],
    )
    with joined.notebook("a.ipynb") as kernel:
        assert kernel.run("__import__('os').environ['WORD']") == "'xyzzy'"
    second = json.loads(zih.jlr("start", called, "--renew", "--json").stdout)["job"]
    cluster.slurm("scancel", str(after["job"]))
    up = ("up", second, session.report["local_port"])
    keys = ("state", "job", "local_port")
    wait_until(lambda: tuple(listed(zih, called)[key] for key in keys) == up, "the second one")
    third = json.loads(zih.jlr("start", called, "--renew", "--json").stdout)["job"]
    done = str(zih.jlr("stop", called))
    assert f"cancelled job {third}" in done
    assert f"cancelled job {second}" in done
    wait_until(lambda: jobs(cluster, called) == ["CANCELLED"] * 4, "the end of all four")


def test_a_page_of_a_node_outlives_the_controller(
    cluster: Cluster, zih: Laptop, chromium: BrowserContext
) -> None:
    called, session = detached(zih), started(zih, name(), *on_node(2), host="zih")
    tab = chromium.new_page()
    open_notebook(tab, session.url)
    run_cell(tab, "import platform; print('on', platform.node())")
    expect(tab.locator(".jp-Notebook")).to_contain_text("on node2", timeout=SECONDS)
    with cluster.without_controller():
        for turn in range(40 if WANTED else 1):  # more than a minute
            run_cell(tab, f"print({turn}, 'still on', platform.node())")
            told = f"{turn} still on node2"
            expect(tab.locator(".jp-Notebook")).to_contain_text(told, timeout=SECONDS)
        assert zih.jlr("url", session.name).stdout.strip() == session.url
        assert job(zih, called)["state"] == "unknown"
        unasked = (
            f"cannot ask `zih/{session.name}` for programs: ",
            f"`jlr stop zih/{session.name} ",
        )
        failed(zih.jlr("stop", session.name, timeout=60), 7, *unasked, "--force` stops it anyway")
    running(zih, called)
    run_cell(tab, "print('and after', platform.node())")
    expect(tab.locator(".jp-Notebook")).to_contain_text("and after node2", timeout=SECONDS)


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2])
def test_what_runs_on_a_node_that_is_silent_is_said_to_be_unknown(
    cluster: Cluster, zih: Laptop, number: int
) -> None:
    session = started(zih, name(), *on_node(number), host="zih")
    with cluster.without(f"node{number}"):
        stopped = zih.jlr("stop", session.name, timeout=120)
        failed(stopped, 7, f"`zih/{session.name}` for busy kernels and programs: ", "--force`")
        with zih.terminal("jlr", "stop", session.name, "--force") as screen:
            screen.expect("programs that could not be listed")
            screen.expect("\\(y/N\\) ")
            screen.send("n\r")
            screen.expect("nothing was changed")


def test_two_login_nodes_with_keys_of_their_own_are_one_host(cluster: Cluster, keys: Keys) -> None:
    """Each connection lands on the next login node, as with the name of most centres."""
    called, balancer = name(), cluster.balancer()
    with closing(balancer), known_to(cluster, keys, balancer) as laptop:
        session = started(laptop, called, *on_node(2), host="zih")
        assert logged_in(cluster) == [LOGINS[0]]
        with known_to(cluster, keys, balancer) as other:
            failed(start(other, "zih", called), 1, "with `--slurm` a cluster's login node")
            joined = started(other, called, "--slurm", host="zih")
            assert logged_in(cluster) == [*LOGINS]
            born = joined.born()
        with session.notebook("a.ipynb") as kernel:
            assert kernel.run("x = 6 * 7; x") == "42"
        for _ in range(2):
            before = balancer.connections
            balancer.cut()
            assert session.born() == born, "the local port waits for the new connection"
            assert balancer.connections == before + 1
        with cluster.without(logged_in(cluster)[0]):
            wait_until(lambda: listed(laptop, called)["state"] == "up", "the other login node", 60)
            assert session.born() == born
        assert jobs(cluster, called) == ["RUNNING"]
        assert laptop.jlr("stop", called).status == 0


def logged_in(cluster: Cluster) -> list[str]:
    """Return the login nodes where alice's connections are."""
    asked = ("pgrep", "--euid", "alice", "sshd")
    return [machine for machine in LOGINS if cluster.try_run(machine, *asked).status == 0]


# What another user of a node finds there: the text of all processes, what answers on ports, and
# which sockets let her in.
SCAN = """\
import glob, socket
def text(path):
    try:
        return open(path, 'rb').read().replace(bytes(1), b' ').decode('utf-8', 'replace')
    except OSError:
        return ''
for kind in ('cmdline', 'environ'):
    print(*map(text, glob.glob(f'/proc/[0-9]*/{kind}')))
for row in text('/proc/net/tcp').splitlines()[1:]:
    _, local, _, state, _, _, _, owner = row.split()[:8]
    if state == '0A' and owner == OWNER:
        with socket.create_connection(('127.0.0.1', int(local.partition(':')[2], 16)), 5) as found:
            found.sendall(b'GET /api HTTP/1.0\\r\\n\\r\\n')
            print('port', repr(found.recv(100)))
for path in {row.split()[-1] for row in text('/proc/net/unix').splitlines() if '/alice/' in row}:
    with socket.socket(socket.AF_UNIX) as found:
        try:
            found.connect(path)
            print('socket open', path)
        except OSError as refused:
            print('socket', type(refused).__name__)
"""


# Prints the status of an answer.
ASK = """\
import http.client, sys
there = http.client.HTTPConnection("node1", int(sys.argv[1]), timeout=60)
there.request("GET", sys.argv[2], headers={"Host": "127.0.0.1"})
print(there.getresponse().status)
"""


def port_on_node(session: Session) -> str:
    servers = "list(__import__('jupyter_server.serverapp').serverapp.list_running_servers())"
    with session.notebook("a.ipynb") as kernel:
        return str(kernel.run(f"{servers}[0]['port']"))


def test_by_tcp_another_user_can_connect_but_needs_the_token(cluster: Cluster, zih: Laptop) -> None:
    called = name()
    done = start(zih, "zih", called, *on_node(1), "--reach", "tcp")
    assert "every user of the cluster can connect" in done.stderr, done
    session = started(zih, called, host="zih")
    port = port_on_node(session)
    base = "/" + session.base.partition("/")[2]
    for path, status in (("api/contents", "403"), (f"api/contents?token={session.token}", "200")):
        asked = ("python3", "-c", ASK, port, base + path)
        assert cluster.run("login", *asked, user="bob") == status


# Takes a port as soon as it is free, and prints that and every byte that comes until stdin ends.
TAKE = """\
import select, socket, sys, time
took = socket.socket()
took.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
until = time.monotonic() + 120
while True:
    try:
        took.bind(("0.0.0.0", int(sys.argv[1])))
        break
    except OSError:
        assert time.monotonic() < until
        time.sleep(0.01)
took.listen(50)
print("took", flush=True)
found = []
while sys.stdin not in (ready := select.select([sys.stdin, took, *found], [], [], 120)[0]):
    assert ready
    for one in ready:
        if one is took:
            found.append(took.accept()[0])
            continue
        try:
            data = one.recv(65536)
        except ConnectionResetError:
            data = b""
        if data:
            print("received", data, flush=True)
        else:
            found.remove(one)
"""


@pytest.mark.parametrize("node", [1, LONG(2)])
def test_who_takes_the_port_of_a_job_that_ended_receives_no_byte(
    cluster: Cluster, zih: Laptop, node: int
) -> None:
    """The node is entered by ssh, and by a step of the job."""
    session = started(zih, name(), *on_node(node), "--reach", "tcp", host="zih")
    port = port_on_node(session)
    wait_until(lambda: "JupyterLab" in page(session), "the session's page", 60)
    with cluster.running(f"node{node}", "python3", "-c", TAKE, str(port), user="bob") as taker:
        assert taker.stdout
        cluster.slurm("scancel", "--signal=KILL", "--full", str(session.report["job"]))
        assert taker.stdout.readline() == "took\n"
        for _ in range(3):
            assert "JupyterLab" not in page(session)
        wait_until(lambda: "its job ended" in page(session), "the end of the job on the page", 60)
        told = listed(zih, session.name)
        assert (told["state"], told["url"]) == ("job-ended", None), told
        page(session)
        received, _ = taker.communicate(timeout=60)
    assert (received, taker.returncode) == ("", 0)
    assert zih.jlr("stop", session.name).status == 0


def test_who_takes_a_further_port_on_a_node_receives_no_byte(cluster: Cluster, zih: Laptop) -> None:
    session, port = started(zih, name(), *on_node(2), host="zih"), str(free_port())
    serve = ("python3", "-m", "http.server", port)
    zih.jlr(*("run", "zih", "--in", session.name, "-d", "--", *serve)).checked()
    forwarded = zih.jlr("forward", session.name, port, "--json").checked()
    told = json.loads(forwarded.stdout)
    local = (told[0] if isinstance(told, list) else told)["local_port"]

    def asked() -> str:
        try:
            with urlopen(f"http://127.0.0.1:{local}/", timeout=PATIENCE) as answer:
                return str(answer.read().decode())
        except (OSError, HTTPException) as refused:
            return str(refused)

    wait_until(lambda: "Directory listing" in asked(), "the program's page", 60)
    with cluster.running("node2", "python3", "-c", TAKE, port, user="bob") as taker:
        assert taker.stdout
        with ThreadPoolExecutor() as pool:
            over = threading.Event()
            asking = pool.submit(lambda: [asked() for _ in iter(over.is_set, True)])
            cluster.run("node2", "pkill", "-KILL", "-f", f"http.server {port}")
            assert taker.stdout.readline() == "took\n"
            assert "Directory listing" not in asked()
            over.set()
            asking.result()
        received, _ = taker.communicate(timeout=60)
    assert (received, taker.returncode) == ("", 0)


def test_what_begins_to_listen_in_a_job_is_forwarded(cluster: Cluster, zih: Laptop) -> None:
    session, port = started(zih, name(), *on_node(2), host="zih"), str(free_port())
    with following(zih, session.name, "--no-browser") as follower:
        serve = ("python3", "-m", "http.server", port)
        assert zih.jlr("run", "zih", "--in", session.name, "-d", "--", *serve).status == 0
        follower.line(f"^{port} http.server → ")


def test_by_a_step_of_the_job_a_kernel_answers_and_another_user_gets_nothing(
    cluster: Cluster, zih: Laptop
) -> None:
    """In a conda environment, where other sessions load a module."""
    called, environments = name(), "/home/alice/.conda/envs"
    link = f"mkdir -p {environments} && ln -sfn /opt/jupyter {environments}/lab"
    cluster.run("login", "sh", "-c", link, user="alice")
    words = ("--slurm", "--conda-env", "lab", *on_node(2)[3:])
    session = started(zih, called, *words, host="zih")
    check_clients(session, "node2", f"{environments}/lab")
    check_local_kernel(session, "node2")
    check_recorder(session, "output")
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("__import__('sys').prefix") == f"'{environments}/lab'"
        scan = SCAN.replace("OWNER", repr(str(USERS["alice"])))
        cluster.run("node2", "sh", "-c", 'printf %s "$1" >/tmp/scan.py', "sh", scan)
        found = cluster.run("node2", "python3", "/tmp/scan.py", user="bob")
        own = cluster.run("node2", "python3", "/tmp/scan.py", user="alice")
    assert "socket open /home/alice/" in own
    assert "socket PermissionError" in found
    assert "socket open" not in found
    assert "jupyter-lab" in found, "processes are seen"
    assert session.token not in found
    assert "port " in found, "the kernel's own ports"
    assert not [line for line in found.splitlines() if line.startswith("port b'HTTP")]
    refused = cluster.try_run("login", *user("bob"), "ls /home/alice /home/alice/.local/state/jlr")
    assert (refused.status != 0, refused.stdout) == (True, ""), refused
