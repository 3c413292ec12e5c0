"""The options of a new container, as engines name or refuse them, and those of an existing one."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from jlremote.errors import JlrError, Usage
from jlremote.laptop.settings.options import LOG_LIMIT, key
from jlremote.untrusted import number


@dataclass(frozen=True)
class ContainerOptions:
    """The requested options; `None` and `()` leave the choice to the image and the engine.

    An item of `ulimits` or `log_options` without a value (`memlock=`) takes away that of a profile.
    """

    volumes: tuple[str, ...] = ()  # `SOURCE:TARGET[:OPTIONS]`
    environment: tuple[str, ...] = ()  # `NAME=VALUE`, or `NAME`
    workdir: str | None = None  # working folder, the server's root
    user: str | None = None  # `USER[:GROUP]`
    shm_size: str | None = None  # size of `/dev/shm`, e.g. `1g`
    ulimits: tuple[str, ...] = ()  # `NAME=SOFT[:HARD]`
    ipc: str | None = None  # shared memory, e.g. `host`
    network: str | None = None  # e.g. `host`
    init: bool | None = None  # whether a small init is process 1, by default yes
    remove: bool | None = None  # whether the container is removed when it stops
    log_options: tuple[str, ...] = ()  # `NAME=VALUE` for the log of the container's main process
    packages: tuple[str, ...] = ()  # Python packages to install in it, as pip takes them
    engine_arguments: tuple[str, ...] = ()  # further words for the engine's command line

    @property
    def on_host_network(self) -> bool:
        """Whether the network is the host's, where all users reach a listening port."""
        words = " ".join(self.engine_arguments)
        return self.network == "host" or bool(re.search(r"--net(work)?[= ]host\b", words))

    @property
    def keeps_no_log(self) -> bool:
        """Whether the engine keeps nothing of what the container prints."""
        return bool(re.search(r"--log-driver[= ]none\b", " ".join(self.engine_arguments)))


NO_OPTIONS = ContainerOptions()

_OPTIONS = {
    "volumes": "volume",
    "environment": "env",
    "ulimits": "ulimit",
    "remove": "rm",
    "log_options": "log-opt",
}
# The fields by their long options.
FIELDS: Mapping[str, str] = {
    _OPTIONS.get(each.name, each.name.replace("_", "-")): each.name
    for each in fields(ContainerOptions)
}

# jlr sets these itself: it finds the container by its name and sets its entrypoint.
_OURS = ("--name", "--entrypoint", "--cidfile")


def check_arguments(words: tuple[str, ...]) -> None:
    """Refuse words for the engine's command line that jlr sets or that are no options (`Usage`)."""
    before = ""
    for word in words:
        option = word.partition("=")[0]
        if option in _OURS:
            raise Usage(
                f"`{option}` cannot be given after `--`: jlr sets it itself",
                hint="the name follows the host; the entrypoint only waits, so that the "
                "container stays",
            )
        if not word.startswith("-") and (not before.startswith("-") or "=" in before):
            hint = "options of the engine follow `--`, as in `-- --cap-add SYS_PTRACE`"
            raise Usage(f"unexpected argument `{word}`", hint=hint)
        before = word


# runc prints the number (asm-generic/resource.h), crun the name.
_LIMITS = (
    "cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
    "sigpending", "msgqueue", "nice", "rtprio", "rttime",
)  # fmt: skip
_LIMIT = re.compile(r"rlimit type (\d{1,4})|RLIMIT_([A-Z]+)")
_LOG_OPTION = re.compile(r"unknown log opt '([^']+)'")


def refusal(options: ContainerOptions, said: str, why: str) -> JlrError | None:
    """Return the error that names the option which the host refuses, and how to leave it out."""
    option, given, refused = "ulimit", options.ulimits, ""
    if limit := _LIMIT.search(said):
        refused = "".join(_LIMITS[int(limit[1]) :][:1]) if limit[1] else limit[2].lower()
    elif log := _LOG_OPTION.search(said):
        option, given, refused = "log-opt", (*options.log_options, *LOG_LIMIT), log[1]
    item = next((item for item in given if key(option, item) == refused), None)
    if item is None:
        return None
    takes_away = shlex.join((f"--{option}", f"{refused}="))
    hint = f"`{takes_away}` leaves it out, also if a profile has it"
    return JlrError(f"the host does not allow `--{option} {item}`: {why}", hint=hint)


# `inspect` does not have the words of the command line, so labels keep them.
ARGUMENTS_LABEL = "org.jlremote.engine-arguments"
PACKAGES_LABEL = "org.jlremote.packages"

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# Other words for the engine's defaults.
_ALIKE = {("network", "default"): "bridge", ("ipc", "shareable"): "private"}


