"""How a host comes to reach a registry that it could not reach, by what its engine said of it."""

from __future__ import annotations

from jlremote.runtimes.engine.engine import Engine

_UNKNOWN_SIGNER = "signed by unknown authority"
_NO_TLS = "http response to https client"


def network_hint(engine: Engine) -> str:
    """Return what to look at where the words tell of no more than a network that has no way."""
    place = "docker's settings" if engine.kind.daemon else "`HTTPS_PROXY` of your environment"
    return f"it is the host that needs a way there; a proxy is set in {place} on it"


def reach_hint(engine: Engine, registry: str, complaint: str) -> str | None:
    """Return the mend, `None` where the network alone is in the way.

    Args:
        engine: which tried.
        registry: `HOST[:PORT]`.
        complaint: what it said, in lower case.
    """
    if _UNKNOWN_SIGNER in complaint:
        return (
            "its certificate is signed by somebody whom the host does not know: have that "
            f"authority's own there as `{_certificates(engine)}/{registry}/ca.crt`"
        )
    if _NO_TLS in complaint:
        return (
            f"it has no TLS, and {engine.kind.program} wants that: {_without_tls(engine, registry)}"
        )
    if "x509" in complaint:
        return "its certificate is not good; whoever keeps the registry can mend that"
    return None


def _certificates(engine: Engine) -> str:
    if engine.kind.daemon:
        return "/etc/docker/certs.d"
    return "/etc/containers/certs.d" if engine.behind_sudo else "~/.config/containers/certs.d"


def _without_tls(engine: Engine, registry: str) -> str:
    if engine.kind.daemon:
        line = f'"insecure-registries": ["{registry}"]'
        return f"docker does without by `{line}` in `/etc/docker/daemon.json` and a new start there"
    return (
        f'a table `[[registry]]` with `location = "{registry}"` and `insecure = true` in a file of '
        "`/etc/containers/registries.conf.d` on the host lets it do without"
    )
