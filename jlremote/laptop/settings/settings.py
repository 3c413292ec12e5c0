"""Settings: `config.toml`, as docs/commands.md shows it, and the `JLR_…` environment variables.

A nearer source wins: flags, the environment, the host, the profile, the defaults. Lists are merged;
there the nearer source wins for the same folder in the container, variable or limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jlremote.errors import NotFound, Usage
from jlremote.laptop import paths
from jlremote.laptop.settings import options
from jlremote.laptop.settings.options import KINDS, LISTS, POOL, Layer, Value, is_pool, variable
from jlremote.text import closest, did_you_mean, reason_of

FILE = "config.toml"


# A source of options: its name as in `jlr config` (`flag`, `[hosts.dgx]`, `built in`, …), and them.
Source = tuple[str, Layer]


@dataclass(frozen=True)
class Origin:
    """An effective value, or one item of a list, and its source.

    `option` is the long option's name, `place` the source's, or the variable's in the environment.
    """

    option: str
    value: Value
    place: str

    @property
    def is_set(self) -> bool:
        """Whether it comes from the file or the environment."""
        return self.place not in ("flag", "built in")

    def within(self, file: Path) -> str:
        """Return the variable or the setting, with its file, for a message."""
        setting = f"`{self.option}` of `{self.place}` in `{file}`"
        return f"`{self.place}`" if self.place.startswith("JLR_") else setting


@dataclass(frozen=True)
class Settings:
    """All settings, with built-in profiles; `chosen` selects a command's. `path` may be missing."""

    path: Path
    defaults: Layer = field(default_factory=dict)
    profiles: Mapping[str, Layer] = field(default_factory=dict)
    hosts: Mapping[str, Layer] = field(default_factory=dict)
    environment: Layer = field(default_factory=dict)
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # each with its hosts

    def pool(self, typed: str) -> tuple[str, ...]:
        """Return the hosts of the pool `@NAME`; raise `NotFound` if there is none."""
        name = typed.removeprefix(POOL)
        if name in self.pools:
            return self.pools[name]
        hosts = f'`[pools.{name or "NAME"}]` with `hosts = ["A", "B"]`'
        near = closest(name, self.pools)
        hint = f"did you mean `{POOL}{near}`?" if near else f"add {hosts} to `{self.path}`"
        raise NotFound(f"no pool `{typed}`", hint=hint)

    def chosen(self, host: str | None, flags: Mapping[str, Value | None]) -> dict[str, Value]:
        """Return the options that are set for `host`, by name; those of `dgx` count for `me@dgx`.

        In `flags`, the options of the command line by name, `None` and `()` set nothing. If the
        chosen profile does not exist, raise `Usage`.
        """
        chosen: dict[str, Value] = {}
        for origin in _merged(self._sources(host, flags)):
            if KINDS[origin.option] in LISTS:
                chosen[origin.option] = (*_items(chosen.get(origin.option)), str(origin.value))
            else:
                chosen[origin.option] = origin.value
        return chosen

    def origins(self, host: str | None, flags: Mapping[str, Value | None]) -> list[Origin]:
        """Return the values of `chosen` for `host` with their sources, also those built in."""
        return _merged([*self._sources(host, flags), ("built in", options.BUILT_IN)])

    def _sources(self, host: str | None, flags: Mapping[str, Value | None]) -> list[Source]:
        given = {name: value for name, value in flags.items() if value is not None and value != ()}
        names = (host or "", (host or "").rpartition("@")[2])
        name = next((name for name in names if name in self.hosts), "")
        of_host = (f"[hosts.{name}]", self.hosts.get(name, {}))
        near = [("flag", given), ("environment", self.environment), of_host]
        far = ("[defaults]", self.defaults)
        by = [source for source in (*near, far) if "profile" in source[1]]
        return [*near, *map(self._profile, by[:1]), far]

    def _profile(self, by: Source) -> Source:
        name = str(by[1]["profile"])
        if name not in self.profiles:
            known = ", ".join(f"`{profile}`" for profile in self.profiles)
            origin = next(each for each in _merged([by]) if each.option == "profile")
            chosen = f"; {origin.within(self.path)} chooses it" if origin.is_set else ""
            others = f"use one of {known}, or add `[profiles.{name}]` to `{self.path}`"
            hint = did_you_mean(name, self.profiles) or others
            raise Usage(f"no profile `{name}`{chosen}", hint=hint)
        built_in = self.profiles[name] is options.BUILT_IN_PROFILES.get(name)
        place = f"profile {name}, built in" if built_in else f"[profiles.{name}]"
        return place, self.profiles[name]


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read `config.toml` and the process's or the given environment (`Usage`: the wrong key)."""
    path, tables = config_file(), dict[str, Any]()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as failure:
        raise Usage(f"cannot read `{path}`: it is not UTF-8 text") from failure
    except OSError as failure:
        raise Usage(f"cannot read `{path}`: {reason_of(failure)}") from failure
    if text:
        import tomllib  # few users have the file

        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as failure:
            raise Usage(f"`{path}` is not valid TOML: {failure}") from failure
    return interpreted(path, tables, os.environ if environment is None else environment)


