"""Options and settings of new containers, as in scripts around `docker run`."""

from __future__ import annotations

import json
import re
import shlex
import socket
from dataclasses import replace
from urllib.error import HTTPError

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.link.servers import start_inside
from tests.long import LONG
from tests.sessions.parts import START_SECONDS, Session, failed, start, started

SETTINGS = """
[defaults]
host = "lab"
container = "tf"
name = "PREFIX{user}_{name}"
[hosts.lab]
port = PORT
profile = "house"
[profiles.house]
image = "lab/jupyter"
shm-size = "1g"
ulimit = ["stack=67108864"]
ipc = "private"
volume = ["~/data:/data:ro"]
workspace = "proj"
env = ["A=file"]
engine-arguments = ["--cap-add", "SYS_PTRACE"]
rm = true
"""
FACTS = """
import os, pathlib, resource, shutil
pathlib.Path("made").write_text("x")
(pathlib.Path.home() / "made").write_text("x")
[
    os.getcwd(), os.getuid(), os.environ["USER"], os.environ["A"],
    pathlib.Path("/data/train.csv").read_text(), os.access("/data", os.W_OK),
    shutil.disk_usage("/dev/shm").total >> 20, resource.getrlimit(resource.RLIMIT_STACK)[0],
]
"""


def test_a_container_follows_the_settings_and_its_files_belong_to_the_user(
    laptop: Laptop, container: ContainerFactory, engine: Engine, account: Account
) -> None:
    port = free_port()
    laptop.ssh("lab", "mkdir -p data proj; printf 1,2 >data/train.csv")
    laptop.settle(SETTINGS.replace("PREFIX", container.prefix).replace("PORT", str(port)))
    words = ("start", "-e", "A=flag", "--json", "--no-browser")
    answer = laptop.jlr(*words, timeout=START_SECONDS)
    assert answer.status == 0, answer
    session = Session(laptop, json.loads(answer.stdout))
    assert session.name == f"{container.prefix}{account.name}_tf"
    assert session.port == port
    uid = account.uid
    with session.notebook("facts.ipynb") as kernel:
        expected = ["/workspace", uid, account.name, "flag", "1,2", False, 1024, 67108864]
        assert kernel.run(FACTS) == repr(expected)
    assert (account.home / "proj" / "made").stat().st_uid == uid
    inspected = json.loads(Container(engine, session.name).inspect("{{json .HostConfig}}"))
    assert inspected["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "50m"}}
    assert inspected["CapAdd"] == ["CAP_SYS_PTRACE"]
    assert (inspected["Init"], inspected["AutoRemove"]) == (True, True)
    assert inspected["IpcMode"] == "private"
    _same_again(laptop, session)
    _other_settings(laptop, session)
    assert laptop.jlr("stop", "tf", "--container", "--yes").status == 0, (
        "by the name that a person types"
    )
    wait_until(
        lambda: engine.try_docker("container", "inspect", session.name).status != 0,
        "the end of a container that was asked to go by itself",
    )


def test_user_host_container_and_port_are_those_of_the_settings(
    laptop: Laptop, container: ContainerFactory, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    """The ssh configuration has another user for the host, whom its server does not know."""
    laptop.add_host("box", sshd, replace(account, name="nobody-here"), key=keys.private)
    name, port = container.name(), free_port()
    host = f"{account.name}@box"
    for option, value in (("host", host), ("container", name), ("image", "lab/jupyter")):
        assert laptop.jlr("config", "set", option, value).status == 0
    assert laptop.jlr("config", "set", "port", str(port), "--host", "box").status == 0
    answer = laptop.jlr("start", "--json", "--no-browser", timeout=START_SECONDS)
    assert answer.status == 0, answer
    session = Session(laptop, json.loads(answer.stdout))
    assert (session.report["host"], session.name, session.port) == (host, name, port)
    assert session.born()
    assert laptop.jlr("shell", host, "--", "id", "-un").stdout == f"{account.name}\n"
    assert laptop.jlr("shell", "box", "--", "true").status == 4, "not the user of the settings"


def _same_again(laptop: Laptop, session: Session) -> None:
    again = start(laptop, "lab", "tf", "-e", "A=flag")
    assert again.status == 0, again
    assert "keeps its settings" not in again.stderr, "nothing differs"
    assert laptop.jlr("url", "lab/tf").stdout.strip() == session.url


def _other_settings(laptop: Laptop, session: Session) -> None:
    words = ("--shm-size", "8g", "--user", "root", "-v", "~/proj:/data", "-e", "B=1")
    other = start(laptop, "lab", "tf", *words, "--ulimit", "stack=1024")
    assert other.status == 0, other
    for told in (
        f"`{session.name}` already exists and keeps its settings",
        "shm-size is `1g` (you asked for `8g`)",
        "(you asked for `root`)",
        "/data:/data:ro` (you asked for `~/proj:/data`)",
        "`B`: `--env` applies to new containers only",
        "ulimit is `stack=67108864` (you asked for `stack=1024`)",
        f"`jlr rm lab/{session.name}`",
    ):
        assert told in " ".join(other.stderr.split()), other


def test_the_command_can_be_pasted_into_a_shell(
    laptop: Laptop, container: ContainerFactory, engine: Engine, account: Account
) -> None:
    name, greeting = container.name(), 'it\'s a "good" day; $HOME'
    words = ("--image", "lab/plain", "-e", f"A={greeting}", "-v", "~/:/home/me", "--dry-run")
    plan = laptop.jlr("start", "lab", name, *words, "--ipc", "host", "--", "--hostname", "a.b")
    assert plan.status == 0, plan
    assert container.remove_all() == []
    assert re.search(r"<[\w ]+: \d+ lines, [\d.]+ kB>", plan.stdout), plan
    assert len(plan.stdout.splitlines()) < 10
    whole = laptop.jlr(
        "start", "lab", name, *words, "--json", "--ipc", "host", "--", "--hostname", "a.b"
    )
    pasted = laptop.ssh("lab", "sh", "-s", stdin="\n".join(json.loads(whole.stdout)["commands"]))
    assert pasted.status == 0, pasted
    here = Container(engine, name)
    assert here.running
    assert here.execute("sh", "-c", 'echo "$A"; hostname') == f"{greeting}\na.b"
    owner = engine.docker("inspect", "-f", '{{index .Config.Labels "org.jlremote.user"}}', name)
    assert owner == account.name
    assert here.inspect("{{.HostConfig.IpcMode}}") == "host"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--profile", "nvidia"),
            "`--ulimit memlock=-1` (profile nvidia, built in): .*`--ulimit memlock=` leaves it out",
        ),
        (("--", "--privileged"), "cannot create the container .*`jlr config` shows"),
        LONG(("--", "--no-such"), "does not take an option: .*: unknown flag: --no-such"),
        (("--log-opt", "bogus=1"), "`--log-opt bogus=1`: .*`--log-opt bogus=` leaves it out"),
    ],
)
def test_a_flag_that_the_host_refuses_is_named_with_the_way_to_leave_it_out(
    lasting_laptop: Laptop, container: ContainerFactory, words: tuple[str, ...], told: str
) -> None:
    words = ("lab", container.name(), "--no-browser", "--image", "lab/jupyter", *words)
    answer = lasting_laptop.jlr("start", *words)
    begin, _, end = told.partition(".*")
    failed(answer, 2 if "no-such" in told else 1, begin, end)
    assert container.remove_all() == []


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--user", "nosuch"), 1, "unable to find user nosuch"),
        (("--volume", "/etc:/x:odd"), 1, "invalid mode: odd"),
        (("--network", "nosuch"), 6, "network nosuch not found"),
        (("--volume", "/etc:x"), 2, "`--volume` cannot be `/etc:x`"),
    ],
)
def test_a_value_that_no_engine_takes_is_named(
    lasting_laptop: Laptop,
    container: ContainerFactory,
    words: tuple[str, ...],
    status: int,
    told: str,
) -> None:
    words = (container.name(), "--image", "lab/jupyter", *words)
    failed(start(lasting_laptop, "lab", *words), status, told)
    assert container.remove_all() == []


