"""The errors of options that no engine takes, or that a host's kernel or engine refuses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from jlremote.errors import JlrError, Usage
from jlremote.laptop.settings.options import LOG_LIMIT, key
from jlremote.place.runtimes.container_options import FIELDS, ContainerOptions

# runc prints the number (asm-generic/resource.h), crun the name.
_LIMITS = (
    "cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
    "sigpending", "msgqueue", "nice", "rtprio", "rttime",
)  # fmt: skip
_LIMIT = re.compile(r"rlimit type (\d{1,4})|RLIMIT_([A-Z]+)")
_LOG_OPTION = re.compile(r"unknown log opt '([^']+)'")
# How the values look that an engine takes, and what to write; what a host has, it knows alone.
_LOOKS: Mapping[str, tuple[str, str]] = {
    "workdir": (r"/.*", "write a folder of the container, from `/` on"),
    "network": (r"\w\S*", "write `bridge`, `host`, `none` or the name of an existing network"),
    "ipc": (
        r"private|host|shareable|none|(container|ns):\S+",
        "write `private`, `host` or `container:NAME`",
    ),
    "shm-size": (
        r"(?i)[0-9]{1,15}(\.[0-9]+)? ?[bkmgtp]?i?b?",
        "write `64m`, `1g` and the like",
    ),
    "ulimit": (
        r"[a-zA-Z_]+=(-?[0-9]+(:-?[0-9]+)?)?",
        "write `memlock=-1`, `nofile=1024:4096`",
    ),
    "volume": (
        r"([~/.][^:]*|[^/:]+):/[^:]*(:[^:]*)?",
        "write `SOURCE:TARGET[:OPTIONS]`, both folders from `/` on, and `ro` to only read",
    ),
    "log-opt": (r"[^=\s]+=.*", "write as the engine does: `max-size=50m`, `max-file=3`"),
}


def check_values(options: ContainerOptions) -> None:
    """Refuse values that no engine takes, before an image is pulled for them (`Usage`)."""
    for option, (looks, hint) in _LOOKS.items():
        given = getattr(options, FIELDS[option]) or ()
        for value in (given,) if isinstance(given, str) else given:
            if not re.fullmatch(looks, value):
                raise Usage(f"invalid `--{option} {value}`", hint=hint)


def refusal(options: ContainerOptions, complaint: str, reason: str) -> JlrError | None:
    """Return the error that names a limit which the host refuses, and how to leave it out."""
    for option, item in _singled_out(options, complaint):
        takes_away = shlex.join((f"--{option}", f"{key(option, item)}="))
        return JlrError(
            f"the host does not allow `--{option} {item}`: {reason}",
            hint=f"`{takes_away}` leaves it out, also if a profile has it",
        )
    return None


def _singled_out(options: ContainerOptions, complaint: str) -> Iterator[tuple[str, str]]:
    if limit := _LIMIT.search(complaint):
        name = "".join(_LIMITS[int(limit[1]) :][:1]) if limit[1] else limit[2].lower()
        yield from (("ulimit", item) for item in options.ulimits if key("ulimit", item) == name)
    if log := _LOG_OPTION.search(complaint):
        items = (*options.log_options, *LOG_LIMIT)
        yield from (("log-opt", item) for item in items if key("log-opt", item) == log[1])
