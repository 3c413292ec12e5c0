"""A Jupyter that runs in a container is found wherever its variables let it keep its files."""

from __future__ import annotations

import pytest

from tests.lab.certificates import certificate
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import SERVER, failed, start, started

OPEN = (*SERVER, "--ip=0.0.0.0")
HOME = "mkdir -p /srv/home; chown 1000 /srv/home; cd /srv/home"
ALONE = "setpriv --reuid=1000 --regid=100 --clear-groups env HOME=/srv/home"


@pytest.mark.parametrize(
    ("options", "begin"),
    [
        LONG(("--env=JUPYTER_DATA_DIR=/srv/data",), "exec"),
        LONG((), "export JUPYTER_RUNTIME_DIR=/srv/run; exec"),
        ((), f"{HOME}; exec {ALONE}"),
    ],
    ids=["image", "entrypoint", "user"],
)
def test_a_server_with_folders_of_its_own_is_reused_and_not_doubled(
    laptop: Laptop, container: ContainerFactory, options: tuple[str, ...], begin: str
) -> None:
    run = ("sh", "-c", f'{begin} "$@"', "sh", *OPEN)
    here = container("lab/jupyter", *run, options=options)
    here.await_output("is running at")
    assert "/theirs/" in started(laptop, here).url


@pytest.mark.long
def test_settings_of_ours_are_on_though_an_image_switches_configuration_off(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container(options=("--env=JUPYTER_NO_CONFIG=1",))
    session = started(laptop, here)
    assert f"/{here.name}-" in session.url


KNOWN_BY_HEADER = """\
from jupyter_server.auth.identity import IdentityProvider, User
class Proxied(IdentityProvider):
    def get_user(self, handler):
        name = handler.request.headers.get("X-Forwarded-User")
        return User(name) if name else None
c.ServerApp.identity_provider_class = Proxied
"""


def test_a_server_that_knows_people_by_a_header_is_told_and_one_of_ours_takes_its_token(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    file = ("sh", "-c", 'mkdir -p ~/.jupyter; printf %s "$1" >~/.jupyter/jupyter_server_config.py')
    here.execute(*file, "sh", KNOWN_BY_HEADER)
    here.engine.docker("exec", "-d", here.name, *OPEN)
    listens = f"grep -q ':{8888:04X} ' /proc/net/tcp && echo yes; :"
    wait_until(lambda: here.execute("sh", "-c", listens), "its server")
    words = ("answers 403 Forbidden", "by a proxy", f"then `jlr start lab {here.name}`")
    failed(start(laptop, "lab", here.name), 1, *words)
    told = "/root/.local/share/jupyter/runtime/jpserver-*.json"
    here.execute("sh", "-c", f"set -- {told}; pid=${{1##*-}}; kill ${{pid%.json}}")
    wait_until(lambda: not here.execute("sh", "-c", f"ls {told} 2>/dev/null; :"), "its end")
    assert started(laptop, here).ask("api/status")["kernels"] == 0


@pytest.mark.parametrize(
    ("begin", "option", "served"),
    [
        LONG("unset JUPYTER_CONFIG_PATH", "", "`/`"),
        (":", "--certfile=/srv/own.pem --IdentityProvider.token=", "/` by TLS without a token"),
    ],
    ids=["path", "options"],
)
def test_a_jupyter_that_drops_the_settings_of_ours_is_refused_and_ended(
    laptop: Laptop, container: ContainerFactory, begin: str, option: str, served: str
) -> None:
    here, made = container(), certificate()
    here.execute("sh", "-c", 'printf %s "$0" >/srv/own.pem', made.text + made.key)
    program = here.execute("sh", "-c", "command -v jupyter-lab").strip()
    wrapper = f'{begin}; exec {program}-real "$@" {option}'
    write = f"mv {program} {program}-real; printf '#!/bin/sh\n%s\n' \"$1\" >{program}"
    here.execute("sh", "-c", f"{write}; chmod 755 {program}", "sh", wrapper)
    failed(start(laptop, "lab", here.name), 1, "does not follow its settings", served)

    def runs() -> bool:
        return "-real" in here.engine.docker("top", here.name, "-eo", "pid,args")

    wait_until(lambda: not runs(), "the end of that server")
