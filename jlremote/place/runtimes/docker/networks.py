"""The networks of containers: one of its own for a new session, and who else is on one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jlremote import __version__
from jlremote.place.host.contract import MINE, PRINT_RECORD, RECORD, USER_LABEL
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.container_options import NO_OPTIONS, ContainerOptions
from jlremote.place.runtimes.docker.docker_commands import inspect_argv
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import CREATOR_LABEL, SESSION_LABEL, START_LABEL

# The engines' default networks: any `docker run` puts a neighbour there.
_DEFAULTS = ("bridge", "podman")
_MTU = "com.docker.network.driver.mtu"
_OWNER = f'"--label={USER_LABEL}=$(id -un || id -u)"'


def name_of(session: str, mark: str) -> str:
    """Return the name of a session's network, which has the mark of its start."""
    return f"jlr-{session}-{mark[:8]}"


def is_wanted(options: ContainerOptions) -> bool:
    """Return whether a container gets its own network; `--link` is for those of one."""
    theirs = ("--net", "--network", "--link")
    words = (word.partition("=")[0] for word in options.engine_arguments)
    return options.network is None and not any(word in theirs for word in words)


def may_be_rootless(engine: Engine) -> bool:
    """Return whether an engine may be rootless: the host does not reach its networks."""
    return engine.kind.daemon is None and not engine.behind_sudo


def creation(engine: Engine, session: str, mark: str, options: ContainerOptions) -> str:
    """Return shell text that makes the network of a new container, and sets `$own` to its name.

    `$own` is empty where there is none (`$why`: no room for one), and `forget` removes it. Docker
    gives its daemon's MTU to the default network alone. The host does not reach one of rootless
    podman.
    """
    if not is_wanted(options):
        return "own= why=; forget() { :; }\n"
    mtu = engine("network", "inspect", "--format", f'{{{{index .Options "{_MTU}"}}}}', _DEFAULTS[0])
    reached = '[ "$(id -u)" = 0 ]' if may_be_rootless(engine) else ":"
    labels = {SESSION_LABEL: session, CREATOR_LABEL: f"jlr/{__version__}", START_LABEL: mark}
    told = (f"--label={name}={value}" for name, value in labels.items())
    words = f'{_OWNER} ${{mtu:+"--opt={_MTU}=$mtu"}} "$own"'
    create = f"why=$({command_line(engine('network', 'create', *told))} {words} 2>&1 >/dev/null)"
    return f"""\
own= why=
forget() {{ [ -z "$own" ] || {command_line(engine("network", "rm"))} "$own" >/dev/null 2>&1; }}
if {reached}; then
  own={command_line((name_of(session, mark),))}; mtu=$({command_line(mtu)} 2>/dev/null)
  {create} || {{ (
{left_over(engine, remove=True)}) >/dev/null 2>&1
  {create}; }} && why= || own=
fi
"""


def started(engine: Engine, session: str, mark: str, name: str) -> str:
    """Return the script that starts a container, and makes its network again if it was pruned."""
    own = name_of(session, mark)
    begin, leave, join = (
        command_line(engine(*words, name))
        for words in (("start",), ("network", "disconnect", own), ("network", "connect", own))
    )
    return f"""\
said=$({begin} 2>&1 >/dev/null) && exit
case $said in *etwork*'not found'*)
  {creation(engine, session, mark, NO_OPTIONS)}
  [ -z "$own" ] || {{ {leave}; {join} && {begin} >/dev/null; exit; }}
  said=$why;;
esac
printf '%s\\n' "$said" >&2; exit 1
"""


def removal(engine: Engine, mark: str) -> str:
    """Return shell text that removes the network that a start has made, unless others are on it."""
    # It tries again: podman's `network rm` fails where another container is removed meanwhile.
    find = command_line(engine("network", "ls", "--quiet", f"--filter=label={START_LABEL}={mark}"))
    remove = command_line(engine("network", "rm"))
    gone = f'networks=$({find}) && {{ [ -z "$networks" ] || {remove} $networks; }}'
    return f"{wait_while(f'! {{ {gone}; }} >/dev/null 2>&1', 1.5, every=0.5)}:\n"


def left_over(engine: Engine, *, remove: bool = False) -> str:
    """Return the script that prints or removes networks that no container, even stopped, is on."""
    find = command_line(engine("network", "ls", "--quiet", f"--filter=label={START_LABEL}"))
    on = command_line(engine("ps", "--all", "--quiet"))
    show = command_line(engine("network", "inspect", "--format={{.Name}}"))
    act = f' && {command_line(engine("network", "rm"))} "$network" >/dev/null' if remove else ""
    return f"""\
networks=$({find} {MINE}) || exit
for network in $networks; do
  on=$({on} "--filter=network=$network") || exit
  [ -n "$on" ] || {{ {show} "$network"{act}; }} || exit
done
"""


def described(engine: Engine, name: str) -> str:
    """Return the script that prints a container's `inspect`, and who is on its networks.

    For each network follow its id, its driver and the ids of its containers, also of stopped ones,
    which may start at any time. Podman's networks know no containers before 5.0. The default
    networks are not asked about: no container is alone on them.
    """
    joined = "{{range $id, $_ := .Containers}} {{$id}}{{end}}" if engine.kind.daemon else ""
    driver = command_line(engine("network", "inspect", f"--format={{{{.Driver}}}}{joined}"))
    on = command_line(engine("ps", "--all", "--quiet", "--no-trunc"))
    others = "".join(f'/^ *"{name}": {{/,/}}/d; ' for name in _DEFAULTS)
    ids = rf"""{others}s/^ *"NetworkID": "\([A-Za-z0-9][A-Za-z0-9_.-]*\)".*/\1/p"""
    return f"""\
facts=$({command_line(inspect_argv(engine, name))}); code=$?
printf '%s\\n' "$facts"; [ "$code" = 0 ] || exit "$code"
for network in $(printf '%s\\n' "$facts" | sed -n '{ids}'); do
  told=$({driver} "$network" & {on} "--filter=network=$network" && wait $!) &&
    printf '{PRINT_RECORD}%s' "$network $told"
done
:
"""


def split(told: str) -> tuple[str, dict[str, list[str]]]:
    """Return the `inspect` that `described` printed, and by network its driver and containers."""
    facts, *rows = told.split(RECORD)
    words = (row.split() for row in rows)
    return facts, {network: rest for network, *rest in filter(None, words)}


def alone_on(inspected: Mapping[str, Any], known: Mapping[str, list[str]]) -> dict[str, str]:
    """Return a container's addresses that no neighbour can take, each with its network's id."""
    alone = {"bridge", inspected["Id"]}
    networks = inspected["NetworkSettings"].get("Networks") or {}
    return {
        network["IPAddress"]: network["NetworkID"]
        for name, network in networks.items()
        if network.get("IPAddress")
        and name not in _DEFAULTS
        and set(known.get(network.get("NetworkID"), ())) == alone
    }
