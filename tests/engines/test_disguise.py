"""A `docker` that is podman (package podman-docker): it is used by its own name."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.engines.conftest import IMAGE, EnginesHost
from tests.engines.parts import told
from tests.lab import podman
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.long import LONG
from tests.sessions.parts import failed

# The package's own script; the words are not said where `/etc/containers/nodocker` is.
SCRIPTS = {
    "loud": """\
#!/bin/sh
echo "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg." >&2
exec /usr/bin/podman "$@"
""",
    "silent": '#!/bin/sh\nexec /usr/bin/podman "$@"\n',
}


@pytest.fixture(scope="module", params=["loud", LONG("silent")])
def disguised(
    request: pytest.FixtureRequest, engines_host: EnginesHost, engine: Engine, keys: Keys
) -> Iterator[Laptop]:
    """A laptop whose host has podman alone, under both names."""
    with private_folder("disguise") as folder:
        program = folder / "docker"
        program.write_text(SCRIPTS[request.param], encoding="utf-8")
        program.chmod(0o755)
        variables = podman.environment() | {"PATH": f"{folder}:/usr/bin:/bin"}
        with (
            running_sshd(engine, keys, environment=variables) as server,
            new_laptop(server, engines_host.account, keys) as laptop,
        ):
            yield laptop


def test_a_session_is_started_listed_and_removed_by_the_name_podman(
    disguised: Laptop, engines_host: EnginesHost, name: str
) -> None:
    words = ("start", "lab", name, "--image", IMAGE, "--no-browser")
    try:
        disguised.jlr(*words, timeout=120).checked(
            0, "using podman, because `docker` on the host is podman"
        )
        again = disguised.jlr(*words, "--json", timeout=120)
        assert json.loads(again.stdout)["runtime"] == "podman"
        [listed] = [s for s in told(disguised, "list", "lab", "--json") if s["name"] == name]
        assert (listed["runtime"], listed["state"]) == ("podman", "up")
        assert disguised.jlr("shell", name, "--", "echo", "inside").stdout == "inside\n"
        disguised.jlr("rm", name, "--force", "--yes", timeout=90).checked()
    finally:
        engines_host.remove("podman", name)


def test_named_docker_it_is_refused_with_its_real_name(disguised: Laptop, name: str) -> None:
    done = disguised.jlr("start", "lab", name, "--image", IMAGE, "--runtime", "docker")
    failed(done, 1, "`docker` on the host is podman", "`--runtime podman`")
