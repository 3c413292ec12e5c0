"""`jlr image pull` and that of `jlr start` (rows A3, E4, E5, E6): live, private, through breaks."""

from __future__ import annotations

import base64
import json
import re
import signal
from collections.abc import Callable
from contextlib import suppress

import pexpect
import psutil
import pytest

from tests.images.conftest import Layers
from tests.images.parts import Registry, commands, has, keys_on_host, log_in
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer


@pytest.fixture
def slow_image(
    laptop: Laptop, registry: Registry, keychain: None, slow_line: Line, layers: Layers
) -> Callable[..., str]:
    """Make an image with layers of so many bytes that come slowly; the laptop has its key."""

    def make(name: str, *sizes: int, host: str = "lab") -> str:
        layers(name, *sizes)
        place = f"127.0.0.1:{slow_line.port}"
        log_in(laptop, registry, place, host=host)
        return f"{place}/{name}"

    return make


def transfers(account: Account, image: str) -> list[str]:
    """Return what of docker moves an image for the remote user, who may have other sessions."""
    moving = [words for words in commands(account) if words.startswith(("docker ", "script "))]
    return [words for words in moving if image in words]


def test_a_private_image_is_pulled_with_the_key_from_the_keychain(
    laptop: Laptop, registry: Registry, keychain: None, account: Account, engine: Engine
) -> None:
    image = registry.push_small("me/plain:1")
    log_in(laptop, registry)
    done = laptop.jlr("image", "pull", "lab", image)
    assert done.status == 0, done
    assert re.fullmatch(rf"{image}: [0-9a-f]{{12}}, \d+ k?B\n", done.stdout)
    assert has(engine, image)
    assert not (account.home / ".docker" / "config.json").exists()


def test_an_image_without_a_tag_is_the_latest(
    laptop: Laptop, registry: Registry, keychain: None, engine: Engine
) -> None:
    image = registry.push_small("me/untagged")
    log_in(laptop, registry)
    done = laptop.jlr("image", "pull", "lab", image, "--json")
    told = json.loads(done.stdout)
    assert (told["image"], done.stderr) == (image, "")
    assert told["id"] == engine.docker("image", "inspect", "--format", "{{.Id}}", f"{image}:latest")


@pytest.mark.parametrize(
    ("image", "status", "message"),
    [
        ("{registry}/me/nothing:1", 6, "manifest unknown"),
        ("registry.invalid/me/x:1", 6, "`lab` cannot reach `registry.invalid`"),
        ("me/x:-tag", 2, "its tag is `-tag`"),
    ],
)
def test_an_impossible_pull_is_one_clear_message(
    image: str, status: int, message: str, laptop: Laptop, registry: Registry, keychain: None
) -> None:
    log_in(laptop, registry)
    done = laptop.jlr("image", "pull", "lab", image.replace("{registry}", registry.name))
    assert done.status == status, done
    assert message in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1


def test_layers_and_bytes_are_shown_during_a_pull(
    laptop: Laptop, slow_image: Callable[..., str]
) -> None:
    image = slow_image("me/live:1", 2_000_000, 12_000_000)
    with laptop.terminal("jlr", "image", "pull", "lab", image) as terminal:
        terminal.expect(r"1 of 2 layers, [3-9][.\d]* MB  ")
        terminal.expect_exact("✓")
        terminal.expect(rf"Pull {image}")
        terminal.expect(pexpect.EOF)


def test_ctrl_c_ends_a_pull_on_the_host_and_names_what_stays(
    laptop: Laptop, slow_image: Callable[..., str], account: Account, engine: Engine
) -> None:
    image = slow_image("me/long:1", 20_000_000)
    with laptop.terminal("jlr", "image", "pull", "lab", image) as terminal:
        terminal.expect(r"0 of 1 layers, [2-9][.\d]* MB  ")
        terminal.sendintr()
        terminal.expect("did not pull .*; docker keeps no part of it")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    assert terminal.exitstatus == 130
    wait_until(lambda: not transfers(account, image), "the end of docker's client")
    wait_until(lambda: keys_on_host(account) == [], "the end of the key")
    assert not has(engine, image)


def test_a_pull_goes_on_over_a_broken_connection_and_is_joined_again(
    laptop: Laptop,
    slow_image: Callable[..., str],
    slow_line: Line,
    account: Account,
    engine: Engine,
    sshd: SSHServer,
    line: Line,
    keys: Keys,
) -> None:
    laptop.add_host("far", sshd, account, key=keys.private, port=line.port)
    image = slow_image("me/far:1", 16_000_000, host="far")
    with laptop.terminal("jlr", "image", "pull", "far", image) as terminal:
        terminal.expect(r"0 of 1 layers, [4-9][.\d]* MB  ")
        line.cut()
        terminal.expect_exact("the connection broke; the transfer goes on there; reconnecting")
        terminal.expect(rf"{image}: [0-9a-f]{{12}}")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    assert terminal.exitstatus == 0
    assert has(engine, image)
    assert slow_line.carried < 20_000_000, "it began anew"
    wait_until(lambda: keys_on_host(account) == [], "the end of the first one's key")


def test_the_key_is_in_no_argument_environment_or_log(
    laptop: Laptop,
    registry: Registry,
    slow_image: Callable[..., str],
    slow_line: Line,
    account: Account,
) -> None:
    image = slow_image("me/key:1", 16_000_000)
    encoded = base64.b64encode(f"$oauthtoken:{registry.key}".encode()).decode()
    seen = []
    with laptop.spawn("--verbose", "image", "pull", "lab", image) as process:
        try:
            wait_until(lambda: slow_line.carried > 3_000_000, "the pull", timeout=60)
            for found in (*account.processes(), *laptop.processes()):
                with suppress(psutil.Error):
                    seen += [*found.cmdline(), *found.environ().values()]
            (folder,) = keys_on_host(account)
        finally:
            process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=30)
    seen += [told, *(path.read_text(errors="replace") for path in laptop.folder.rglob("*.log"))]
    assert len(seen) > 20
    assert not [text for text in seen if registry.key in text or encoded in text]
    wait_until(lambda: keys_on_host(account) == [], f"the end of {folder}")


def test_start_pulls_an_image_that_is_missing_and_shows_it(
    laptop: Laptop,
    registry: Registry,
    keychain: None,
    container: ContainerFactory,
    engine: Engine,
) -> None:
    image = registry.push_small("me/start:1")
    log_in(laptop, registry)
    name = container.name()
    done = laptop.jlr("start", "lab", name, "--image", image, "--no-browser", timeout=120)
    assert "an image for jlr needs `sh`" in done.stderr, done
    steps = [line.partition(": done")[0] for line in done.stderr.splitlines() if ": done" in line]
    assert [step for step in steps if step.startswith(("Pull", "Create"))] == [
        f"Pull {image}",
        f"Create {name} from {image}",
    ]


def test_start_takes_an_image_by_the_beginning_of_its_id_and_without_its_tag(
    laptop: Laptop, container: ContainerFactory, engine: Engine
) -> None:
    short, made = engine.docker("images", "--quiet", "lab/jupyter")[:6], container.name()
    for image in (short, "lab/jupyter", "lab/jupyter:latest"):
        done = laptop.jlr("start", "lab", made, "--image", image, "--no-browser", timeout=120)
        assert done.status == 0, done
        assert "Pull" not in done.stderr
        assert "`--image` applies" not in done.stderr, done
    planned = laptop.jlr("start", "lab", container.name(), "--image", "lab/jupyter", "--dry-run")
    assert "docker create " in planned.stdout, planned
    assert "docker pull" not in planned.stdout
