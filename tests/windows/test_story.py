"""One session, from Windows: begun, used, dropped, found again, and deleted.

Wine has no OpenSSH, no PowerShell, no SSHFS-Win and no console that one could look at.
"""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.windows import PERSON, PROGRAM
from tests.windows.parts import WindowsSession, local_kernel, succeeded, windows_agent

# A first start, beside other work of the machine, may take longer than a test has.
pytestmark = pytest.mark.timeout(600)

# Begin two commands, each in a console of its own. Type a Ctrl-C in the first one's, close the
# window of the second one, as Windows tells a process of it, and print their exit codes.
END_BY_CONSOLE = """
import ctypes, subprocess, sys
commands = [subprocess.Popen([sys.executable, "-m", "jlremote", *sys.argv[1:]],
    creationflags=subprocess.CREATE_NO_WINDOW, stdout=subprocess.PIPE) for _ in range(2)]
for command in commands:
    assert command.stdout.readline().strip() == b"begun"
kernel = ctypes.windll.kernel32
kernel.FreeConsole()
assert kernel.AttachConsole(commands[0].pid)
kernel.SetConsoleCtrlHandler(None, True)
assert kernel.GenerateConsoleCtrlEvent(0, 0)
kernel.GetModuleHandleW.restype = kernel.GetProcAddress.restype = ctypes.c_void_p
library = ctypes.c_void_p(kernel.GetModuleHandleW("kernelbase"))
routine = ctypes.c_void_p(kernel.GetProcAddress(library, b"CtrlRoutine"))
closed = ctypes.c_void_p(2)
assert kernel.CreateRemoteThread(int(commands[1]._handle), None, None, routine, closed, 0, None)
print(*(command.wait(30) for command in commands))
"""
# Run jlr in a console of each of two code pages, type a line once it says `ready`, and print its
# exit code, the code page and what the screen shows.
IN_CONSOLE = """
import ctypes, msvcrt, os, subprocess, sys, time
from ctypes import wintypes
line, *words = sys.argv[1:]
kernel = ctypes.windll.kernel32
if "JLR_CONSOLE" not in os.environ:  # begin again, in a console without a window
    for page in ("437", "65001"):
        subprocess.call([sys.executable, *sys.orig_argv[1:]], stdin=subprocess.DEVNULL,
            creationflags=subprocess.CREATE_NO_WINDOW, env={**os.environ, "JLR_CONSOLE": page})
    sys.exit()
class Inherited(ctypes.Structure):
    _fields_ = ("size", wintypes.DWORD), ("access", ctypes.c_void_p), ("inherit", wintypes.BOOL)
class Key(ctypes.Structure):
    _fields_ = (("kind", wintypes.WORD), ("down", wintypes.BOOL), ("times", wintypes.WORD),
        ("code", wintypes.WORD), ("scan", wintypes.WORD), ("letter", wintypes.WCHAR),
        ("state", wintypes.DWORD))
inherited, count = Inherited(24, None, True), wintypes.DWORD()
keys, shown = (kernel.CreateFileW(name, ctypes.c_uint(0xC0000000), 3, ctypes.byref(inherited), 3,
    0, None) for name in ("CONIN$", "CONOUT$"))
stdin, stdout = (msvcrt.open_osfhandle(handle, os.O_RDWR) for handle in (keys, shown))
def screen():
    text = ctypes.create_unicode_buffer(4000)
    kernel.ReadConsoleOutputCharacterW(shown, text, 4000, 0, ctypes.byref(count))
    return text[:count.value]
page = int(os.environ["JLR_CONSOLE"])
assert kernel.SetConsoleCP(page) and kernel.SetConsoleOutputCP(page)
command = subprocess.Popen([sys.executable, "-m", "jlremote", *words], stdin=stdin, stdout=stdout,
    stderr=stdout)
while "ready" not in screen():
    assert command.poll() is None, screen()
    time.sleep(0.1)
for letter in line + chr(13):
    key = Key(1, True, 1, ord(letter) if letter == chr(13) else 0, 0, letter, 0)
    kernel.WriteConsoleInputW(keys, ctypes.byref(key), 1, ctypes.byref(count))
sys.stdout.reconfigure(encoding="utf-8")
print(command.wait(30), kernel.GetConsoleOutputCP(), *screen().split())
"""
# The JupyterLab of this machine: what jlr's configuration imports, and a question to the session
# with the token that it has read.
JUPYTERLAB = r"""
import os, pathlib, runpy, sys, types, urllib.request
class Anything(types.ModuleType):
    __version__ = "4.0"
    def __call__(self, *_):
        return self
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        members = {"find_handler": None, "configure": lambda *_, **__: None}
        made = type(name, (Exception,), members) if name[0].isupper() else Anything(name)
        setattr(self, name, made)
        return made
for name in ("jupyter_core jupyter_core.paths jupyter_server jupyter_server.serverapp"
    " jupyter_server.services jupyter_server.services.contents jupyterlab tornado"
    " jupyter_server.services.contents.filecheckpoints"
    " jupyter_server.services.contents.largefilemanager").split():
    sys.modules[name] = Anything(name)
assert not [name for name in os.environ if "TOKEN" in name]
settings = Anything("settings")
config = pathlib.Path(os.environ["JUPYTER_CONFIG_DIR"], "jupyter_config.py")
runpy.run_path(str(config), {"get_config": lambda: settings})
gateway = os.environ["JUPYTER_GATEWAY_URL"].rstrip("/") + "/api/status"
login = {"Authorization": "token " + settings.GatewayClient.auth_token}
with urllib.request.urlopen(urllib.request.Request(gateway, headers=login)) as answer:
    print(answer.status, *sys.argv[1:])
"""
# A proxy command: bytes of stdin to a port, and back.
RELAY = """
import os, socket, sys, threading
port = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def give():
    while data := os.read(0, 65536):
        port.sendall(data)
    port.shutdown(1)
threading.Thread(target=give, daemon=True).start()
while data := port.recv(65536):
    os.write(1, data)
"""
# Speak SFTP, as SSHFS-Win does, to what it runs in place of ssh: through pipes, and through one
# socket. Only the drives and folders of mounts are looked at, and a folder is left to WinFsp.
MOUNT = r"""
import msvcrt, os, pathlib, socket, struct, subprocess, sys
from jlremote.cli.command import Invocation
from jlremote.hosts.links import ASKS_NOTHING, Link
from jlremote.laptop.sessions import MOUNTS, MountRecord
from jlremote.mounts import connector, known_mounts, mount, system
name, remote = sys.argv[1:]
assert system.resolved("x:", ()) == system.resolved("X:\\", ()) == "X:"
windows, here = system.this_system(), pathlib.Path("mounts/here").absolute()
assert "C:" in windows.mounted()
record = MountRecord("X:", remote, "lab", name, None, False, 0)
for folder in ("X:", here):
    mount._prepare(pathlib.Path(folder), windows)
assert here.parent.exists() and not here.exists()
here.parent.rmdir()
MOUNTS.save(record)
link = Link("lab", None, ASKS_NOTHING)
link.mount(record.name, remote)
argv, hello = (sys.executable, "-m", connector.__name__, record.name), struct.pack(">IBI", 5, 1, 3)
piped = subprocess.Popen(argv, stdin=-1, stdout=-1)
piped.stdin.write(hello)
piped.stdin.flush()
print(*struct.unpack(">xxxxBI", piped.stdout.read(9)))
ours, theirs = socket.socketpair()
both = msvcrt.open_osfhandle(theirs.detach(), os.O_RDWR)
joined = subprocess.Popen(argv, stdin=both, stdout=both)
os.close(both)
ours.sendall(hello)
print(*struct.unpack(">xxxxBI", ours.recv(9, socket.MSG_WAITALL)))
print([state.connected for state in link.status().mounts])
link.unmount(record.name)
print(piped.wait(60), joined.wait(60))
MOUNTS.delete(record)
"""
# Run jlr, and say what Windows is to open: Wine without a display opens nothing.
OPEN = """
import os, sys
from jlremote.__main__ import main
os.startfile = lambda page: print("page", page, file=sys.stderr, flush=True)
sys.exit(main())
"""
LINKS = """
import psutil
links = [process for process in psutil.process_iter() if process.name() == "python.exe"
    and "jlremote.link" in process.cmdline()]
"""
COUNT_LINKS = (
    LINKS
    + "relays = [one for one in psutil.process_iter() if 'relay.py' in str(one.cmdline()[1:2])]\n"
    "print(len(links), len(relays))"
)
KILL_LINKS = LINKS + "for link in links: link.kill()"
REPLACE = """
import os, pathlib, threading
from jlremote.laptop import paths
path = paths.state_directory() / "read by another"
paths.write_whole(path, "old")
reader = path.open()
draft = path.with_name("draft")
draft.write_text("x")
try:
    os.replace(draft, path)
except PermissionError:
    print("refused")
threading.Timer(0.2, reader.close).start()
paths.write_whole(path, "new")
print("replaced" if path.read_text() == "new" else "lost")
draft.unlink(missing_ok=True)
path.unlink()
"""
SECRETS = """
import sys
from jlremote.laptop.secrets import Secrets
secrets = Secrets(deadline=60)
print(secrets.set("somebody@dgx", sys.argv[1]), secrets.get("somebody@dgx") == sys.argv[1],
    secrets.delete("somebody@dgx"), secrets.get("somebody@dgx"))
"""
FOLDERS = """
import pathlib, shutil, sys
from jlremote.cli.boundary import run
from jlremote.laptop import paths
sys.stdout.reconfigure(encoding="utf-8")
pathlib.Path("ssh.bat").touch()
sys.argv[1:] = ["--version"]
run()
print(shutil.which("ssh"))
for kind in ("state", "log", "data", "runtime"):
    print(getattr(paths, kind + "_directory")())
print(paths.config_directory())
"""


