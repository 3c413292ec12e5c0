"""Images of a cluster's jobs, and what stands in their way."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.cluster.parts import name, stand_in, startup_line
from tests.images.parts import Registry, missing_programs, running_registry, unlocked_keychain
from tests.lab.cluster import Cluster
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import started

SLURM = ("run", "zih", "--slurm", "--cpus", "1")
APPTAINER = "/usr/local/bin/apptainer"
IMAGES = "/home/alice/images"
# Writes down its arguments before it is Apptainer.
TELLS = """\
echo "$@" >>/home/alice/arguments
exec REAL "$@"
"""
# A package of hers that Python imports by itself.
POISON = """\
HOME=/home/alice; export HOME; cd; site=$(python3 -m site --user-site); mkdir -p "$site"
echo 'print("poisoned")' >"$site/usercustomize.py"; python3 -c pass
"""

NEW_LAPTOPS = True


@pytest.fixture
def image(cluster: Cluster, zih: Laptop, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an image, which only the job can pull: the login node has no Apptainer."""
    if cluster.image is None:
        pytest.skip("this machine cannot have Apptainer")
    monkeypatch.setitem(zih.environment, "JLR_IMAGE_FOLDER", IMAGES)
    return f"http://controller:8000/{cluster.image.name}"


@contextmanager
def served(cluster: Cluster) -> Iterator[None]:
    """Serve the image on the controller, and hide Apptainer from the login node."""
    assert cluster.image
    serve = f"exec python3 -m http.server --directory {cluster.image.parent} 8000 >/dev/null 2>&1"
    real = cluster.run("login", "readlink", APPTAINER)
    cluster.run("controller", "sh", "-c", f"({serve}) & echo $! >/run/served")
    cluster.run("login", "rm", APPTAINER)
    try:
        yield
    finally:
        cluster.run("login", "ln", "-s", real, APPTAINER)
        cluster.run("controller", "sh", "-c", 'kill "$(cat /run/served)"')


def test_a_job_pulls_its_image_once_and_enters_it_with_its_gpus(
    cluster: Cluster, zih: Laptop, image: str, tmp_path: Path
) -> None:
    """The job of a session pulls it, and a later one has it, with a folder of the laptop."""
    (tmp_path / "sent").touch()
    poisoned = cluster.run("node2", "sh", "-c", POISON, user="alice")
    assert poisoned == "poisoned", "what a user has installed is imported outside of an image"
    on_node = ("--sbatch-arg=--nodelist=node2", "--gres", "gpu:1")
    words = ("--image", image, "--pull-on", "job", *on_node)
    command = (
        "--",
        "sh",
        "-c",
        "command -v jupyter; ls /dev/nvidia0; /usr/bin/python3 -c pass; ls $PWD",
    )
    try:
        with served(cluster), stand_in(cluster, "node2", "apptainer", TELLS):
            session = started(zih, name(), *SLURM[2:], *words, host="zih")
            with session.notebook("a.ipynb") as kernel:
                assert kernel.run("__import__('ipykernel').__file__").startswith("'/opt/jupyter/")
                assert kernel.run("'usercustomize' in __import__('sys').modules") == "False"
            done = zih.jlr(*SLURM, *words, "--sync", str(tmp_path), *command)
            told = "/opt/jupyter/bin/jupyter\n/dev/nvidia0\nsent\n"
            assert (done.status, done.stdout) == (0, told), done
        arguments = cluster.run("node2", "cat", "/home/alice/arguments").splitlines()
    finally:
        cluster.run("node2", "rm", "-r", "/home/alice/.local/lib", user="alice")
    pulls = [line for line in arguments if line.startswith("pull ")]
    entered = [line for line in arguments if line.startswith("--quiet exec ")]
    assert len(pulls) == 1
    assert len(entered) > 1
    assert all(" --nv " in line for line in entered), entered
    left = cluster.run("login", "ls", "-A", IMAGES).split()
    assert not [each for each in left if each.endswith(".part")]


