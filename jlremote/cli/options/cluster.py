"""The options of jobs that a cluster's scheduler runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from jlremote.cli.command import option, options
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.workflow.host.requests import Scheduled

_cluster = partial(option, "Cluster")
_WORDS = ("partition", "account", "qos", "nodes", "ntasks", "cpus", "mem", "gres", "time")
_NAMES = (*_WORDS, "constraint")
_OTHERS = ("slurm", "sbatch_arguments", "modules", "dry_run")

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
        *("--module", "modules"),
        metavar="NAME",
        multiple=True,
        help="Load a module of the site's first. Repeatable.",
    ),
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
    rest = {name: value for name, value in options.items() if name not in (*_NAMES, *_OTHERS)}
    if not options["slurm"]:
        for name, value in (given | lists | {"dry-run": options["dry_run"]}).items():
            if value:
                raise Usage(f"`--{name}` needs `--slurm`")
        return None, rest
    from jlremote.schedulers.contract import Resources
    from jlremote.workflow.host.requests import Scheduled

    empty = next((name for name, value in given.items() if value == ""), None)
    if empty is not None:
        raise Usage(f"`--{empty}` has no value", hint="leave it out to take the site's")
    return Scheduled(Resources(**given, arguments=lists["sbatch-arg"]), lists["module"]), rest
