"""The options of jobs that a cluster's scheduler runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import option, options
from jlremote.cli.screen.terminal import answer_either
from jlremote.errors import Usage
from jlremote.laptop.settings.options import PLACES, RESOURCES

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import Scheduled
    from jlremote.place.clusters.scheduler import Ranks

_cluster = partial(option, group="Cluster")
_FLAGS = ("array", "dry-run", "launcher", "label", "cancel-on-interrupt", "reach")
_LISTS = ("sbatch-arg", "module")
_SETTINGS = (*RESOURCES, *_LISTS, "pull-on")

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
    from jlremote.place.clusters.scheduler import Resources

    if flags["array"] is not None:
        indices(flags["array"], "")
    lists = (given[name] if "" in given[name] else chosen.get(name, ()) for name in _LISTS)
    arguments, modules = (tuple(filter(None, items)) for items in lists)
    named = {name: chosen.get(name) or None for name in RESOURCES}
    asked = Resources(**named, array=flags["array"], arguments=arguments)
    node, by_tcp = chosen.get("pull-on", PLACES[0]), flags["reach"] == "tcp"
    return Scheduled(asked, modules, _ranks(options), pull_on=node, by_tcp=by_tcp), rest


def show_estimate(host: str, scheduled: Scheduled, context: Context) -> None:
    """Print when the scheduler would start a job; submit nothing."""
    from jlremote.jobs.begin_scheduled import estimate

    words = estimate(host, scheduled, context)
    answer_either(words, {"estimate": words})


def _ranks(options: dict[str, Any]) -> Ranks | None:
    from jlremote.place.clusters.scheduler import Ranks

    launcher, label = options.get("launcher"), bool(options.get("label"))
    if launcher not in (None, "none"):
        return Ranks(launcher, label)
    if label:
        raise Usage("`--label` needs a launcher", hint="`--launcher srun` or `--launcher torchrun`")
    return None
