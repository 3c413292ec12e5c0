"""The options of `config.toml` and `JLR_…`, and the values that each takes."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jlremote.errors import Usage
from jlremote.text import did_you_mean, one_line, one_of
from jlremote.times import seconds_of
from jlremote.untrusted import count

Value = str | int | tuple[str, ...]  # a switch is a bool, which is an int
Layer = Mapping[str, Value]

# Those that run an image as a process of the host, and the options without a meaning there.
IMAGE_RUNTIMES = ("apptainer", "singularity")
RUNTIMES = ("auto", "docker", "podman", "nvidia-docker", *IMAGE_RUNTIMES, "none")
NO_CONTAINER = ("none", "slurm")  # as records name them
NO_MEANING = ("user", "shm-size", "ulimit", "ipc", "network", "init", "log-opt")
# Without a limit a container's log fills the disk in time.
LOG_LIMIT = ("max-size=50m",)

# What a job asks of a cluster's scheduler.
RESOURCES = ("partition", "account", "qos", "nodes", "ntasks", "cpus", "mem", "gres", "time")
# The node that pulls the image of a job on a cluster.
PLACES = ("login", "job")
# The editors that `jlr code` knows.
EDITORS = ("vscode", "cursor", "windsurf", "pycharm", "zed")
# `gpus = 2` is the natural way to write it.
_NUMBERS = ("gpus", "nodes", "ntasks", "cpus", "mem", "time")

# How values look that hosts take, each with an example; what a host has, it knows alone.
_KEY = r"([!-+.-~-]|ctrl-[a-z@^[\]\\_])"
_COUNT = (r"[1-9]\d{0,8}[km]?", "4")
_FORMS: Mapping[str, tuple[str, str]] = {
    **{name: (r"\w[\w.,@+-]*", name) for name in ("partition", "account", "qos")},
    **dict.fromkeys(("ntasks", "cpus"), _COUNT),
    "nodes": (r"[1-9][\dkm,:-]*", "2"),
    "mem": (r"\d{1,12}([kKmMgGtT][bB]?)?", "32G"),
    "gres": (r"[a-zA-Z][\w./:,=+-]*", "gpu:1"),
    "time": (r"(\d+-)?\d+(:\d+){0,2}|(?i:infinite|unlimited)", "8:00:00"),
    "module": (r"\w\S*", "cuda/12.4"),
    "detach-keys": (rf"{_KEY}(,{_KEY})*", "ctrl-p,ctrl-q"),
    "packages": (r"[^-\s].*", "jupyterlab"),
    "network": (r"\w\S*", "host"),
    "ipc": (r"private|host|shareable|none|(container|ns):\S+", "container:NAME"),
    "shm-size": (r"(?i)[0-9]{1,15}(\.[0-9]+)? ?[bkmgtp]?i?b?", "1g"),
    "ulimit": (r"[a-zA-Z_]+=(-?[0-9]+(:-?[0-9]+)?)?", "nofile=1024:4096"),
    "volume": (r"([~/.][^:]*|[^/:]+):/[^:]*(:[^:]*)?", "~/data:/data:ro"),
    "log-opt": (r"[^=\s]+=.*", "max-size=50m"),
    "user": (r"\w[^\s:/=]*(:(\w[^\s:/=]*)?)?", "1000:1000"),
}

# Without a value they drop what the settings say.
DROPPED_IF_EMPTY = (
    *("image", "image-folder", "workspace", "workdir", "user", "shm-size", "ipc", "network"),
    *(*RESOURCES, "sbatch-arg", "module"),
)

POOL = "@"  # begins the name of a pool, where a host is expected

# Each option and its kind of value, in the order of `jlr config`; one without is a text. A `words`
# list is replaced as a whole; the items of a `list` are merged, and a nearer source replaces single
# items.
_OPTIONS = f"""
host container name:pattern profile image image-folder gpus share-gpus:switch volume:list workspace
env:list workdir user shm-size ulimit:list ipc network init:switch rm:switch log-opt:list
packages:list engine-arguments:words runtime sudo:switch python conda-env slurm:switch
{" ".join(RESOURCES)} sbatch-arg:list module:list pull-on
idle-stop record:switch notify:switch keep:switch forward-auto:switch port:port browser editor
"""
KINDS: Mapping[str, str] = MappingProxyType(
    {name: kind or "text" for name, _, kind in (word.partition(":") for word in _OPTIONS.split())}
)
BUILT_IN: Layer = MappingProxyType(
    {"name": "{name}", "init": True, "log-opt": LOG_LIMIT, "runtime": "auto"}
)
# NVIDIA's own advice for its images. `--ipc=host`, which it names too, shares /dev/shm with all
# users of the host, so it is left out.
BUILT_IN_PROFILES: Mapping[str, Layer] = MappingProxyType(
    {"nvidia": {"shm-size": "1g", "ulimit": ("memlock=-1", "stack=67108864")}}
)

LISTS = ("list", "words")
_SWITCH_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def is_pool(host: str | None) -> bool:
    """Return whether a typed host is a pool of hosts, as `@lab`."""
    return host is not None and host.startswith(POOL)


def variable(option: str) -> str:
    """Return the environment variable of an option."""
    return "JLR_" + option.upper().replace("-", "_")


def parsed(option: str, text: str) -> object:
    """Return a variable's text as TOML's value; a shell's rules split lists (`Usage`: cannot)."""
    kind = KINDS[option]
    if kind == "port" and (port := count(text)) is not None:
        return port
    if kind == "switch":
        return _SWITCH_WORDS.get(text.lower(), text)
    if kind not in LISTS:
        return text
    try:
        return shlex.split(text)
    except ValueError as failure:
        name = variable(option)
        raise Usage(f"`{name}` cannot be split into words: {failure}") from failure


