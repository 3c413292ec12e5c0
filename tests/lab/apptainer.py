"""Apptainer for accounts of the lab, and a `.sif` of the lab's Jupyter image.

Debian has it in sid only, for a newer libc. So its package and that libc are taken from there, in
apt's own signed way, into a folder of the lab: a program finds its libc by a path in its header.
The rest, as squashfuse, is this machine's. No root and no setuid are involved, as on a cluster.

The older form `singularity` is a link to it here, which takes variables by that name's prefix: no
release of Debian that can be had has a package of the old program.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.lab import images
from tests.lab.engine import Engine
from tests.lab.place import Say, exclusive, private_folder, root
from tests.lab.programs import SYSTEM_PATH, run

PROGRAMS = ("patchelf", "squashfuse_ll", "mksquashfs")
PACKAGES = ("apptainer", "libc6")
SOURCE = "deb [signed-by={keys}] http://deb.debian.org/debian sid main\n"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIBRARIES = ("libc.so.6", "libm.so.6", "libresolv.so.2", "libnss_files.so.2", "libnss_dns.so.2")
IMAGE = "lab/jupyter"
# The lab's image is made once and read from memory: small pays less here than fast.
FAST = "-comp gzip -Xcompression-level 1"


def missing() -> list[str]:
    """Return what is not installed."""
    return [f"`{program}` is not installed" for program in PROGRAMS if not shutil.which(program)]


def folder() -> Path:
    return root() / "apptainer"


def environment() -> Mapping[str, str]:
    """Return the variables that a host with Apptainer has."""
    return {"PATH": f"{folder() / 'usr/bin'}:/usr/local/bin:/usr/bin:/bin"}


def ensure(engine: Engine, say: Say) -> Path:
    """Install Apptainer and make the image, unless they are there; return the image's path."""
    Path("/dev/fuse").chmod(0o666)  # as udev would have it
    with exclusive(root() / "apptainer.lock", say, "another run that makes Apptainer's image"):
        if not (folder() / "usr/bin/singularity").exists():
            say("lab: installing Apptainer from Debian sid")
            _install()
        images.ensure(engine, say, (IMAGE,))
        image = folder() / f"jupyter-{images.recipe_hash(IMAGE)[:12]}.sif"
        if not image.exists():
            say(f"lab: building {image.name} from {IMAGE}, about a minute")
            _build(engine, image)
    return image


def _install() -> None:
    with private_folder("sid") as private:
        new = private / "new"
        for package in _downloaded(private):
            run("dpkg-deb", "-x", str(package), str(new))
        (libc,) = (new / "usr/lib").glob("*/libc.so.6")
        (starter,) = (new / "usr/lib").glob("*/apptainer/bin/starter")
        (loader,) = libc.parent.glob("ld-linux*")
        libraries = new / "lib-sid"
        libraries.mkdir()
        for name in (*LIBRARIES, loader.name):
            shutil.copy(libc.parent / name, libraries / name)
        there = folder() / "lib-sid"
        for program in (new / "usr/bin/apptainer", starter):
            # RPATH and not RUNPATH: it holds for what the libraries themselves load, too.
            search = ("--force-rpath", "--set-rpath", str(there))
            run("patchelf", "--set-interpreter", str(there / loader.name), *search, str(program))
        _relocate(new)
        shutil.rmtree(folder(), ignore_errors=True)
        folder().mkdir(mode=0o755)
        for part in ("lib-sid", "usr"):
            shutil.move(new / part, folder() / part)


def _downloaded(private: Path) -> list[Path]:
    """Return the packages, fetched with lists and settings of their own."""
    source = private / "sources.list"
    source.write_text(SOURCE.format(keys=KEYS), encoding="utf-8")
    (private / "lists/partial").mkdir(parents=True)
    (private / "cache/archives/partial").mkdir(parents=True)
    own = (
        *("-o", f"Dir::Etc::SourceList={source}", "-o", "Dir::Etc::SourceParts=/dev/null"),
        *("-o", f"Dir::State::Lists={private / 'lists'}", "-o", f"Dir::Cache={private / 'cache'}"),
        *("-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=root"),
        *("-o", "Acquire::Languages=none"),
    )
    run("apt-get", *own, "--quiet=2", "update", timeout=300)
    fetch = ("env", "-C", str(private), "apt-get", *own, "--quiet=2", "download", *PACKAGES)
    run(*fetch, timeout=300)
    return sorted(private.glob("*.deb"))


def _relocate(new: Path) -> None:
    """Put the settings where both programs look for them: below their own prefix each."""
    shutil.move(new / "etc", new / "usr/etc")
    (new / "usr/lib/etc").symlink_to("../etc")
    for prefix in (new / "usr", new / "usr/lib"):
        (prefix / "var/lib/apptainer/mnt/session").mkdir(parents=True)
    (new / "usr/bin/singularity").symlink_to("apptainer")


def _build(engine: Engine, image: Path) -> None:
    for old in folder().glob("jupyter-*.sif"):
        old.unlink()
    with private_folder("sif") as private:
        archive, made = private / "image.tar", private / "image.sif"
        engine.docker("save", "--output", str(archive), IMAGE, timeout=300)
        words = ("build", "--mksquashfs-args", FAST, str(made), f"docker-archive:{archive}")
        own = {"PATH": SYSTEM_PATH, "HOME": str(private), "APPTAINER_TMPDIR": str(private)}
        run(str(folder() / "usr/bin/apptainer"), *words, env=own, timeout=600)
        made.chmod(0o644)
        made.rename(image)
