"""`jlr start`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.options.creation import after_dashes, creation_options, refuse_creation, settled
from jlremote.cli.options.engine import runtime_options
from jlremote.cli.screen.browse import browse, browser_options
from jlremote.cli.screen.terminal import answer, answer_json
from jlremote.errors import Usage
from jlremote.times import seconds_of

if TYPE_CHECKING:
    from jlremote.workflow.host.context import Context
    from jlremote.workflow.host.requests import StartRequest
    from jlremote.workflow.session.report import SessionReport


@command(
    "start",
    examples=(
        "jlr start dgx cont1",
        "jlr start me@dgx cont1 --image nvcr.io/nvidia/pytorch:24.05-py3 --gpus all",
        "jlr start dgx cont1 --image torch --gpus auto:2      # two that nobody uses",
        "jlr start dgx cont1 -v /raid/me:/data -e HF_HOME=/data/hf --shm-size 1g",
        "jlr start dgx cont1 --image torch --workspace=proj   # ~/proj there, at /workspace",
        "jlr start dgx cont1 --image torch -- --cap-add SYS_PTRACE",
        "jlr start dgx cont1 --image torch --profile nvidia --ipc host --rm",
        "jlr start dgx cont1 --image torch --install jupyterlab --install keras",
        "jlr start dgx cont1 --notebook work/train.ipynb --browser firefox",
        "jlr start dgx cont1 --forward 6006                   # TensorBoard's port, too",
        "jlr start dgx cont1 --idle-stop 2h                   # give up what nobody uses",
        "jlr start dgx --runtime none --python ~/venv",
        "jlr start dgx cont1 --no-browser --json | jq -r .url",
        "jlr start dgx cont1 --image torch --dry-run",
    ),
)
@click.argument("host", shell_complete=candidates.hosts)
@click.argument("container", required=False, shell_complete=candidates.containers)
@click.argument(
    "engine_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ENGINE-ARGUMENTS]"
)
@creation_options
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
@runtime_options
@click.option(
    "--python", metavar="PATH", help="With --runtime none: a Python, or a virtual environment."
)
@click.option("--conda-env", metavar="NAME", help="With --runtime none: a conda environment.")
@click.option(
    "--idle-stop",
    metavar="TIME",
    help="End what nobody uses, after `30m` or `2h`: each kernel that ran nothing for so long, "
    "even under an open page, and then Jupyter. Busy kernels and terminals go on; the container "
    "stays. Default: off.",
)
@click.option(
    "--allow-unauthenticated",
    "allow_open",
    is_flag=True,
    help="Forward a server that runs already though it asks for neither token nor password.",
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
    allow_open: bool,
    **options: Any,
) -> None:
    """Start or reuse a session and open it in the browser.

    CONTAINER is a container on HOST. It is used as it is when it runs, started when it is stopped,
    and created from --image when there is none; what follows `--` goes to the engine then. Jupyter
    is reused or started in it, a port of this machine is forwarded to it, and the URL is printed.
    On a session that runs, nothing restarts.

    Options can be settled in config.toml and in the environment: a flag wins over JLR_<OPTION>,
    that over [hosts.HOST], [profiles.PROFILE] and [defaults].
    """
    options = after_dashes(options)
    host = options.pop("host")
    chosen = settled(host, options)
    if chosen.get("runtime") == "none":
        refuse_creation(options, "--runtime none")
    request = replace(_request(host, chosen, forwarded), allow_open=allow_open)
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
    _explain(report, context)
    browser = "none" if no_browser else chosen.get("browser")
    browse(report.url or "", context, browser=browser, asked=options["browser"] is not None)


# What of the settled options a StartRequest has, and how it calls it.
_FIELDS = {
    "sudo": "sudo",
    "container": "container",
    "name": "name_rule",
    "runtime": "runtime",
    "image": "image",
    "gpus": "gpus",
    "share-gpus": "share_gpus",
    "python": "python",
    "conda-env": "conda_env",
    "workspace": "workspace",
    "port": "local_port",
    "idle-stop": "idle_stop",
}


def _request(host: str, settled: dict[str, Any], ports: tuple[int, ...]) -> StartRequest:
    from jlremote.workflow.host.requests import StartRequest, container_options

    if "python" in settled and "conda-env" in settled:
        raise Usage("`--python` and `--conda-env` exclude each other", hint="give one of the two")
    if "idle-stop" in settled:
        settled["idle-stop"] = seconds_of(settled["idle-stop"], "`--idle-stop`")
    fields = {_FIELDS[name]: value for name, value in settled.items() if name in _FIELDS}
    return StartRequest(host=host, ports=ports, options=container_options(settled), **fields)


def _start(request: StartRequest, notebook: str | None, context: Context) -> SessionReport:
    """Start the session; its URL leads to `notebook` if there is one."""
    from jlremote.workflow.session.prepare import begin

    begin(request, context)
    # Not before, for these are the slow ones, and so is what has just begun.
    from jlremote.workflow.session.start import start as start_session

    report = start_session(request, context)
    if not notebook:
        return report
    from jlremote.workflow.session.open import address

    return replace(report, url=address(f"{report.host}/{report.name}", notebook, context))


def _explain(report: SessionReport, context: Context) -> None:
    """Say what holds for a session beyond its URL."""
    from jlremote.cli.screen.tables import idle_stop_in_words

    if report.detail:
        context.progress.note(report.detail)
    if report.started_here and (rule := idle_stop_in_words(report.idle_stop)):
        context.progress.note(f"idle stop {rule}")


def _show_plan(request: StartRequest, context: Context, *, as_json: bool) -> None:
    from jlremote.workflow.session.start import plan

    lines = plan(request, context)
    if as_json:
        answer_json({"commands": list(lines)})
    else:
        answer("\n".join(lines))
