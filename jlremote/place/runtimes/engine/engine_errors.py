"""The errors of an engine that is missing, not permitted or not running, with their remedies."""

from __future__ import annotations

import re

from jlremote.errors import JlrError
from jlremote.place.host.contract import Completed, engines_error, error_lines
from jlremote.place.host.installation import commands
from jlremote.place.host.shell_text import TOOK_TOO_LONG, bounded
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.text import printable

COMMAND_NOT_FOUND = 127
# A working engine answers long before; a hanging daemon never does.
PATIENCE_SECONDS = 10
_AFTER_SILENCE_SECONDS = 3  # the patience with an engine where another one has been silent
# The request that failed, encoded, behind docker's own sentence about it.
_REQUEST = re.compile(r': [A-Z][a-z]+ "http[^"]*": dial unix .*$')
# Podman's prefix with the container's id.
_WHICH = re.compile(r'^unable to start container "?[0-9a-f]{64}"?: ')
# The version decides whether "the Docker daemon socket" or "the docker API" follows. `permission
# denied` alone may also come from a file in a container.
_NOT_PERMITTED = "permission denied while trying to connect"
_NOT_RUNNING = re.compile(
    "cannot connect to (?:the docker|podman)|unable to connect to podman"
    "|is the docker daemon running"
)
# Rootless podman needs a range of ids for the user, and two programs that map them.
_NO_IDS = ("newuidmap", "newgidmap", "no subuid ranges", "no subgid ranges", "insufficient uids")
# The errors of `sudo -n`, of `-A` without a program, of `-S`, and of a wrong password.
_PASSWORD = re.compile(
    "a (?:password|terminal) is required|no askpass program specified|no password was provided"
    "|incorrect (?:password|authentication) attempt"
)
_WANTS_TERMINAL = "you must have a tty"
_REFUSED_BY_SUDO = re.compile(
    "is not in the sudoers file|is not allowed to execute|may not run sudo"
    f"|not allowed to set the following environment|{_WANTS_TERMINAL}"
)
_ASK_FOR = "ask the host's administrator for a line in its sudoers:"
# Podman's words in lower case; of "no such container" docker writes the first with a capital.
_PODMAN = re.compile(
    "emulate docker cli using podman|error: inspecting object:|running container create option:"
    '|"ociruntime"'
)


class EngineUnusable(JlrError):
    """No command of this user works with the engine."""

    chosen_by = "runtime"


class EngineMissing(EngineUnusable):
    """The engine was not found."""


class EngineNotPermitted(EngineUnusable):
    """The user may not use the engine."""


class EngineNotRunning(EngineUnusable):
    """The engine's daemon does not run."""


class EngineSilent(EngineNotRunning):
    """The engine's daemon does not answer."""


class SudoPasswordNeeded(EngineNotPermitted):
    """`sudo` wants a password that is not known."""


class DockerIsPodman(EngineUnusable):
    """The host's `docker` is podman, which differs in some ways."""

    def __init__(self) -> None:
        super().__init__(
            "`docker` on the host is podman", hint="`--runtime podman` uses it by its own name"
        )


def reason(failed: Completed) -> str:
    """Return an engine's reason to refuse, or the first line of its output, safe to show."""
    lines = error_lines(failed.stderr)
    text = engines_error(lines) or (lines or [failed.complaint])[0]
    return _REQUEST.sub("", _WHICH.sub("", text))


def tried(argv: Argv) -> str:
    """Return shell text for a command that any working engine answers soon."""
    return bounded(argv, PATIENCE_SECONDS)


def tried_next(argv: Argv) -> str:
    """Return shell text as `tried` does, with less patience after an engine that was silent."""
    less = bounded(argv, _AFTER_SILENCE_SECONDS)
    return f'case $statuses in *"={TOOK_TOO_LONG} "*) {less};; *) {tried(argv)};; esac'


def unless_silent(step: str) -> str:
    """Return shell text that exits if the earlier `step` took too long."""
    return f'case $statuses in *" {step}={TOOK_TOO_LONG} "*) exit {TOOK_TOO_LONG};; esac'


def is_tried(script: str) -> bool:
    """Return whether a script has commands of `tried`, which take no longer than they may."""
    return f"echo timeout {PATIENCE_SECONDS}) " in script


