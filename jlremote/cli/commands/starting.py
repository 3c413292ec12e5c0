"""`jlr start`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import creation, shared
from jlremote.cli.screen import reports
from jlremote.cli.screen.terminal import answer_either, shown
from jlremote.errors import JlrError, Usage
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.times import seconds_of

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.hosts.requests import StartRequest
    from jlremote.listing.session_report import SessionReport


@command("start", json="Print the session as a JSON object.")
@click.argument("host", required=False, shell_complete=candidates.hosts)
@click.argument("container", required=False, shell_complete=candidates.containers)
@click.argument(
    "engine_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ENGINE-ARGUMENTS]"
)
@creation.creation_options
@shared.python_options
@creation.cluster_options
@creation.reach_option
@option(
    "--renew",
    "Queue a job that follows the one of this session, before its time limit ends that.",
    group="Cluster",
)
@shared.jupyter_option(
    "--idle-stop TIME",
    "After `30m` or `2h` without work, ssh, jobs and GPU load, stop idle kernels, even with "
    "their page open, then Jupyter. Default: off.",
)
@shared.jupyter_option(
    "--record/--no-record", "Keep what cells print on the host, for `jlr output`. Default: yes."
)
@shared.jupyter_option(
    "--allow-unauthenticated allow_open",
    "Forward a running server that asks for neither token nor password.",
)
@shared.jupyter_option(
    "--server PORT",
    "Use the Jupyter server on this port, if several run in the container.",
    type=shared.port,
)
@shared.shared_option
@shared.machine_option(
    "--port PORT", "Use exactly this local port; fail if it is taken.", type=shared.port
)
@shared.machine_option(
    "--forward ports PORT",
    "Also forward this port of the container, for example TensorBoard's. Repeatable.",
    multiple=True,
    type=shared.port,
    common=True,
)
@shared.machine_option(
    "--forward-auto/--no-forward-auto",
    "Forward what listens there, as `jlr forward --auto` does, until `jlr stop`. Default: no.",
)
@shared.machine_option(
    "--sync [=DIR]", "Send this folder, or DIR, there once it runs (`jlr sync`).", flag_value="."
)
@shared.browser_options
@option("--dry-run", "Print what would run on the host; change nothing.", common=True)
def start(
    context: Context, /, *, renew: bool, dry_run: bool, sync: str | None, **options: Any
) -> None:
    """Start or reuse a session and open it in the browser.

    CONTAINER is a container on HOST; one word may name both: HOST/CONTAINER, or a session. A
    running one is reused, a stopped one is started, and a missing one is created from --image.
    Words after `--` go to the engine: there `-e NAME` copies the host's variable, and before `--`
    this machine's. Jupyter is reused or started in it, a local port is forwarded to it, and the URL
    is printed. In a running session nothing restarts.

    HOST defaults to `host` of [defaults] in the settings, else to the latest session's. With a
    pool, `@NAME`, it is the host where CONTAINER is, else the one with the most free GPU memory.

    --renew queues a second job, which begins when the present one is over and takes over the
    session's name and local port. Its kernels are new: variables are lost, files stay. `jlr stop`
    cancels both jobs.

    Options can be set in config.toml and in the environment. A flag wins over JLR_<OPTION>, which
    wins over [hosts.HOST], [profiles.PROFILE] and [defaults].

    Examples:
        jlr start dgx cont1
        jlr start                                            # the latest session again
        jlr start me@dgx cont1 --image nvcr.io/nvidia/pytorch:24.05-py3 --gpus all
        jlr start dgx cont1 --image torch --gpus auto --wait # as soon as one is free
        jlr start dgx cont1 -v /raid/me:/data -e HF_HOME=/data/hf --shm-size 1g
        jlr start dgx cont1 --image torch --workspace=proj   # ~/proj there, at /workspace
        jlr start dgx cont1 --image torch -- --cap-add SYS_PTRACE
        jlr start dgx cont1 --forward 6006                   # TensorBoard's port, too
        jlr start dgx --runtime none --python ~/venv
        jlr start hpc work --slurm --gres gpu:1 --time 8:00:00 --module jupyter
        jlr start hpc work --renew                           # a second job, after this one
        jlr start dgx cont1 --no-browser --json | jq -r .url
    """
    if renew:
        _renew(options | {"dry_run": dry_run, "sync": sync}, context)
        return
    cancels, typed = options["cancel_on_interrupt"], options["host"]
    given = {name: options.pop(name) for name in ("allow_open", "as_shared", "server", "wait")}
    ports, no_browser = options.pop("ports"), options.pop("no_browser")
    options = _with_place(creation.after_dashes(options), context)
    name, waits = options["container"], given["wait"] is not None
    host = shared.host_of(options.pop("host"), name, options, context, or_latest=True, waits=waits)
    how, options = creation.parted(host, options)
    given |= {"scheduled": how, "cancel_on_interrupt": cancels}
    with shared.named_as_set(host, {**options, "host": typed}):
        chosen = creation.settled(host, options)
        runtime = chosen.get("runtime")
        if how is None and runtime == "none":
            creation.refuse_creation(options, "--runtime none")
        elif how is not None and options["image"] is None and runtime not in IMAGE_RUNTIMES:
            creation.refuse_creation(options, "--slurm", "env", "env_file", "workdir")
        if runtime in IMAGE_RUNTIMES:
            creation.refuse_of_engines(options, runtime)
        request = _request(host, chosen, ports, given)
        if dry_run:
            _show_plan(request, context)
            return
        browser = "none" if no_browser else options["browser"]
        shared.check_browser(browser)
        from jlremote.hosts.links import begin

        begin(request.host, context)
        # These imports are slow, and so is the start of the link, which goes on meanwhile.
        from jlremote.sessions import start as workflow

        report = workflow.start(request, context)
        unsent = None if sync is None else _sync(sync, report, context)
        _tell(report, context)
        asked = options["browser"] is not None
        browser = browser or chosen.get("browser")
        shared.browse(report.address, context, browser=browser, asked=asked)
        if unsent is not None:  # the session runs all the same
            raise unsent


def _renew(options: dict[str, Any], context: Context) -> None:
    from jlremote.sessions import restart as workflow

    named = [options.pop("host"), options.pop("container")]
    if any(value not in (None, (), False) for value in options.values()):
        call = shlex.join(("jlr", "start", *filter(None, named), "--renew"))
        why = "`--renew` asks for the same job again, and takes no other options"
        raise Usage(why, hint=f"`{call}`")
    report = workflow.renew("/".join(filter(None, named)) or None, context)
    words = (
        f"job {report.job} follows job {report.follows} of {report.host}/{report.name}, with its "
        "name and local port and new kernels; `jlr open` opens it then"
    )
    answer_either(words, vars(report))


def _with_place(options: dict[str, Any], context: Context) -> dict[str, Any]:
    word, container = options["host"], options["container"]
    if word is not None:
        typed = shared.resolved_host(word, context)
        if typed.name is not None and container not in (None, typed.name):
            hint = f"`jlr start {typed.host}/{typed.name}` or `jlr start {typed.host} {container}`"
            raise Usage(f"`{word}` and `{container}` both name a session", hint=hint)
        return options | {"host": typed.host, "container": typed.name or container}
    if host := shared.setting("host", profile=options["profile"]):
        return options | {"host": host}
    latest = shared.latest_session("HOST CONTAINER")
    runtime = options["runtime"] or latest.runtime
    return options | {"host": latest.host, "container": latest.name, "runtime": runtime}


def _request(
    host: str, chosen: dict[str, Any], ports: tuple[int, ...], given: dict[str, Any]
) -> StartRequest:
    from jlremote.hosts.requests import StartRequest, container_options
    from jlremote.laptop.sessions import PortRecord

    if "python" in chosen and "conda-env" in chosen:
        raise shared.refused_together("--python", "--conda-env")
    if "idle-stop" in chosen:
        chosen["idle-stop"] = seconds_of(chosen["idle-stop"], "`--idle-stop`")
    forwarded = tuple(PortRecord(port, port) for port in ports)
    fields = creation.request_fields(StartRequest, chosen) | given
    return StartRequest(host, ports=forwarded, options=container_options(chosen), **fields)


def _show_plan(request: StartRequest, context: Context) -> None:
    if request.scheduled is not None:
        creation.show_estimate(request.host, request.scheduled, context)
        return
    from jlremote.place.host.shell_text import in_short
    from jlremote.sessions.start import plan

    commands = plan(request, context)
    answer_either("\n".join(map(in_short, commands)), {"commands": list(commands)})


def _sync(local: str, report: SessionReport, context: Context) -> JlrError | None:
    from jlremote.copies.sync import SyncRequest, sync_all

    try:
        sync_all(SyncRequest(Path(local).expanduser(), f"{report.host}/{report.name}"), context)
    except JlrError as failure:
        return failure
    return None


def _tell(report: SessionReport, context: Context) -> None:
    urls = "\n".join(map(shown, [report.address, *(port.address for port in report.ports)]))
    answer_either(urls, report.to_json())
    if report.detail:
        context.progress.note(report.detail)
    if report.started_here and (rule := reports.idle_stop_in_words(report.idle_stop)):
        context.progress.note(f"idle stop {rule}")
    shared.follow_ports(report.host, report.name)
