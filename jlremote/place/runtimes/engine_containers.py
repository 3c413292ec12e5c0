"""The runtimes with containers, driven by their engine's command line, and its whole list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jlremote.place.host.contract import (
    FIELD,
    MINE,
    PRINT_FIELD,
    PRINT_RECORD,
    RECORD,
    Completed,
    Steps,
    understood,
)
from jlremote.place.host.process_mark import sweep_argv
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes import container_options
from jlremote.place.runtimes.docker import networks
from jlremote.place.runtimes.docker.docker_commands import inspect_argv
from jlremote.place.runtimes.engine.engine_errors import DockerIsPodman, engine_error, is_podman
from jlremote.place.runtimes.engine.engine_gpus import gpus_of, shortened
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.place.runtimes.runtime import (
    KILLED,
    SESSION_LABEL,
    TYPED_LABEL,
    WHO,
    Attachment,
    Container,
    Environment,
    Runtime,
    Volume,
)
from jlremote.place.runtimes.scripts import variables, waiting
from jlremote.place.runtimes.scripts.waiting import AS_MAIN_USER
from jlremote.text import listed, one_line
from jlremote.untrusted import count, document

# Folders of a rootless engine's networks, which the host does not reach.
_OF_A_USER = ("/run/user/", "/tmp/")  # noqa: S108


@dataclass(frozen=True)
class Containers(Runtime):
    """The containers of one engine; see `Runtime`."""

    engine: Engine = field()
    container_id: str = ""  # the id of the container that is meant; empty to go by name
    # Visible in the container's network only; Jupyter's check of the Host header stays on.
    bind_address: str = "0.0.0.0"  # noqa: S104
    has_images: bool = True
    servers_folder: str = variables.ROOT

    def place(self, name: str, host: str) -> str:
        return f"the container `{name}`"

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def program(self) -> str:
        return self.engine.kind.program

    def reference(self, name: str) -> str:
        """Return the container's id if known, else its name, for the engine's command line."""
        return self.container_id or name

    def describe(self, name: str) -> Steps:
        return {"container": command_line(inspect_argv(self.engine, self.reference(name)))}

    def survey(self, name: str, inside: str, typed: str | None = None) -> Steps:
        within = f'[ "$status" = 0 ] && {self.inside(name, inside)}'
        described = networks.described(self.engine, self.reference(name))
        steps = {"container": described, "inside": within}
        if typed is not None:
            labelled = f"--filter=label={TYPED_LABEL}={typed}"
            names = command_line(self.engine("ps", "--all", "--format={{.Names}}", labelled))
            steps["called"] = f'[ "$status" = 0 ] || {names} {MINE}'
        return steps | WHO

    @understood("the container engine")
    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        inspected = results["container"]
        if is_podman(self.engine, inspected):
            raise DockerIsPodman
        if inspected.status == 0:
            facts, known = networks.split(inspected.stdout)
            described = document(facts)[0]
            if self.container_id:
                return read_container(described, name, known)
            found = read_container(described, known=known)
            # Docker also takes the first digits of an id, and `ada` or `beef` may be such.
            return found if found.name == name else None
        if "no such container" in inspected.stderr.lower():
            return None
        raise engine_error(self.engine, inspected)

    def inside(self, name: str, script: str) -> str:
        """Run the script in `/`: where the container's own folder is gone, no `exec` runs."""
        begin = ("exec", "--workdir=/", self.reference(name), *AS_MAIN_USER)
        return command_line(self.engine(*begin, "sh", "-c", script))

    def owns(self, container: Container) -> str:
        """Check that a process has no parent here, or the container's control group."""
        same = '{ read -r group <"$process/cgroup" && [ "$group" = "$own" ]; }'
        return f'{{ [ "$PPID" = 0 ] || {same}; }}'

    def detached(self, name: str, script: str) -> str:
        return command_line(
            self.engine("exec", "--detach", self.reference(name), *AS_MAIN_USER, "sh", "-c", script)
        )

    def launched(self, name: str, script: str, waiting: str) -> str:
        """Start both at once, as an `exec` takes a tenth of a second."""
        # Podman prints an id, which is not output of `waiting`.
        return f"{self.detached(name, script)} >/dev/null &\n{self.inside(name, waiting)}"

    def as_launched(self, script: str) -> str:
        return waiting.beside(script)

    def relay_prefix(self, name: str) -> Argv:
        """Attach stdin and stdout, without a terminal, which would change bytes."""
        return self.engine("exec", "--interactive", self.reference(name), *AS_MAIN_USER)

    def attached(self, name: str, argv: Argv, how: Attachment, environment: Environment) -> Argv:
        """Run the command with `exec`, in a terminal of the engine's if the caller has one."""
        chosen = {"--user": how.user, "--workdir": how.workdir, "--detach-keys": how.detach_keys}
        # `--env=TERM` without a value passes the caller's.
        kind = ("--tty", "--env=TERM") if how.terminal else ()
        given = (f"{option}={value}" for option, value in chosen.items() if value is not None)
        variables = (f"--env={variable}={value}" for variable, value in environment.items())
        begin = AS_MAIN_USER if how.user is None else ()
        options = (*kind, *given, *variables)
        return self.engine("exec", "--interactive", *options, self.reference(name), *begin, *argv)

    def sweep(self, name: str, mark: str, user: str | None = None) -> Argv:
        """Look for the mark in the container, where the end of the engine's client ends nothing."""
        return self.attached(name, sweep_argv(mark), Attachment(user=user), {})


