"""`jlr image save` and `push` (rows A9, D4): a container with what was installed, as an image."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.images.parts import Registry, log_in
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import run, wait_until
from tests.lab.wheels import OFFLINE, write_wheel
from tests.mounts.parts import remember_session
from tests.sessions.conftest import file_other_laptop as file_other_laptop
from tests.sessions.conftest import other_laptop as other_laptop


@pytest.fixture(scope="module")
def session(laptop: Laptop, engine: Engine) -> Iterator[str]:
    """The name of a session, which each test leaves as it was."""
    factory = ContainerFactory(engine, f"lab-{secrets.token_hex(4)}-")
    name = factory.name()
    start(laptop, name)
    yield name
    factory.remove_all()


def start(laptop: Laptop, name: str, *words: str, image: str = "lab/jupyter") -> None:
    argv = ("start", "lab", name, "--image", image, "--no-browser", *words)
    done = laptop.jlr(*argv, timeout=120)
    assert done.status == 0, done


def config(engine: Engine, image: str) -> dict[str, object]:
    told = json.loads(engine.docker("image", "inspect", "--format", "{{json .Config}}", image))
    assert isinstance(told, dict)
    return told


def test_installed_packages_are_in_the_image_and_volumes_are_reported(
    laptop: Laptop, other_laptop: Laptop, engine: Engine, container: ContainerFactory, name: str
) -> None:
    session = container.name()
    volumes = ("-v", "/var/tmp:/data", "-v", f"{session}-volume:/kept")
    start(laptop, session, *volumes, "-e", "HF=s3cret")
    install = "echo installed >/opt/new; echo x >/kept/file"
    engine.docker("exec", "--user=root", session, "sh", "-c", install)
    saved = other_laptop.jlr("image", "save", f"lab/{session}", f"{name}:1")
    assert saved.status == 0, saved
    assert saved.stdout.startswith(f"{name}:1: {engine.docker('images', '--quiet', f'{name}:1')}, ")
    assert "not in the image: " in saved.stderr
    assert "/data (/var/tmp)" in saved.stderr
    assert f"/kept (volume {session}-volume)" in saved.stderr
    [told] = re.findall(r"these variables with their values: (.*)", saved.stderr)
    # With folders of the host it runs as the user; others run the image as themselves.
    assert set(told.split(", ")) == {"USER", "LOGNAME", "HF"}
    assert config(engine, f"{name}:1")["User"] == "root"
    assert "s3cret" not in saved.stderr
    assert engine.docker("run", "--rm", f"{name}:1", "cat", "/opt/new") == "installed"
    engine.docker("rm", "--force", session)
    engine.docker("volume", "rm", f"{session}-volume")


def test_packages_of_a_session_as_oneself_are_in_the_image_for_everybody(
    laptop: Laptop, engine: Engine, container: ContainerFactory, account: Account, name: str
) -> None:
    session, wheels = container.name(), f"{write_wheel(account.home / 'wheels')}:/wheels:ro"
    start(laptop, session, "-v", wheels, *OFFLINE, "--install", "tiny")
    own, python = f"/tmp/jlr-{account.uid}", "/opt/jupyter/bin/python3"

    def inside(script: str) -> str:
        done = engine.try_docker("exec", session, "sh", "-c", script)
        return done.stdout + done.stderr

    at_home = f"{own}/{session}/home/.local/lib/python3.11/site-packages"
    tool = f"{own}/.packages/bin/tool"
    inside(
        f"umask 077; mkdir -p {at_home}; echo MINE=5 >{at_home}/mine.py; "
        f"printf '#!{own}/.packages/bin/python\nimport tiny, mine, jupyterlab\n"
        f"print(tiny.VALUE + mine.MINE)\n' >{tool}; chmod +x {tool}"
    )
    assert laptop.jlr("image", "save", session, name).status == 0
    assert engine.docker("run", "--rm", "--user=4321", name, "tool") == "47"
    assert engine.docker("run", "--rm", name, python, "-c", "import tiny, mine") == ""
    job = ("--image", name, "-v", wheels, *OFFLINE, "--install", "tiny", "--rm", "--", "tool")
    done = laptop.jlr("run", "lab", *job, timeout=120)
    assert (done.status, done.stdout) == (0, "47\n"), done
    with laptop.terminal("jlr", "rm", f"lab/{session}") as screen:
        screen.expect(r"packages that were installed in it: tiny\r\n")
        screen.expect(r"\(y/N\) ")
        screen.send("n\r")
        screen.expect("nothing was changed")


OTHERS = "/home/ada/.local/share/jupyter/runtime"
OTHERS_SECRET = "0ther5ecret"


@pytest.fixture(scope="module")
def saved(laptop: Laptop, engine: Engine, session: str) -> Iterator[str]:
    """The image of the session, beside whose server a user of the container has launched one."""
    by_hand = (
        f"umask 077; mkdir -p {OTHERS}; echo {OTHERS_SECRET} >{OTHERS}/jupyter_cookie_secret\n"
        "chown -R 65534:65534 /home/ada; chmod -R a+X /home/ada"
    )
    engine.docker("exec", "--user=root", session, "sh", "-c", by_hand)
    image = f"lab-{secrets.token_hex(4)}/saved"
    done = laptop.jlr("image", "save", session, image)
    assert done.status == 0, done
    assert done.stdout.startswith(f"{image}: {engine.docker('images', '--quiet', image)}, ")
    yield image
    engine.docker("rmi", "--force", image)


def test_the_saved_image_runs_like_the_original_and_starts_a_session_of_its_own(
    laptop: Laptop, engine: Engine, saved: str, container: ContainerFactory, name: str
) -> None:
    """jlr's containers only wait; a container of the saved image must not."""
    before, after = config(engine, "lab/jupyter"), config(engine, saved)
    assert before.get("Entrypoint") is None
    assert after["Entrypoint"] == [""]
    assert after.get("Cmd") == before.get("Cmd")
    assert engine.docker("run", "--rm", saved, "echo", "it runs") == "it runs"
    labels = after["Labels"]
    assert isinstance(labels, dict)
    assert {value for label, value in labels.items() if label.startswith("org.jlremote")} == {""}
    again = container.name()
    start(laptop, again, image=saved)
    engine.docker("rm", "--force", again)
    missing = laptop.jlr("image", "save", again, name)
    assert missing.status == 6, missing
    assert f"there is no container `{again}` on `lab`" in missing.stderr
    assert laptop.jlr("image", "save", "nowhere", name).status == 6