def test_a_session_is_listed_opened_and_begun_again(session: WindowsSession) -> None:
    laptop, name = session.laptop, session.name
    session.await_answer()
    url, again, listed, shown = laptop.each(
        ("url", name), ("start", "lab", name, "--no-browser"), ("list", "--json"), ("list", name)
    )
    assert succeeded(url) == session.url + "\r\n"
    assert succeeded(again).strip() == session.url
    [record] = json.loads(succeeded(listed))
    assert (record["name"], record["state"]) == (name, "up")
    assert session.url in succeeded(shown)


def test_doctor_gets_42_from_a_kernel_and_advises_for_windows(session: WindowsSession) -> None:
    told = session.laptop.jlr("doctor", "lab", "--image", "lab/jupyter", "--json", timeout=180)
    checks = {check["check"]: check for check in json.loads(told.stdout)["checks"]}
    assert checks["kernel"]["mark"] == "ok", checks["kernel"]
    assert "42" in checks["kernel"]["text"]
    assert checks["browser"]["mark"] == "ok", checks["browser"]
    for name, means in (("ssh", "winget"), ("sshfs", "winget"), ("keychain", "Win")):
        told_of = checks[name]
        assert means in " ".join((told_of["text"], *told_of["mend"])), told_of


def test_programs_run_there_and_their_text_and_exit_codes_come_back(
    session: WindowsSession,
) -> None:
    counted, echoed, ended = session.laptop.each(
        ("shell", session.name, "--", "wc", "-c"),
        ("shell", session.name, "--", "echo", "Grüße, ✓"),
        ("run", "lab", "--image", "lab/plain", "--", "sh", "-c", "hostname; exit 3"),
        stdin="a\r\nb\n",
    )
    assert succeeded(counted).strip() == "5"
    assert succeeded(echoed) == "Grüße, ✓\n"
    assert ended.status == 3, ended
    assert ended.stdout.strip(), ended


