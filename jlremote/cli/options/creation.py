"""The options of a new container, and of a job that a cluster's scheduler runs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import option, options
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_either
from jlremote.errors import Usage
from jlremote.laptop.settings.options import NO_MEANING, PLACES, RESOURCES
from jlremote.text import one_line, reason_of
from jlremote.times import seconds_of

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import Scheduled

# Not the GPUs: any process may use them.
_NEW_CONTAINER = (
    *("image", "volume", "workspace", "env", "env_file", "workdir", "user", "shm_size", "ulimit"),
    *("ipc", "network", "init", "rm", "log_opt", "packages", "engine_arguments"),
)
_VARIABLE = re.compile(r"[^\W\d][\w.-]*")  # with what programs in a container may take, too
_FIELDS = {"name": "name_rule", "port": "local_port"}
_SHOWN = {"engine_arguments": "-- …", "packages": "--install"}
# Of a cluster, and not for a new container.
_FLAGS = ("array", "dry-run", "launcher", "label", "cancel-on-interrupt", "reach")
_LISTS = ("sbatch-arg", "module")
_SETTINGS = (*RESOURCES, *_LISTS, "pull-on")

_container = partial(option, group="Container")
_repeated = partial(_container, multiple=True)
_cluster = partial(option, group="Cluster")
# To be `settled` together.
creation_options = options(
    _container(
        "--image IMAGE",
        "Image of a new container; for Apptainer also a .sif file, a folder or docker://NAME.",
        common=True,
        shell_complete=candidates.images,
    ),
    _container(
        "--image-folder FOLDER",
        "With --runtime apptainer: the folder of the host for pulled images.",
    ),
    _repeated(
        "-v --volume SOURCE:TARGET", "Mount a folder (`~/...`) or volume of the host.", common=True
    ),
    _repeated("-e --env NAME[=VALUE]", "Set a variable; without VALUE, copy this machine's."),
    _repeated(
        "--env-file FILE",
        "Set variables from a file of this machine, a line `NAME=VALUE` each.",
        type=click.Path(exists=True, dir_okay=False),
    ),
    _container(
        "--workspace [=DIR]",
        "Mount DIR of the host at /workspace. Default: the one named as this folder.",
        flag_value=".",
        common=True,
    ),
    _container("-w --workdir FOLDER", "Working folder."),
    _container(
        "-u --user USER[:GROUP]",
        "User. Default: you, if folders of the host are mounted; else the image's.",
    ),
    _container("--shm-size SIZE", "Size of /dev/shm, for example 1g."),
    _repeated(
        "--ulimit NAME=SOFT[:HARD]",
        "A limit, for example memlock=-1; `memlock=` drops a profile's.",
    ),
    _container("--ipc MODE", "Shared memory: `private`, `host`, ..."),
    _container("--network NETWORK", "`bridge`, `host` or a name."),
    _container("--init/--no-init", "Run a small init as first process. Default: yes."),
    _container("--rm/--no-rm", "Remove the container and its contents when it stops."),
    _repeated(
        "--log-opt NAME=VALUE",
        "Limit the container's log. Default: max-size=50m; `max-size=` lifts it.",
    ),
    _repeated(
        "--install --packages packages PACKAGE",
        "Install a Python package, for example jupyterlab. Repeatable.",
    ),
    shared.gpu_option(
        "--gpus GPUS",
        "`auto`, `auto:N`, `N`: free ones; `device=0`, `0,3` or UUIDs: those; `all`; `none`.",
        common=True,
        shell_complete=candidates.gpus,
    ),
    shared.gpu_option("--share-gpus", "Also take GPUs that are in use.", default=None),
    shared.session_option(
        "--profile PROFILE",
        "Take options from [profiles.PROFILE]; `nvidia` is built in.",
        shell_complete=candidates.profiles,
    ),
    shared.gpu_option(
        "--wait [=TIME]",
        "Wait until the GPUs are free, at most TIME (`2h`), behind those who wait already.",
        type=lambda text: math.inf if text == "forever" else seconds_of(text, "`--wait`"),
        flag_value="forever",
        common=True,
    ),
    shared.machine_option(
        "--notify/--no-notify", "Tell on this desktop of an end, a beginning, a time limit."
    ),
    shared.runtime_options,
)
cluster_options = options(
    _cluster("--slurm/--no-slurm", "Run as a Slurm job; HOST is a login node.", common=True),
    _cluster("--partition NAME", "Partition. The site has defaults for all of these."),
    _cluster("--account NAME", "Account to charge."),
    _cluster("--qos NAME", "Quality of service."),
    _cluster("--nodes N", "Number of nodes."),
    _cluster("--ntasks N", "Number of tasks that `srun` starts."),
    _cluster("--cpus N", "CPUs of each task."),
    _cluster("--mem SIZE", "Memory of each node, for example 32G."),
    _cluster("--gres GRES", "GPUs of each node, for example gpu:1."),
    _cluster("--time TIME", "Time limit, for example 8:00:00."),
    _cluster(
        "--sbatch-arg ARGUMENT",
        "Any other argument of `sbatch`, for example --sbatch-arg=--requeue. Repeatable.",
        multiple=True,
    ),
    _cluster("--cancel-on-interrupt", "On Ctrl-C, cancel a job that waits in the queue."),
    _cluster("--module NAME", "Load this environment module first. Repeatable.", multiple=True),
    _cluster(
        "--pull-on",
        "The node that pulls an --image of a registry if it is missing. Default: login.",
        type=click.Choice(PLACES),
    ),
)
reach_option = _cluster(
    "--reach",
    "Where Jupyter listens: a unix `socket` of yours (default), or a `tcp` port, to which "
    "all users of the cluster can connect.",
    type=click.Choice(("socket", "tcp")),
)
# How `jlr run` starts a command several times.
launcher_options = options(
    _cluster(
        "--array INDICES",
        "A job for each index, for example 0-7: NAME-0 …, told apart by $SLURM_ARRAY_TASK_ID.",
    ),
    _cluster(
        "--launcher",
        "Start the command for each task (`srun`), for each task or GPU (`torchrun`), or "
        "once (`none`, the default).",
        type=click.Choice(("none", "srun", "torchrun")),
    ),
    _cluster("--label", "With --launcher: begin each line with its rank."),
    _cluster("--dry-run", "With --slurm: print the estimated start; submit nothing."),
)


def settled(host: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that flags and settings give together, by their long names.

    `options` are by the names of click's parameters; `None` and `()` are not given (`Usage`: they
    cannot be combined, one has no value, or `--gpus` selects no GPUs).
    """
    from jlremote.gpus.choice import parse_request
    from jlremote.laptop.settings import settings

    flags = {name.replace("_", "-"): value for name, value in options.items()}
    in_files = (line for path in flags.pop("env-file", ()) for line in _lines(path))
    flags["env"] = (*in_files, *flags["env"])
    chosen = settings.load().chosen(host, flags)
    items = chosen.get("env")
    if isinstance(items, tuple):
        with shared.named_as_set(host, options):
            chosen["env"] = tuple(with_value(item, "`--env`") for item in items)
    chosen.pop("host", None)  # it is known by now
    if gpus := chosen.get("gpus"):
        parse_request(str(gpus))  # before the host is asked anything
    # An empty value drops what the settings say.
    return {name: value for name, value in chosen.items() if value != ""}


