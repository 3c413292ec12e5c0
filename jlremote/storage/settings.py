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

A nearer place wins: flags, the environment, the host, the profile, the defaults. Lists add up
instead; there the nearer place wins for the same folder in the container, the same variable and the
same limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jlremote.errors import Usage
from jlremote.storage import paths
from jlremote.storage.options import (
    BUILT_IN,
    BUILT_IN_PROFILES,
    KINDS,
    Layer,
    Value,
    checked,
    key,
    parsed,
    variable,
)

FILE = "config.toml"
NO_FLAGS: Mapping[str, Value | None] = MappingProxyType({})


@dataclass(frozen=True)
class Place:
    """Where options come from.

    Attributes:
        name: as a person finds it: `flag`, `environment`, `[hosts.dgx]`, `built in` …
        options: what it says.
    """

    name: str
    options: Layer


@dataclass(frozen=True)
class Origin:
    """A value that holds, or one item of a list, and where it came from.

    Attributes:
        option: the long option's name.
        value: the value.
        place: where it was said; the variable's name for the environment.
    """

    option: str
    value: Value
    place: str


@dataclass(frozen=True)
class Settings:
    """The settings as they were read; `chosen` says what holds for one command.

    Attributes:
        path: the file they came from, for messages; it may not exist.
        defaults: options of every host.
        profiles: options by profile, those that are built in among them.
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
        origins = _merged(self._places(host, flags))
        return {
            option: _joined(option, origins) for option in dict.fromkeys(o.option for o in origins)
        }

    def origins(
        self, host: str | None, flags: Mapping[str, Value | None] = NO_FLAGS
    ) -> list[Origin]:
        """Return what holds for `host` and where it came from, what is built in included.

        Raises:
            Usage: the profile that was asked for does not exist.
        """
        return _merged([*self._places(host, flags), Place("built in", BUILT_IN)])

    def _places(self, host: str | None, flags: Mapping[str, Value | None]) -> list[Place]:
        """Return the places that count for `host`, the nearest first."""
        given = {name: value for name, value in flags.items() if value is not None and value != ()}
        near = [Place("flag", given), Place("environment", self.environment), self._host(host)]
        far = Place("[defaults]", self.defaults)
        named = [place.options["profile"] for place in (*near, far) if "profile" in place.options]
        return [*near, *(self._profile(str(name)) for name in named[:1]), far]

    def _host(self, host: str | None) -> Place:
        names = (host or "", (host or "").rpartition("@")[2])
        name = next((name for name in names if name in self.hosts), "")
        return Place(f"[hosts.{name}]", self.hosts.get(name, {}))

    def _profile(self, name: str) -> Place:
        if name not in self.profiles:
            known = ", ".join(f"`{profile}`" for profile in self.profiles)
            raise Usage(
                f"no profile `{name}`",
                hint=f"there is {known}; `[profiles.{name}]` in `{self.path}` would make it",
            )
        built_in = self.profiles[name] is BUILT_IN_PROFILES.get(name)
        place = f"profile {name}, built in" if built_in else f"[profiles.{name}]"
        return Place(place, self.profiles[name])


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read `config.toml` and the environment (the process's own unless one is given).

    Raises:
        Usage: the file or a variable says something that cannot be; the message names it.
    """
    path = config_file()
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
        profiles={**BUILT_IN_PROFILES, **_layers(path, "profiles", tables.get("profiles", {}))},
        hosts=_layers(path, "hosts", tables.get("hosts", {})),
        environment=_from_environment(os.environ if environment is None else environment),
    )


def config_file() -> Path:
    """Return where the settings are, whether or not there are any."""
    return paths.config_directory() / FILE


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
    known = [name for name in KINDS if name != "profile" or not place.startswith("profiles.")]
    layer = {}
    for name, value in table.items():
        if name not in known:
            raise Usage(
                f"unknown key `{place}.{name}` in `{path}`", hint=_unknown(place, value, known)
            )
        layer[name] = checked(name, value, f"`{place}.{name}` in `{path}`")
    return layer


def _unknown(place: str, value: object, known: Iterable[str]) -> str:
    if isinstance(value, dict):
        return f'a name with dots wants quotes, as `[{place.partition(".")[0]}."host.example.org"]`'
    return "the keys are " + ", ".join(f"`{name}`" for name in known)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    layer = {}
    for option in KINDS:
        name = variable(option)
        text = environment.get(name)
        if text:
            layer[option] = checked(option, parsed(option, text), f"`{name}`")
    return layer


def _merged(places: Iterable[Place]) -> list[Origin]:
    """Return what holds, the places being the nearest first; of a list each item is one."""
    found: dict[tuple[str, object], Origin] = {}
    for place in reversed(list(places)):
        for option, value in place.options.items():
            name = variable(option) if place.name == "environment" else place.name
            if not isinstance(value, tuple):
                found[option, None] = Origin(option, value, name)
                continue
            for number, item in enumerate(value):
                same = key(option, item) if KINDS[option] == "list" else (name, number)
                found[option, same] = Origin(option, item, name)
    order = list(KINDS)
    return sorted(found.values(), key=lambda origin: order.index(origin.option))


def _joined(option: str, origins: Iterable[Origin]) -> Value:
    values = [origin.value for origin in origins if origin.option == option]
    if KINDS[option] in ("list", "words"):
        return tuple(str(value) for value in values)
    return values[0]
