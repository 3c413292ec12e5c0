"""The lab's images, built without a registry and kept until their recipes change.

`lab/debian` comes from debootstrap; every other image is a folder under `recipes/` with a
Dockerfile that begins `FROM lab/…`. A label on each image holds the hash of its recipe and of all
that it is built from.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.lab.engine import Engine
from tests.lab.place import LabError, Say, exclusive, private_folder, root
from tests.lab.programs import run

RECIPES = Path(__file__).parent / "recipes"
BASE = "lab/debian"
LOCAL = ("/", "~", "file:")
DEBIAN_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
LABEL = "jlr-lab.recipe"
DEBOOTSTRAP = (
    "debootstrap",
    "--variant=minbase",
    "--include=python3,python3-venv,ca-certificates",
    "bookworm",
)
NAMES = ("lab/plain", "lab/jupyter", "lab/broken", "lab/slow", "lab/ages", "lab/slurm")


def ensure(engine: Engine, say: Say, names: tuple[str, ...] = NAMES) -> None:
    """Build those of the images that are missing or whose recipe changed, and their parents."""
    with exclusive(root() / "images.lock", say, "another run that builds the images", timeout=1800):
        for name in names:
            ensure_one(engine, say, name)


def ensure_one(engine: Engine, say: Say, name: str) -> None:
    """Build an image after its parents, unless the engine has it as its recipe is now."""
    wanted = recipe_hash(name)
    if built_hash(engine, name) == wanted:
        return
    if name == BASE:
        say(f"lab: building {name} with debootstrap, about a minute")
        build_base(engine, wanted)
        return
    ensure_one(engine, say, parent(name))
    say(f"lab: building {name}")
    build(engine, name, wanted)


def recipe(name: str) -> Path:
    return RECIPES / name.removeprefix("lab/")


def parent(name: str) -> str:
    text = (recipe(name) / "Dockerfile").read_text(encoding="utf-8")
    begin = re.search(r"^FROM (lab/\S+)$", text, re.MULTILINE)
    if begin is None:
        raise LabError(f"the recipe of `{name}` has no line `FROM lab/…`")
    return begin[1]


def recipe_hash(name: str) -> str:
    if name == BASE:
        return hashlib.sha256(repr(DEBOOTSTRAP).encode()).hexdigest()
    digest = hashlib.sha256(recipe_hash(parent(name)).encode())
    for path in sorted(path for path in recipe(name).rglob("*") if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def built_hash(engine: Engine, name: str) -> str | None:
    """Return the recipe hash that the engine's image carries, if it has the image."""
    found = engine.try_docker(
        "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', name
    )
    return found.stdout.strip() if found.status == 0 else None


def copy(engine: Engine, name: str, *load: str) -> None:
    """Give an image of the engine to a command that loads it."""
    save = ("docker", "-H", engine.url, "save", name)
    with subprocess.Popen(save, stdout=subprocess.PIPE) as saving:
        null = subprocess.DEVNULL
        subprocess.run(load, stdin=saving.stdout, stdout=null, timeout=300, check=True, cwd="/")


def build_base(engine: Engine, wanted: str) -> None:
    """Make a Debian in a folder and import it as the image that all others stand on."""
    with private_folder("debian") as private:
        folder = str(private / "root")
        run(*DEBOOTSTRAP, folder, timeout=900)
        # Its package archives and lists are half of its size, and nothing reads them again.
        run("chroot", folder, "apt-get", "clean")
        parts = ("--one-file-system", "--exclude=./proc/*", "--exclude=./sys/*")
        archive = ("tar", "-C", folder, *parts, "-c", ".")
        with subprocess.Popen(archive, stdout=subprocess.PIPE) as packer:
            label = ("-c", f"LABEL {LABEL}={wanted}")
            load = ("docker", "-H", engine.url, "import", *label, "-", BASE)
            done = subprocess.run(load, stdin=packer.stdout, capture_output=True, timeout=300)
    if done.returncode or packer.returncode:
        raise LabError(f"`docker import` of `{BASE}` failed: {done.stderr!r}")


def build(engine: Engine, name: str, wanted: str) -> None:
    """Run `docker build` on a copy of the recipe, beside which lies what pip needs.

    The host's own network and no BuildKit: neither depends on what the machine has besides.
    """
    with tempfile.TemporaryDirectory(prefix="jlr-lab-") as folder:
        context = Path(folder) / "context"
        shutil.copytree(recipe(name), context)
        shutil.copy(certificates(), context / "ca-certificates.crt")
        (context / "pip.conf").write_text(pip_conf(), encoding="utf-8")
        run(
            *("env", "DOCKER_BUILDKIT=0", "docker", "-H", engine.url, "build", "--quiet"),
            *("--network", "host", "--label", f"{LABEL}={wanted}", "--tag", name, str(context)),
            timeout=900,
        )


@cache
def pip_settings() -> dict[str, str]:
    """Return pip's options by name, the environment's over those of the files."""
    listed = run(sys.executable, "-m", "pip", "config", "list")
    found = re.findall(r"^(global|install|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    order = ("global", "install", ":env:")
    return {name: text for _, name, text in sorted(found, key=lambda each: order.index(each[0]))}


def certificates() -> Path:
    """Return the bundle of authorities that this machine's pip trusts."""
    told = (
        pip_settings().get("cert"),
        *map(os.environ.get, ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")),
    )
    return next((Path(path) for path in told if path), DEBIAN_BUNDLE)


def pip_conf() -> str:
    """Return a `pip.conf` with this machine's settings, less those that only hold here.

    Folders and `file:` indexes of this machine are not in a container, and its bundle of
    authorities lies at Debian's place there.
    """
    lines = ["[global]", f"cert = {DEBIAN_BUNDLE}"]
    for name, text in pip_settings().items():
        words = [word for word in text.replace("\\n", " ").split() if not word.startswith(LOCAL)]
        if words and name != "cert":
            lines.append(f"{name} = {' '.join(words)}")
    return "\n".join(lines) + "\n"
