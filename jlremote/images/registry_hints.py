"""Hints for a registry that a host cannot reach, by the engine's output."""

from __future__ import annotations

from jlremote.runtimes.engine.engine import Engine

_UNKNOWN_SIGNER = "signed by unknown authority"
_NO_TLS = "http response to https client"


def network_hint(engine: Engine, host: str) -> str:
    """Return the hint for a host without a route to the registry."""
    place = "docker's settings" if engine.kind.daemon else "`HTTPS_PROXY`"
    return f"check the network of `{host}`; if it needs a proxy, set it in {place} there"


def reach_hint(engine: Engine, registry: str, complaint: str) -> str | None:
    """Return the hint for a registry whose TLS is the obstacle, `None` for any other.

    `complaint` is the engine's output in lower case.
    """
    if _UNKNOWN_SIGNER in complaint:
        return (
            "its certificate is signed by an authority that the host does not know: put that "
            f"authority's certificate into `{_certificates(engine)}/{registry}/ca.crt`"
        )
    if _NO_TLS in complaint:
        return f"it has no TLS, which {engine.kind.program} wants: {_without_tls(engine, registry)}"
    if "x509" in complaint:
        return "its certificate is invalid: ask the owner of the registry to renew it"
    return None


def _certificates(engine: Engine) -> str:
    if engine.kind.daemon:
        return "/etc/docker/certs.d"
    return "/etc/containers/certs.d" if engine.behind_sudo else "~/.config/containers/certs.d"


def _without_tls(engine: Engine, registry: str) -> str:
    if engine.kind.daemon:
        line = f'"insecure-registries": ["{registry}"]'
        return f"put `{line}` into `/etc/docker/daemon.json` there and restart docker"
    return (
        f'put `[[registry]]` with `location = "{registry}"` and `insecure = true` into a file in '
        "`/etc/containers/registries.conf.d` there"
    )
