"""Arguments and options that several commands share, and the choices that they make."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import Function, Invocation, option, options
from jlremote.cli.completion import candidates
from jlremote.errors import JlrError, Unreachable, Usage
from jlremote.laptop.settings.options import KINDS, RUNTIMES, is_pool
from jlremote.text import one_of
from jlremote.times import since
from jlremote.untrusted import count

if TYPE_CHECKING:
    from jlremote.forwards.address import Address
    from jlremote.hosts.context import Context
    from jlremote.laptop.sessions import SessionRecord
    from jlremote.laptop.settings.settings import Origin
    from jlremote.laptop.typed_place import TypedPlace

# Errors name the values of these, and not the options.
_BY_VALUE = ("image", "volume")


@contextmanager
def named_as_set(
    host: str | None, options: Mapping[str, Any], only: Collection[str] = tuple(KINDS)
) -> Iterator[None]:
    """Let errors name the setting or variable that an option comes from, if no flag gave it.

    `options` are the command's, by the names of click's parameters; `only` are the long names of
    those that it takes from the settings.
    """
    try:
        yield
    except JlrError as error:
        from jlremote.laptop.settings import settings

        flags = {name: options.get(name.replace("-", "_")) for name in KINDS}
        with suppress(JlrError):
            known = settings.load()
            for origin in known.origins(host, flags):
                if origin.option not in only or not origin.is_set:
                    continue
                error.message = _as_set(error.message, origin)
                error.hint = error.hint and _as_set(error.hint, origin)
                if _chose(origin, error) and " chooses it" not in error.message:
                    error.message += f"; {origin.within(known.path)} chooses it"
        raise


def _chose(origin: Origin, error: JlrError) -> bool:
    value = str(origin.value)
    if origin.option == "volume":
        value = value.partition(":")[0]
    options = (*_BY_VALUE, "host") if isinstance(error, Unreachable) else _BY_VALUE
    return origin.option in (error.chosen_by, *options) and f"`{value}`" in error.message


def _as_set(text: str, origin: Origin) -> str:
    option, place = f"--{origin.option}", origin.place
    shown = f"`{place}`" if place.startswith("JLR_") else f"`{origin.option}` of `{place}`"
    text = text.replace(f"`{option}`", shown)
    return text.replace(f"`{option} {origin.value}`", f"`{option} {origin.value}` ({place})")


def port(value: Any) -> int:
    """Return a TCP port, as the type of an option."""
    number = count(str(value))
    if number is None or not 1 <= number <= 65535:
        raise click.BadParameter(f"`{value}` is not a port (1-65535)")
    return number


def number(least: float, most: float = math.inf) -> Callable[[Any], float]:
    """Return the type of an option: a number from `least` to `most`, a whole one if `least` is."""
    kind = type(least)

    def converted(value: Any) -> float:
        with suppress(ValueError):
            if least <= (typed := kind(value)) <= most:
                return typed
        whole = "whole " if kind is int else ""
        bounds = f"of at least {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise click.BadParameter(f"`{value}` is not a {whole}number {bounds}")

    return converted


def _host_argument(
    *, required: bool = False, default: bool = False, by_name: bool = False
) -> Callable[[Function], Function]:
    def declare(function: Any) -> Any:
        @wraps(function)
        def on_host(first: Any, /, *, host: str | None, **options: Any) -> Any:
            if host is not None:
                host = _host_named(host, by_name=by_name or bool(options.get("clean")))
            elif default:
                host = default_host()
            return function(first, host=host, **options)

        return click.argument("host", required=required, shell_complete=candidates.hosts)(on_host)

    return declare


def _host_named(word: str, *, by_name: bool) -> str:
    context = click.get_current_context().ensure_object(Invocation).context()
    typed = resolved_host(word, context)
    if typed.name is not None and by_name:
        why = f"`{word}` is not a host, and this command ends or deletes what is on one"
        raise Usage(why, hint=f"name the host: `{typed.host}`")
    if typed.name is not None:
        context.progress.note(f"`{word}` is on `{typed.host}`")
    return str(typed.host)


def resolved_host(word: str, context: Context) -> TypedPlace:
    """Return the host, and the session on it if one is named; ssh may know the host alone."""
    from jlremote.laptop.typed_place import TypedPlace, resolved

    typed = resolved(word, context.ssh_config, context.progress.note, host_first=True)
    if typed.host is not None:
        return typed
    from jlremote.selection.host_search import renamed

    record = renamed(word, context)
    return TypedPlace(word, None) if record is None else TypedPlace(record.host, record.name)


def setting(option: str, **flags: str | None) -> str | None:
    """Return what flags and settings give for an option of any host, if anything."""
    from jlremote.laptop.settings import settings

    value = settings.load().chosen(None, flags).get(option)
    return None if value is None else str(value)


def default_host() -> str:
    """Return the host of the settings, else that of the latest session."""
    return setting("host") or latest_session("HOST").host


def latest_session(arguments: str) -> SessionRecord:
    """Return the record of the latest session (`Usage`: there is none to stand for `arguments`)."""
    from jlremote.laptop import sessions

    for record in sessions.load_all():
        return record
    usage = f"{click.get_current_context().command_path} {arguments}"
    hint = "`jlr config set host dgx` makes dgx the default"
    raise Usage(f"missing HOST; usage: {usage}", hint=hint)


host_argument = _host_argument(required=True)
named_host_argument = _host_argument(required=True, by_name=True)
optional_host_argument = _host_argument()
optional_named_host_argument = _host_argument(by_name=True)
default_host_argument = _host_argument(default=True)
session_argument = click.argument("session", required=False, shell_complete=candidates.sessions)
_WHERE = "[SESSION|HOST/CONTAINER|HOST]"
where_argument = click.argument(
    "where", metavar=_WHERE, required=False, shell_complete=candidates.places
)


session_option = partial(option, group="Session")
gpu_option = partial(option, group="GPUs")
jupyter_option = partial(option, group="Jupyter")
machine_option = partial(option, group="This machine")

shared_option = session_option("--as-shared", "Join a session of another user.")
yes_option = option("-y --yes", "Do not ask before work is lost.")
since_option = option(
    "--since TIME",
    "Leave out what is older: `30m`, `2h`, or a moment as `2026-01-31T12:00`.",
    type=lambda text: since(text, "`--since`"),
)
# The Python that runs Jupyter.
python_options = options(
    jupyter_option(
        "--python PATH", "Python or virtual environment with Jupyter, where the session runs."
    ),
    jupyter_option("--conda-env NAME", "Conda environment with Jupyter, where the session runs."),
)
browser_options = options(
    machine_option(
        "--browser NAME", "`firefox`, `chromium`, a program or `none`. [env: JLR_BROWSER, BROWSER]"
    ),
    machine_option("--no-browser", "Print the URL and open no browser."),
)
_SUDO = session_option(
    "--sudo/--no-sudo", "Run the engine with `sudo`; its password is asked for once."
)
# What a session runs in.
runtime_options = options(
    session_option(
        "--runtime RUNTIME",
        f"{one_of(RUNTIMES)}. Default: the session's, else docker or podman.",
        common=True,
        type=click.Choice(RUNTIMES),
    ),
    _SUDO,
)


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a host's engine; the command gets it as `engine`."""

    @wraps(function)
    def choosing(
        *arguments: Any, host: str, runtime: str | None, sudo: bool | None, **options: Any
    ) -> Any:
        from jlremote.hosts.requests import EngineChoice
        from jlremote.laptop.settings import settings

        flags = {"runtime": runtime, "sudo": sudo}
        chosen: dict[str, Any] = settings.load().chosen(host, flags)
        runtime, folder = chosen.get("runtime", "auto"), chosen.get("image-folder")
        engine = EngineChoice(runtime, chosen.get("sudo", False), folder)
        with named_as_set(host, flags, tuple(flags)):
            return function(*arguments, host=host, engine=engine, **options)

    engines = [name for name in RUNTIMES if name != "none"]
    runtime_option = option(
        "--runtime RUNTIME",
        f"{one_of(engines)}. Default: that of the host's latest session, else docker or podman.",
        type=click.Choice(engines),
    )
    return runtime_option(_SUDO(choosing))


