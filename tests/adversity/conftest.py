"""People and hosts for attacks."""

from tests.forward.conftest import forward_key, forward_sshd, transport
from tests.link.conftest import desk, servers

__all__ = ["desk", "forward_key", "forward_sshd", "servers", "transport"]