def test_a_terminal_takes_and_shows_all_letters_in_any_code_page(session: WindowsSession) -> None:
    text = 'echo ready; read line; echo "<$line>" $(stty size); exit 4'
    words = ("shell", session.name, "--", "sh", "-c", text)
    told = session.laptop.python("-c", IN_CONSOLE, "Grüße ✓", *words, timeout=120)
    shown = "ready Grüße ✓ <Grüße ✓> 150 80"
    assert succeeded(told).splitlines() == [f"4 437 {shown}", f"4 65001 {shown}"]


def test_a_job_gets_a_terminal_as_a_shell_does(session: WindowsSession) -> None:
    text = 'echo ready; read line; echo "<$line>" $(stty size); exit 4'
    words = ("run", "lab", "--image", "lab/plain", "-it", "--rm", "--", "sh", "-c", text)
    told = session.laptop.python("-c", IN_CONSOLE, "Grüße ✓", *words, timeout=120)
    first, second = succeeded(told).splitlines()
    assert (first[:6], second[:8]) == ("4 437 ", "4 65001 "), told
    assert told.stdout.count("ready Grüße ✓ <Grüße ✓> 150 80") == 2, told


def test_files_go_both_ways_by_any_path_but_under_no_name_that_windows_reserves(
    session: WindowsSession,
) -> None:
    laptop, name = session.laptop, session.name
    here = laptop.profile / "Übung 1"
    deep = here.joinpath(*["x" * 60] * 5)
    deep.mkdir(parents=True)
    (here / "große Datei.txt").write_bytes(b"a\r\nb\n")
    home = rf"C:\users\{PERSON}\Übung 1"
    long = "\\".join([home, *["x" * 60] * 5])
    odd = (
        'mkdir -p odd/aux; cd odd; for f in con.txt a:b dot. "x\\y" fine aux/z; do echo >"$f"; done'
    )
    sent, fetched, made, copied, refused, device, synced, found = laptop.each(
        ("cp", rf"{home}\große Datei.txt", f"{name}:work.txt"),
        ("cp", f"{name}:work.txt", rf"{long}\Δ.txt"),
        ("shell", name, "--", "sh", "-c", odd),
        ("cp", "-r", f"{name}:odd", home),
        ("cp", f"{name}:odd/con.txt", home),
        ("cp", f"{name}:work.txt", "NUL"),
        ("sync", home, f"{name}:synced"),
        ("shell", name, "--", "find", "synced", "-name", "*.txt"),
    )
    for done in (sent, fetched, made, copied, synced):
        succeeded(done)
    assert (deep / "Δ.txt").read_bytes() == b"a\r\nb\n"
    assert [path.name for path in (here / "odd").iterdir()] == ["fine"]
    assert copied.stderr.count("no file on Windows can have this name") == 6, copied
    assert refused.status == 2, refused
    assert "no file on Windows can be called `con.txt`" in refused.stderr
    assert device.status == 1, device
    names = [f"synced/{path}" for path in ("große Datei.txt", "/".join([*["x" * 60] * 5, "Δ.txt"]))]
    assert sorted(succeeded(found).split("\n")[:-1]) == sorted(names)


