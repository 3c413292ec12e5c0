"""`jlr config ssh` with a user's own file, names below `.jlr`, and `jlr code`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from jlremote.editors import ssh_config
from jlremote.editors.proxy import name_of, selector_of
from jlremote.errors import JlrError
from jlremote.laptop.known_names import host_names
from jlremote.laptop.sessions import SessionRecord, delete, save
from jlremote.questions import NeverAsks
from tests.editors.conftest import Clients
from tests.link.fakes import FakePerson
from tests.long import LONG

THEIRS = b"# mine\r\nHost *\n\tUser me\nHost x\n  Port 7\n\n# no line feed at the end"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir(mode=0o700)
    return tmp_path / "HOME"


def test_one_line_comes_and_goes_and_the_rest_stays_byte_for_byte(home: Path) -> None:
    file = home / ".ssh" / "config"
    file.parent.mkdir()
    file.write_bytes(THEIRS)
    file.chmod(0o640)
    shown: list[str] = []
    refused = ssh_config.install(FakePerson("no"), shown.append)
    assert not refused.done
    assert file.read_bytes() == THEIRS
    assert shown[0].startswith(f"{file}:\n+ Include ")
    assert ssh_config.install(FakePerson("yes"), shown.append).done
    first, _, rest = file.read_bytes().partition(b"\n")
    assert first.startswith(b"Include ")
    assert rest == THEIRS
    assert file.stat().st_mode & 0o777 == 0o640
    again = FakePerson("no")
    assert ssh_config.install(again, shown.append).line == ""
    assert again.questions == []
    assert ssh_config.is_installed()
    assert ssh_config.remove(FakePerson("yes"), shown.append).done
    assert file.read_bytes() == THEIRS
    assert not ssh_config.is_installed()
    assert ssh_config.remove(again, shown.append).line == ""


def test_a_line_for_each_known_session_comes_and_goes_with_it(home: Path) -> None:
    """Shells complete the names of such lines, and editors list them."""
    first = SessionRecord("lab", "cont1", "docker", 8888)
    second = SessionRecord("me@dgx", "cont1", "docker", 8889)
    save(first)
    ssh_config.install(FakePerson("yes"), lambda _: None)
    file = home.parent / "XDG_DATA_HOME" / "jlr" / "ssh_config"
    block = ssh_config.block()
    assert file.read_text("utf-8") == f"Host cont1.jlr\nHost lab.jlr\n{block}"
    save(second)
    names = ("cont1.dgx.jlr", "cont1.lab.jlr", "dgx.jlr", "lab.jlr")
    assert file.read_text("utf-8") == "".join(f"Host {name}\n" for name in names) + block
    delete(first)
    assert file.read_text("utf-8") == f"Host cont1.jlr\nHost dgx.jlr\n{block}"
    assert host_names() == []
    ssh_config.remove(FakePerson("yes"), lambda _: None)
    delete(second)
    assert not file.exists()


def test_an_old_ssh_gets_no_option_that_it_refuses(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "SessionType default" in ssh_config.block()
    old = home.parent / "ssh"
    old.write_text("""#!/bin/sh
awk 'tolower($1) == "sessiontype" {
    print FILENAME ": line " NR ": Bad configuration option: sessiontype"; exit }' "$2" >&2
