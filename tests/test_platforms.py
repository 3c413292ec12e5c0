"""What a platform lacks breaks no import, and what cannot work there is refused in plain words."""

from __future__ import annotations

import ast
import ctypes
import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from jlremote.errors import JlrError, Unreachable
from jlremote.forwards import browser
from jlremote.kernels import specs
from jlremote.laptop import secrets
from jlremote.laptop.paths import private_directory
from jlremote.link.connection import liveness
from jlremote.place.host.addresses import has_own_addresses
from jlremote.ssh.forward import connection_router
from jlremote.ssh.login import agent as agent_module
from jlremote.ssh.login.agent import Agent
from jlremote.ssh.transport.server_socket import ProxyProcess
from jlremote.ssh.wire_format import string
from tests.lab.programs import PATIENCE
from tests.sources import here, known, modules, python

# On Windows nothing imports the keyboard and the demo's server; the others run on hosts.
POSIX_ONLY = {
    "jlremote.cli.keyboard.posix_keyboard",
    "jlremote.demo.loopback_host",
    "jlremote.gpus.waiter_program",
    "jlremote.remote.job_keeper",
    "jlremote.remote.orphans",
    "jlremote.remote.recorded_kernel",
    "jlremote.remote.recorder_program",
}
# Which modules ask for the platform, and what differs there. All else is the same on each.
DOORS = {
    "cli.boundary": "signals, and the console's window that is closed",
    "cli.keyboard": "a terminal, or a console",
    "cli.screen.terminal": "macOS: Safari resolves no name below `localhost`",
    "copies.local_tree": "the executable bit, and separators of paths in a link",
    "demo.demo": "refused on Windows",
    "doctor.laptop": "advice",
    "editors.code": "the opener of links",
    "editors.ssh_config": "quotes of ssh, and where the system has its own",
    "forwards.browser": "a display; pages for confined browsers of Linux",
    "images.build_context": "the executable bit",
    "agents.mcp_server": "how a command is interrupted",
    "kernels.bridge": "how the end of the parent shows",
    "kernels.kernel_ports": "Linux: the owner of a connection",
    "kernels.lab": "the token's pipe: a descriptor, or a handle",
    "kernels.lab_config": "likewise",
    "kernels.specs": "Jupyter's folder",
    "laptop.desktop": "who shows notices",
    "laptop.paths": "modes, or access lists; how long a socket's path may be",
    "laptop.secrets": "macOS: which keychains are loaded",
    "laptop.typed_place": "a drive's letter is no host",
    "link.client.call": "a pipe, or a socket; how a process leaves its terminal",
    "link.connection.liveness": "Linux: the clock of a machine that sleeps",
    "link.service": "limits, signals, a file of a socket",
    "link.mount_streams": "sshfs comes to a socket, or as a command does",
    "link.wire": "frames of a pipe, or of a socket",
    "mounts.connector": "hands a socket over, or carries bytes",
    "mounts.system": "FUSE of Linux and macOS, or WinFsp",
    "place.host.addresses": "addresses of the loopback",
    "ssh.config.tokens": "the home folder in the user database",
    "ssh.forward": "Linux: a closed client; how many descriptors; a port that is taken over",
    "ssh.login.agent": "a socket, or a pipe or Pageant",
    "ssh.login.identities": "modes",
    "ssh.transport": "a proxy command's streams; writing in parts",
    "untrusted": "names of files",
}
COMMANDS = (["--version"], ["--help"], ["list"], ["demo"])