def read_container(
    inspected: Mapping[str, Any],
    session: str | None = None,
    known: Mapping[str, list[str]] = MappingProxyType({}),
) -> Container:
    """Return a container from its `inspect`; `session` is its name if the engine's differs."""
    state, config = inspected["State"], inspected["Config"]
    called, labels = inspected["Name"].lstrip("/"), config.get("Labels") or {}
    name = session or called
    restarting = state.get("Status") == "restarting"  # docker calls it running, too
    ours = labels if labels.get(SESSION_LABEL) == name else {}  # else they are its image's
    gpus, reached = gpus_of(inspected), _addresses(inspected)
    alone = networks.alone_on(inspected, known)
    return Container(
        id=inspected["Id"],
        name=name,
        running=bool(state.get("Running")) and not (state.get("Paused") or restarting),
        started_at=state.get("StartedAt", ""),
        image=config.get("Image"),
        addresses=reached,
        alone_on={address: alone[address] for address in reached if address in alone},
        gpus=None if gpus is None else shortened(gpus.removeprefix("device=")),
        engine_gpus=gpus,
        labels=labels,
        workdir=config.get("WorkingDir") or "/",
        renamed="" if name == called else called,
        paused=bool(state.get("Paused")),
        halt=_halt(inspected),
        restarting=restarting,
        restarts=count(str(inspected.get("RestartCount"))) or 0,
        out_of_memory=_out_of_memory(inspected),
        volumes=tuple(
            Volume(mount["Source"], mount["Destination"], mount.get("Name"))
            for mount in inspected.get("Mounts") or []
            if mount.get("Source")
        ),
        options=container_options.options_of(inspected, ours),
    )


_HALTS = {
    "paused": "it is paused",
    "created": "it was never started",
    "configured": "it was never started",
    "removing": "it is being removed",
}


def _halt(inspected: Mapping[str, Any]) -> str:
    state = inspected["State"]
    status = "paused" if state.get("Paused") else str(state.get("Status", ""))
    if status in _HALTS:
        return _HALTS[status]
    if status == "restarting":
        told, times = "its engine is restarting it", inspected.get("RestartCount")
        ended = f": it has ended {times} times (exit code {state.get('ExitCode')})"
        return told + (ended if times else "")
    if state.get("Running"):
        return ""
    if killed := _out_of_memory(inspected):
        return f"it was {killed}"
    code = state.get("ExitCode")
    if code is None:
        return ""
    return f"it {'was killed' if code == KILLED else 'has ended'} (exit code {code})"


def _out_of_memory(inspected: Mapping[str, Any]) -> str:
    if not inspected["State"].get("OOMKilled"):
        return ""
    limit = inspected["HostConfig"].get("Memory")
    return f"killed: out of memory{f' (limit {limit // 2**20} MB)' if limit else ''}"


def _addresses(inspected: Mapping[str, Any]) -> tuple[str, ...]:
    if inspected["HostConfig"].get("NetworkMode") == "host":
        return ("127.0.0.1",)
    settings = inspected["NetworkSettings"]
    if settings.get("SandboxKey", "").startswith(_OF_A_USER):
        return ()
    found = (network.get("IPAddress") for network in (settings.get("Networks") or {}).values())
    return tuple(address for address in found if address)


