"""Stopping goes in layers, never over running work unless it is forced, and twice is fine."""

from __future__ import annotations

import json
import re

import pytest
from pexpect import EOF

from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.ports import is_free
from tests.lab.programs import wait_until
from tests.link.servers import start_inside
from tests.sessions.parts import (
    SERVER,
    START_SECONDS,
    Session,
    failed,
    start,
    started,
)


def test_stop_ends_jupyter_and_its_kernels_and_leaves_the_container(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    first = started(laptop, here)
    with first.notebook("idle.ipynb") as kernel:
        kernel.run("1")
        stopped = laptop.jlr("stop")
        assert stopped.status == 0, stopped
        assert "stopped JupyterLab" in stopped.stdout
        assert f"released port {first.port}" in stopped.stdout
    assert here.running

    def others() -> list[str]:
        processes = here.engine.docker("top", here.name, "-eo", "pid,args").splitlines()[1:]
        return [line for line in processes if "sleep infinity" not in line]

    # The recorder reads what the kernels said last, and ends by itself.
    wait_until(lambda: not others(), "the end of all that the session ran")
    assert is_free(first.port)
    assert "jpserver" not in here.execute("sh", "-c", f"ls -R /tmp/jlr-0/{here.name}")
    twice = laptop.jlr("stop")
    assert twice.status == 0, twice
    assert "stopped already" in twice.stdout

    assert "stopped" in laptop.jlr("list").stdout
    [shown] = json.loads(laptop.jlr("list", "--json").stdout)
    assert (shown["name"], shown["state"], shown["url"]) == (here.name, "stopped", None)
    laptop.jlr("disconnect", "lab")  # a list dials nobody for a session that was stopped
    assert laptop.jlr("list", "--json").stdout.strip() == "[]"
    assert "not asked for stopped sessions: `lab`;" in laptop.jlr("list").stderr
    wait_until(lambda: laptop.processes() == [], "the end of the link")
    listed = json.loads(laptop.jlr("list", "lab", "--json").stdout)  # with other tests' sessions
    assert [each["state"] for each in listed if each["name"] == here.name] == ["stopped"]
    failed(laptop.jlr("url", here.name), 6, "does not run", f"jlr start lab {here.name}")
    second = started(laptop, here, "--idle-stop", "3h", "--forward", "6006")
    assert second.port == first.port
    assert second.token != first.token

    with second.notebook("busy.ipynb") as kernel:
        kernel.keep_busy()
        forced = f"`jlr restart lab/{here.name} --force` restarts it anyway"
        failed(laptop.jlr("restart", here.name), 7, "busy.ipynb", forced)
        restarted = laptop.jlr(
            "restart", here.name, "--force", "--yes", "--json", timeout=START_SECONDS
        )
    assert restarted.status == 0, restarted
    third = Session(laptop, json.loads(restarted.stdout))
    assert (third.port, third.report["idle_stop"]) == (first.port, 3 * 3600)
    assert [port["port"] for port in third.report["ports"]] == [6006]
    assert third.token != second.token
    assert third.ask("api/status")["kernels"] == 0


def test_a_container_is_stopped_started_and_removed(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    started(laptop, here)
    full = f"jlr stop lab/{here.name}"
    here.engine.docker("exec", "--detach", here.name, "sh", "-c", "echo $$ >/w; exec sleep 641")
    job = container.name()
    run = ("run", "lab", "--in", here.name, "--name", job, "--detach", "--", "sleep", "643")
    assert laptop.jlr(*run).status == 0
    with laptop.terminal("jlr", "shell", here.name) as shell:
        shell.sendline("echo ope''ned")
        shell.expect("opened")
        told = ("the program `sleep 641`", "the job `sleep 643`", "an open shell")
        stays = f"`{full} --container --force`"
        failed(laptop.jlr("stop", "--container", "--yes"), 7, *told, stays)
        shell.sendline("exit")
        shell.expect(EOF)
    assert laptop.jlr("rm", job, "--force", "--yes").status == 0
    here.execute("sh", "-c", "kill $(cat /w)")
    stopped = laptop.jlr("stop", "--container", "--yes")
    assert "stopped the container" in stopped.stdout, stopped
    assert not here.running
    assert laptop.jlr("stop", "--container", "--yes").status == 0
    failed(laptop.jlr("shell", here.name, "--", "true"), 6, "(exit code 1")
    assert started(laptop, here).ask("api/status")["kernels"] == 0
    here.execute("touch", "/root/model.pt")
    here.engine.pause(here.name)
    for words in (("stop",), ("stop", "--container", "--yes"), ("rm", "--yes")):
        failed(laptop.jlr(*words), 7, "is paused", f"docker unpause {here.name}")
    refused = laptop.jlr("stop", "--all", "--yes")
    failed(refused, 7, "is paused", f"docker unpause {here.name}")
    stopped = laptop.jlr("stop", "--container", "--force", "--yes")
    assert "stopped the container" in stopped.stdout, stopped
    here.engine.docker("start", here.name)
    for answer in ("\x04", "n\r", "y\r"):  # Ctrl-D is no yes
        with laptop.terminal("jlr", "rm") as screen:
            screen.expect("all files of its container outside volumes")
            screen.expect("/root/model.pt")
            screen.expect(f"Stop and delete the container of lab/{here.name}\\? \\(y/N\\) ")
            screen.send(answer)
            screen.expect("removed the container" if "y" in answer else "nothing was changed")
            screen.expect(EOF)
    assert container.remove_all() == []
    failed(laptop.jlr("stop", here.name), 6, f"`{here.name}`")
    failed(start(laptop, "lab", here.name), 6, "no container")


def test_a_session_that_was_stopped_is_told_by_its_container(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    docker, name = here.engine.docker, here.name
    start_inside(here, 8888)
    started(laptop, here)
    assert laptop.jlr("stop").status == 0

    def told() -> tuple[str, str]:
        report = json.loads(laptop.jlr("list", name, "--json").stdout)
        return report["state"], str(report["detail"])

    def listed() -> list[str]:
        return [each["state"] for each in json.loads(laptop.jlr("list", "--json").stdout)]

    assert told() == ("stopped", "None")
    here.engine.pause(name)
    assert told() == ("paused", f"the container `{name}` is paused")
    assert listed() == ["paused"]
    failed(laptop.jlr("url"), 6, f"`docker unpause {name}` on the host resumes it")
    docker("unpause", name)
    docker("kill", name)
    state, why = told()
    assert (state, "it was killed (exit code 137)" in why) == ("container-stopped", True)
    assert listed() == []
    for words in ("url", "logs", "output"):
        failed(laptop.jlr(words), 6, "exit code 137", f"`jlr start lab {name}` starts it again")

    laptop.jlr("disconnect", "lab")
    state, why = told()  # dials no host that was disconnected on purpose
    assert (state, "not asked: disconnected by `jlr disconnect`" in why) == ("stopped", True)
    wait_until(lambda: laptop.processes() == [], "the end of the link")

    container.remove_all()
    again = f"`jlr start lab {name} --image lab/jupyter` starts it again"
    failed(laptop.jlr("url"), 6, "is gone: it was removed", again)
    assert told() == ("container-gone", f"the container `{name}` is gone: it was removed")


@pytest.mark.long
@pytest.mark.parametrize("how", [("rm",), ("stop", "--container")], ids=" ".join)
def test_a_container_that_removes_itself_meanwhile_counts_as_stopped(
    laptop: Laptop, container: ContainerFactory, how: tuple[str, ...]
) -> None:
    """Its own process is the server, so that `--rm` removes it as soon as that has ended."""
    here = container("lab/jupyter", *SERVER, options=("--rm",))
    # So that the removal takes longer than we do.
    here.execute("sh", "-c", "mkdir /many; cd /many; seq 40000 | xargs touch")
    here.await_output("is running at")
    started(laptop, here)
    stopped = laptop.jlr(*how, "--force", "--yes")
    assert stopped.status == 0, stopped
    assert "the container" in stopped.stdout
    assert here.engine.try_docker("container", "inspect", here.name).status != 0


def test_a_busy_kernel_is_named_and_not_stopped_unless_forced(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    session = started(laptop, here)
    with session.notebook("train/model.ipynb") as kernel:
        kernel.keep_busy()
        for verb, *words in (("stop",), ("stop", "--container"), ("rm",), ("stop", "--all")):
            kept = " ".join(("jlr", verb, f"lab/{here.name}", *words, "--force"))
            kept = "" if words == ["--all"] else kept
            failed(laptop.jlr(verb, *words, "--yes"), 7, "`train/model.ipynb`", kept)
        assert kernel.state() == "busy"
        assert here.running
        kernel.interrupt()
        wait_until(lambda: kernel.state() == "idle", "the kernel's end of work")
        session.run_in_terminal("sleep 642")
        wait_until(
            lambda: "sleep 642" in here.engine.docker("top", here.name, "-eo", "pid,args"),
            "the program in the terminal",
        )
        failed(laptop.jlr("stop"), 7, "`sleep 642` in a terminal of JupyterLab")
        forced = laptop.jlr("stop", "--force", "--yes")
        assert forced.status == 0, forced
    assert is_free(session.port)
    assert here.running


def test_stop_all_stops_every_session_but_those_that_are_busy(
    laptop: Laptop, container: ContainerFactory
) -> None:
    works = container("lab/jupyter", "sleep", "645")
    idle, busy = started(laptop, works), started(laptop, container())
    assert re.search(rf"^{busy.name} \* +lab +up ", laptop.jlr("list").stdout, re.MULTILINE)
    first, second = (f"`jlr rm lab/{session.name}`" for session in (idle, busy))
    failed(laptop.jlr("rm", "--yes"), 2, first, second)
    with busy.notebook("long.ipynb") as kernel:
        kernel.keep_busy()
        both = ("the program `sleep 645`", "`long.ipynb`")
        hints = (f"`jlr stop lab/{each.name} --container --force`" for each in (idle, busy))
        failed(laptop.jlr("stop", "--all", "--container", "--yes"), 7, *both, *hints)
        kernel.interrupt()
        with laptop.terminal("jlr", "rm", "--all", "--force") as screen:
            screen.expect(f"lab/{busy.name}: the kernel of `long.ipynb` \\(")
            screen.expect("all files of its container outside volumes")
            screen.expect(f"lab/{idle.name}: the program `sleep 645`; all files")
            screen.expect("and delete their containers\\? \\(y/N\\) ")
            screen.send("n\r")
            screen.expect("nothing was changed")
            screen.expect(EOF)
        kernel.keep_busy()
        refused = laptop.jlr("stop", "--all", "--yes")
        assert refused.status == 7, refused
        assert "`long.ipynb`" in refused.stderr
        assert f"lab/{idle.name}: stopped JupyterLab" in refused.stdout
        failed(laptop.jlr("stop", "--force", "--yes"), 2, f"lab/{busy.name} --force`")
        latest = f"no default session: `lab/{idle.name}`, the latest, is stopped"
        failed(laptop.jlr("stop"), 2, latest, f"`jlr stop lab/{busy.name}`")
        assert is_free(idle.port)
        assert kernel.state() == "busy"
        assert laptop.jlr("stop", "--all", "--force", "--yes").status == 0
    assert is_free(busy.port)
    assert laptop.jlr("stop", "--all", "--yes").status == 0