# Import all libraries, take away what Windows lacks, then import our modules and run commands.
WINDOWS = """
import contextlib, ctypes, importlib, io, json, os, select, signal, socket, sys, time, types
import platformdirs.unix

def ours():
    return [name for name in sys.modules if name.partition(".")[0] == "jlremote"]

def load(names):
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as failure:
            failed[name] = repr(failure)
    return failed

def take_away(module, *names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def become_windows():
    for name in ours():
        del sys.modules[name]
    for name in "curses fcntl grp posix pty pwd readline resource syslog termios tty".split():
        sys.modules[name] = None
    kept = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"}
    take_away(signal, *({name for name in vars(signal) if name.startswith("SIG")} - kept))
    take_away(signal, "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer", "sigwait")
    take_away(os, "chown", "ctermid", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
        "getgroups", "getloadavg", "getpgid", "getpgrp", "getresuid", "getsid", "getuid", "killpg",
        "lchown", "mkfifo", "mknod", "openpty", "pipe2", "posix_spawn", "sched_getaffinity",
        "sendfile", "set_blocking", "setpgid", "setsid", "setuid", "statvfs", "sysconf", "ttyname",
        "uname", "wait", "waitid", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK",
        "WNOHANG")
    take_away(select, "epoll", "kqueue", "poll")
    take_away(socket, "AF_UNIX", "MSG_DONTWAIT", "SCM_RIGHTS", "recv_fds", "send_fds")
    take_away(time, "CLOCK_BOOTTIME", "clock_gettime", "tzset")
    sys.modules["msvcrt"] = types.ModuleType("msvcrt")
    done = lambda *_: 1
    kernel = types.SimpleNamespace(LocalFree=done, SetConsoleCtrlHandler=done)
    security = types.SimpleNamespace(SetFileSecurityW=done,
        ConvertStringSecurityDescriptorToSecurityDescriptorW=done)
    ctypes.windll = types.SimpleNamespace(kernel32=kernel, advapi32=security)
    ctypes.WINFUNCTYPE = ctypes.CFUNCTYPE
    platformdirs.PlatformDirs = platformdirs.unix.Unix
    sys.platform = "win32"

def outcome(argv):
    from jlremote.cli.boundary import run
    sys.argv = ["jlr", *argv]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        return run(), said.getvalue()

modules, commands = sys.argv[1].split(","), json.loads(sys.argv[2])
load(modules)
become_windows()
failed = load(modules)
print(json.dumps({"failed": failed, "commands": [outcome(argv) for argv in commands]}))
"""


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return which imports failed, and the exit code and output of a few commands."""
    home = tmp_path_factory.mktemp("home")
    places = {f"XDG_{name}": str(home) for name in ("STATE_HOME", "CONFIG_HOME", "RUNTIME_DIR")}
    loaded = sorted(name for name in modules() if not name.endswith(".__main__"))  # these run
    done = python(WINDOWS, ",".join(loaded), json.dumps(COMMANDS), **places)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


@pytest.mark.lab
def test_every_module_can_be_imported_without_what_windows_lacks(windows: dict[str, Any]) -> None:
    assert set(windows["failed"]) == POSIX_ONLY, windows["failed"]


@pytest.mark.lab
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (0, 0, "jlr "),
        (1, 0, "Usage: jlr "),
        (2, 0, "no sessions"),
        (3, 1, "error: `jlr demo` does not run on Windows"),
    ],
)
def test_a_command_works_or_is_refused_without_what_windows_lacks(
    number: int, code: int, said: str, windows: dict[str, Any]
) -> None:
    outcome = windows["commands"][number]
    assert outcome[0] == code, outcome
    assert said in outcome[1]


def test_only_known_modules_ask_for_the_platform() -> None:
    asked = ("sys.platform", "os.name", "platform.system", "platform.release")
    askers = {
        name
        for name, tree in here()
        if any(isinstance(n, ast.Attribute) and ast.unparse(n) in asked for n in ast.walk(tree))
    }
    assert {name for name in askers if not known(name, DOORS)} == set()
    assert {door for door in DOORS if not any(known(name, (door,)) for name in askers)} == set()


def test_pageant_is_asked_where_openssh_of_windows_has_no_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class PageantConnection:
        def send(self, request: bytes) -> None:
            asked.append(request)

        def recv(self, _most: int) -> bytes:
            return string(bytes((agent_module._IDENTITIES_ANSWER, 0, 0, 0, 1)) + key)

    key = string(b"blob") + string(b"me@laptop")
    library = SimpleNamespace(PageantConnection=PageantConnection)
    monkeypatch.setitem(sys.modules, "paramiko.win_pageant", library)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(agent_module, "USUAL_PLACE", str(tmp_path / "none"))
    assert Agent(str(tmp_path / "none")).keys() == {b"blob": "me@laptop"}
    assert asked == [string(bytes((agent_module._REQUEST_IDENTITIES,)))]
    assert Agent(str(tmp_path / "another")).keys() == {}
    assert len(asked) == 1


def test_a_proxy_command_of_windows_has_pipes_and_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    proxy = ProxyProcess("cat")
    proxy.socket.settimeout(PATIENCE)
    proxy.socket.sendall(b"SSH-2.0-x\r\n")
    assert proxy.socket.recv(100) == b"SSH-2.0-x\r\n"
    process = psutil.Process(proxy._process.pid)
    proxy.close()
    proxy._process.wait(PATIENCE)
    assert not process.is_running()
    with pytest.raises(Unreachable, match="`no-such-program` does not start"):
        ProxyProcess("no-such-program")
    ended = ProxyProcess("false")
    ended.socket.settimeout(PATIENCE)
    assert ended.socket.recv(1) == b""
    ended.close()


def test_new_folders_of_windows_get_an_access_list_without_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []
    none = tmp_path / "c"

    def change(folder: str, *_: object) -> bool:
        changed.append(folder)
        return folder != str(none)

    security = SimpleNamespace(
        ConvertStringSecurityDescriptorToSecurityDescriptorW=lambda *_: 1,
        SetFileSecurityW=change,
    )
    system = SimpleNamespace(advapi32=security, kernel32=SimpleNamespace(LocalFree=lambda _: 0))
    monkeypatch.setattr(ctypes, "windll", system, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    private_directory(tmp_path / "a" / "b")
    assert changed == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    with pytest.raises(JlrError, match="gets no access list"):
        private_directory(none)


def test_macos_is_not_asked_what_only_linux_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = socket.socketpair()
    monkeypatch.setattr(sys, "platform", "darwin")
    with near:
        far.close()
        assert connection_router._is_open(near)
    assert liveness.seconds_asleep() == 0.0
    text = (
        "import sys; sys.platform = 'darwin'\n"
        "from jlremote.kernels import kernel_ports; from jlremote.laptop import paths\n"
        "print(kernel_ports._KNOWS_OWNERS, paths.SOCKET_PATH_BYTES)"
    )
    done = python(text)
    assert done.stdout.split() == ["False", "103"], done


def test_macos_has_a_desktop_folders_and_addresses_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "JUPYTER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    asked: list[str | None] = []
    monkeypatch.setattr("webbrowser.get", lambda name=None: asked.append(name))
    assert browser._find(None) is None
    assert "no display" not in str(browser.trouble())
    assert asked == [None, None]
    assert specs.folder() == tmp_path / "Library/Jupyter/kernels"
    assert not has_own_addresses()


def test_the_keychain_of_macos_is_loaded_there_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring

    module = "keyring.backends.macOS.api"
    monkeypatch.setattr(keyring, "get_keyring", lambda: None)
    monkeypatch.setattr(secrets, "is_real", lambda _: False)
    for platform, blocked in (("darwin", False), ("linux", True), ("win32", True)):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.delitem(sys.modules, module, raising=False)
        secrets._backend()
        assert (sys.modules.get(module, "") is None) == blocked
        monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.mark.parametrize(
    ("platform", "program", "ssh", "keychain"),
    [
        ("linux", "xdg-open", "openssh-client", "gnome-keyring"),
        ("darwin", "open", "openssh-client", "security"),
        ("win32", "rundll32", "winget", "Credential Manager"),
    ],
)
def test_programs_and_advice_are_those_of_the_system(
    platform: str, program: str, ssh: str, keychain: str
) -> None:
    text = (
        f"import keyring, sys, webbrowser; sys.platform = {platform!r}\n"
        "from jlremote.doctor import laptop; from jlremote.editors.code import EDITORS\n"
        "print(*EDITORS['pycharm'].programs, laptop._INSTALL_SSH, laptop._GET_KEYCHAIN, sep='\\n')"
    )
    done = python(text)
    told = done.stdout.splitlines()
    assert told[0] == program, done
    assert ssh in told[1]
    assert keychain in told[2]
