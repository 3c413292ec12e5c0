"""One session, from Windows: begun, used, dropped, found again, and deleted.

Wine has no OpenSSH, no PowerShell, no SSHFS-Win and no console that one could look at.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.lab.windows import PERSON, WindowsLaptop
from tests.windows.parts import WindowsSession, succeeded

# Type a Ctrl-C in the console of a command that runs, and return its exit code.
CTRL_C = """
import ctypes, subprocess, sys, time
process = subprocess.Popen([sys.executable, "-m", "jlremote", *sys.argv[1:]],
    creationflags=subprocess.CREATE_NO_WINDOW, stdout=subprocess.PIPE)
process.stdout.readline()
kernel = ctypes.windll.kernel32
kernel.FreeConsole()
assert kernel.AttachConsole(process.pid)
kernel.SetConsoleCtrlHandler(None, True)
assert kernel.GenerateConsoleCtrlEvent(0, 0)
sys.exit(process.wait(30))
"""


def test_a_session_is_listed_opened_and_begun_again(session: WindowsSession) -> None:
    laptop = session.laptop
    session.await_answer()
    assert succeeded(laptop.jlr("url", session.name)) == session.url + "\n"
    again = laptop.jlr("start", "lab", session.name, "--no-browser")
    assert succeeded(again).strip() == session.url
    [listed] = json.loads(succeeded(laptop.jlr("list", "--json")))
    assert (listed["name"], listed["state"]) == (session.name, "up")
    assert session.url in succeeded(laptop.jlr("list", session.name))


def test_doctor_gets_42_from_a_kernel_and_advises_for_windows(session: WindowsSession) -> None:
    told = session.laptop.jlr("doctor", f"lab/{session.name}", "--json", timeout=120)
    checks = {check["check"]: check for check in json.loads(told.stdout)["checks"]}
    assert checks["kernel"]["mark"] == "passed", checks["kernel"]
    assert "42" in checks["kernel"]["text"]
    assert "winget" in checks["ssh"]["advice"][0]


def test_programs_run_there_and_their_text_and_exit_codes_come_back(
    session: WindowsSession, account: Account
) -> None:
    laptop = session.laptop
    assert succeeded(laptop.jlr("shell", session.name, "--", "echo", "Grüße, ✓")) == "Grüße, ✓\n"
    counted = laptop.jlr("shell", session.name, "--", "wc", "-c", stdin="a\r\nb\n")
    assert succeeded(counted).strip() == "5"
    ended = laptop.jlr("run", "lab", "--image", "lab/plain", "--", "sh", "-c", "id -u; exit 3")
    assert (ended.status, ended.stdout.strip()) == (3, str(account.uid)), ended
