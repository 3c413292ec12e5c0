"""The options of jobs that a cluster's scheduler runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import option, options
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.schedulers.contract import Ranks
    from jlremote.workflow.host.requests import Scheduled

_cluster = partial(option, "Cluster")
_WORDS = ("partition", "account", "qos", "nodes", "ntasks", "cpus", "mem", "gres", "time")
_NAMES = (*_WORDS, "constraint")
LAUNCHERS = ("none", "srun", "torchrun")
_FLAGS = ("dry-run", "launcher", "label", "cancel-on-interrupt")
_OTHERS = ("slurm", "sbatch_arguments", "modules", *(name.replace("-", "_") for name in _FLAGS))

cluster_options = options(
    _cluster("--slurm", is_flag=True, help="Run it as a job of Slurm's; HOST is a login node."),
    _cluster(
        "--partition", metavar="NAME", help="Partition. Default for all of these: the site's."
    ),
    _cluster("--account", metavar="NAME", help="Account that pays."),
    _cluster("--qos", metavar="NAME", help="Quality of service."),
    _cluster("--nodes", metavar="N", help="Number of nodes."),
    _cluster("--ntasks", metavar="N", help="Number of tasks that `srun` starts."),
    _cluster("--cpus", metavar="N", help="CPUs of each task."),
    _cluster("--mem", metavar="SIZE", help="Memory of each node, for example 32G."),
    _cluster("--gres", metavar="GRES", help="GPUs of each node, for example gpu:1."),
    _cluster("--time", metavar="TIME", help="Time limit, for example 8:00:00."),
    _cluster("--constraint", metavar="FEATURES", help="Features that its nodes must have."),
    _cluster(
        *("--sbatch-arg", "sbatch_arguments"),
        metavar="ARGUMENT",
        multiple=True,
        help="Any other argument of `sbatch`, for example --sbatch-arg=--requeue. Repeatable.",
    ),
    _cluster(
        "--cancel-on-interrupt",
        is_flag=True,
        help="Ctrl-C takes a job that waits out of the queue.",
    ),
    _cluster(
        *("--module", "modules"),
        metavar="NAME",
        multiple=True,
        help="Load a module of the site's first. Repeatable.",
    ),
)
# How `jlr run` starts several ranks.
launcher_options = options(
    _cluster(
        "--launcher",
        type=click.Choice(LAUNCHERS),
        help="`srun` starts the command for each task, `torchrun` for each task or GPU of each "
        "node; `none` once, on the first node, which is the default.",
    ),
    _cluster("--label", is_flag=True, help="With --launcher: begin each line with its rank."),
    _cluster(
        "--dry-run", is_flag=True, help="With --slurm: say when it would start, submit nothing."
    ),
)


def parted(options: dict[str, Any]) -> tuple[Scheduled | None, dict[str, Any]]:
    """Return what the options ask of the scheduler, `None` without `--slurm`, and the others.

    Raises:
        Usage: one is given without `--slurm`, or has no value.
    """
    given = {name: options[name] for name in _NAMES}
    lists = {"sbatch-arg": options["sbatch_arguments"], "module": options["modules"]}
    flags = {name: options.get(name.replace("-", "_")) for name in _FLAGS}
    rest = {name: value for name, value in options.items() if name not in (*_NAMES, *_OTHERS)}
    if not options["slurm"]:
        for name, value in (given | lists | flags).items():
            if value:
                raise Usage(f"`--{name}` needs `--slurm`")
        return None, rest
    from jlremote.schedulers.contract import Resources
    from jlremote.workflow.host.requests import Scheduled

    empty = next((name for name, value in given.items() if value == ""), None)
    if empty is not None:
        raise Usage(f"`--{empty}` has no value", hint="leave it out to take the site's")
    asked = Resources(**given, arguments=lists["sbatch-arg"])
    return Scheduled(asked, lists["module"], _ranks(options)), rest


def _ranks(options: dict[str, Any]) -> Ranks | None:
    from jlremote.schedulers.contract import Ranks

    launcher, label = options.get("launcher"), bool(options.get("label"))
    if launcher not in (None, "none"):
        return Ranks(launcher, label)
    if label:
        raise Usage("`--label` needs a launcher", hint="`--launcher srun` or `--launcher torchrun`")
    return None
