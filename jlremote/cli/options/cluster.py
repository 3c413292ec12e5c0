"""The options of jobs that a cluster's scheduler runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import option, options
from jlremote.errors import Usage
from jlremote.laptop.settings.options import PLACES, RESOURCES

if TYPE_CHECKING:
    from jlremote.hosts.requests import Scheduled
    from jlremote.place.clusters.scheduler import Ranks

_cluster = partial(option, "Cluster")
LAUNCHERS = ("none", "srun", "torchrun")
WAYS = ("socket", "tcp")
_FLAGS = ("array", "dry-run", "launcher", "label", "cancel-on-interrupt", "reach")
_LISTS = {"sbatch-arg": "sbatch_arguments", "module": "modules"}
_OTHERS = ("slurm", "pull_on", *_LISTS.values(), *(name.replace("-", "_") for name in _FLAGS))

cluster_options = options(
    _cluster("--slurm/--no-slurm", default=None, help="Run as a Slurm job; HOST is a login node."),
    _cluster(
        "--partition", metavar="NAME", help="Partition. The site has defaults for all of these."
    ),
    _cluster("--account", metavar="NAME", help="Account to charge."),
    _cluster("--qos", metavar="NAME", help="Quality of service."),
    _cluster("--nodes", metavar="N", help="Number of nodes."),
    _cluster("--ntasks", metavar="N", help="Number of tasks that `srun` starts."),
    _cluster("--cpus", metavar="N", help="CPUs of each task."),
    _cluster("--mem", metavar="SIZE", help="Memory of each node, for example 32G."),
    _cluster("--gres", metavar="GRES", help="GPUs of each node, for example gpu:1."),
    _cluster("--time", metavar="TIME", help="Time limit, for example 8:00:00."),
    _cluster("--constraint", metavar="FEATURES", help="Features that the nodes must have."),
    _cluster(
        *("--sbatch-arg", "sbatch_arguments"),
        metavar="ARGUMENT",
        multiple=True,
        help="Any other argument of `sbatch`, for example --sbatch-arg=--requeue. Repeatable.",
    ),
    _cluster(
        "--cancel-on-interrupt",
        is_flag=True,
        help="On Ctrl-C, cancel a job that waits in the queue.",
    ),
    _cluster(
        *("--module", "modules"),
        metavar="NAME",
        multiple=True,
        help="Load this environment module first. Repeatable.",
    ),
    _cluster(
        "--pull-on",
        type=click.Choice(PLACES),
        help="The node that pulls an --image of a registry if it is missing. Default: login.",
    ),
)
reach_option = _cluster(
    "--reach",
    type=click.Choice(WAYS),
    help="Where Jupyter listens: a unix `socket` of yours (default), or a `tcp` port, to which "
    "all users of the cluster can connect.",
)
# How `jlr run` starts a command several times.
launcher_options = options(
    _cluster(
        "--array",
        metavar="INDICES",
        help="A job for each index, for example 0-7: NAME-0 …, told apart by $SLURM_ARRAY_TASK_ID.",
    ),
    _cluster(
        "--launcher",
        type=click.Choice(LAUNCHERS),
        help="Start the command for each task (`srun`), for each task or GPU (`torchrun`), or "
        "once (`none`, the default).",
    ),
    _cluster("--label", is_flag=True, help="With --launcher: begin each line with its rank."),
    _cluster(
        "--dry-run", is_flag=True, help="With --slurm: print the estimated start; submit nothing."
    ),
)


def parted(host: str, options: dict[str, Any]) -> tuple[Scheduled | None, dict[str, Any]]:
    """Return what flags and settings ask of the scheduler, and the other options.

    It is `None` where neither asks for Slurm. An empty value drops what the settings say, also an
    empty item of a list.

    Raises:
        Usage: a flag is given without `--slurm`.
    """
    from jlremote.laptop.settings import settings

    given = {name: options[name] for name in RESOURCES}
    given |= {name: options[parameter] for name, parameter in _LISTS.items()}
    flags = {name: options.get(name.replace("-", "_")) for name in _FLAGS}
    rest = {name: value for name, value in options.items() if name not in (*RESOURCES, *_OTHERS)}
    given["pull-on"] = options["pull_on"]
    near = given | {"slurm": options["slurm"], "profile": options["profile"]}
    chosen: dict[str, Any] = settings.load().chosen(host, near)
    if not chosen.get("slurm"):
        for name, value in (given | flags).items():
            if value:
                raise Usage(f"`--{name}` needs `--slurm`")
        return None, rest
    from jlremote.hosts.requests import Scheduled
    from jlremote.place.clusters.scheduler import Resources

    arguments, modules = (_list(given[name], chosen.get(name, ())) for name in _LISTS)
    named = {name: chosen.get(name) or None for name in RESOURCES}
    asked = Resources(**named, array=flags["array"], arguments=arguments)
    place = chosen.get("pull-on", PLACES[0])
    by_tcp = flags["reach"] == WAYS[1]
    return Scheduled(asked, modules, _ranks(options), pull_on=place, by_tcp=by_tcp), rest


def _list(flags: tuple[str, ...], chosen: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, flags if "" in flags else chosen))


def _ranks(options: dict[str, Any]) -> Ranks | None:
    from jlremote.place.clusters.scheduler import Ranks

    launcher, label = options.get("launcher"), bool(options.get("label"))
    if launcher not in (None, "none"):
        return Ranks(launcher, label)
    if label:
        raise Usage("`--label` needs a launcher", hint="`--launcher srun` or `--launcher torchrun`")
    return None
