"""Fixtures of the lab. A test that asks for none of them starts nothing."""

from __future__ import annotations

import gc
import os
import re
import secrets
import signal
import socket
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.lab import images
from tests.lab.accounts import Account, claimed_account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine, running_engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.place import LabError, Say
from tests.lab.programs import LESS_GARBAGE, missing
from tests.lab.remote_host import Keys, new_keys, new_laptop, running_sshd
from tests.lab.sshd import SSHServer
from tests.long import WANTED
from tests.mounts.parts import remember_session

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

# A shell that starts the tests in the background, and `nohup`, make them ignore these signals. The
# programs that the tests start would inherit that, and neither Ctrl-C nor a closed terminal would
# end them. A handler of Python's own is not inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

# The person's own keychain is none of the tests' business.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

os.environ["GOGC"] = LESS_GARBAGE
gc.set_threshold(50_000, 20, 20)  # Python's own 700 cost a tenth of the collection's time

# How long an example takes tells of the machine's load, not of the code.
settings.register_profile(
    "jlr",
    deadline=None,
    max_examples=100 if WANTED else 15,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("jlr")

# A test that asks for one of these runs a real server, engine or browser.
LAB_FIXTURES = {"account", "chromium", "engine", "file_chromium", "forward_sshd", "keychain"}
# All tests of these folders do, or take longer than a minute has room for.
LAB_FOLDERS = ("adversity", "cluster", "engines", "login", "outages", "shell", "windows")
# Only these markers may skip a test where CI=true says that every part is there.
OPTIONAL = ("long", "hardware")

# A lab of one of these folders costs more than its files gain from several workers.
ONE_LAB = ("tests/cluster",)
# These take one worker minutes, and then come those with files of a minute or two.
FIRST = (*ONE_LAB, "tests/windows", "tests/sessions", "tests/shell", "tests/outages")
# With `JLR_LONG=1` each test of it takes minutes, and its tests share nothing.
APART = "tests/adversity/test_interruptions.py"
# These read all sources, which one worker need parse only once.
GUARDS = re.compile("tests/test_(errors|ladder|local_calls|platforms|untrusted|words).py")


class FolderScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Keep a file with one worker, and all files of a folder that shares a dear lab."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        if file == APART:
            return nodeid
        return "guards" if GUARDS.fullmatch(file) else folder if folder in ONE_LAB else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FolderScheduling | None:
    """Take the place of `--dist loadfile`."""
    return FolderScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of folders that `tests/run quick` runs no test of."""
    is_quick = config.getoption("markexpr") == "not lab"
    folder = collection_path.parent == Path(__file__).parent and collection_path.name
    return True if is_quick and folder in LAB_FOLDERS else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the lab, which `tests/run quick` leaves out.

    What takes one worker long comes first, and files without a lab, which take a second, come
    last: else all but one of the workers would have nothing to do at the end.
    """
    dear = set()
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})  # not a fixture's value
        if LAB_FIXTURES.intersection(getattr(item, "fixturenames", ())).difference(given):
            item.add_marker("lab")
        if item.get_closest_marker("lab"):
            dear.add(item.path)
    items.sort(
        key=lambda item: (item.path in dear, *map(item.nodeid.startswith, FIRST)), reverse=True
    )