def test_output_of_cells_comes_and_is_saved_under_a_name_that_windows_takes(
    session: WindowsSession,
) -> None:
    laptop = session.laptop
    with session.page().notebook("con.ipynb") as kernel:
        assert kernel.run("print('Grüße', 6 * 7)") == "Grüße 42\n"

        def recorded() -> bool:
            return "Grüße 42" in laptop.jlr("output", session.name).stdout

        wait_until(recorded, "the recorded output", timeout=180)
    succeeded(laptop.jlr("output", session.name, "--save", rf"C:\users\{PERSON}"))
    saved = json.loads((laptop.profile / "_con.ipynb").read_text(encoding="utf-8"))
    assert saved["cells"][0]["outputs"][0]["text"] == ["Grüße 42\n"]


def test_a_page_is_given_to_windows_which_opens_it(session: WindowsSession) -> None:
    """The page is a file of this person, without the token in any process's arguments."""
    opened = session.laptop.python("-c", OPEN, "open", session.name)
    assert succeeded(opened).strip() == session.url
    folder = "file:///C:/users/J%C3%B6rg%20Gro%C3%9F/AppData/Local/Temp/jlr/"
    [page] = [line for line in opened.stderr.splitlines() if line.startswith("page ")]
    assert page.startswith(f"page {folder}open-"), opened


def test_editors_and_notebooks_of_this_machine_reach_the_session(
    session: WindowsSession, tmp_path: Path
) -> None:
    """The editor and JupyterLab are batch files, as on Windows; the kernel's client is Linux's."""
    laptop, name = session.laptop, session.name
    laptop.add_program("code.cmd", "@echo %*\n")
    laptop.add_program("jupyter-lab.cmd", f"@{PROGRAM} Z:\\programs\\jupyterlab.py %*\n")
    laptop.add_program("jupyterlab.py", JUPYTERLAB)
    installed, opened, lab, kernels = laptop.each(
        ("config", "ssh", "install", "--yes"),
        ("code", name),
        ("local", "lab", name, "--", "--port=1"),
        ("local", "kernels", "install", name),
    )
    assert "reach a session as" in installed.stderr, installed
    assert f"--folder-uri vscode-remote://ssh-remote+{name}.jlr/" in opened.stderr, opened
    assert succeeded(lab).strip() == "200 --port=1", lab
    succeeded(kernels)
    [spec] = (laptop.profile / "AppData/Roaming/jupyter/kernels").glob("*/kernel.json")
    words = json.loads(spec.read_text(encoding="utf-8"))["argv"]
    with local_kernel(laptop, words, tmp_path) as client:
        told: list[str] = []
        client.execute_interactive(
            "print(6 * 7)", timeout=60, output_hook=lambda each: told.append(str(each["content"]))
        )
        assert "42" in " ".join(told)