def checked(option: str, value: Any, place: str) -> Value:
    """Return a value that suits its option; else raise `Usage`, whose message names `place`."""
    kind = KINDS[option]
    if kind in LISTS:
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list) and all(isinstance(item, str) and item for item in items):
            for item in items:
                check_form(option, item, place)
            return tuple(items)
        raise Usage(f"{place} must be a list of strings, not {value!r}")
    if kind == "port":
        if type(value) is int and 0 < value < 65536:
            return value
        raise Usage(f"{place} must be a number from 1 to 65535, not {value!r}")
    if kind == "switch":
        if isinstance(value, bool):
            return value
        raise Usage(f"{place} must be true or false, not {value!r}")
    return _checked_text(option, value, place)


def check_form(option: str, value: str, place: str) -> str:
    """Return a value that hosts may take; else raise `Usage`, whose message names `place`."""
    form, example = _FORMS.get(option, (r"(?s).*", ""))
    if not re.fullmatch(form, value, re.ASCII):
        raise Usage(f"{place} cannot be `{one_line(value)}`", hint=f"write it like `{example}`")
    return value


def _checked_text(option: str, value: Any, place: str) -> str:
    if option in _NUMBERS and type(value) is int:
        value = str(value)
    if not isinstance(value, str) or not value:
        raise Usage(f"{place} must be a string, not {value!r}")
    for name, known in (("runtime", RUNTIMES), ("pull-on", PLACES), ("editor", EDITORS)):
        if option == name and value not in known:
            near = did_you_mean(value, known)
            raise Usage(f"{place} must be {one_of(known)}, not `{value}`", hint=near)
    check_form(option, value, place)
    if option == "idle-stop":
        seconds_of(value, place)
    if KINDS[option] == "pattern":
        if value.count("{name}") != 1:
            hint = '`{name}` stands for the container\'s name: `name = "{user}_{name}"`'
            raise Usage(f"{place} must contain `{{name}}` once, not {value!r}", hint=hint)
        made = re.sub(r"\{(name|user)\}", "x", value)
        if not re.fullmatch(r"[a-zA-Z0-9][\w.-]*", made, re.ASCII):
            hint = "use letters, digits, `_`, `.` and `-`, the first a letter, a digit or in braces"
            raise Usage(f"{place} must make names that engines take, not {value!r}", hint=hint)
    return value


def key(option: str, item: str) -> str:
    """Return the key of a list item: its variable, limit, or folder in the container."""
    if option != "volume":
        return item.partition("=")[0]
    source, _, rest = item.partition(":")
    return posixpath.normpath(rest.partition(":")[0] or source)
