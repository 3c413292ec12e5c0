"""The errors of options that no engine takes, or that a host's kernel or engine refuses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.laptop.settings.options import LOG_LIMIT, key
from jlremote.place.runtimes.container_options import FIELDS, ContainerOptions

# runc prints the number (asm-generic/resource.h), crun the name.
_LIMITS = (
    "cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
    "sigpending", "msgqueue", "nice", "rtprio", "rttime",
)  # fmt: skip
_LIMIT = re.compile(r"rlimit type (\d{1,4})|RLIMIT_([A-Z]+)")
_LOG_OPTION = re.compile(r"unknown log opt '([^']+)'")
_UNKNOWN = re.compile(r"unknown (?:shorthand )?flag: ('\w' in )?(-\S+)")
# The errors of docker and podman about invalid values, by option, and what to write instead.
_CANNOT_BE: Mapping[str, tuple[str, str]] = {
    "workdir": (
        r"directory '.*' is invalid|workdir .* (does not exist|must be|exists on)|cannot mkdir: ",
        "write a folder of the container, from `/` on",
    ),
    "user": (
        r"unable to find (user|group) |[ug]ids .*must be in range",
        "`--user 1000:1000` always works; names must be in the image",
    ),
    "network": (
        r"network .*not found",
        "write `bridge`, `host`, `none` or the name of an existing network",
    ),
    "ipc": (
        r"invalid ipc mode|unrecognized namespace mode",
        "write `private`, `host` or `container:NAME`",
    ),
    "env": (r"invalid environment variable", "write `NAME=VALUE`, or `NAME`"),
    "shm-size": (r"--shm-size\b.*: invalid size", "write `64m`, `1g` and the like"),
    "ulimit": (r"ulimit\b.*: (invalid|strconv|ulimit) ", "write `memlock=-1`, `nofile=1024:4096`"),
    "volume": (
        (
            r"invalid (volume )?(spec|mode: |mount|(container|host) path)|"
            r"incorrect volume format|(container|host) directory cannot be empty"
        ),
        "write `SOURCE:TARGET[:OPTIONS]`, both folders from `/` on, and `ro` to only read",
    ),
    "log-opt": (
        r"failed to initialize logging driver|^(Error: )?invalid size: ",
        "write as the engine does: `max-size=50m`, `max-file=3`",
    ),
}
# How the values look that an engine takes; what a host has, it knows alone.
_LOOKS: Mapping[str, str] = {
    "workdir": r"/.*",
    "network": r"\w\S*",
    "ipc": r"private|host|shareable|none|(container|ns):\S+",
    "shm-size": r"(?i)[0-9]{1,15}(\.[0-9]+)? ?[bkmgtp]?i?b?",
    "ulimit": r"[a-zA-Z_]+=(-?[0-9]+(:-?[0-9]+)?)?",
    "volume": r"([~/.][^:]*|[^/:]+):/[^:]*(:[^:]*)?",
    "log-opt": r"[^=\s]+=.*",
}
_SHORT = {"env": ("-e",), "user": ("-u",), "volume": ("-v",), "workdir": ("-w",)}
_RIGHTS = ("--privileged", "--cap-add", "--device", "--security-opt")
_OF_ANOTHER = re.compile(r"no such container: |no container with name or id \"")
_SETTINGS = "and in `engine-arguments` of the settings: `jlr config` shows whether it is set"


def check_values(options: ContainerOptions) -> None:
    """Refuse values that no engine takes, before an image is pulled for them (`Usage`)."""
    for option, looks in _LOOKS.items():
        given = getattr(options, FIELDS[option]) or ()
        for value in (given,) if isinstance(given, str) else given:
            if not re.fullmatch(looks, value):
                raise Usage(f"invalid `--{option} {value}`", hint=_CANNOT_BE[option][1])


def refusal(options: ContainerOptions, complaint: str, reason: str) -> JlrError | None:
    """Return the error that names the refused option and how to leave it out, if one is known."""
    if unknown := _UNKNOWN.search(complaint):
        return Usage(
            f"the engine on the host has no option `{unknown[2]}`",
            hint=f"leave it out after `--`, {_SETTINGS}",
        )
    for option, (words, hint) in _CANNOT_BE.items():
        found = re.search(words, complaint, re.IGNORECASE | re.MULTILINE)
        if found and _asked_for(options, option):
            kind = NotFound if option == "network" else Usage
            return kind(f"invalid {_shown(options, option)}: {reason}", hint=hint)
    if _OF_ANOTHER.search(complaint.lower()):
        asked = (f"--network {options.network}", f"--ipc {options.ipc}")
        shown = ", ".join(f"`{text}`" for text in asked if " container:" in text)
        if shown:
            return NotFound(f"cannot use {shown}: {reason}", hint="start that container first")
    for option, item in _singled_out(options, complaint):
        takes_away = shlex.join((f"--{option}", f"{key(option, item)}="))
        return JlrError(
            f"the host does not allow `--{option} {item}`: {reason}",
            hint=f"`{takes_away}` leaves it out, also if a profile has it",
        )
    if "caps" in complaint or "operation not permitted" in complaint.lower():
        given = options.engine_arguments
        rights = [word for word in given if word.partition("=")[0] in _RIGHTS]
        if rights:
            return JlrError(
                f"the host does not allow `{' '.join(rights)}`: {reason}",
                hint=f"leave it out, {_SETTINGS}",
            )
    return None


def _asked_for(options: ContainerOptions, option: str) -> bool:
    ways = (f"--{option}", *_SHORT.get(option, ()))
    behind = any(word.startswith(ways) for word in options.engine_arguments)
    return behind or bool(getattr(options, FIELDS[option]))


def _shown(options: ContainerOptions, option: str) -> str:
    value = getattr(options, FIELDS[option])
    return f"`--{option} {value}`" if isinstance(value, str) and value else f"`--{option}`"


def _singled_out(options: ContainerOptions, complaint: str) -> Iterator[tuple[str, str]]:
    if limit := _LIMIT.search(complaint):
        name = "".join(_LIMITS[int(limit[1]) :][:1]) if limit[1] else limit[2].lower()
        yield from (("ulimit", item) for item in options.ulimits if key("ulimit", item) == name)
    if log := _LOG_OPTION.search(complaint):
        items = (*options.log_options, *LOG_LIMIT)
        yield from (("log-opt", item) for item in items if key("log-opt", item) == log[1])
