"""`jlr image build` (rows A9, B1, D2): a folder of the laptop becomes an image there, live."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import psutil
import pytest

from tests.images.parts import Registry, commands, keys_on_host, log_in
from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer


def write(folder: Path, recipe: str, name: str = "Dockerfile") -> Path:
    (folder / name).write_text(recipe)
    return folder / name


def run_in(engine: Engine, image: str, *argv: str) -> str:
    return engine.docker("run", "--rm", image, *argv)


def containers_of(engine: Engine, label: str) -> str:
    return engine.docker("ps", "--all", "--quiet", "--filter", f"label={label}")


def test_an_image_gets_all_its_names_and_the_output_is_shown(
    laptop: Laptop, engine: Engine, folder: Path, name: str, account: Account
) -> None:
    told = "ARG GREETING\nRUN echo built: $GREETING >/note; cat /note\n"
    write(folder, f"FROM lab/plain\nLABEL lab={name}\n{told}")  # which no cache has
    tags = ("-t", f"{name}:1", "-t", f"{name}-too")
    built = laptop.jlr("image", "build", "lab", ".", *tags, "--build-arg", "GREETING=hello $(id)")
    assert built.status != 0, "the laptop's home has no Dockerfile"
    built = laptop.jlr(
        "image", "build", "lab", "project", *tags, "--build-arg", "GREETING=hello $(id)"
    )
    assert built.status == 0, built
    short = engine.docker("images", "--quiet", f"{name}:1")
    assert built.stdout.startswith(f"{name}:1, {name}-too: {short}, 2")
    assert engine.docker("images", "--quiet", f"{name}-too:latest") == short
    assert run_in(engine, f"{name}:1", "cat", "/note") == "built: hello $(id)"
    assert re.search(r"Step 4/4 : RUN .*\n(.*\n)*?built: hello \$\(id\)\n", built.stderr)
    laptop.environment["GREETING"] = "the laptop's"
    try:
        named = laptop.jlr("image", "build", "lab", "project", *tags, "--build-arg", "GREETING")
    finally:
        del laptop.environment["GREETING"]
    assert named.status == 0, named
    assert run_in(engine, f"{name}:1", "cat", "/note") == "built: the laptop's"
    missing = laptop.jlr("image", "build", "lab", "project", *tags, "--build-arg", "GREETING")
    assert (missing.status, "`GREETING` has no value" in missing.stderr) == (2, True), missing
    assert re.search(r"Send project \(\d+ B\) to lab: done", built.stderr)

    (account.home / "there").mkdir()
    write(account.home / "there", "FROM lab/plain\nCOPY here /\n", "other.Dockerfile")
    (account.home / "there" / "here").write_text("from the host")
    words = ("--on-host", "~/there", "-f", "other.Dockerfile", "-t", name)
    assert laptop.jlr("image", "build", "lab", *words).status == 0
    assert run_in(engine, name, "cat", "/here") == "from the host"
    missing = laptop.jlr("image", "build", "lab", "--on-host", "~/there", "-t", name)
    assert (missing.status, "cannot read the Dockerfile" in missing.stderr) == (6, True), missing
    missing = laptop.jlr("image", "build", "lab", "--on-host", "/no/such", "-t", name)
    assert (missing.status, "no folder `/no/such` on `lab`" in missing.stderr) == (6, True), missing


@pytest.mark.parametrize(
    ("recipe", "status", "message"),
    [
        ("FROM lab/plain\n# why\nRUN exit 7\n", 1, "returned a non-zero code: 7"),
        ("", 1, "cannot build the image: "),
        ("FROM registry.invalid/no:1\n", 6, "cannot pull `registry.invalid/no:1`"),
    ],
)
def test_a_wrong_dockerfile_is_reported_and_leaves_nothing(
    recipe: str, status: int, message: str, laptop: Laptop, engine: Engine, folder: Path, name: str
) -> None:
    label = f"lab={name.replace('/', '-')}"
    write(folder, recipe.replace("# why", f"LABEL {label}"))
    built = laptop.jlr("image", "build", "lab", str(folder), "-t", name)
    assert built.status == status, built
    assert message in built.stderr
    assert engine.docker("images", "--quiet", name) == ""
    assert containers_of(engine, label) == ""


def test_an_invalid_or_missing_name_is_refused_before_anything_is_sent(
    laptop: Laptop, folder: Path
) -> None:
    write(folder, "FROM lab/plain\n")
    built = laptop.jlr("image", "build", "lab", str(folder), f"--tag=a@sha256:{'0' * 64}")
    assert (built.status, "invalid image name" in built.stderr) == (2, True), built
    assert "Connect" not in built.stderr
    assert laptop.jlr("image", "build", "lab", str(folder)).status == 2


@pytest.mark.long
def test_a_large_folder_is_sent_and_counted_without_growing(
    laptop: Laptop, engine: Engine, folder: Path, name: str
) -> None:
    write(folder, "FROM scratch\nCOPY big /\n")
    with (folder / "big").open("wb") as big:
        for _ in range(80):
            big.write(os.urandom(1 << 20))
    laptop.jlr("image", "list", "lab")  # the link is up
    (link,) = [p for p in laptop.processes() if "jlremote.link" in p.cmdline()]
    began = link.memory_info().rss
    peak = grown = 0
    with laptop.terminal(
        "jlr", "image", "build", "lab", str(folder), "-t", name, timeout=120
    ) as terminal:
        command = psutil.Process(terminal.pid)
        terminal.expect(r"Send .*\(84 MB\) to lab")
        while terminal.expect([r" (\d+) MB of 84 MB", r"✓", r"Step 1"], timeout=120) == 0:
            peak = max(peak, command.memory_info().rss)
            grown = max(grown, link.memory_info().rss - began)
        terminal.expect(rf"{name}: [0-9a-f]{{12}}, 84 MB", timeout=120)
        terminal.wait()
    assert terminal.exitstatus == 0
    assert 0 < peak < 100 << 20
    assert grown < 40 << 20


def test_ctrl_c_ends_a_build_on_the_host_too_and_says_what_stays(
    laptop: Laptop, engine: Engine, folder: Path, name: str, account: Account
) -> None:
    label = f"lab={name.replace('/', '-')}"
    write(folder, f"FROM lab/plain\nLABEL {label}\nRUN echo begun; sleep 300\n")
    with laptop.terminal("jlr", "image", "build", "lab", str(folder), "-t", name) as terminal:
        terminal.expect("\nbegun\r")
        assert containers_of(engine, label)
        terminal.sendintr()
        terminal.expect("nothing is built; docker keeps the finished steps in its cache")
        terminal.wait()
    assert terminal.exitstatus == 130
    builds = "docker build"
    wait_until(lambda: not any(builds in line for line in commands(account)), "docker's client")
    wait_until(lambda: containers_of(engine, label) == "", "the end of the build's container")
    assert engine.docker("images", "--quiet", name) == ""


def test_an_image_is_built_from_a_private_one_with_the_key_from_the_keychain(
    laptop: Laptop,
    registry: Registry,
    keychain: None,
    folder: Path,
    name: str,
    account: Account,
) -> None:
    base = registry.push_small("me/base:1")
    write(folder, f"FROM {base} AS base\nFROM base\nCOPY . /srv\n")
    (folder / "data").write_bytes(bytes(range(256)) * 5000)
    log_in(laptop, registry)
    built = laptop.jlr("image", "build", "lab", str(folder), "-t", name, "--json")
    assert (built.status, built.stderr) == (0, ""), built
    told = json.loads(built.stdout)
    assert told["tags"] == [name]
    assert 1_280_000 < told["size"] < 1_290_000
    wait_until(lambda: keys_on_host(account) == [], "the end of the key")


def test_buildkit_builds_too_and_its_error_is_reported(
    laptop: Laptop, engine: Engine, folder: Path, name: str, account: Account, keys: Keys
) -> None:
    environment = {
        "DOCKER_HOST": engine.url,
        "DOCKER_BUILDKIT": "1",
        "PATH": "/usr/bin:/bin",  # the client of 20.10, which has BuildKit built in
    }
    kinds = ["ed25519"]
    with SSHServer(keys.authorized, environment=environment, host_key_kinds=kinds) as server:
        laptop.add_host("kit", server, account, key=keys.private)
        write(folder, "FROM lab/plain\nRUN echo made by a kit\n")
        built = laptop.jlr("image", "build", "kit", str(folder), "-t", name, timeout=120)
        assert built.status == 0, built
        assert re.search(r"#\d+ .*made by a kit", built.stderr)
        (folder.parent / "token").write_text("s3same")
        show = "RUN --mount=type=secret,id=t sha256sum /run/secrets/t >/sum"
        write(folder, f"FROM lab/plain AS one\n{show}\nFROM one AS two\nRUN exit 4\n")
        words = ("--target", "one", "--no-cache", "--secret", f"id=t,src={folder.parent}/token")
        built = laptop.jlr("image", "build", "kit", str(folder), "-t", name, *words, timeout=120)
        assert built.status == 0, built
        digest = hashlib.sha256(b"s3same").hexdigest()
        assert digest in run_in(engine, name, "cat", "/sum")
        assert "s3same" not in run_in(engine, name, "sh", "-c", "cat /run/secrets/* 2>&1; true")
        assert list(Path("/tmp").glob("jlr-*/t")) == []
        write(folder, "FROM scratch\nCOPY Dockerfile /\n")
        foreign = ("-t", name, "--platform", "linux/s390x")
        built = laptop.jlr("image", "build", "kit", str(folder), *foreign, timeout=120)
        assert built.status == 0, built
        architecture = ("image", "inspect", "--format", "{{.Architecture}}", name)
        assert engine.docker(*architecture) == "s390x"
        write(folder, "FROM lab/plain\n\nRUN echo one\nRUN exit 3\n")
        failed = laptop.jlr("image", "build", "kit", str(folder), "-t", name, timeout=120)
        assert failed.status == 1
        assert "exit code: 3" in failed.stderr


def test_a_build_outlasts_a_broken_connection_and_is_joined_again(
    laptop: Laptop,
    engine: Engine,
    folder: Path,
    name: str,
    account: Account,
    sshd: SSHServer,
    line: Line,
    keys: Keys,
) -> None:
    laptop.add_host("far", sshd, account, key=keys.private, port=line.port)
    write(folder, "FROM lab/plain\nRUN sleep 8\n")
    listed = ("ps", "--no-trunc", "--format", "{{.Command}}", "--filter", "ancestor=lab/plain")
    with laptop.spawn("image", "build", "far", str(folder), "-t", name) as begun:
        wait_until(lambda: "sleep 8" in engine.docker(*listed), "the step")
        line.cut()
        said = begun.communicate(timeout=90)[0]
    assert begun.returncode == 0, said
    assert "the connection broke; the build goes on there; reconnecting" in said
    assert "Using cache" in said, "the step ran twice"
    assert f"\n{name}: " in said