def _lines(path: str) -> Iterator[str]:
    try:
        text = Path(path).read_text("utf-8-sig")
    except (UnicodeDecodeError, OSError) as failure:
        why = reason_of(failure) if isinstance(failure, OSError) else "it is not UTF-8 text"
        raise Usage(f"cannot read `--env-file {path}`: {why}") from failure
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield with_value(line.lstrip(), f"`--env-file {path}`")


def with_value(item: str, given_by: str) -> str:
    """Return `NAME=VALUE`; a bare `NAME` gets this machine's value, as with `docker run`."""
    name, given, _ = item.partition("=")
    if not _VARIABLE.fullmatch(name):  # an engine would take some of them
        why = f"{given_by}: `{one_line(name) or '='}` is not the name of a variable"
        hint = "write `NAME=VALUE`, or `NAME`: letters, digits and `_`, the first no digit"
        raise Usage(why, hint=hint)
    if given:
        return item
    if name not in os.environ:
        why = f"{given_by}: `{name}` has no value, and this machine has no variable of that name"
        raise Usage(why, hint=f"write `{name}=VALUE` there, or `export {name}` before")
    return f"{item}={os.environ[name]}"


def request_fields(request: type[Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the settled options that a request has fields for, by field name."""
    known = {field.name for field in fields(request)}
    named = {_FIELDS.get(name, name.replace("-", "_")): value for name, value in chosen.items()}
    return {name: value for name, value in named.items() if name in known}


def refuse_creation(options: dict[str, Any], without: str, *but: str) -> None:
    """Refuse flags (not settings) of a new container, `but` some, as `without` creates none."""
    names = (name for name in _NEW_CONTAINER if name not in but)
    why = f"is for a new container, and `{without}` creates none"
    _refuse(options, names, why, "leave out one of the two")


def refuse_of_engines(options: dict[str, Any], runtime: str, *also: str) -> None:
    """Refuse flags that only an engine's containers can follow; settings are left alone."""
    why = f"has no effect with `--runtime {runtime}`: that runs a process of yours on the host"
    hint = "leave it out; after `--`, options go to the program's `exec`"
    _refuse(options, (*NO_MEANING, *also), why, hint)


def _refuse(options: dict[str, Any], names: Iterable[str], why: str, hint: str) -> None:
    for name in names:
        if options.get(name.replace("-", "_")) not in (None, ()):
            shown = _SHOWN.get(name, f"--{name.replace('_', '-')}")
            raise Usage(f"`{shown}` {why}", hint=hint)


def after_dashes(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with every word after `--` among the engine's arguments.

    click takes the first ones for HOST and CONTAINER if those were left out; no host or container
    has a name that begins with a dash.
    """
    words = [options["host"], options["container"], *options["engine_arguments"]]
    ends = (index for index, word in enumerate(words[:2]) if word is None or word.startswith("-"))
    first = next(ends, 2)
    host, container = [*words[:first], None, None][:2]
    arguments = tuple(word for word in words[first:] if word is not None)
    return options | {"host": host, "container": container, "engine_arguments": arguments}


def parted(host: str, options: dict[str, Any]) -> tuple[Scheduled | None, dict[str, Any]]:
    """Return what flags and settings ask of the scheduler, and the other options.

    It is `None` where neither asks for Slurm (`Usage`: but a flag of it is given). An empty value
    drops what the settings say, also an empty item of a list.
    """
    from jlremote.laptop.settings import settings

    given = {name: options[name.replace("-", "_")] for name in _SETTINGS}
    flags = {name: options.get(name.replace("-", "_")) for name in _FLAGS}
    ours = {name.replace("-", "_") for name in ("slurm", *_SETTINGS, *_FLAGS)}
    rest = {name: value for name, value in options.items() if name not in ours}
    near = given | {"slurm": options["slurm"], "profile": options["profile"]}
    chosen: dict[str, Any] = settings.load().chosen(host, near)
    if not chosen.get("slurm"):
        for name, value in (given | flags).items():
            if value:
                raise Usage(f"`--{name}` needs `--slurm`")
        return None, rest
    if options["gpus"] or options["share_gpus"]:
        raise Usage("`--gpus` is not for a cluster", hint="`--slurm --gres gpu:N` asks for N GPUs")
    from jlremote.hosts.requests import Scheduled
    from jlremote.place.clusters.launchers import indices
    from jlremote.place.clusters.scheduler import Ranks, Resources

    launcher, ranks = flags["launcher"], None
    if launcher not in (None, "none"):
        ranks = Ranks(launcher, bool(flags["label"]))
    elif flags["label"]:
        raise Usage("`--label` needs a launcher", hint="`--launcher srun` or `--launcher torchrun`")
    if flags["array"] is not None:
        indices(flags["array"], "")
    lists = (given[name] if "" in given[name] else chosen.get(name, ()) for name in _LISTS)
    arguments, modules = (tuple(filter(None, items)) for items in lists)
    named = {name: chosen.get(name) or None for name in RESOURCES}
    asked = Resources(**named, array=flags["array"], arguments=arguments)
    node, by_tcp = chosen.get("pull-on", PLACES[0]), flags["reach"] == "tcp"
    return Scheduled(asked, modules, ranks, pull_on=node, by_tcp=by_tcp), rest


def show_estimate(host: str, scheduled: Scheduled, context: Context) -> None:
    """Print when the scheduler would start a job; submit nothing."""
    from jlremote.jobs.begin_scheduled import estimate

    words = estimate(host, scheduled, context)
    answer_either(words, {"estimate": words})
