"""A session that runs is attached to, listed, opened and read, and nothing in it is restarted."""

from __future__ import annotations

import json
import re
import socket
import time
from datetime import datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.servers import start_inside
from tests.outages.parts import within
from tests.sessions.parts import Session, failed, start, started

FIELDS = ("name", "host", "container", "runtime", "state", "url", "local_port", "image", "gpus")


def test_start_on_a_running_session_restarts_nothing(session: Session) -> None:
    born = session.born()
    again = started(session.laptop, session.name)
    assert again.url == session.url
    assert again.born() == born


def test_start_without_a_name_takes_the_hosts_latest_session(session: Session) -> None:
    again = session.laptop.jlr("start", "lab", "--no-browser")
    assert again.stdout.strip() == session.url, again


def test_list_json_is_an_array_with_the_fields_that_scripts_rely_on(session: Session) -> None:
    listed = session.laptop.jlr("list", "--json")
    assert listed.stderr == ""
    [report] = [r for r in json.loads(listed.stdout) if r["name"] == session.name]
    assert {field: report[field] for field in FIELDS} == {
        "name": session.name,
        "host": "lab",
        "container": session.name,
        "runtime": "docker",
        "state": "up",
        "url": session.url,
        "local_port": session.port,
        "image": "lab/jupyter",
        "gpus": None,
    }


def test_status_tells_which_kernels_are_busy_and_since_when(session: Session) -> None:
    with session.notebook("idle.ipynb") as idle, session.notebook("busy.ipynb") as busy:
        assert idle.run("6 * 7") == "42"
        busy.keep_busy()
        wait_until(lambda: idle.state() == "idle", "the kernel's being idle")
        report = json.loads(session.laptop.jlr("list", session.name, "--json").stdout)
        kernels = {kernel["notebook"]: kernel for kernel in report["kernels"]}
        assert kernels["idle.ipynb"]["state"] == "idle"
        assert kernels["busy.ipynb"]["state"] == "busy"
        for notebook in ("idle.ipynb", "busy.ipynb"):
            since = datetime.fromisoformat(kernels[notebook]["last_activity"]).timestamp()
            assert time.time() - 120 < since <= time.time() + 1
        shown = session.laptop.jlr("list", session.name).stdout
        assert re.search(r"^busy\.ipynb +busy +\d+s$", shown, re.MULTILINE), shown
        assert re.search(r"^idle\.ipynb +idle +\d+s$", shown, re.MULTILINE), shown
        listed = session.laptop.jlr("list").stdout
        line = rf"^{session.name}( \*)? +lab +up .*(1 busy|busy \d+s busy\.ipynb) +{session.port}\b"
        assert re.search(line, listed, re.MULTILINE), listed
        busy.interrupt()


def test_all_commands_give_a_program_one_url_and_a_browser_the_other(session: Session) -> None:
    name, url, page = session.name, session.url, session.report["page"]
    assert (urlsplit(url).hostname, urlsplit(page).port) == ("127.0.0.1", session.port)
    assert str(urlsplit(page).hostname).endswith(".localhost")
    for words, line in (
        (("url", name), url),
        (("open", name, "--no-browser"), url),
        (("start", "lab", name, "--no-browser"), url),
    ):
        printed = session.laptop.jlr(*words)
        assert printed.stdout == line + "\n", words
        if words[0] == "url":
            assert printed.stderr == ""
        report = json.loads(session.laptop.jlr(*words, "--json").stdout)
        assert (report["url"], report["page"]) == (url, page), words
    [listed] = [r for r in json.loads(session.laptop.jlr("list", "--json").stdout) if r["url"]]
    assert (listed["url"], listed["page"]) == (url, page)
    assert f"url:       {url}\n" in session.laptop.jlr("list", name).stdout
    with session.laptop.terminal("jlr", "list", name) as terminal:
        terminal.expect_exact(page)
    session.laptop.jlr("open", name)
    wait_until(lambda: session.laptop.opened(), "the browser's start")
    redirect = Path(unquote(urlsplit(session.laptop.opened()[-1]).path)).read_text()
    assert [unescape(href) for href in re.findall(r'href="([^"]*)"', redirect)] == [page, url]


def test_open_leads_to_a_path_in_jupyterlab(session: Session) -> None:
    made(session, "my work/train #1.ipynb")
    before = len(session.laptop.opened())
    opened = session.laptop.jlr("open", "my work/train #1.ipynb")
    assert "/lab/tree/my%20work/train%20%231.ipynb?token=" in opened.stdout, opened
    wait_until(lambda: len(session.laptop.opened()) > before, "the browser's start")
    redirect = Path(unquote(urlsplit(session.laptop.opened()[-1]).path))
    assert "/lab/tree/my%20work/train%20%231.ipynb?" in redirect.read_text()


def made(session: Session, path: str) -> None:
    """Make an empty file for a notebook, and its folder, if they are missing."""
    folder = path.partition("/")[0]
    session.ask(f"api/contents/{quote(folder)}", {"type": "directory"}, "PUT")
    file = {"type": "file", "format": "text", "content": ""}
    session.ask(f"api/contents/{quote(path)}", file, "PUT")


