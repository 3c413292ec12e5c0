"""`jlr image login`: try a key of a registry on a host, and keep or forget it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from jlremote.errors import JlrError, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_on
from jlremote.hosts.links import connect, link_on
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import image_files, registry_keys
from jlremote.images.image_errors import login_error
from jlremote.images.image_names import DOCKER_HUB, NVIDIA, login_command, parse
from jlremote.images.registry_keys import RegistryKey
from jlremote.laptop.secrets import open_secrets
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Completed, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.table import AUTO
from jlremote.questions import Question

NVIDIA_USER = "$oauthtoken"  # literally


@dataclass(frozen=True)
class LoginRequest:
    """`jlr image login HOST [REGISTRY]`."""

    host: str  # what `ssh HOST` takes
    registry: str = NVIDIA  # its name, with which names of images begin
    user: str | None = None  # the user name there; `None` for NVIDIA's registry
    key: str | None = field(default=None, repr=False)  # `None`: from the keychain, or asked for
    keep: bool = False  # keep it on the host, in the engine's settings, instead of on the laptop
    engine: EngineChoice = ANY_ENGINE

    @property
    def engine_options(self) -> tuple[str, ...]:
        """The options that choose the engine, for hints."""
        return ("--runtime", self.engine.runtime) if self.engine.runtime != AUTO else ()


@dataclass(frozen=True)
class LoginReport:
    """A key of a registry, and where it is kept."""

    host: str
    registry: str
    user: str
    kept: str
    accepted: bool | None = True  # `None` where only a pull shows whether the registry does


def log_in(request: LoginRequest, context: Context) -> LoginReport:
    """Try a key on the host, and keep it unless the registry refuses it.

    Raise `Usage` if the registry's name is invalid, or a user name is missing; `Authentication` if
    the registry refuses the key; `NeedsAuthentication` if the key is needed and there is no
    terminal to ask for it; `JlrError` if there is no keychain, the registry is out of reach, …
    """
    registry, user = _registry(request.registry), _user(request)
    if not request.keep and open_secrets() is None:
        words = ("jlr", "image", "login", request.host, registry, "--username", user)
        again = command_line((*words, *request.engine_options, "--keep"))
        what = "cannot keep the key: this machine has no keychain"
        raise JlrError(what, hint=f"`{again}` keeps it on the host instead")
    link = connect(link_on(request.host, context), context)
    typed = request.key
    if typed is None:
        question = f"Password or API key of {user} at {registry}:"
        typed = context.asker.ask(Question("password", question))
    if not typed or "\n" in typed:
        raise Usage("the key is empty or longer than a line")
    key = RegistryKey(user, typed)
    _try(link, registry, key, request, context)
    kept = f"the engine's settings on {request.host}, readable by all who can read your files"
    if not request.keep:
        kept = registry_keys.keep(request.host, registry, key)
    # A registry that gives no tokens refuses a wrong key of Apptainer only at a pull.
    unproved = request.engine.runtime in IMAGE_RUNTIMES and registry != NVIDIA
    return LoginReport(request.host, registry, user, kept, None if unproved else True)


def log_out(
    host: str, registry: str, context: Context, wanted: EngineChoice = ANY_ENGINE
) -> list[str]:
    """Forget a key on the laptop, then on the host (or `JlrError`); return where there was one."""
    name = _registry(registry)
    link = link_on(host, context)
    with context.progress.step(f"Forget {name} on {host}"):
        if wanted.runtime in IMAGE_RUNTIMES:
            logout = image_files.logout_script(wanted.runtime, name)
        else:
            engine, server = engine_on(link, wanted), registry_keys.server(name)
            logout = registry_keys.logout_script(engine, server)
        places = ["this machine's keychain"] if registry_keys.forget(host, name) else []
        done = run_script(link, logout)
    if done.status != 0:
        what = f"`{host}` may still keep a key of `{name}`: {done.complaint}"
        raise JlrError(what, hint="this machine has forgotten it" if places else None)
    if done.stdout.startswith(registry_keys.KEPT):
        places.append(f"the settings on {host}")
    return places


def _registry(text: str) -> str:
    name = text.removeprefix("https://").removeprefix("http://").rstrip("/")
    if name in ("index.docker.io/v1", "hub.docker.com", "index.docker.io"):
        return DOCKER_HUB
    with suppress(Usage):
        if name in (DOCKER_HUB, "localhost") or parse(f"{name}/x").registry == name:
            return name
    raise Usage(f"`{text}` is not a registry", hint="write its host name, for example `nvcr.io`")


def _user(request: LoginRequest) -> str:
    if request.user is not None:
        if not request.user or ":" in request.user:
            raise Usage(f"invalid user name `{request.user}`", hint="a user name contains no `:`")
        return request.user
    if request.registry == NVIDIA:
        return NVIDIA_USER
    hint = f"`{login_command(request.host, request.registry, *request.engine_options)}`"
    raise Usage(f"the user name at `{request.registry}` is missing", hint=hint)


def _try(
    link: Link, registry: str, key: RegistryKey, request: LoginRequest, context: Context
) -> None:
    program, engine, known = request.engine.runtime, None, {}
    if program in IMAGE_RUNTIMES:
        script = image_files.login_script(program, registry, key.user, keep=request.keep)
        login = registry_keys.with_key_to_login(script)
        if not request.keep:
            login = registry_keys.with_key_file(login)
    else:
        engine, server = _engine(link, registry, request), registry_keys.server(registry)

        def logs_in(engine: Engine) -> str:
            argv = engine("login", f"--username={key.user}", "--password-stdin", server)
            return registry_keys.with_key_to_login(command_line(argv))

        login = logs_in(engine) if request.keep else registry_keys.with_keys(engine, logs_in)
        known = {registry: key}  # docker asks no helper where its settings already hold a key
    lines = [] if request.keep else [registry_keys.docker_config(known)]
    lines.append(f"{key.key}\n".encode())
    step = context.progress.step(f"Log in to {registry} as {key.user}")
    with step, link.stream(login, lines) as output:
        said = "".join(output.text())
        if output.status != 0:
            failed = Completed(output.status or 1, "", said)
            raise login_error(engine, registry, key.user, request.host, failed)


def _engine(link: Link, registry: str, request: LoginRequest) -> Engine:
    try:
        return engine_on(link, request.engine)
    except EngineMissing as missing:
        if program := image_files.program_on(link):
            login = login_command(request.host, registry, "--runtime", program)
            missing.hint = f"`{login}` keeps a key for `{program}`, which is there"
        raise
