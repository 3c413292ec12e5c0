"""What a person has settled once: `config.toml` and the `JLR_…` environment.

::

    [defaults]                          # every host
    browser = "firefox"

    [profiles.torch]                    # named by --profile, by JLR_PROFILE or by a host
    image = "nvcr.io/nvidia/pytorch:24.05-py3"
    volume = ["/raid/me:/data"]
    shm-size = "1g"

    [hosts.dgx]                         # one host, as it is typed after `ssh`
    profile = "torch"
    gpus = "all"

A nearer place wins: flags, the environment, the host, the profile, the defaults. `volume` and `env`
add up instead; there the nearer place wins for the same folder in the container and for the same
variable.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jlremote.errors import Usage
from jlremote.storage import paths

Value = str | int | tuple[str, ...]
Layer = Mapping[str, Value]

FILE = "config.toml"
RUNTIMES = ("auto", "docker", "none")

_LISTS = ("volume", "env")
_OPTIONS = (
    *(
        "image",
        "volume",
        "env",
        "gpus",
        "shm-size",
        "workdir",
        "user",
        "runtime",
        "port",
        "browser",
    ),
    *("container", "profile", "python", "conda-env"),
)


@dataclass(frozen=True)
class Settings:
    """The settings as they were read; `chosen` says what holds for one command.

    Attributes:
        path: the file they came from, for messages; it may not exist.
        defaults: options of every host.
        profiles: options by profile.
        hosts: options by host.
        environment: options of the `JLR_…` variables.
    """

    path: Path
    defaults: Layer = field(default_factory=dict)
    profiles: Mapping[str, Layer] = field(default_factory=dict)
    hosts: Mapping[str, Layer] = field(default_factory=dict)
    environment: Layer = field(default_factory=dict)

    def chosen(self, host: str | None, flags: Mapping[str, Value | None]) -> dict[str, Value]:
        """Return the options that hold for `host`, by name; those that nobody set are missing.

        Args:
            host: what was typed after `ssh`; settings of `dgx` hold for `me@dgx` too.
            flags: options by name from the command line; `None` and `()` say nothing.

        Raises:
            Usage: the profile that was asked for does not exist.
        """
        given = {name: value for name, value in flags.items() if value is not None and value != ()}
        near: tuple[Layer, ...] = (given, self.environment, self._host(host))
        named = [layer["profile"] for layer in (*near, self.defaults) if "profile" in layer]
        profile = self._profile(named[0]) if named else {}
        return _merged((*near, profile, self.defaults))

    def _host(self, host: str | None) -> Layer:
        name = host or ""
        return self.hosts.get(name) or self.hosts.get(name.rpartition("@")[2]) or {}

    def _profile(self, name: Value) -> Layer:
        if name not in self.profiles:
            known = ", ".join(f"`{profile}`" for profile in self.profiles)
            raise Usage(
                f"no profile `{name}`",
                hint=f"`{self.path}` has {known or 'none'}; `[profiles.{name}]` would make it",
            )
        return self.profiles[str(name)]


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read `config.toml` and the environment (the process's own unless one is given).

    Raises:
        Usage: the file or a variable says something that cannot be; the message names it.
    """
    path = paths.config_directory() / FILE
    tables = _read(path)
    for name in tables:
        if name not in ("defaults", "profiles", "hosts"):
            raise Usage(
                f"unknown key `{name}` in `{path}`",
                hint="the tables are `[defaults]`, `[profiles.NAME]` and `[hosts.NAME]`",
            )
    return Settings(
        path=path,
        defaults=_layer(path, "defaults", tables.get("defaults", {})),
        profiles=_layers(path, "profiles", tables.get("profiles", {})),
        hosts=_layers(path, "hosts", tables.get("hosts", {})),
        environment=_from_environment(os.environ if environment is None else environment),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as failure:
        raise Usage(f"cannot read `{path}`: {failure}") from failure
    import tomllib  # few people have the file, and most commands never look

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise Usage(f"`{path}` is not valid TOML: {failure}") from failure


def _layers(path: Path, place: str, tables: object) -> dict[str, Layer]:
    if not isinstance(tables, dict):
        raise Usage(f"`{place}` in `{path}` must be a table, as `[{place}.NAME]`")
    return {name: _layer(path, f"{place}.{name}", table) for name, table in tables.items()}


def _layer(path: Path, place: str, table: object) -> dict[str, Value]:
    if not isinstance(table, dict):
        raise Usage(f"`{place}` in `{path}` must be a table, as `[{place}]`")
    # A profile that names a profile would be a chain to follow, and nobody needs one.
    known = [name for name in _OPTIONS if name != "profile" or not place.startswith("profiles.")]
    layer = {}
    for name, value in table.items():
        if name not in known:
            raise Usage(
                f"unknown key `{place}.{name}` in `{path}`", hint=_unknown(place, value, known)
            )
        layer[name] = _checked(name, value, f"`{place}.{name}` in `{path}`")
    return layer


def _unknown(place: str, value: object, known: Iterable[str]) -> str:
    if isinstance(value, dict):
        return f'a name with dots wants quotes, as `[{place.partition(".")[0]}."host.example.org"]`'
    return "the keys are " + ", ".join(f"`{name}`" for name in known)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    layer = {}
    for option in _OPTIONS:
        variable = "JLR_" + option.upper().replace("-", "_")
        text = environment.get(variable)
        if text:
            layer[option] = _checked(option, _parsed(option, text, variable), f"`{variable}`")
    return layer


def _parsed(option: str, text: str, variable: str) -> object:
    """Return a variable's text as TOML would have given it; a list is split as by a shell."""
    if option == "port" and text.isdecimal():
        return int(text)
    if option not in _LISTS:
        return text
    try:
        return shlex.split(text)
    except ValueError as failure:
        raise Usage(f"`{variable}` cannot be split into words: {failure}") from failure


def _checked(name: str, value: object, place: str) -> Value:
    """Return the value if it fits the option, or raise `Usage` that names the place."""
    if name in _LISTS:
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list) and all(isinstance(item, str) and item for item in items):
            return tuple(items)
        raise Usage(f"{place} must be a list of strings, not {value!r}")
    if name == "port":
        if type(value) is int and 0 < value < 65536:
            return value
        raise Usage(f"{place} must be a number from 1 to 65535, not {value!r}")
    if name == "gpus" and type(value) is int:  # `gpus = 2` is how a person writes it
        return str(value)
    if not isinstance(value, str) or not value:
        raise Usage(f"{place} must be a string, not {value!r}")
    if name == "runtime" and value not in RUNTIMES:
        raise Usage(f"{place} must be one of {', '.join(RUNTIMES)}, not {value!r}")
    return value


def _merged(layers: Iterable[Layer]) -> dict[str, Value]:
    """Join layers, the nearest first."""
    result: dict[str, Value] = {}
    for layer in reversed(list(layers)):
        for name, value in layer.items():
            if isinstance(value, tuple):
                far = result.get(name, ())
                assert isinstance(far, tuple)
                result[name] = tuple({_key(name, item): item for item in (*far, *value)}.values())
            else:
                result[name] = value
    return result


def _key(name: str, item: str) -> str:
    """Return what makes two items of a list the same thing: a variable's name, a mount's target."""
    if name == "env":
        return item.partition("=")[0]
    source, _, rest = item.partition(":")
    return rest.partition(":")[0] or source
