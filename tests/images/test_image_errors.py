"""Causes that a person mends differently are told apart; what docker says is from 20.10 and 28."""

from __future__ import annotations

import pytest

from jlremote.errors import Authentication, JlrError, NotFound
from jlremote.images.image_errors import FailedTransfer, login_error, reason, transfer_error
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.engine_errors import (
    EngineMissing,
    EngineNotPermitted,
    EngineNotRunning,
)
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN, Engine

DAEMON = "Error response from daemon: "
HUB = "pull access denied for x, repository does not exist or may require login"
REFUSED_SOCKET = (
    "permission denied while trying to connect to the Docker daemon socket at unix:///x"
)


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (f"{DAEMON}manifest for x not found: manifest unknown", NotFound, "manifest unknown"),
        (f"{DAEMON}{HUB}", NotFound, "`nvcr.io` refuses it"),
        (f'{DAEMON}Head "http://x": no basic auth credentials', Authentication, "refuses it"),
        ("unauthorized: authentication required", Authentication, "refuses it"),
        ("denied: requested access to the resource is denied", Authentication, "refuses it"),
        (f"{DAEMON}toomanyrequests: reached your pull rate limit.", JlrError, "rate limit"),
        (f"{DAEMON}dial tcp: no such host", NotFound, "`dgx` cannot reach `nvcr.io`"),
        (f'{DAEMON}Get "https://x/v2/": x509: unknown authority', NotFound, "cannot reach"),
        ("register layer: no space left on device", JlrError, "no space is left on `dgx`"),
        ("no matching manifest for linux/arm64/v8 in the list", NotFound, "linux/arm64/v8"),
        (REFUSED_SOCKET, EngineNotPermitted, "may not use `docker`"),
        ("Cannot connect to the Docker daemon at unix:///x", EngineNotRunning, "does not run"),
        ("sh: 1: docker: not found", EngineMissing, "`docker` was not found"),
        ("", JlrError, "no reason given"),
    ],
)
def test_each_cause_of_a_refusal_is_its_own_error(
    said: str, kind: type[JlrError], words: str
) -> None:
    failed = FailedTransfer(DOCKER, "pull", "nvcr.io/me/x:1", "dgx")
    error = transfer_error(failed, said.splitlines(), 1)
    assert type(error) is kind
    assert words in error.message
    assert "Error response" not in error.message


@pytest.mark.parametrize(
    ("engine", "said", "mend"),
    [
        (DOCKER, "server gave HTTP response to HTTPS client", '["lab:5000"]` into `/etc/docker/d'),
        (PODMAN, "server gave HTTP response to HTTPS client", 'location = "lab:5000"'),
        (DOCKER, "x509: certificate signed by unknown authority", "/etc/docker/certs.d/lab:5000/"),
        (PODMAN, "x509: certificate signed by unknown authority", "~/.config/containers/certs.d/"),
        (DOCKER, "x509: certificate has expired", "the owner of the registry"),
        (DOCKER, "dial tcp: i/o timeout", "a proxy, `sudo systemctl edit docker` there"),
        (PODMAN, "dial tcp: i/o timeout", "a proxy, set `HTTPS_PROXY` there"),
    ],
)
def test_an_unreachable_registry_is_reported_with_a_hint(
    engine: Engine, said: str, mend: str
) -> None:
    image, words = "lab:5000/me/x:1", [f'Get "https://lab:5000/v2/": {said}']
    error = transfer_error(FailedTransfer(engine, "pull", image, "dgx"), words, 1)
    assert mend in (error.hint or "")
    login = login_error(engine, "lab:5000", "me", "dgx", Completed(1, "", words[0]))
    assert mend in (login.hint or "") or "proxy" in mend


WARNING = "WARNING: Error loading config file: open /root/.docker/config.json: permission denied"


def test_a_warning_that_says_denied_is_no_refusal() -> None:
    said = [WARNING, "Error response from daemon: received unexpected HTTP status: 502"]
    error = transfer_error(FailedTransfer(DOCKER, "pull", "me/x", "dgx"), said, 1)
    assert type(error) is JlrError
    assert error.message == "cannot pull `me/x`: received unexpected HTTP status: 502"
    login = login_error(DOCKER, "docker.io", "me", "dgx", Completed(1, "", "\n".join(said)))
    assert type(login) is JlrError


def test_usage_text_is_not_taken_for_the_reason() -> None:
    said = ['invalid argument "" for "--build-arg" flag', "", "Usage:  docker build", "", "Run it"]
    assert reason(said) == 'invalid argument "" for "--build-arg" flag'