def engine_error(engine: Engine, failed: Completed) -> JlrError:
    """Return the error of a failed command, an `EngineUnusable` if every command would fail."""
    if is_podman(engine, failed):
        return DockerIsPodman()
    complaint = failed.stderr.lower()
    if engine.behind_sudo and (refused := _sudo_error(engine, failed, complaint)):
        return refused
    if absent := _absent(engine, failed, complaint):
        return absent
    if any(phrase in complaint for phrase in _NO_IDS):
        return EngineNotPermitted(
            f"podman cannot work for this user on the host: {reason(failed)}",
            hint="`sudo apt install uidmap` and `sudo usermod --add-subuids 100000-165535 "
            "--add-subgids 100000-165535 USER` there give the user ids; or use root's engine: "
            "`--sudo`",
        )
    if _NOT_PERMITTED in complaint:
        by_sudo = "" if engine.behind_sudo else "; or, if you may use `sudo`: `--sudo`"
        why = f"the user on the host may not use `{engine.name}`: {reason(failed)}"
        hint = f"`sudo usermod -aG docker USER` there lets the user use it{by_sudo}"
        return EngineNotPermitted(why, hint=hint)
    service = engine.kind.daemon
    if failed.status == TOOK_TOO_LONG and not complaint:
        again = f"`sudo systemctl restart {service}` there restarts it; " if service else ""
        hint = f"{again}its disk or its network may hang"
        return EngineSilent(f"`{engine.name}` on the host does not answer", hint=hint)
    if _NOT_RUNNING.search(complaint):
        start = f"sudo systemctl start {service}" if service else "systemctl --user start podman"
        why = f"the `{engine.kind.program}` daemon does not run on the host: {reason(failed)}"
        return EngineNotRunning(why, hint=f"`{start}` on the host starts it")
    return JlrError(f"`{engine.name}` failed: {reason(failed)}")


def is_podman(engine: Engine, answered: Completed) -> bool:
    """Return whether `docker` is podman: it says so unless that was silenced, or its errors do."""
    if engine.kind.program != "docker":
        return False
    text = f"{answered.stderr}{answered.stdout}".lower()
    return bool(_PODMAN.search(text)) or "no such container" in answered.stderr


def _absent(engine: Engine, failed: Completed, complaint: str) -> EngineMissing | None:
    for each in (engine, engine.everyday):
        # The errors of `sh`, of bash, and of `env`.
        words = rf"\b{each.kind.program}\W?: (command )?(not found|no such file or directory)"
        if re.search(words, complaint):
            return _missing(each)
    return _missing(engine.everyday) if failed.status == COMMAND_NOT_FOUND else None


def _missing(engine: Engine) -> EngineMissing:
    program = engine.kind.program
    hint = f"`{commands(program)[0]}` there installs it; `--runtime none` needs no engine"
    return EngineMissing(f"`{program}` was not found on the host", hint=hint)


def without_password(engine: Engine) -> str:
    """Return how to let `sudo` want no password, as a hint."""
    return f"{_ASK_FOR} `USER ALL=(root) NOPASSWD: /usr/bin/{engine.kind.program}`"


def _sudo_error(engine: Engine, failed: Completed, complaint: str) -> EngineUnusable | None:
    if _PASSWORD.search(complaint):
        hint = f"the next `jlr` command in a terminal asks for it; or {without_password(engine)}"
        return SudoPasswordNeeded(f"`{engine.name}` needs a password on the host", hint=hint)
    if f"sudo: {engine.kind.program}: command not found" in complaint:
        return _missing(engine)
    if failed.status == COMMAND_NOT_FOUND or "sudo: not found" in complaint:
        return EngineMissing(
            "`sudo` is not installed on the host", hint="run the command without `--sudo`"
        )
    # Its lecture may come before the refusal.
    lines = printable(failed.stderr).splitlines()
    refused = [line for line in lines if _REFUSED_BY_SUDO.search(line.lower())]
    if refused:
        hint = without_password(engine)
        if _WANTS_TERMINAL in refused[0].lower():
            hint = f"{_ASK_FOR} `Defaults:USER !requiretty`"
        return EngineNotPermitted(
            f"`sudo` on the host does not let this user run `{engine.kind.program}`: "
            f"{refused[0].strip().rstrip('.')}",
            hint=hint,
        )
    return None
