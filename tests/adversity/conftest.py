"""People and hosts for attacks."""

from tests.link.conftest import desk, servers

__all__ = ["desk", "servers"]