def test_a_port_of_the_host_that_is_taken_is_busy(
    lasting_laptop: Laptop, container: ContainerFactory
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        publish = f"127.0.0.1:{taken.getsockname()[1]}:8888"
        words = ("lab", container.name(), "--image", "lab/jupyter", "--no-browser")
        answer = lasting_laptop.jlr("start", *words, "--", "--publish", publish)
        failed(answer, 7, "a port of the host is in use")
    assert container.remove_all() == []


def test_volumes_without_a_name_go_with_their_container(
    lasting_laptop: Laptop, container: ContainerFactory, engine: Engine
) -> None:
    name = container.name()
    words = ("lab", name, "--image", "lab/jupyter", "--no-browser", "--", "--volume=/scratch")
    assert lasting_laptop.jlr("start", *words).status == 0
    volume = engine.docker("inspect", "--format", "{{(index .Mounts 0).Name}}", name)
    assert lasting_laptop.jlr("rm", f"lab/{name}", "--yes").status == 0
    assert engine.try_docker("volume", "inspect", volume).status != 0


def test_a_source_that_is_missing_is_refused_and_not_made(
    lasting_laptop: Laptop, container: ContainerFactory, account: Account
) -> None:
    words = ("--image", "lab/jupyter", "-v", "~/no such:/data", "--workspace=neither")
    answer = start(lasting_laptop, "lab", container.name(), *words)
    failed(answer, 6, "missing or not accessible on `lab`", "`~/no such`, `~/neither`", "mkdir -p")
    assert not (account.home / "no such").exists()
    assert container.remove_all() == []


@pytest.mark.parametrize(
    ("volumes", "opens"),
    [
        LONG(("~/data:/data:ro", "~/proj:/mine"), "`/mine`;"),
        (("~/data:/data:ro",), "`/`, which `lab` does not keep;"),
    ],
    ids=["mine", "read-only"],
)
def test_without_a_workdir_jupyterlab_opens_in_the_folder_where_notebooks_can_be_saved(
    lasting_laptop: Laptop,
    container: ContainerFactory,
    account: Account,
    volumes: tuple[str, ...],
    opens: str,
) -> None:
    lasting_laptop.ssh("lab", "mkdir -p data proj")
    mounts = [word for volume in volumes for word in ("--volume", volume)]
    answer = start(lasting_laptop, "lab", container.name(), "--image", "lab/jupyter", *mounts)
    assert f"JupyterLab opens in {opens}" in " ".join(answer.stderr.split()), answer
    session = Session(lasting_laptop, {"url": answer.stdout.strip()})
    if "does not keep" in opens:
        with pytest.raises(HTTPError):
            session.write_notebook("mine.ipynb", "6 * 7")
    else:
        session.write_notebook("mine.ipynb", "6 * 7")
        assert (account.home / "proj" / "mine.ipynb").stat().st_uid == account.uid


def test_on_the_hosts_network_jupyter_listens_on_loopback_only(
    laptop: Laptop, container: ContainerFactory, engine: Engine
) -> None:
    session = started(laptop, container.name(), "--image", "lab/jupyter", "--network", "host")
    assert "started" in session.ask("api/status")
    files = f"/tmp/jlr-0/{session.name}/runtime/jpserver-*.json"
    port = json.loads(Container(engine, session.name).execute("sh", "-c", f"cat {files}"))["port"]
    table = Container(engine, session.name).execute("cat", "/proc/net/tcp", "/proc/net/tcp6")
    rows = [shlex.split(line)[1] for line in table.splitlines() if " 0A " in line]
    assert [row for row in rows if row.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_a_naming_template_is_for_new_containers(
    laptop: Laptop, container: ContainerFactory
) -> None:
    laptop.settle('[defaults]\nname = "{user}_{name}"\n')
    there = container("lab/plain")
    start_inside(there, 8888)
    assert started(laptop, there).name == there.name
