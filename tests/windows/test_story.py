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
from tests.lab.windows import PERSON
from tests.windows.parts import WindowsSession, succeeded

# A first start, beside other work of the machine, may take longer than a test has.
pytestmark = pytest.mark.timeout(600)

# Type a Ctrl-C in the console of a command that runs, and return its exit code.
CTRL_C = """
import ctypes, subprocess, sys
process = subprocess.Popen([sys.executable, "-m", "jlremote", *sys.argv[1:]],
    creationflags=subprocess.CREATE_NO_WINDOW, stdout=subprocess.PIPE)
assert process.stdout.readline().strip() == b"begun"
kernel = ctypes.windll.kernel32
kernel.FreeConsole()
assert kernel.AttachConsole(process.pid)
kernel.SetConsoleCtrlHandler(None, True)
assert kernel.GenerateConsoleCtrlEvent(0, 0)
sys.exit(process.wait(30))
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
COUNT_LINKS = LINKS + "print(len(links))"
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
from jlremote.laptop.secrets import open_secrets
secrets = open_secrets()
print(secrets.set("somebody@dgx", sys.argv[1]), secrets.get("somebody@dgx") == sys.argv[1],
    secrets.delete("somebody@dgx"), secrets.get("somebody@dgx"))
"""
FOLDERS = """
import sys
from jlremote.laptop import paths
sys.stdout.reconfigure(encoding="utf-8")
for kind in ("state", "log", "data", "runtime"):
    print(getattr(paths, kind + "_directory")())
print(paths.config_directory())
"""


def test_a_session_is_listed_opened_and_begun_again(session: WindowsSession) -> None:
    laptop = session.laptop
    session.await_answer()
    assert succeeded(laptop.jlr("url", session.name)) == session.url + "\r\n"
    again = laptop.jlr("start", "lab", session.name, "--no-browser")
    assert succeeded(again).strip() == session.url
    [listed] = json.loads(succeeded(laptop.jlr("list", "--json")))
    assert (listed["name"], listed["state"]) == (session.name, "up")
    assert session.url in succeeded(laptop.jlr("list", session.name))


def test_doctor_gets_42_from_a_kernel_and_advises_for_windows(session: WindowsSession) -> None:
    told = session.laptop.jlr("doctor", "lab", "--image", "lab/jupyter", "--json", timeout=180)
    checks = {check["check"]: check for check in json.loads(told.stdout)["checks"]}
    assert checks["kernel"]["mark"] == "ok", checks["kernel"]
    assert "42" in checks["kernel"]["text"]
    assert checks["browser"]["mark"] == "ok", checks["browser"]
    assert "winget" in checks["ssh"]["mend"][0]


def test_programs_run_there_and_their_text_and_exit_codes_come_back(
    session: WindowsSession,
) -> None:
    laptop = session.laptop
    assert succeeded(laptop.jlr("shell", session.name, "--", "echo", "Grüße, ✓")) == "Grüße, ✓\n"
    counted = laptop.jlr("shell", session.name, "--", "wc", "-c", stdin="a\r\nb\n")
    assert succeeded(counted).strip() == "5"
    ended = laptop.jlr("run", "lab", "--image", "lab/plain", "--", "sh", "-c", "hostname; exit 3")
    assert ended.status == 3, ended
    assert ended.stdout.strip(), ended


def test_files_go_both_ways_by_any_path_but_under_no_name_that_windows_reserves(
    session: WindowsSession,
) -> None:
    laptop, name = session.laptop, session.name
    here = laptop.profile / "Übung 1"
    deep = here.joinpath(*["x" * 60] * 5)
    deep.mkdir(parents=True)
    (here / "große Datei.txt").write_bytes(b"a\r\nb\n")
    home = rf"C:\users\{PERSON}\Übung 1"
    succeeded(laptop.jlr("cp", rf"{home}\große Datei.txt", f"{name}:work.txt"))
    long = "\\".join([home, *["x" * 60] * 5])
    succeeded(laptop.jlr("cp", f"{name}:work.txt", rf"{long}\Δ.txt"))
    assert (deep / "Δ.txt").read_bytes() == b"a\r\nb\n"
    odd = (
        'mkdir -p odd/aux; cd odd; for f in con.txt a:b dot. "x\\y" fine aux/z; do echo >"$f"; done'
    )
    succeeded(laptop.jlr("shell", name, "--", "sh", "-c", odd))
    copied = laptop.jlr("cp", "-r", f"{name}:odd", home)
    succeeded(copied)
    assert [path.name for path in (here / "odd").iterdir()] == ["fine"]
    assert copied.stderr.count("no file on Windows can have this name") == 6, copied
    refused = laptop.jlr("cp", f"{name}:odd/con.txt", home)
    assert refused.status == 2, refused
    assert "no file on Windows can be called `con.txt`" in refused.stderr
    assert laptop.jlr("cp", f"{name}:work.txt", "NUL").status == 1