def test_a_path_that_is_missing_opens_no_page(session: Session) -> None:
    """It may be a session whose host was misspelt, which is no file of the latest one."""
    before = len(session.laptop.opened())
    opened = session.laptop.jlr("open", f"lba/{session.name}")
    failed(opened, 6, f"there is no `lba/{session.name}` in the session", "HOST/NAME")
    assert len(session.laptop.opened()) == before


def test_logs_show_what_the_server_said_and_no_token(session: Session) -> None:
    said = session.laptop.jlr("logs", session.name, "--tail", "1000")
    assert f"http://127.0.0.1:8888{urlsplit(session.url).path}" in said.stdout, said
    assert session.token not in said.stdout
    last = session.laptop.jlr("logs", session.name, "--tail", "1").stdout
    assert said.stdout.endswith(last)
    assert len(last.splitlines()) == 1
    recent = session.laptop.jlr("logs", session.name, "--since", "1h").stdout
    assert recent.splitlines()[0] in said.stdout
    assert recent.endswith(last)
    assert session.laptop.jlr("logs", session.name, "--since", "2100-01-01").stdout == ""
    own = session.laptop.jlr("logs", session.name, "--container", "--since", "1h")
    assert (own.status, "ServerApp" in own.stdout) == (0, False)


def test_logs_are_free_of_control_characters(session: Session) -> None:
    with session.notebook("loud.ipynb") as kernel:
        log = f"/tmp/jlr-0/{session.name}/jupyter.log"
        kernel.run(f"open({log!r}, 'a').write('\\x1b]0;title\\x07\\x1b[2Jplain\\n')")
    said = session.laptop.jlr("logs", session.name, "--tail", "20").stdout
    assert "plain" in said
    assert "\x1b" not in said
    assert "title" not in said


def test_a_session_that_does_not_exist_is_told_as_such(session: Session) -> None:
    for words in (("url", "none-such"), ("logs", "none-such")):
        failed(session.laptop.jlr(*words), 6, "`none-such`", "jlr list")
    failed(session.laptop.jlr("list", "none-such"), 6, "`none-such`", "check the name")


def test_a_port_that_was_lost_with_the_link_is_told_and_taken_again_once_it_is_free(
    laptop: Laptop, session: Session
) -> None:
    session = started(laptop, session.name)
    assert laptop.jlr("disconnect", "lab").status == 0
    with within(15):
        with socket.create_server(("127.0.0.1", session.port)):
            [report] = json.loads(laptop.jlr("list", "--json").stdout)
            assert report["state"] == "down", report
            assert "disconnected by `jlr disconnect`" in report["detail"], "a list connects nothing"
            report = json.loads(laptop.jlr("list", session.name, "--json").stdout)
            assert report["state"] == "down", report
            assert f"port {session.port} is in use by" in report["detail"]
            failed(laptop.jlr("url"), 7, f"port {session.port} is in use by", "`jlr start lab")
        assert laptop.jlr("url").stdout.strip() == session.url


