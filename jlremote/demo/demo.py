"""`jlr demo`: a session on an SSH host that runs on this machine's loopback."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from jlremote.demo import own_files
from jlremote.errors import Busy, JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_to
from jlremote.hosts.requests import StartRequest, StopRequest
from jlremote.hosts.rollback import ignore_ctrl_c, let_ctrl_c_through, undisturbed
from jlremote.jupyter import scripts
from jlremote.laptop import paths, sessions
from jlremote.listing.session_report import SessionReport
from jlremote.place.host.contract import run_script
from jlremote.place.host.installation import beside_jlr
from jlremote.place.runtimes.processes import Bare
from jlremote.sessions.open import address
from jlremote.sessions.start import start
from jlremote.sessions.stop import stop
from jlremote.sessions.wait import until_end

HOST = "demo"
NOTED_SECONDS = 15.0


def demo(context: Context, ready: Callable[[SessionReport], None]) -> None:
    """Run a session on the demo's own host until it is stopped; then remove all of it.

    `ready` is called with the session once it is up. `KeyboardInterrupt` comes after the clean-up.

    Raise `Busy` if this user runs another demo, `JlrError` if a part is missing or does not start.
    """
    if sys.platform == "win32":
        raise JlrError("`jlr demo` does not run on Windows", hint="try it in WSL, or on a host")
    let_ctrl_c_through()
    config = paths.runtime_directory() / HOST / "ssh_config"
    context = replace(context, ssh_config=config)
    with _the_only_one(config), _host(context, config) as files:
        for record in _records(config):
            with context.progress.step("Clean up after a demo that was killed"):
                _end(record.name, context)
        report = _session(context)
        _, page = address(f"{report.host}/{report.name}", own_files.NOTEBOOK, context)
        report = replace(report, **vars(page))
        context.progress.note(f"files that you make in the demo stay in `{files}`")
        context.progress.note(
            f"other commands reach this host as `{HOST}`; for ssh, use `ssh -F {config} {HOST}`"
        )
        try:
            ready(report)
            _wait(report.name, context)
        finally:
            ignore_ctrl_c()
            _end(report.name, context)


@contextmanager
def _the_only_one(config: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(paths.runtime_directory() / f"{HOST}.lock", mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        hint = "it is still starting; wait a moment"
        for record in _records(config):
            hint = f"`jlr open {record.selector}` opens it; `jlr stop {record.selector}` ends it"
        raise Busy("a demo already runs", hint=hint) from None
    with lock:
        yield


@contextmanager
def _host(context: Context, config: Path) -> Iterator[Path]:
    """Run the demo's host and give the folder where logins begin; that of `config` is its alone."""
    from jlremote.demo.loopback_host import configured_server, current_account

    link = link_to(HOST, context)
    link.shut_down()
    own_files.clear(config)
    paths.private_directory(config.parent)
    with ExitStack() as stack:
        stack.callback(own_files.clear, config)
        files = own_files.make(config)
        stack.enter_context(configured_server(HOST, config, current_account(files)))
        try:
            yield files
        finally:
            with undisturbed(), stack.pop_all():
                link.shut_down()
            if files.exists():
                context.progress.note(f"what you made in the demo is in `{files}`")


def _records(config: Path) -> list[sessions.SessionRecord]:
    return [each for each in sessions.load_all() if each.ssh_config == str(config.resolve())]


def _session(context: Context) -> SessionReport:
    if find_spec("jupyterlab") is None:
        text = "the demo needs `jupyterlab`, which is not installed here"
        raise JlrError(text, hint=f"`{beside_jlr('jupyterlab')}`")
    # The user may have a host `demo` with a session of that name.
    name = HOST if sessions.find(HOST, HOST) is None else f"{HOST}-{secrets.token_hex(3)}"
    try:
        plain = StartRequest(HOST, name, runtime="none", python=sys.executable)
        return start(plain, context)
    except BaseException:
        with undisturbed(), suppress(JlrError):
            _forget(name, context)
        raise


def _wait(name: str, context: Context) -> None:
    until_end(f"{HOST}/{name}", context)
    deadline = time.monotonic() + NOTED_SECONDS
    # `jlr stop` notes a little later that it has stopped it.
    while (record := sessions.find(HOST, name)) is not None and record.forwarded:
        if time.monotonic() >= deadline:
            raise JlrError("the demo's session is gone, and no command has stopped it")
        time.sleep(0.05)


def _end(name: str, context: Context) -> None:
    try:
        with suppress(NotFound):  # `jlr rm` has deleted its record
            stop(f"{HOST}/{name}", StopRequest(remove=True, force=True, yes=True), context)
        _forget(name, context)
    except JlrError as error:
        context.progress.note(f"`{name}` may still run: {error.message}")
    record = sessions.find(HOST, name)
    if record is not None:
        sessions.delete(record)
    sessions.forget_stop(HOST, name)  # or the next bare `jlr stop` would want a name


def _forget(name: str, context: Context) -> None:
    # Jupyter, if it was still starting, makes its folders again until it has ended.
    run_script(link_to(HOST, context), scripts.clear(Bare(), name))