@dataclass(frozen=True)
class Difference:
    """An option that a container was not created with."""

    option: str
    asked: str
    there: str | None  # the container's value, `None` for none


def options_of(inspected: Mapping[str, Any], labels: Mapping[str, str]) -> ContainerOptions:
    """Return a container's options from its `inspect`, and from the labels that jlr gave it."""
    config, host = inspected["Config"], inspected["HostConfig"]
    return ContainerOptions(
        volumes=tuple(map(_volume, inspected.get("Mounts") or ())),
        environment=tuple(config.get("Env") or ()),
        workdir=config.get("WorkingDir") or "/",
        user=config.get("User") or "root",
        shm_size=_size_in_words(host.get("ShmSize")),
        ulimits=tuple(map(_ulimit, host.get("Ulimits") or ())),
        ipc=host.get("IpcMode") or None,
        network=host.get("NetworkMode") or None,
        init=bool(host.get("Init")),
        remove=bool(host.get("AutoRemove")),
        log_options=_log_options(config, (host.get("LogConfig") or {}).get("Config") or {}),
        packages=tuple(shlex.split(labels.get(PACKAGES_LABEL, ""))),
        engine_arguments=tuple(shlex.split(labels.get(ARGUMENTS_LABEL, ""))),
    )


def differences(asked: ContainerOptions, there: ContainerOptions) -> list[Difference]:
    """Return the requested options that the container does not have."""
    found = []
    for option, field in FIELDS.items():
        wanted, has = getattr(asked, field), getattr(there, field)
        if option == "engine-arguments":
            if wanted and wanted != has:
                found.append(Difference(option, shlex.join(wanted), shlex.join(has) or None))
        elif isinstance(wanted, tuple):
            found += _of_lists(option, wanted, has)
        elif wanted not in (None, "") and _same(option, wanted) != _same(option, has):
            found.append(Difference(option, _shown(wanted), None if has is None else _shown(has)))
    return found


def _of_lists(option: str, wanted: tuple[str, ...], has: tuple[str, ...]) -> list[Difference]:
    there = {key(option, item): item for item in has}
    found = []
    for item in wanted:
        here = there.get(key(option, item))
        passed_on = option == "env" and "=" not in item  # the engine takes the value from its own
        if here is not None and (passed_on or _agree(option, item, here)):
            continue
        if not (item.endswith("=") and option in ("ulimit", "log-opt") and here is None):
            found.append(Difference(option, item, here))
    return found


def _agree(option: str, asked: str, there: str) -> bool:
    wanted, has = _same(option, asked), _same(option, there)
    if asked.startswith("~") and option == "volume":  # the home folder is not known here
        return bool(wanted[1:] == has[1:] and has[0].endswith(wanted[0][1:]))
    return bool(wanted == has)


def _shown(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def _same(option: str, value: Any) -> Any:
    """Return a value in the one form in which it is compared."""
    if option == "shm-size" and value is not None:
        found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?) ?([bkmgt]?)i?b?", value.lower())
        return int(number(found[1]) * _UNITS[found[2]]) if found else value
    if option == "ulimit":
        name, _, values = value.partition("=")
        soft, _, hard = values.partition(":")
        return name, soft, hard or soft
    if option == "user" and value is not None:
        user, _, group = value.partition(":")
        return "root" if {user, group} <= {"root", "0", ""} else value
    if option == "volume":
        source, _, rest = value.partition(":")
        target, _, options = rest.partition(":")
        return posixpath.normpath(source), posixpath.normpath(target), "ro" in options.split(",")
    if option == "workdir" and value is not None:
        return posixpath.normpath(value)
    return _ALIKE.get((option, value), value)


def _volume(mount: Mapping[str, Any]) -> str:
    source = mount.get("Name") or mount.get("Source") or ""
    return f"{source}:{mount['Destination']}" + ("" if mount.get("RW", True) else ":ro")


def _ulimit(limit: Mapping[str, Any]) -> str:
    # podman calls it RLIMIT_MEMLOCK
    name = str(limit["Name"]).lower().removeprefix("rlimit_")
    soft, hard = limit["Soft"], limit["Hard"]
    return f"{name}={soft}" if soft == hard else f"{name}={soft}:{hard}"


def _log_options(config: Mapping[str, Any], told: Mapping[str, str]) -> tuple[str, ...]:
    words: list[str] = config.get("CreateCommand") or []
    noted = [value for word, value in pairwise(words) if word == "--log-opt"]
    noted += [word.partition("=")[2] for word in words if word.startswith("--log-opt=")]
    return (*(f"{name}={value}" for name, value in told.items()), *noted)


def _size_in_words(size: int | None) -> str | None:
    if not size:
        return None
    for unit in ("g", "m", "k"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)