def test_a_session_goes_on_while_and_after_it_is_saved_and_its_token_is_not_in_the_image(
    laptop: Laptop, engine: Engine, session: str, saved: str
) -> None:
    """Nor are the secrets of a server that another user of the container launched by hand."""
    url = laptop.jlr("url", session).stdout.strip()
    token = url.partition("token=")[2]
    assert len(token) >= 32
    state = json.loads(laptop.jlr("list", session, "--json").stdout)["state"]
    assert state == "up"
    made = engine.docker("create", saved)
    words = f"-e {token} -e {OTHERS_SECRET}"
    export = f"docker -H {engine.url} export {made} | grep -c --text {words} || true"
    try:
        found = run("sh", "-c", export)
    finally:
        engine.docker("rm", made)
    assert found.strip() == "0"
    assert "jlr-" not in engine.docker("exec", session, "ls", "/dev/shm")
    look = ("stat", "--format=%u %a", f"{OTHERS}/jupyter_cookie_secret")
    assert engine.docker("exec", session, *look) == "65534 600"


def test_a_session_whose_secrets_cannot_be_kept_out_of_the_image_is_not_saved(
    laptop: Laptop, engine: Engine, session: str, name: str
) -> None:
    url = laptop.jlr("url", session).stdout
    engine.try_docker("exec", session, "sh", "-c", "cat /dev/zero >/dev/shm/full")
    done = laptop.jlr("image", "save", session, name)
    assert done.status == 1, done
    assert f"cannot save `{session}`: Jupyter's token and keys would be in the image" in done.stderr
    assert "No space left on device" in done.stderr
    assert engine.docker("images", "--quiet", name) == ""
    assert "jlr-saving" not in engine.docker("images")
    assert engine.docker("exec", session, "ls", "/dev/shm") == "full"
    engine.docker("exec", session, "rm", "/dev/shm/full")
    assert laptop.jlr("url", session).stdout == url
    assert "jupyter_cookie_secret" in engine.docker(
        "exec", session, "ls", f"/tmp/jlr-0/{session}/runtime"
    )


