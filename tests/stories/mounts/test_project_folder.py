"""Which folder of the host is mounted, as the host's shell answers."""

from __future__ import annotations

from typing import Any

import pytest

from jlremote.errors import Usage
from jlremote.mounts import project_folder
from tests.stories.parts import FakeHost


@pytest.mark.parametrize("told", ["-oallow_other", "project", "", "/a\n-x", "/a\x1b[2J"])
def test_what_a_host_prints_is_mounted_only_if_it_is_an_absolute_path(told: str) -> None:
    host: Any = FakeHost("lab", {"script": f"writable\n{told}\n"})
    with pytest.raises(Usage, match="no absolute path"):
        project_folder._look(host, "~/project")
