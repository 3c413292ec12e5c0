"""The configuration of a server that jlr launches."""

from __future__ import annotations

import gc
from types import SimpleNamespace

from jlremote.jupyter.configuration import files


def test_the_configuration_switches_garbage_collection_on_again() -> None:
    settings = SimpleNamespace(ServerApp=SimpleNamespace(), IdentityProvider=SimpleNamespace())
    text = files("/cont1/", 0)["jupyter_server_config.py"]
    gc.disable()
    try:
        exec(text, {"get_config": lambda: settings})
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
    assert settings.ServerApp.base_url == "/cont1/"
    assert len(settings.IdentityProvider.token) == 48