""")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home.parent}:{os.environ['PATH']}")
    assert "SessionType" not in ssh_config.block()
    assert "RequestTTY auto" in ssh_config.block()


def test_without_a_terminal_the_file_is_left_alone(home: Path) -> None:
    with pytest.raises(JlrError, match="cannot ask here") as asked:
        ssh_config.install(NeverAsks("in a terminal"), lambda _: None)
    assert "--yes" in (asked.value.hint or "")
    assert not (home / ".ssh" / "config").exists()
    assert ssh_config.install(NeverAsks(""), lambda _: None, agreed=True).done
    assert (home / ".ssh" / "config").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_a_link_or_no_file(home: Path) -> None:
    there = home / "dotfiles"
    there.write_bytes(THEIRS)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").symlink_to(there)
    ssh_config.install(FakePerson("yes"), lambda _: None)
    assert (home / ".ssh" / "config").is_symlink()
    assert there.read_bytes().endswith(THEIRS)
    (home / ".ssh" / "config").unlink()
    (home / ".ssh" / "config").mkdir()
    with pytest.raises(JlrError, match="cannot read"):
        ssh_config.install(FakePerson("yes"), lambda _: None)


def test_the_keys_are_made_once_and_for_this_user_only(home: Path) -> None:
    block = ssh_config.block()
    assert ssh_config.block() == block
    folder = home.parent / "XDG_DATA_HOME" / "jlr" / "ssh"
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes.keys() >= {"client_key", "client_key.pub", "host_key", "known_hosts"}


def test_names_are_parted_where_a_session_or_a_host_tells(home: Path) -> None:
    dgx = SessionRecord("me@dgx.uni.example", "cont1", "docker", 8888)
    dotted = SessionRecord("lab", "torch.v2", "docker", 8889)
    twin = SessionRecord("lab", "cont1", "docker", 8890)
    for record in (dgx, dotted, twin):
        save(record)
    (home / "config").write_text("Host other\n", encoding="utf-8")
    config = home / "config"
    for name, selector in (
        ("torch.v2.jlr", "torch.v2"),
        ("torch.v2.lab.jlr", "lab/torch.v2"),
        ("cont1.dgx.uni.example.jlr", "me@dgx.uni.example/cont1"),
        ("cont1.lab.jlr", "lab/cont1"),
        ("cont1.jlr", "cont1"),  # several: the selection tells so
        ("lab.jlr", "lab"),
        ("new.lab.jlr", "lab/new"),
        ("new.other.jlr", "other/new"),
        ("box.example.jlr", "box.example"),
    ):
        assert selector_of(name, config) == selector
    assert name_of(dotted, [dgx, dotted, twin]) == "torch.v2.jlr"
    assert name_of(dgx, [dgx, dotted, twin]) == "cont1.dgx.uni.example.jlr"


def test_code_names_the_sessions_folder(clients: Clients) -> None:
    laptop, name = clients.laptop, clients.inside.name
    shown = laptop.jlr("code", name, "--print")
    uri = "--folder-uri vscode-remote://ssh-remote"
    assert shown.stdout == f"code {uri}+{name}.jlr/srv\n", shown
    shown = laptop.jlr("code", f"lab/{name}", "~", "--editor", "zed", "--print")
    assert shown.stdout == f"zed ssh://{name}.jlr/root\n", shown
    shown = laptop.jlr("code", "lab", "/data/a b", "--editor", "cursor", "--print")
    assert shown.stdout == f"cursor {uri}+lab.jlr/data/a%20b\n", shown
    clients.inside.execute("mkdir", "-p", "/srv/a b.v2")
    shown = laptop.jlr("code", name, "a b.v2", "--editor", "windsurf", "--print")
    assert shown.stdout == f"windsurf {uri}+{name}.jlr/srv/a%20b.v2\n", shown
    shown = laptop.jlr("code", name, "a b.v2", "--editor", "pycharm", "--print")
    link = f"h={name}.jlr&launchIde=true&ideHint=PY&projectHint=/srv/a%20b.v2"
    assert shown.stdout == f"xdg-open 'jetbrains://gateway/ssh/environment?{link}'\n", shown
    told = json.loads(laptop.jlr("code", name, "/data", "--print", "--json").stdout)
    command = f"code {uri}+{name}.jlr/data"
    opens = {"editor": "vscode", "name": f"{name}.jlr", "folder": "/data", "opened": False}
    assert told == opens | {"command": command}
    missing = laptop.jlr("code", name, "--editor", "windsurf")
    assert (missing.status, missing.stdout) == (6, ""), missing
    assert "Windsurf is not installed here" in missing.stderr
    nowhere = laptop.jlr("code", name, "no/such", "--print")
    assert nowhere.status == 6, nowhere


def test_code_starts_the_editor_once_ssh_knows_the_names(clients: Clients) -> None:
    laptop, name = clients.laptop, clients.inside.name
    opened = laptop.folder / "code-opened"
    program = laptop.folder / "code"
    program.write_text(f'#!/bin/sh\necho "$@" >{opened}\necho opening\n', encoding="utf-8")
    program.chmod(0o755)
    path = f"{laptop.folder}:{laptop.environment['PATH']}"
    before = laptop.run("env", f"PATH={path}", "jlr", "code", name)
    assert before.status == 1
    assert "`jlr config ssh install`" in before.stderr
    shown = json.loads(laptop.jlr("config", "ssh", "--json").stdout)
    assert shown == {"block": laptop.jlr("config", "ssh").stdout, "installed": False}
    unasked = laptop.jlr("config", "ssh", "install", "--json")
    assert (unasked.status, unasked.stdout) == (1, ""), unasked
    *lines, error = unasked.stderr.splitlines()
    assert "+ Include " in lines[-1]
    assert "--yes" in json.loads(error)["hint"]
    for changed in (True, False):
        installed = laptop.jlr("config", "ssh", "install", "--yes", "--json")
        assert (installed.status, installed.stderr) == (0, "")
        change = json.loads(installed.stdout)
        assert change["changed"] == changed
        line, _, _ = Path(change["file"]).read_text("utf-8").partition("\n")
        assert change["line"] == (line if changed else None)
    assert json.loads(laptop.jlr("config", "ssh", "--json").stdout)["installed"]
    done = laptop.run("env", f"PATH={path}", "jlr", "code", name)
    assert (done.status, done.stdout, "opening\n" in done.stderr) == (0, "", True), done
    uri = f"vscode-remote://ssh-remote+{name}.jlr/srv"
    assert opened.read_text("utf-8") == f"--folder-uri {uri}\n"
    done = laptop.run("env", f"PATH={path}", "jlr", "code", name, "--json")
    told = json.loads(done.stdout)
    assert (told["command"].split()[0], told["opened"]) == (str(program), True), done
    assert laptop.jlr("config", "ssh", "remove", "--yes").status == 0


# Prints what it likes where its folder is asked for, and is `sh` otherwise.
HOSTILE_SH = """\
#!/bin/bash
case $2 in *'&& pwd') cat /tmp/says ;; *) exec /bin/dash "$@" ;; esac
"""


@pytest.fixture
def hostile(clients: Clients) -> Iterator[Callable[[str], None]]:
    def says(folder: str) -> None:
        write = ("sh", "-c", 'printf "%s" "$1" >"$2"', "sh")
        clients.inside.execute(*write, folder, "/tmp/says")
        clients.inside.execute(*write, HOSTILE_SH, "/bin/hostile")
        clients.inside.execute("chmod", "755", "/bin/hostile")
        clients.inside.execute("ln", "-sf", "hostile", "/bin/sh")

    yield says
    clients.inside.execute("ln", "-sf", "dash", "/bin/sh")


@pytest.mark.parametrize("editor", ["vscode", LONG("zed"), LONG("pycharm")])
def test_a_containers_folder_is_neither_an_option_nor_a_host(
    clients: Clients, hostile: Callable[[str], None], editor: str, tmp_path: Path
) -> None:
    laptop, name = clients.laptop, clients.inside.name
    noted = tmp_path / "argv"
    for program in ("code", "zed", "xdg-open"):
        (tmp_path / program).write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{noted}\n", "utf-8")
        (tmp_path / program).chmod(0o755)
    path = f"PATH={tmp_path}:{laptop.environment['PATH']}"
    assert laptop.jlr("config", "ssh", "install", "--yes").status == 0
    for odd in ("--gpu-launcher=touch /tmp/x", "/a\x1b[2J"):
        hostile(f"{odd}\n")
        refused = laptop.run("env", path, "jlr", "code", name, "--editor", editor)
        assert (refused.status, refused.stdout) == (1, ""), refused
        assert "cannot read the answer of `pwd`" in refused.stderr
        assert not noted.exists()
    hostile("//evil.example.com/a b&calc;$(x)#?\n")
    done = laptop.run("env", path, "jlr", "code", name, "--editor", editor)
    assert done.status == 0, done
    *_, address = noted.read_text("utf-8").splitlines()
    parts = urlsplit(address)
    folder = parse_qs(parts.query)["projectHint"][0] if editor == "pycharm" else unquote(parts.path)
    assert folder == "//evil.example.com/a b&calc;$(x)#?"
    hosts = {"vscode": f"ssh-remote+{name}.jlr", "zed": f"{name}.jlr", "pycharm": "gateway"}
    assert (parts.netloc, parts.fragment) == (hosts[editor], "")
    assert laptop.jlr("config", "ssh", "remove", "--yes").status == 0
