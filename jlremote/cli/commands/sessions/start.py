"""`jlr start`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import cluster, creation, shared
from jlremote.cli.options.origin import named_as_set
from jlremote.cli.screen.terminal import answer, answer_either, answer_json, as_json, shown
from jlremote.errors import NotFound, Usage
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.times import seconds_of

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import StartRequest
    from jlremote.listing.report import SessionReport


@command(
    "start",
    examples=(
        "jlr start dgx cont1",
        "jlr start                                            # the latest session again",
        "jlr start me@dgx cont1 --image nvcr.io/nvidia/pytorch:24.05-py3 --gpus all",
        "jlr start dgx cont1 --image torch --gpus auto:2      # two free ones",
        "jlr start dgx cont1 --image torch --gpus auto --wait # as soon as one is free",
        "jlr start @lab cont1 --image torch --gpus auto       # on a host of [pools.lab]",
        "jlr start dgx cont1 -v /raid/me:/data -e HF_HOME=/data/hf --shm-size 1g",
        "jlr start dgx cont1 --image torch --workspace=proj   # ~/proj there, at /workspace",
        "jlr start dgx cont1 --image torch -- --cap-add SYS_PTRACE",
        "jlr start dgx cont1 --image torch --profile nvidia --ipc host --rm",
        "jlr start dgx cont1 --image torch --install jupyterlab --install keras",
        "jlr start dgx cont1 --notebook work/train.ipynb --browser firefox",
        "jlr start dgx cont1 --forward 6006                   # TensorBoard's port, too",
        "jlr start dgx cont1 --idle-stop 2h                   # stop it after 2 idle hours",
        "jlr start dgx --runtime none --python ~/venv",
        "jlr start hpc work --slurm --gres gpu:1 --time 8:00:00 --module jupyter",
        "jlr start dgx cont1 --no-browser --json | jq -r .url",
        "jlr start dgx cont1 --image torch --dry-run",
    ),
)
@shared.optional_host_argument
@click.argument("container", required=False, shell_complete=candidates.containers)
@click.argument(
    "engine_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ENGINE-ARGUMENTS]"
)
@creation.creation_options
@shared.wait_option
@shared.notify_option
@shared.runtime_options
@shared.python_options
@cluster.cluster_options
@cluster.reach_option
@option("Jupyter", "--notebook", metavar="PATH", help="Open this notebook, file or folder.")
@option(
    "Jupyter",
    "--idle-stop",
    metavar="TIME",
    help="After `30m` or `2h` without work, ssh, jobs and GPU load, stop idle kernels, even with "
    "their page open, then Jupyter. Default: off.",
)
@option(
    "Jupyter",
    "--record/--no-record",
    default=None,
    help="Keep what cells print on the host, for `jlr output`. Default: yes.",
)
@option(
    "Jupyter",
    "--allow-unauthenticated",
    "allow_open",
    is_flag=True,
    help="Forward a running server that asks for neither token nor password.",
)
@option(
    "Jupyter",
    "--server",
    type=shared.port,
    metavar="PORT",
    help="Use the Jupyter server on this port, if several run in the container.",
)
@option("Session", "--as-shared", is_flag=True, help="Join a session of another user.")
@option(
    "This machine",
    "--port",
    type=shared.port,
    metavar="PORT",
    help="Use exactly this local port; fail if it is taken.",
)
@option(
    "This machine",
    "--forward",
    "forwarded",
    multiple=True,
    type=shared.port,
    metavar="PORT",
    help="Also forward this port of the container, for example TensorBoard's. Repeatable.",
)
@shared.browser_options
@shared.json_option("Print the session as a JSON object.")
@click.option("--dry-run", is_flag=True, help="Print what would run on the host; change nothing.")
@click.pass_obj
def start(
    invocation: Invocation,
    /,
    *,
    notebook: str | None,
    no_browser: bool,
    dry_run: bool,
    forwarded: tuple[int, ...],
    allow_open: bool,
    as_shared: bool,
    server: int | None,
    wait: str | None,
    **options: Any,
) -> None:
    """Start or reuse a session and open it in the browser.

    CONTAINER is a container on HOST. A running one is used as it is, a stopped one is started, and
    a missing one is created from --image, with what follows `--` as arguments of the engine. They
    go there as they are: `-e NAME` takes the host's variable there, and this machine's before `--`.
    Jupyter is reused or started in it, a local port is forwarded to it, and the URL is printed. In
    a running session nothing restarts.

    HOST defaults to `host` of [defaults] in the settings, else to the latest session's. With a
    pool, `@NAME`, it is the host where CONTAINER is, else the one with the most free GPU memory.

    Options can be set in config.toml and in the environment. A flag wins over JLR_<OPTION>, which
    wins over [hosts.HOST], [profiles.PROFILE] and [defaults].
    """
    cancels, typed = options["cancel_on_interrupt"], options["host"]
    options = _with_session(creation.after_dashes(options))
    context = invocation.context()
    name, waits = options["container"], wait is not None
    host = shared.host_of(options.pop("host"), name, options, context, or_latest=True, waits=waits)
    how, options = cluster.parted(host, options)
    with named_as_set(host, {**options, "host": typed}):
        chosen = creation.settled(host, options)
        if how is not None:
            _refuse_beside_slurm(chosen, options)
        elif chosen.get("runtime") == "none":
            creation.refuse_creation(options, "--runtime none")
        if chosen.get("runtime") in IMAGE_RUNTIMES:
            creation.refuse_of_engines(options, chosen["runtime"])
        request = _request(host, chosen, forwarded, allow_open=allow_open, as_shared=as_shared)
        request = replace(request, server=server, scheduled=how, cancel_on_interrupt=cancels)
        request = replace(request, wait=shared.waiting(wait))
        if how is not None and dry_run:
            from jlremote.jobs.stories.scheduled import estimate

            words = estimate(host, how, context)
            answer_either(words, {"estimate": words})
            return
        if dry_run:
            _show_plan(request, context)
            return
        report = _start(request, notebook, context)
        urls = "\n".join(map(shown, [report.address, *(port.address for port in report.ports)]))
        answer_either(urls, report.to_json())
        _explain(report, context)
        browser = "none" if no_browser else chosen.get("browser")
        shared.browse(
            report.address, context, browser=browser, asked=options["browser"] is not None
        )


def _with_session(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with a host: the typed one, that of the settings, or the latest session's.

    Raises:
        Usage: there is none.
    """
    if options["host"] is not None:
        return options
    from jlremote.laptop import sessions
    from jlremote.laptop.settings import settings

    flags = {"profile": options["profile"]}
    if host := settings.load().chosen(None, flags).get("host"):
        return options | {"host": str(host)}
    latest = next(iter(sessions.load_all()), None)
    if latest is None:
        raise Usage(
            "missing argument `HOST`",
            hint="`jlr start HOST CONTAINER`; `jlr config set host HOST` keeps the host",
        )
    runtime = options["runtime"] or latest.runtime
    named = {"host": latest.host, "container": latest.name, "runtime": runtime}
    return options | named


