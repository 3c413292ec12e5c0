"""The configuration of a server that jlr launches."""

from __future__ import annotations

import gc
import re
from types import SimpleNamespace

from jlremote.jupyter.configuration import files


def applied(name: str, hostname: str) -> SimpleNamespace:
    """Return what a server gets from the configuration, which runs in this process."""
    settings = SimpleNamespace(ServerApp=SimpleNamespace(), IdentityProvider=SimpleNamespace())
    text = files(name, hostname)["jupyter_server_config.py"]
    try:
        exec(text, {"get_config": lambda: settings})
    finally:
        gc.enable()
        gc.unfreeze()
    return settings


def test_the_configuration_switches_garbage_collection_on_again() -> None:
    settings = SimpleNamespace(ServerApp=SimpleNamespace(), IdentityProvider=SimpleNamespace())
    text = files("cont1", "cont1-dgx.localhost")["jupyter_server_config.py"]
    gc.disable()
    try:
        exec(text, {"get_config": lambda: settings})
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_server_has_a_name_a_path_and_a_token_of_its_own() -> None:
    settings = applied("cont1", "cont1-dgx.localhost")
    assert re.fullmatch("/cont1-[0-9a-f]{16}/", settings.ServerApp.base_url)
    assert settings.ServerApp.local_hostnames == ["localhost", "cont1-dgx.localhost"]
    assert len(settings.IdentityProvider.token) == 48