def test_an_ssh_client_reaches_a_session_through_the_pipe(
    session: WindowsSession, tmp_path: Path
) -> None:
    """The client is Linux's: Wine has none of Windows. `jlr proxy` is what it would run."""
    asked = session.ssh("sh -c 'wc -c; echo Grüße; exit 7'", "x" * 3_000_000, tmp_path)
    assert (asked.status, asked.stdout.split()) == (7, ["3000000", "Grüße"]), asked


def test_what_sshfs_win_would_run_speaks_sftp_with_the_host(session: WindowsSession) -> None:
    """Wine has no SSHFS-Win: a program of Windows stands in for it."""
    refused = session.laptop.jlr("mount", "X:", session.name)
    assert refused.status == 1, refused
    assert "winget install" in refused.stderr
    spoken = session.laptop.python("-c", MOUNT, session.name, "/", timeout=180)
    assert succeeded(spoken).splitlines() == ["2 3", "2 3", "[True]", "0 0"], spoken


def test_a_drop_is_survived_on_the_same_port(session: WindowsSession, way: Line) -> None:
    way.take_down()
    way.bring_up()
    session.await_answer()
    assert succeeded(session.laptop.jlr("url", session.name)).strip() == session.url


def test_a_new_link_brings_the_port_back_and_commands_at_once_start_one(
    session: WindowsSession,
) -> None:
    """The new link reaches the host by a proxy command."""
    laptop = session.laptop
    laptop.add_program("relay.py", RELAY)
    laptop.add_option(rf'ProxyCommand "{PROGRAM}" Z:\programs\relay.py %h %p')
    succeeded(laptop.python("-c", KILL_LINKS))
    wait_until(lambda: not session.answers(), "the link's end")
    words = ("open", session.name, "--no-browser")
    with ThreadPoolExecutor() as threads:
        urls = list(threads.map(lambda _: laptop.jlr(*words, timeout=180), "ab"))
    assert [succeeded(url).strip() for url in urls] == [session.url] * 2
    session.await_answer()
    links, relays = succeeded(laptop.python("-c", COUNT_LINKS)).split()
    assert (links, relays) == ("1", "1")


def test_a_link_that_was_ended_comes_back_with_a_key_of_the_agent(
    session: WindowsSession, keys: Keys, tmp_path: Path
) -> None:
    laptop = session.laptop
    laptop.remove_option()
    succeeded(laptop.jlr("disconnect", "lab"))
    wait_until(
        lambda: succeeded(laptop.python("-c", COUNT_LINKS)).split() == ["0", "0"], "the link's end"
    )
    with windows_agent(laptop, keys.private, tmp_path):
        back = laptop.jlr("open", session.name, "--no-browser", timeout=180)
    assert succeeded(back).strip() == session.url
    session.await_answer()


def test_ctrl_c_and_a_closed_window_end_a_command_and_neither_its_link_nor_the_session(
    session: WindowsSession,
) -> None:
    text = "echo begun; exec sleep 600"
    words = ("shell", session.name, "--", "sh", "-c", text)
    ended = session.laptop.python("-c", END_BY_CONSOLE, *words, timeout=120)
    assert succeeded(ended).split() == ["130", "143"], ended
    assert session.answers()


def test_a_file_that_another_program_reads_is_replaced_once_it_is_closed(
    session: WindowsSession,
) -> None:
    assert succeeded(session.laptop.python("-c", REPLACE)).split() == ["refused", "replaced"]


def test_secrets_are_kept_by_the_credential_manager(session: WindowsSession) -> None:
    secret = secrets.token_hex(8) + "ß"
    stored = session.laptop.python("-c", SECRETS, secret)
    assert succeeded(stored).split() == ["True", "True", "True", "None"], stored


def test_what_jlr_keeps_is_in_the_persons_own_folder_which_others_cannot_enter(
    session: WindowsSession,
) -> None:
    """Wine makes a mode of Linux of an access list. Nothing is run from the current folder."""
    shown = session.laptop.python("-c", FOLDERS)
    _, found, *folders = succeeded(shown).splitlines()
    assert found == "None", shown
    assert len(folders) == 5, shown
    for folder in folders:
        assert folder.startswith(rf"C:\users\{PERSON}\AppData\Local"), folder
        of_linux = session.laptop.profile / folder.split(PERSON)[1][1:].replace("\\", "/")
        assert of_linux.stat().st_mode & 0o007 == 0, folder


def test_the_session_is_deleted(session: WindowsSession) -> None:
    removed, listed = session.laptop.each(("rm", session.name, "--yes"), ("list", "--json"))
    succeeded(removed)
    assert json.loads(succeeded(listed)) == []
