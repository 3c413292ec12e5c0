"""The check of names and network: what a container reaches of what the host reaches."""

from __future__ import annotations

from jlremote.doctor.diagnosis import Finding, fine, skip, warn
from jlremote.place.host.contract import Completed
from jlremote.place.host.shell_text import bounded
from jlremote.place.runtimes.engine.kinds import Engine

SITE = "pypi.org"  # where pip's packages come from
_NO_NAME, _NO_WAY, _NO_PROGRAM, _PROXY = 3, 4, 5, 6
_SECONDS = 8
_LOOK = f"""\
fails() {{ [ -z "$https_proxy$HTTPS_PROXY" ] || exit {_PROXY}; exit "$1"; }}
python=$(command -v python3 || command -v python)
if [ -n "$python" ]; then
  "$python" -c 'import socket; socket.getaddrinfo("{SITE}", 443)' 2>/dev/null || fails {_NO_NAME}
  "$python" -c 'import socket; socket.create_connection(("{SITE}", 443), 3)' 2>/dev/null ||
    fails {_NO_WAY}
elif command -v getent >/dev/null; then getent hosts {SITE} >/dev/null || fails {_NO_NAME}
else exit {_NO_PROGRAM}; fi
"""
ASK = bounded(("sh", "-c", _LOOK), _SECONDS)
_LACKS = {_NO_NAME: f"cannot resolve `{SITE}`", _NO_WAY: f"cannot connect to `{SITE}`"}

_HOSTS_OWN = {
    _NO_NAME: "`cat /etc/resolv.conf` there shows its name servers, "
    f"`getent hosts {SITE}` tries them; ",
    _NO_WAY: "its firewall or its network lets nothing out to port 443; ",
}
_BY_PROXY = "where it is meant to use a proxy, set `https_proxy` in /etc/environment there"
_DNS = (
    "`-- --dns ADDRESS` gives a new container a name server; "
    '`"dns": ["ADDRESS"]` in /etc/docker/daemon.json gives it to all'
)
_NETWORK = (
    "`sysctl net.ipv4.ip_forward` on the host must be 1, and its firewall must forward the "
    "engine's network; `--network host` needs neither"
)


def judge(engine: Engine | None, on_host: Completed, inside: Completed | None) -> Finding:
    """Judge by the results of `ASK` on the host and, where one is there to ask, in a container."""
    if inside is not None and inside.status == 0:
        return fine(f"containers reach {SITE}")
    if on_host.status == _NO_PROGRAM:
        return skip("not tried: it takes Python or `getent`")
    if on_host.status == _PROXY:
        return skip(f"not tried: the host reaches `{SITE}` by a proxy, if at all")
    if on_host.status != 0:
        lacks = _LACKS.get(on_host.status, f"does not reach `{SITE}` in {_SECONDS} s")
        return warn(f"the host itself {lacks}", _HOSTS_OWN.get(on_host.status, "") + _BY_PROXY)
    if engine is None or inside is None:
        return fine(f"the host reaches {SITE}")
    if inside.status == _NO_PROGRAM:
        return skip("not tried in the container: it has neither Python nor `getent`")
    if inside.status == _PROXY:
        return skip(f"not tried: containers reach `{SITE}` by a proxy, if at all")
    mend = _NETWORK
    if inside.status == _NO_NAME:
        mend = _DNS if engine.kind.daemon else _DNS.partition(";")[0]
    lacks = _LACKS.get(inside.status, f"do not reach `{SITE}` in {_SECONDS} s")
    return warn(f"containers {lacks}, but the host does", mend)
