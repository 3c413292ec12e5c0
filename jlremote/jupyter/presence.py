"""The sessions of a host, of any laptop, listed from outside in one round trip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import PAGES, read_probe
from jlremote.place.host.contract import GROUP, USER_LABEL, Host
from jlremote.place.runtimes import processes
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.engine_containers import ListedContainer, list_script, read_list
from jlremote.place.runtimes.runtime import WHO
from jlremote.place.runtimes.table import OF_PROCESSES
from jlremote.text import is_name

HOME = re.compile(r"/(?:home|Users)/([^/]+)")
PROGRAMS = frozenset((*PAGES, "jupyter-server", "jupyter_server", "jupyterhub-singleuser"))


@dataclass(frozen=True)
class Present:
    """A session on a host, as another laptop may have started it."""

    name: str
    runtime: str
    jupyter: bool  # whether its server runs
    image: str | None = None
    gpus: str | None = None
    halted: str = ""  # `paused` or `restarting`


@dataclass(frozen=True)
class Presence:
    """The containers and sessions of a host."""

    containers: tuple[ListedContainer, ...]  # all containers of the engine, by name
    sessions: tuple[Present, ...]  # those of this user
    engine_failure: JlrError | None = None  # why the containers are unknown
    runtime: str = ""  # the containers' engine, as the records of sessions name it


def look(host: Host, engine: Engine) -> Presence:
    """List the containers and sessions of a host, in one round trip."""
    steps = WHO | {"containers": list_script(engine)}
    steps |= {runtime.name: scripts.own_servers(runtime) for runtime in OF_PROCESSES}
    done = host.run(steps)
    names = [runtime.name for runtime in OF_PROCESSES]
    bare = tuple(one for name in names for one in _bare(name, done[name].stdout))
    try:
        containers = read_list(engine, done["containers"])
    except JlrError as failure:
        return Presence((), bare, failure)
    user = done["user"].stdout.strip()
    mine = (one for one in containers if (_user(one) or user) == user)
    known = (one for one in mine if is_session(one) and is_name(one.container.name))
    sessions = (*(_session(engine, one) for one in known), *bare)
    return Presence(containers, sessions, runtime=engine.name)


def runs_jupyter(glimpse: ListedContainer) -> bool:
    """Check that a Jupyter server runs in a container, also one that was started by hand."""
    # The interpreter, its options and the script or module; the rest may be any path.
    begins = (process.command.split()[:4] for process in glimpse.processes)
    return any(word.rpartition("/")[2] in PROGRAMS for words in begins for word in words)


def owner(glimpse: ListedContainer) -> str | None:
    """Return the likely owner of a container: by label, launch, processes or a home folder."""
    container = glimpse.container
    homes = [HOME.match(volume.source) for volume in container.volumes]
    likely = (
        _user(glimpse),
        *(process.user for process in glimpse.processes if process.user not in ("root", "0")),
        *(home[1] for home in homes if home),
    )
    return next(filter(None, likely), None)


def _user(glimpse: ListedContainer) -> str | None:
    commands = (process.command for process in glimpse.processes)
    launches = filter(None, map(scripts.LAUNCHER.search, commands))
    launchers = (launch[1].strip("'") for launch in launches)
    return glimpse.container.labels.get(USER_LABEL) or next(launchers, None)


def is_session(glimpse: ListedContainer) -> bool:
    """Check that jlr made a container, or launched the Jupyter that runs in it."""
    launched = any(scripts.LAUNCH_MARK in process.command for process in glimpse.processes)
    return launched or glimpse.container.is_session


def _session(engine: Engine, glimpse: ListedContainer) -> Present:
    made, runs = glimpse.container, runs_jupyter(glimpse)
    halted = glimpse.status if glimpse.status in ("paused", "restarting") else ""
    return Present(made.name, engine.name, runs, made.image, made.gpus, halted)


def _bare(runtime: str, output: str) -> Iterator[Present]:
    for findings in map(read_probe, output.split(GROUP)):
        name, image, gpus = findings.directory.rpartition("/")[2], None, None
        if findings.definition:
            with suppress(ValueError, LookupError, TypeError):  # written by hand
                image, gpus, _ = processes.read_definition(findings.definition)
        if findings.servers and is_name(name):
            yield Present(name, runtime, jupyter=True, image=image, gpus=gpus)