def refused_together(one: str, other: str) -> Usage:
    """Return the error for two options that cannot be combined."""
    return Usage(f"`{one}` and `{other}` cannot be combined", hint="leave out one of the two")


def host_of(
    host: str, container: str | None, options: Mapping[str, Any], context: Context, **how: bool
) -> str:
    """Return the typed host, or the host of a pool for a container (see `host_of_pool`)."""
    if not is_pool(host):
        return host
    from jlremote.gpus.host_gpus import host_of_pool

    flags = {"gpus": options["gpus"], "share-gpus": options["share_gpus"]}
    return host_of_pool(host, container, flags, context, **how)


def check_browser(flag: str | None) -> None:
    """Check the browser of `--browser`, before anything runs for its page (`JlrError`: none)."""
    if flag in (None, "none"):
        return
    from jlremote.forwards.browser import trouble

    if why := trouble(flag):
        raise JlrError(why, hint="leave out `--browser`, or take `--no-browser`")


def chosen_browser(flag: str | None, no_browser: bool) -> str | None:
    """Return the browser's name from the flags or the settings."""
    flag = "none" if no_browser else flag
    check_browser(flag)
    return setting("browser", browser=flag)


def follow_ports(host: str, name: str) -> None:
    """Begin `jlr forward --auto` in the background, if the command's flags or settings say so."""
    from jlremote.laptop import paths
    from jlremote.laptop.settings import settings
    from jlremote.link.client.call import begin

    given = click.get_current_context().params
    flags = {option: given.get(option.replace("-", "_")) for option in KINDS}
    if (chosen := settings.load().chosen(host, flags)).get("forward-auto"):
        browser = "none" if given.get("no_browser") else str(chosen.get("browser", ""))
        # The record has the ssh configuration; the variable's path may begin in this folder.
        variables = os.environ | {"JLR_SSH_CONFIG": "", "JLR_BROWSER": browser}
        words = ("jlremote", "forward", "--auto", f"{host}/{name}", "--no-input")
        log = paths.log_directory() / f"forward-{name}.log"
        begin(*words, log=log, env=variables, cwd="/").returncode = 0  # it outlives the command


def browse(address: Address, context: Context, *, browser: str | None, asked: bool) -> None:
    """Open a page in a browser (`none`: none, `None`: the default); an `asked` one must open."""
    if browser == "none":
        return
    from jlremote.forwards.browser import open_in_browser

    if (trouble := open_in_browser(address, browser)) and asked:
        raise JlrError(trouble, hint="the session runs; open the URL above yourself")
    if trouble:
        context.progress.note(f"{trouble}; open the URL yourself")