def test_output_of_cells_comes_and_is_saved_under_a_name_that_windows_takes(
    session: WindowsSession,
) -> None:
    laptop = session.laptop
    with session.page().notebook("con.ipynb") as kernel:
        assert kernel.run("print('Grüße', 6 * 7)") == "Grüße 42\n"

        def recorded() -> bool:
            return "Grüße 42" in laptop.jlr("output", session.name).stdout

        wait_until(recorded, "the recorded output", timeout=60)
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


def test_a_drop_is_survived_on_the_same_port(session: WindowsSession, way: Line) -> None:
    way.take_down()
    way.bring_up()
    session.await_answer()
    assert succeeded(session.laptop.jlr("url", session.name)).strip() == session.url


def test_a_new_link_brings_the_port_back_and_commands_at_once_start_one(
    session: WindowsSession,
) -> None:
    laptop = session.laptop
    for ends in (("-c", KILL_LINKS), ("-m", "jlremote", "disconnect", "lab")):
        succeeded(laptop.python(*ends))
        wait_until(lambda: not session.answers(), "the link's end")
        with ThreadPoolExecutor() as threads:
            urls = list(
                threads.map(lambda _: laptop.jlr("open", session.name, "--no-browser"), "ab")
            )
        assert [succeeded(url).strip() for url in urls] == [session.url] * 2
        session.await_answer()
        assert succeeded(laptop.python("-c", COUNT_LINKS)).strip() == "1"


def test_ctrl_c_ends_a_command_and_neither_its_link_nor_the_session(
    session: WindowsSession,
) -> None:
    text = "echo begun; exec sleep 600"
    ended = session.laptop.python("-c", CTRL_C, "shell", session.name, "--", "sh", "-c", text)
    assert ended.status == 130, ended
    assert session.answers()


def test_a_file_that_another_program_reads_is_replaced_once_it_is_closed(
    session: WindowsSession,
) -> None:
    assert succeeded(session.laptop.python("-c", REPLACE)).split() == ["refused", "replaced"]


def test_secrets_are_kept_by_the_credential_manager(session: WindowsSession) -> None:
    secret = secrets.token_hex(8) + "ß"
    stored = session.laptop.python("-c", SECRETS, secret)
    assert succeeded(stored).split() == ["True", "True", "True", "None"], stored


def test_what_jlr_keeps_is_in_the_persons_own_folder(session: WindowsSession) -> None:
    """Windows gives such a folder's access list, of the person and the system, to what is in it."""
    shown = session.laptop.python("-c", FOLDERS)
    folders = succeeded(shown).split("\n")[:-1]
    assert len(folders) == 5, shown
    for folder in folders:
        assert folder.startswith(rf"C:\users\{PERSON}\AppData\Local"), folder


def test_an_ssh_client_reaches_a_session_through_the_pipe(
    session: WindowsSession, tmp_path: Path
) -> None:
    """The client is Linux's: Wine has none of Windows. `jlr proxy` is what it would run."""
    asked = session.ssh("sh -c 'wc -c; echo Grüße; exit 7'", "x" * 3_000_000, tmp_path)
    assert (asked.status, asked.stdout.split()) == (7, ["3000000", "Grüße"]), asked


def test_the_session_is_deleted(session: WindowsSession) -> None:
    laptop = session.laptop
    removed = laptop.jlr("rm", session.name, "--yes", timeout=90)
    assert removed.status == 0, removed
    assert json.loads(succeeded(laptop.jlr("list", "--json"))) == []