def test_a_pull_that_fails_ends_the_job_with_the_programs_words(
    cluster: Cluster, zih: Laptop, image: str
) -> None:
    with served(cluster):
        done = zih.jlr(*SLURM, "--image", f"{image}x", "--pull-on", "job", "--", "echo", "ran")
    assert done.status not in (0, 127), done
    assert (done.stdout, "image was not found" in done.stderr) == ("", True), done


@pytest.fixture
def registry(engine: Engine, cluster: Cluster, zih: Laptop) -> Iterator[Registry]:
    """A registry whose key the laptop's keychain can hold."""
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    with unlocked_keychain(zih), running_registry(engine) as running:
        yield running


@pytest.mark.long
def test_a_job_pulls_with_the_registrys_key_also_after_a_pull_that_was_killed(
    cluster: Cluster, zih: Laptop, image: str, registry: Registry
) -> None:
    line = Line(registry.port, listen=lambda port: socket.create_server((cluster.gateway(), port)))
    place = f"{cluster.gateway()}:{line.port}"
    registry.push("lab/plain", "me/plain:1")
    words = ("--image", f"docker://{place}/me/plain:1", "--pull-on", "job")
    run = (*SLURM, *words, "--sbatch-arg=--nodelist=node2", "--", "echo", "ran")
    login = ("image", "login", "zih", place, "--username", "$oauthtoken", "--password-stdin")
    no_tls = startup_line(cluster, "export APPTAINER_NOHTTPS=true")
    with closing(line), no_tls:
        refused = zih.jlr(*run)
        assert (refused.status != 0, refused.stdout) == (True, ""), refused
        assert "authentication required" in refused.stderr
        assert (
            f"`jlr image login zih {place} --username NAME --runtime apptainer` keeps a key"
            in refused.stderr
        )
        zih.jlr(*login, "--runtime", "apptainer", stdin=registry.key).checked()
        with zih.spawn(*run) as killed:
            kill = ("pkill", "-KILL", "mksquashfs")
            wait_until(lambda: cluster.try_run("node2", *kill).status == 0, "the pull", 60)
            assert killed.wait(60) not in (0, 127)
        done = zih.jlr(*run, timeout=120)
        assert (done.status, done.stdout) == (0, "ran\n"), done
    spool = cluster.run("controller", "sh", "-c", "cat /var/spool/slurmctld/hash.*/job.*/*")
    assert "me/plain" in spool
    assert registry.key not in spool
    kept = cluster.try_run("login", "grep", "-rlF", registry.key, "/home/alice")
    assert (kept.status, kept.stdout) == (1, ""), kept


def test_a_site_with_pyxis_has_another_way(cluster: Cluster, zih: Laptop, image: str) -> None:
    with served(cluster):
        refused = zih.jlr(*SLURM, "--image", f"{image}y", "--", "true")
    assert "`apptainer` was not found on `zih`" in refused.stderr
    assert "`jlr run zih --slurm -- srun --container-image=IMAGE COMMAND`" in refused.stderr


@pytest.mark.parametrize(
    ("full", "why"),
    [
        ("size=4k", "No space left on device"),
        LONG("nr_inodes=3", "No space left on device"),
        LONG("ro", "Read-only file system"),
    ],
)
def test_a_full_home_refuses_a_job_and_names_the_quota(
    cluster: Cluster, zih: Laptop, full: str, why: str
) -> None:
    if cluster.image is None:
        pytest.skip("machines that may not run Apptainer may not mount, either")
    folder, called = "/home/alice/.local/state/jlr", name()
    cluster.run("login", "mkdir", "-p", folder, user="alice")
    options = f"{full},mode=700,uid=50001,gid=50001"
    cluster.run("login", "mount", "-t", "tmpfs", "-o", options, "tmpfs", folder)
    try:
        run = zih.jlr(*SLURM, "--name", called, "--env", "A=B", "--", "true")
        start = zih.jlr("start", "zih", called, "--slurm", "--no-browser")
    finally:
        cluster.run("login", "umount", folder)
    for refused in (run, start):
        refused.checked(1, f"cannot write the job's files in `{folder}", why, "quota")
    assert called not in zih.jlr("list").stdout
    assert called not in cluster.slurm("squeue", "--states=all", "--format=%j")