def _refuse_beside_slurm(chosen: dict[str, Any], options: dict[str, Any]) -> None:
    """Refuse what nodes of a cluster do not have; settings are left alone."""
    if options["gpus"] or options["share_gpus"]:
        raise Usage("`--gpus` is not for a cluster", hint="`--slurm --gres gpu:N` asks for N GPUs")
    image = chosen.get("runtime") in IMAGE_RUNTIMES or options["image"] is not None
    if not image:
        creation.refuse_creation(options, "--slurm", "env", "env_file", "workdir")


def _request(
    host: str, chosen: dict[str, Any], ports: tuple[int, ...], *, allow_open: bool, as_shared: bool
) -> StartRequest:
    from jlremote.hosts.requests import StartRequest, container_options

    if "python" in chosen and "conda-env" in chosen:
        raise Usage(
            "`--python` and `--conda-env` cannot be combined", hint="leave out one of the two"
        )
    if "idle-stop" in chosen:
        chosen["idle-stop"] = seconds_of(chosen["idle-stop"], "`--idle-stop`")
    return StartRequest(
        host=host,
        ports=ports,
        allow_open=allow_open,
        as_shared=as_shared,
        options=container_options(chosen),
        **creation.request_fields(StartRequest, chosen),
    )


def _start(request: StartRequest, notebook: str | None, context: Context) -> SessionReport:
    """Start the session; with `notebook`, its URL opens that."""
    from jlremote.hosts.links import begin
    from jlremote.selection.naming import session_of

    session_of(request)  # a name that no engine takes begins nothing
    begin(request.host, context)
    # These imports are slow, and so is the start of the link, which goes on meanwhile.
    from jlremote.sessions.start import start as start_session

    report = start_session(request, context)
    if not notebook:
        return report
    from jlremote.sessions.open import address

    try:
        found = address(f"{report.host}/{report.name}", notebook, context)
    except NotFound as missing:  # the session runs
        context.progress.note(f"{missing.message}; {missing.hint}")
        return report
    return replace(report, url=found.url, page=found.page)


def _explain(report: SessionReport, context: Context) -> None:
    """Note what else the person should know of the session."""
    from jlremote.cli.screen.reports import idle_stop_in_words

    if report.detail:
        context.progress.note(report.detail)
    if report.started_here and (rule := idle_stop_in_words(report.idle_stop)):
        context.progress.note(f"idle stop {rule}")


def _show_plan(request: StartRequest, context: Context) -> None:
    from jlremote.sessions.start import plan

    lines = plan(request, context)
    if as_json():
        answer_json({"commands": list(lines)})
    else:
        answer("\n".join(lines))  # to be pasted into a shell, so no line is broken