def interpreted(
    path: Path, tables: Mapping[str, Any], environment: Mapping[str, str] = MappingProxyType({})
) -> Settings:
    """Return what tables of `config.toml` and variables mean (`Usage`: the wrong key or value)."""
    if unknown := tables.keys() - {"defaults", "profiles", "hosts", "pools"}:
        hint = "the tables are `[defaults]`, `[profiles.NAME]`, `[hosts.NAME]` and `[pools.NAME]`"
        raise Usage(f"`{path}`: unknown key `{min(unknown)}`", hint=hint)
    return Settings(
        path=path,
        defaults=_layer(path, "defaults", tables.get("defaults", {})),
        profiles={**options.BUILT_IN_PROFILES, **_layers(path, "profiles", tables)},
        hosts=_layers(path, "hosts", tables),
        environment={
            name: options.checked(name, options.parsed(name, text), f"`{variable(name)}`")
            for name in KINDS
            if (text := environment.get(variable(name)))
        },
        pools=_pools(path, tables),
    )


def config_file() -> Path:
    """Return the path of `config.toml`, which may not exist."""
    return paths.config_directory() / FILE


def _table(path: Path, place: str, table: object, example: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise Usage(f"`{place}` in `{path}` must be a table, as `[{example}]`")
    return table


def _layers(path: Path, place: str, tables: Mapping[str, Any]) -> dict[str, Layer]:
    named = _table(path, place, tables.get(place, {}), f"{place}.NAME")
    return {name: _layer(path, f"{place}.{name}", table) for name, table in named.items()}


def _pools(path: Path, tables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    pools = {}
    for name, table in _table(path, "pools", tables.get("pools", {}), "pools.NAME").items():
        hosts = table.get("hosts") if isinstance(table, dict) and len(table) == 1 else None
        named = hosts if isinstance(hosts, list) else [None]
        if not named or not all(isinstance(one, str) and one and not is_pool(one) for one in named):
            hint = '`hosts = ["A", "B"]`, each as after `ssh`'
            raise Usage(f"`{path}`: `[pools.{name}]` must have `hosts` and nothing else", hint=hint)
        pools[name] = tuple(dict.fromkeys(named))
    return pools


def _layer(path: Path, place: str, table: object) -> dict[str, Value]:
    # A profile in a profile would be a chain to follow, for little use.
    elsewhere = {"profile"} if place.startswith("profiles.") else set()
    elsewhere |= set() if place == "defaults" else {"host"}
    known = [name for name in KINDS if name not in elsewhere]
    layer = {}
    for name, value in _table(path, place, table, place).items():
        if name not in known:
            keys = "the keys are the names of long options: `jlr config` lists them"
            hint = did_you_mean(name, known) or keys
            if isinstance(value, dict):
                hint = f'quote a name with dots: `[{place.partition(".")[0]}."host.example.org"]`'
            raise Usage(f"`{path}`: unknown key `{name}` in `[{place}]`", hint=hint)
        try:
            layer[name] = options.checked(name, value, f"`{name}` of `[{place}]`")
        except Usage as wrong:
            raise Usage(f"`{path}`: {wrong.message}", hint=wrong.hint) from wrong
    return layer


def _merged(sources: Iterable[Source]) -> list[Origin]:
    nearest: dict[tuple[str, object], Origin] = {}
    for source, layer in reversed(list(sources)):
        for option, value in layer.items():
            name = variable(option) if source == "environment" else source
            for number, item in enumerate(_items(value)):
                kind = KINDS[option]
                same = options.key(option, str(item)) if kind == "list" else (name, number)
                nearest[option, same if kind in LISTS else None] = Origin(option, item, name)
    order = list(KINDS)
    return sorted(nearest.values(), key=lambda origin: order.index(origin.option))


def _items(value: Value | None) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)