def test_disconnect_all_ends_links_without_a_session_and_those_after_a_stuck_one(
    laptop: Laptop, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    laptop.add_host("second", sshd, account, key=keys.private)
    assert laptop.jlr("shell", "lab", "--", "true").status == 0
    [stuck] = laptop.processes()
    assert laptop.jlr("shell", "second", "--", "true").status == 0
    stuck.suspend()
    try:
        ended = laptop.jlr("disconnect", "--all", "--yes")
    finally:
        stuck.resume()
    assert (ended.status, ended.stdout) == (1, "disconnected from second\n"), ended
    assert f"`kill -CONT {stuck.pid}`" in ended.stderr
    assert laptop.jlr("disconnect", "--all", "--yes").stdout in ("disconnected from lab\n", "")
    wait_until(lambda: laptop.processes() == [], "the end of both links")


# Its own process needs more memory than it has, once it is told to; after that it ends at once, so
# that the pauses between the engine's restarts soon become long.
GREEDY = """\
until [ -e /go ]; do sleep 0.1; done
[ ! -e /gone ] || exit 1
: >/gone; exec python3 -c 'bytearray(10**9)'"""


@pytest.mark.long
def test_why_a_session_does_not_run_is_told_on_the_page_too(
    laptop: Laptop, other_laptop: Laptop, container: ContainerFactory
) -> None:
    limits = ("--memory=300m", "--memory-swap=300m")
    here = container("lab/jupyter", "sh", "-c", GREEDY, options=limits)
    docker, name = here.engine.docker, here.name
    start_inside(here, 8888)
    session = started(laptop, here)
    commands = laptop.jlr("--verbose", "shell", name, "--", "true").stderr
    assert "docker exec" in commands, commands
    assert "inspect" not in commands, "the link has proved the container"

    def told(state: str, why: str) -> None:
        def is_told() -> bool:
            report = reported(laptop)
            words = (str(report["detail"]), laptop.jlr("list", name).stdout, page_of(session))
            return report["state"] == state and all(why in each for each in words)

        # An engine's pause between two restarts may be over before all three were asked.
        wait_until(is_told, f"`{state}`: {why}", timeout=60)

    here.engine.pause(name)
    told("paused", "is paused")
    for words in (("open", name, "--no-browser"), ("shell", name, "--", "true")):
        assert f"`docker unpause {name}` on the host resumes it" in laptop.jlr(*words).stderr
    docker("unpause", name)
    wait_until(lambda: reported(laptop)["state"] == "up", "the end of the pause")

    assert other_laptop.jlr("stop", f"lab/{name}").status == 0
    told("stopped", "was stopped, from its page or with `jlr stop`")
    docker("restart", "--time=0", name)
    told("restarted", "was restarted")
    failed(laptop.jlr("url", name), 1, "is restarted", f"`jlr start lab {name}` starts it again")
    start_inside(here, 8888)
    assert started(laptop, here).port == session.port

    docker("kill", name)
    told("container-stopped", "it was killed (exit code 137)")
    docker("start", name)
    here.execute("touch", "/go")
    told("container-stopped", "it was killed: out of memory (limit 300 MB)")
    docker("update", "--restart=always", name)
    docker("start", name)
    told("restarting", "its engine is restarting it")
    container.remove_all()
    told("container-gone", "is gone: it was removed")


def page_of(session: Session) -> str:
    """Return the text of the page that a browser gets while the session's own is away."""
    try:
        urlopen(Request(session.url, headers={"Accept": "text/html"}), timeout=30).close()
    except HTTPError as waiting:
        with waiting:
            return unescape(waiting.read().decode())
    return ""


def test_a_container_that_was_removed_by_hand_is_told_as_such(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    start_inside(here, 8888)
    started(laptop, here)
    container.remove_all()
    with within(15):
        [report] = json.loads(laptop.jlr("list", "--json").stdout)
    assert report["state"] == "container-gone", report
    assert report["url"] is None
    assert "is gone: it was removed" in report["detail"]
    told = failed(laptop.jlr("url"), 1, "container-gone")
    again = f"jlr start lab {here.name} --image lab/jupyter"
    assert f"`{again}`" in told
    gone = "is gone: it was removed"
    for words in (("shell",), ("logs",), ("logs", "--container"), ("output",), ("output", "-f")):
        result = laptop.jlr(*words)
        failed(result, 6, gone, f"`{again}`")
        assert "daemon" not in result.stderr
    failed(laptop.jlr("forward", here.name, "7000"), 6, gone, f"`{again}`")
    without = laptop.jlr("start", "lab", here.name, "--no-browser")
    failed(without, 6, "no image to create it from", f"`{again}` creates it")
    assert laptop.jlr(*again.split()[1:], "--dry-run").status == 0
    assert laptop.jlr("stop").status == 0


def test_a_container_that_is_renamed_stays_the_sessions(
    laptop: Laptop, other_laptop: Laptop, container: ContainerFactory
) -> None:
    here, name = container(), container.name()
    session = started(laptop, here)
    with within(15):
        here.engine.docker("rename", here.name, name)
        wait_until(lambda: reported(laptop)["container"] == name, "the new name")
        assert session.ask("api/status")["kernels"] == 0
        told = reported(laptop)
        assert told["state"] == "up"
        assert f"is now called `{name}`" in told["detail"]
    for typed in (name, f"lab/{name}"):
        assert laptop.jlr("url", typed).stdout.strip() == session.url
    for place in (name, f"lab/{name}"):
        assert laptop.jlr("list", place).status == 0
    # The name may be another container's by now.
    assert laptop.jlr("stop", name, "--container", "--yes").status == 6
    # Another laptop knows only the present name; a second server would be a double.
    joined = started(other_laptop, name)
    assert (joined.token, joined.born()) == (session.token, session.born())

    assert laptop.jlr("disconnect", "lab").status == 0
    assert laptop.jlr("shell", here.name, "--", "hostname").status == 0
    assert laptop.jlr("url", here.name).stdout.strip() == session.url
    here.engine.docker("kill", name)
    wait_until(lambda: reported(laptop)["state"] == "container-stopped", "the end")
    assert "it was killed (exit code 137)" in reported(laptop)["detail"]

    again = json.loads(start(laptop, "lab", name, "--json").stdout)
    assert (again["name"], again["local_port"]) == (here.name, session.port)
    start_inside(container("lab/plain", name=here.name), 8888)  # another one takes the name
    assert start(laptop, "lab", here.name).status == 0
    assert laptop.jlr("rm", f"lab/{name}", "--yes").status == 0
    left = here.engine.docker("ps", "--format={{.Names}}").split()
    assert (here.name in left, name in left) == (True, False)


def reported(laptop: Laptop) -> dict[str, Any]:
    [report] = json.loads(laptop.jlr("list", "--json").stdout)
    return dict(report)