def test_an_interrupted_save_leaves_the_session_as_it_was_and_no_image(
    laptop: Laptop, engine: Engine, session: str, name: str
) -> None:
    engine.docker("exec", session, "sh", "-c", "head -c 200000000 /dev/urandom >/big")
    engine.docker("tag", "lab/plain", name)
    wanted = (f"--since={int(time.time())}", f"--filter=container={session}")
    pause = ("--format={{.Action}}", "--filter=event=pause")
    events = ("docker", "-H", engine.url, "events", *pause, *wanted)
    with subprocess.Popen(events, stdout=subprocess.PIPE, text=True) as pauses:
        saving = laptop.spawn("image", "save", session, name)
        assert pauses.stdout is not None
        assert pauses.stdout.readline() == "pause\n"
        saving.send_signal(signal.SIGINT)
        pauses.terminate()
    saving.communicate(timeout=60)
    assert saving.returncode == 130
    # Nothing can be run in it as long as it stands still, which docker ends once it has read all.
    aside = ("exec", session, "sh", "-c", "ls /dev/shm; echo seen")
    returned = "the secrets' way back"
    wait_until(lambda: engine.try_docker(*aside).stdout == "seen\n", returned, timeout=200)
    runtime = engine.docker("exec", session, "ls", f"/tmp/jlr-0/{session}/runtime")
    assert "jpserver-" in runtime
    ids = (engine.docker("images", "--quiet", image) for image in (name, "lab/plain"))
    assert len(set(ids)) == 1, "it had another image's name"
    wait_until(lambda: "jlr-saving" not in engine.docker("images"), "the end of what was made")


def test_a_container_that_jlr_did_not_create_keeps_its_entrypoint_and_secrets(
    laptop: Laptop, engine: Engine, container: ContainerFactory, name: str
) -> None:
    made = container("lab/jupyter", "sleep", "1000", options=("--entrypoint=/usr/bin/env",))
    done = laptop.jlr("start", "lab", made.name, "--no-browser", timeout=120)
    assert done.status == 0, done
    laptop.jlr("stop", made.name)
    engine.docker("stop", "--time=0", made.name)
    assert laptop.jlr("image", "save", made.name, name).status == 0
    assert config(engine, name)["Entrypoint"] == ["/usr/bin/env"]
    by_hand = "/root/.local/share/jupyter/runtime"
    secret = f"mkdir -p {by_hand} && echo secret >{by_hand}/jupyter_cookie_secret"
    engine.docker("start", made.name)
    engine.docker("exec", "--user=0", made.name, "sh", "-c", secret)
    engine.docker("stop", "--time=0", made.name)
    refused = laptop.jlr("image", "save", made.name, name)
    assert refused.status == 1
    assert f"would be in the image: {by_hand}/jupyter_cookie_secret" in refused.stderr
    assert f"`docker start {made.name}` there starts it" in refused.stderr
    engine.docker("start", made.name)
    assert laptop.jlr("image", "save", made.name, name).status == 0
    assert engine.docker("run", "--rm", name, "ls", "-A", by_hand) == ""


def test_a_saved_image_is_pushed_to_a_private_registry_with_the_key(
    laptop: Laptop,
    registry: Registry,
    keychain: None,
    engine: Engine,
    container: ContainerFactory,
) -> None:
    session, image = container("lab/plain").name, f"{registry.name}/me/saved:week3"
    remember_session(laptop, session, "docker")
    missing = laptop.jlr("image", "push", "lab", image)
    assert (missing.status, "`jlr image list lab`" in missing.stderr) == (6, True), missing
    assert laptop.jlr("image", "save", session, image).status == 0
    refused = laptop.jlr("image", "push", "lab", image)
    assert refused.status == 4, refused
    assert f"`jlr image login lab {registry.name} --username NAME`" in refused.stderr
    log_in(laptop, registry)
    pushed = laptop.jlr("image", "push", "lab", image, "--json", timeout=120)
    assert pushed.status == 0, pushed
    assert json.loads(pushed.stdout)["image"] == image
    engine.docker("rmi", image)
    assert laptop.jlr("image", "pull", "lab", image).status == 0