def pytest_collection_finish() -> None:
    """Let no search for garbage look at the thousands of tests, which live to the end."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that take minutes and the repeats, unless they are wanted."""
    if item.get_closest_marker("long") and not os.environ.get("JLR_LONG"):
        pytest.skip("takes minutes, or is a repeat: JLR_LONG=1 runs it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a skipped test where CI=true says that every part is there."""
    report = yield
    optional = hasattr(report, "wasxfail") or any(map(item.get_closest_marker, OPTIONAL))
    if report.skipped and not optional and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped although CI=true: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Say:
    """Print to the terminal although pytest captures output."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    return print if reporter is None else reporter.write_line


@pytest.fixture(scope="session")
def engine(say: Say) -> Iterator[Engine]:
    """The lab's dockerd, with every image of the lab."""
    if reasons := missing():
        pytest.skip("; ".join(reasons))
    with ExitStack() as stack:
        try:
            running = stack.enter_context(running_engine(say))
            images.ensure(running, say)
        except LabError as failure:
            pytest.fail(f"the lab: {failure}", pytrace=False)
        yield running


@pytest.fixture(scope="session")
def account(engine: Engine) -> Iterator[Account]:
    """An ordinary user of the remote host with an empty home at first."""
    with claimed_account() as claimed:
        yield claimed


@pytest.fixture(scope="session")
def keys(engine: Engine) -> Iterator[Keys]:
    """The key pair that the remote host accepts."""
    with new_keys() as made:
        yield made


@pytest.fixture(scope="session")
def sshd(engine: Engine, keys: Keys) -> Iterator[SSHServer]:
    """The remote host's sshd. A test that stops it starts it again."""
    with running_sshd(engine, keys) as server:
        yield server


# Starts a server that runs until the test ends, with arguments of `running_sshd`.
SSHServerFactory = Callable[..., SSHServer]


@pytest.fixture
def another_sshd(engine: Engine, keys: Keys) -> Iterator[SSHServerFactory]:
    """Start servers with options of their own; `laptop.add_host` makes them known."""
    with ExitStack() as stack:

        def start(*options: str, host_key_kinds: Sequence[str] = ("ed25519",)) -> SSHServer:
            server = running_sshd(engine, keys, *options, host_key_kinds=host_key_kinds)
            return stack.enter_context(server)

        yield start


@pytest.fixture
def forbidden_engine(account: Account) -> Iterator[str]:
    """The setting of `DOCKER_HOST` that leads to an engine which the account may not use."""
    path = account.home / "root-only.sock"
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(path))
        engine.listen()
        path.chmod(0o600)
        yield f"DOCKER_HOST=unix://{path}"
    path.unlink()


@pytest.fixture
def line(sshd: SSHServer) -> Iterator[Line]:
    """A network to the remote host that can be slow, silent, cut or down: `add_host(port=…)`."""
    made = Line(sshd.port)
    yield made
    made.close()


@pytest.fixture
def laptop(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    """A new laptop that knows the remote host as `lab`; its links must end on SIGTERM."""
    with new_laptop(sshd, account, keys) as fresh:
        yield fresh
    assert not fresh.stubborn, f"had to be killed: {fresh.stubborn}"


@pytest.fixture(scope="module")
def file_laptop(sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    """The same laptop for all tests of a file, which saves a link for each."""
    with new_laptop(sshd, account, keys) as fresh:
        yield fresh
    assert not fresh.stubborn, f"had to be killed: {fresh.stubborn}"


@pytest.fixture
def container(engine: Engine) -> Iterator[ContainerFactory]:
    """Starts containers, which are removed when the test ends."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    yield factory
    factory.remove_all()


@pytest.fixture(scope="module")
def containers(engine: Engine) -> Iterator[ContainerFactory]:
    """Starts containers, which are removed when the last test of a file ends."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    yield factory
    factory.remove_all()


@pytest.fixture(scope="module")
def inside(containers: ContainerFactory) -> Container:
    """The container of `owner`'s session, in which nothing runs."""
    return containers("lab/plain")


@pytest.fixture(scope="module")
def owner(sshd: SSHServer, account: Account, keys: Keys, inside: Container) -> Iterator[Laptop]:
    """A laptop for all tests of a file, which knows the container `inside` as its session."""
    with new_laptop(sshd, account, keys) as fresh:
        remember_session(fresh, inside.name, "docker")
        yield fresh


@pytest.fixture(scope="module")
def file_chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """The same browser for all tests of a file, as it takes seconds to start."""
    with running_chromium(tmp_path_factory.mktemp("profile")) as context:
        yield context


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[BrowserContext]:
    with running_chromium(tmp_path / "profile") as context:
        yield context


@contextmanager
def running_chromium(profile: Path) -> Iterator[BrowserContext]:
    from tests.lab import browser  # what it imports takes a while, and few tests have a browser

    if not browser.CHROMIUM.exists():
        pytest.skip(f"`{browser.CHROMIUM}` is not installed")
    with browser.chromium(profile) as context:
        yield context


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk])
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield disk
    subprocess.run(["umount", disk], check=True)
