"""The configuration of a server that jlr launches."""

from __future__ import annotations

import gc
import re
from types import SimpleNamespace

from jlremote.jupyter.configuration import files


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
    assert re.fullmatch("/cont1-[0-9a-f]{16}/", settings.ServerApp.base_url)
    assert settings.ServerApp.local_hostnames == ["localhost", "cont1-dgx.localhost"]
    assert len(settings.IdentityProvider.token) == 48
