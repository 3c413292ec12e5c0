"""What is Apptainer's own: an image's packages, the host's folders, GPUs, and bad images."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conftest import SIF, EnginesHost
from tests.engines.parts import told
from tests.gpus.stand_in import Gpus
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import Session, start, started

NAME = "sif"
RUNTIME = ("--runtime", "apptainer", "--no-browser")
SECRET = "hunter2-of-the-session"
# As `pip install --user` leaves packages, and `ipykernel install --user` a kernel of that name.
POISON = """\
site=$(python3 -m site --user-site)
mkdir -p $site ~/.local/share/jupyter/kernels/python3 ~/data
for module in ipykernel jupyterlab; do echo 'raise SystemExit("poisoned")' >$site/$module.py; done
echo '{"argv": ["false"], "display_name": "poisoned", "language": "python"}' \
  >~/.local/share/jupyter/kernels/python3/kernel.json
echo 42 >~/data/answer
"""


def command_lines(host: EnginesHost) -> list[str]:
    return [" ".join(words) for words in host.account.command_lines()]


@pytest.fixture(scope="module")
def session(engines_host: EnginesHost, engines_laptop: Laptop) -> Iterator[Session]:
    assert engines_laptop.ssh("lab", POISON).status == 0
    binds = ("-v", "~/data:/data:ro", "-w", "/data", "-e", f"SECRET={SECRET}")
    yield started(engines_laptop, NAME, "--image", SIF, *RUNTIME, *binds, "--gpus", "none")
    shutil.rmtree(engines_host.account.home / ".local", ignore_errors=True)


def test_a_kernel_answers_through_the_tunnel_with_the_images_packages(session: Session) -> None:
    with session.notebook("a.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
        assert kernel.run("__import__('ipykernel').__file__").startswith("'/opt/jupyter/")
        # An environment of its own, as this image's, has no packages of a home anyway.
        alone = "['/usr/bin/python3', '-c', 'import jupyterlab']"
        said = kernel.run(f"__import__('subprocess').run({alone}, capture_output=True).stderr")
        assert "No module named" in said
        assert kernel.run("open('/data/answer').read()") == r"'42\n'"
        assert kernel.run("__import__('os').environ['SECRET']") == repr(SECRET)
    assert "a.ipynb [1], " in session.output_with(repr(SECRET))


def test_its_tmp_is_its_own_and_a_shell_sees_the_same(
    session: Session, engines_laptop: Laptop
) -> None:
    with session.notebook("b.ipynb") as kernel:
        assert kernel.run("open('/tmp/of-the-session', 'w').write('x')") == "1"
    shown = engines_laptop.jlr("shell", NAME, "--", "sh", "-c", "ls /tmp; pwd; cat answer")
    assert "of-the-session" in shown.stdout, shown
    assert shown.stdout.endswith("/data\n42\n"), shown
    outside = engines_laptop.ssh("lab", "ls /tmp/of-the-session")
    assert outside.status != 0, outside


def test_a_variable_is_in_no_argument_and_its_files_are_the_users_alone(
    session: Session, engines_host: EnginesHost, engines_laptop: Laptop
) -> None:
    seen = command_lines(engines_host)
    assert any("jupyter-lab" in words for words in seen), seen
    assert not [words for words in seen if SECRET in words]
    (folder,) = (engines_host.account.home / ".local/state/jlr/apptainer").glob(f"*/{NAME}")
    assert {oct(path.stat().st_mode)[-2:] for path in (folder, folder / "enter")} == {"00"}
    found = told(engines_laptop, "list", "lab", "--json")
    (ours,) = [each for each in found if each["name"] == NAME]
    assert (ours["runtime"], ours["state"]) == ("apptainer", "up")
    assert ours["image"].endswith(".sif")


def test_a_job_runs_in_the_sessions_image(session: Session, engines_laptop: Laptop) -> None:
    words = ("run", "lab", "--in", NAME, "--", "sh", "-c", "ls /tmp; command -v jupyter; exit 3")
    result = engines_laptop.jlr(*words, timeout=60).checked(3)
    assert result.stdout.splitlines() == ["of-the-session", "/opt/jupyter/bin/jupyter"]
    given = ("run", "lab", "--in", NAME, "--rm", "-e", "X=e x", "--")
    read = engines_laptop.jlr(*given, "sh", "-c", "echo $X; exit 5", timeout=60)
    assert (read.status, read.stdout) == (5, "e x\n"), read


def test_stop_ends_all_of_it_and_remove_deletes_its_files(
    session: Session, engines_host: EnginesHost, engines_laptop: Laptop
) -> None:
    engines_laptop.jlr("rm", NAME, "--force", "--yes", timeout=60).checked()
    ours = ("squashfuse", "jupyter-lab", "Apptainer runtime")
    wait_until(
        lambda: not [line for line in command_lines(engines_host) if any(w in line for w in ours)],
        "the end of all of it",
    )
    assert not list((engines_host.account.home / ".local/state/jlr/apptainer").glob("*/*"))


@pytest.mark.long
def test_doctor_proves_an_image_to_the_kernels_answer_and_removes_what_it_made(
    engines_laptop: Laptop, engines_host: EnginesHost
) -> None:
    judged = engines_laptop.jlr(
        *("doctor", "lab", "--image", SIF, "--runtime", "apptainer", "--no-input"), timeout=120
    )
    assert "6*7 is 42" in judged.stdout, judged
    assert not list((engines_host.account.home / ".local/state/jlr/apptainer").glob("*/*"))


def test_a_job_runs_in_an_image_of_its_own(
    engines_laptop: Laptop, engines_host: EnginesHost, tmp_path: Path
) -> None:
    told_it = 'command -v jupyter; echo "$SECRET"; ls -A /tmp; pwd'
    words = ("--image", SIF, "-e", f"SECRET={SECRET}", "-w", "/opt", *RUNTIME[:2])
    result = engines_laptop.jlr(
        "run", "lab", *words, "--", "sh", "-c", told_it, timeout=60
    ).checked()
    assert result.stdout.splitlines() == ["/opt/jupyter/bin/jupyter", SECRET, "/opt"]
    engines_laptop.jlr("run", "lab", *words, "-i", "--", "cat", timeout=60).checked(
        2, "`jlr shell SESSION -- cat` passes stdin to it"
    )
    begun = engines_laptop.jlr(
        "run", "lab", "-d", *words, "--", "sleep", "1000", timeout=60
    ).checked()
    seen: list[str] = []

    def begins() -> bool:
        seen[:] = command_lines(engines_host)
        return any("sleep 1000" in line for line in seen)

    wait_until(begins, "the command")
    assert not [line for line in seen if SECRET in line]
    engines_laptop.jlr("stop", f"lab/{begun.stdout.strip()}", timeout=60).checked()
    assert not [line for line in command_lines(engines_host) if "sleep 1000" in line]
    synced = ("--image", SIF, *RUNTIME[:2], "--sync", str(tmp_path), "--back", "made/*")
    (tmp_path / "train.sh").write_text("mkdir made; pwd >made/it")
    engines_laptop.jlr("run", "lab", *synced, "--", "sh", "train.sh", timeout=60)
    assert (tmp_path / "made" / "it").read_text() == "/workspace\n"


def test_a_folder_is_an_image_too_and_gpus_are_passed_in(
    engines_laptop: Laptop, engines_host: EnginesHost
) -> None:
    # As `apptainer build --sandbox` makes one, but with the host's own files.
    links = "; ".join(f"ln -s /host/{name} box/{name}" for name in ("bin", "lib", "lib64"))
    folders = "mkdir -p box/dev box/proc box/sys box/tmp box/etc box/host/usr box/usr box/home"
    assert engines_laptop.ssh("lab", f"{folders}; {links}").status == 0
    shown = engines_laptop.jlr(
        *("start", "lab", "box", "--image", "box", "--gpus", "all", *RUNTIME, "--dry-run")
    )
    assert " --nv " in shown.stdout, shown
    words = ("--image", "~/box", "-v", "/:/host:ro", "-v", "/usr:/usr:ro")
    older = ("--runtime", "singularity")
    done = engines_laptop.jlr("run", "lab", *words, *older, "--", "ls", "/host/etc/debian_version")
    assert (done.status, done.stdout) == (0, "/host/etc/debian_version\n"), done


def test_gpus_are_proved_in_the_image_before_start_says_done(
    engines_laptop: Laptop, engines_host: EnginesHost
) -> None:
    """`--nv` passes in the `nvidia-smi` of the host, which is a stand-in, and no device."""
    gpus = Gpus(engines_host.account.home / "bin")
    gpus.install()
    asked: tuple[str, ...] = ("--image", SIF, "--gpus", "0,1", *RUNTIME[:2])
    told, (first, second) = "the session `proved` cannot use its GPUs: ", gpus.uuids
    one = f"GPU 0: NVIDIA H200 (UUID: {gpus.uuids[0]})\n"
    try:
        for listed, why in ((one, "it has 1 of the 2 that you asked for"), (one * 2, None)):
            gpus.state["list"] = listed
            gpus.write()
            begun = start(engines_laptop, "lab", "proved", *asked)
            said = " ".join(begun.stderr.split())
            assert begun.status == 0, begun
            assert (told in said) == (why is not None), said
            assert why is None or f"{told}{why}; `jlr doctor lab`" in said, said
            asked = ()
            assert engines_laptop.jlr("stop", "proved").status == 0
        # After a boot with other GPUs it gets none of them instead.
        gpus.install(3)
        refused = start(engines_laptop, "lab", "proved").checked(
            6, f"was given {first}, {second}, which `lab` no longer has"
        )
        assert "`jlr rm lab/proved` deletes it" in " ".join(refused.stderr.split())
    finally:
        gpus.remove()
        engines_laptop.jlr("rm", "proved", "--force", "--yes", timeout=60)


@pytest.mark.parametrize(
    ("made", "image", "words"),
    [
        (
            "head -c 1000000 ~/jupyter.sif >~/cut.sif",
            "cut.sif",
            ("cannot use the image", "cut.sif"),
        ),
        LONG("mkdir -p ~/empty", "empty", ("cannot use the image", "empty")),
        (":", "absent.sif", ("there is no image `absent.sif` on `lab`",)),
    ],
    ids=["cut short", "no image", "missing"],
)
def test_a_bad_image_is_one_clear_error_and_leaves_nothing(
    engines_laptop: Laptop, engines_host: EnginesHost, made: str, image: str, words: tuple[str, ...]
) -> None:
    assert engines_laptop.ssh("lab", made).status == 0
    result = engines_laptop.jlr("start", "lab", "bad", "--image", image, *RUNTIME)
    assert result.status in (1, 6), result
    assert all(word in result.stderr for word in words), result
    assert not list((engines_host.account.home / ".local/state/jlr/apptainer").glob("*/bad"))


def test_options_of_engines_are_refused_by_name(engines_laptop: Laptop) -> None:
    engines_laptop.jlr("start", "lab", "x", "--image", SIF, "--user", "me", *RUNTIME).checked(
        2, "`--user` has no effect with `--runtime apptainer`"
    )
