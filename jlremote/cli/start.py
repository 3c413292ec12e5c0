"""`jlr start`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jlremote.cli import candidates
from jlremote.cli.browse import browse, browser_options
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.terminal import answer, answer_json
from jlremote.errors import Usage

if TYPE_CHECKING:
    from jlremote.workflow.context import Context
    from jlremote.workflow.report import SessionReport
    from jlremote.workflow.requests import StartRequest


@command(
    "start",
    examples=(
        "jlr start dgx cont1",
        "jlr start me@dgx cont1 --image nvcr.io/nvidia/pytorch:24.05-py3 --gpus all",
        "jlr start dgx cont1 --image torch --gpus auto:2      # two that nobody uses",
        "jlr start dgx cont1 -v /raid/me:/data -e HF_HOME=/data/hf --shm-size 1g",
        "jlr start dgx cont1 --notebook work/train.ipynb --browser firefox",
        "jlr start dgx cont1 --forward 6006                   # TensorBoard's port, too",
        "jlr start dgx --runtime none --python ~/venv",
        "jlr start dgx cont1 --no-browser --json | jq -r .url",
        "jlr start dgx cont1 --image torch --dry-run",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.argument("container", required=False, shell_complete=candidates.containers)
@click.option("--image", help="Create the container from this image if there is none of the name.")
@click.option(
    "-v",
    "--volume",
    multiple=True,
    metavar="SOURCE:TARGET[:OPTIONS]",
    help="Mount a folder of the host, as the engine's own -v. For more output write "
    "`jlr -v start` or `--verbose`.",
)
@click.option(
    "-e", "--env", multiple=True, metavar="NAME[=VALUE]", help="Set a variable, as the engine's -e."
)
@click.option("-w", "--workdir", metavar="FOLDER", help="Working folder in the container.")
@click.option("-u", "--user", metavar="USER[:GROUP]", help="User in the container.")
@click.option("--shm-size", metavar="SIZE", help="Size of /dev/shm, such as 1g.")
@click.option(
    "--gpus",
    metavar="GPUS",
    help="GPUs for a new container: `auto` or `auto:2` takes such as nobody uses, so does `2`; "
    "`0,3`, UUIDs and MIG UUIDs are these, unless somebody uses them; `all`; `none`.",
)
@click.option("--share-gpus", is_flag=True, help="Take GPUs that others use, too.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Exactly this port on this machine; it is an error when it is taken.",
)
@click.option(
    "--forward",
    "forwarded",
    multiple=True,
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Forward this port of the container too, for TensorBoard or a web app; may be repeated.",
)
@click.option(
    "--runtime",
    type=click.Choice(["auto", "docker", "none"]),
    help="How Jupyter runs there; `none` is without a container. Default: auto.",
)
@click.option(
    "--python", metavar="PATH", help="With --runtime none: a Python, or a virtual environment."
)
@click.option("--conda-env", metavar="NAME", help="With --runtime none: a conda environment.")
@click.option(
    "--profile", shell_complete=candidates.profiles, help="Take options from [profiles.PROFILE]."
)
@click.option("--notebook", metavar="PATH", help="Open this notebook, file or folder.")
@browser_options
@click.option("--json", "as_json", is_flag=True, help="Print the session as one JSON object.")
@click.option("--dry-run", is_flag=True, help="Show what would be run on the host; change nothing.")
@click.pass_obj
def start(
    invocation: Invocation,
    /,
    *,
    notebook: str | None,
    no_browser: bool,
    as_json: bool,
    dry_run: bool,
    forwarded: tuple[int, ...],
    **options: Any,
) -> None:
    """Start or reuse a session and open it in the browser.

    CONTAINER is a container on HOST. It is used as it is when it runs, started when it is stopped,
    and created from --image when there is none. Jupyter is reused or started in it, a port of this
    machine is forwarded to it, and the URL is printed. On a session that runs, nothing restarts.

    Options can be settled in config.toml and in the environment: a flag wins over JLR_<OPTION>,
    that over [hosts.HOST], [profiles.PROFILE] and [defaults].
    """
    settled = _settled(options)
    request = _request(options["host"], settled, forwarded)
    context = invocation.context(silent=as_json)
    if dry_run:
        _show_plan(request, context, as_json=as_json)
        return
    report = _start(request, notebook, context)
    if as_json:
        answer_json(report.to_json())
    else:
        answer(report.url or "")
        for port in report.ports:
            answer(port.url)
    browser = "none" if no_browser else settled.get("browser")
    browse(report.url or "", context, browser=browser, asked=options["browser"] is not None)


# What a StartRequest calls the options, where a person and the engine use another word.
_FIELDS = {"volume": "volumes", "env": "environment", "port": "local_port"}


def _settled(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that flags and settings make together, by their long names."""
    from jlremote.storage import settings

    flags = {name.replace("_", "-"): value for name, value in options.items() if name != "host"}
    for volume in flags["volume"]:
        if volume.startswith("-"):
            raise Usage(
                f"`{volume}` is no volume",
                hint="`-v` is --volume here, as with docker; for more output: `jlr -v start …`",
            )
    settled = settings.load().chosen(options["host"], flags)
    if "python" in settled and "conda-env" in settled:
        raise Usage("`--python` and `--conda-env` exclude each other", hint="give one of the two")
    return dict(settled)


def _request(host: str, settled: dict[str, Any], ports: tuple[int, ...]) -> StartRequest:
    from jlremote.workflow.requests import StartRequest

    fields = {
        _FIELDS.get(option, option.replace("-", "_")): value
        for option, value in settled.items()
        if option not in ("browser", "profile")
    }
    return StartRequest(host=host, ports=ports, **fields)


def _start(request: StartRequest, notebook: str | None, context: Context) -> SessionReport:
    """Start the session; its URL leads to `notebook` if there is one."""
    from jlremote.workflow.start import start as start_session

    report = start_session(request, context)
    if not notebook:
        return report
    from dataclasses import replace

    from jlremote.workflow.open import address

    return replace(report, url=address(f"{report.host}/{report.name}", notebook, context))


def _show_plan(request: StartRequest, context: Context, *, as_json: bool) -> None:
    from jlremote.workflow.start import plan

    lines = plan(request, context)
    if as_json:
        answer_json({"commands": list(lines)})
    else:
        answer("\n".join(lines))