@dataclass(frozen=True)
class ContainerProcess:
    """A process in a container."""

    user: str  # the host's name for it, or the number
    command: str  # its arguments, joined by spaces


@dataclass(frozen=True)
class ListedContainer:
    """A container with its state and processes."""

    container: Container  # as the engine describes it
    status: str  # the engine's word: `running`, `paused`, `exited`, `created`, …
    processes: tuple[ContainerProcess, ...] = ()


# Stands for a shell variable in an argv.
_WHICH = "WHICH"


def list_script(engine: Engine) -> str:
    """Return the script that describes all containers and lists their processes, from outside."""
    ids = command_line(engine("ps", "--quiet", "--no-trunc"))
    described = command_line(inspect_argv(engine, _WHICH)).replace(_WHICH, "$ids")
    podman = engine.kind.program == "podman"
    columns = ("huser", "hpid", "args") if podman else ("-eo", "user:32,pid,args")
    top = command_line(engine("top", _WHICH, *columns)).replace(_WHICH, '"$id"')
    return (
        f"ids=$({ids} --all) || exit\n"
        f'[ -z "$ids" ] || {described} 2>/dev/null\n'
        f"printf '{PRINT_RECORD}'\n"
        f"for id in $({ids}); do\n"
        f"  printf '%s{PRINT_FIELD}' \"$id\"; {top} 2>/dev/null; printf '{PRINT_RECORD}'\n"
        "done\n"
    )


@understood("the container engine")
def read_list(engine: Engine, done: Completed) -> tuple[ListedContainer, ...]:
    """Return the containers that the script listed, sorted by name (`JlrError`: no answer)."""
    described, *listed = done.stdout.split(RECORD)
    if not listed:
        raise engine_error(engine, done)
    # The table of a container that has gone meanwhile is empty. `strip()` alone would strip the
    # separators, too.
    parted = (text.strip("\n").partition(FIELD) for text in listed)
    tables = {identity: table for identity, _, table in parted}
    found = []
    for inspected in document(described) if described.strip() else []:
        rows = tables.get(inspected["Id"], "").splitlines()[1:]
        columns = (row.split(None, 2) for row in rows)
        processes = (ContainerProcess(row[0], row[2]) for row in columns if len(row) == 3)
        status = str(inspected["State"].get("Status", ""))
        found.append(ListedContainer(read_container(inspected), status, tuple(processes)))
    return tuple(sorted(found, key=lambda one: one.container.name))


_PACKAGE = re.compile(r"-packages/([^/]+?)-[^/-]+\.dist-info$")
# What programs write without being asked, and what jlr has there.
_NOISE = re.compile(
    r"^/(run|proc|sys|dev|opt/jlr)(/|$)|/\.?jlr-[^/]*(/|$)|/\.(cache|ipython|jupyter|npm|bash_history)"
    r"|/\.local/share/jupyter|/__pycache__|\.pyc$|-packages/|^(/usr)?/sbin/docker-init$"
)
# Each virtual environment of jlr begins with them.
_OF_ENVIRONMENT = re.compile(r"(/\.packages|^/opt/jlr)/.*-packages/(pip|setuptools)-")
_SHOWN = 5


def changes_in_words(printed: str, volumes: Sequence[str]) -> tuple[str, ...]:
    """Return in words what goes with a container, by its `docker diff`; `volumes` stay."""
    paths = sorted(line[2:] for line in printed.splitlines() if line[:2] in ("A ", "C "))
    kept = tuple(f"{volume.rstrip('/')}/" for volume in volumes)
    outside = [path for path in paths if not f"{path}/".startswith(kept)] if kept else paths
    installed = (path for path in outside if not _OF_ENVIRONMENT.search(path))
    packages = {found[1] for path in installed if (found := _PACKAGE.search(path))}
    parents = {path.rpartition("/")[0] for path in paths}
    files = [path for path in outside if path not in parents and not _NOISE.search(path)]
    words = []
    if packages:
        words.append(f"packages that were installed in it: {listed(sorted(packages), _SHOWN)}")
    if files:
        words.append(f"among its files: {listed(files, _SHOWN)}")
    return tuple(map(one_line, words))
