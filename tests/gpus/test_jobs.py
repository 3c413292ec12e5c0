"""Jobs take GPUs as sessions do, and reserve them as long as they run."""

from __future__ import annotations

import pytest

from tests.gpus.conftest import GpuHost
from tests.images.parts import USER, missing_programs, running_registry, unlocked_keychain
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import Result
from tests.long import LONG
from tests.sessions.parts import failed

PLACES = (("--image", "lab/plain"), LONG(("--runtime", "none")))


@pytest.mark.parametrize("where", PLACES)
def test_a_job_keeps_its_gpu_until_it_ends(
    ada: Laptop,
    bert: Laptop,
    gpu_host: GpuHost,
    container: ContainerFactory,
    where: tuple[str, ...],
) -> None:
    name, other = container.name(), container.name()
    lasting = ("--name", name, "--detach", "--gpus", "auto", "--", "sleep", "600")
    assert ada.jlr("run", "lab", *where, *lasting).status == 0
    assert ada.jlr("gpus", "lab", "--json").stdout.count('"reserved"') == 1
    wanting = ("run", "lab", *where, "--name", other, "--rm")
    refused = bert.jlr(*wanting, "--gpus", "auto:2", "--", "true")
    assert refused.status == 7, refused
    assert name in refused.stderr
    assert bert.jlr(*wanting, "--gpus", "1", "--", "true").status == 0
    assert ada.jlr("rm", name, "--force", "--yes").status == 0
    assert '"reserved"' not in ada.jlr("gpus", "lab", "--json").stdout


@pytest.mark.long
def test_a_pull_keeps_no_gpu_from_the_job_that_waits_for_it(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    if reasons := missing_programs():
        pytest.skip("; ".join(reasons))
    gpu_host.gpus.install(1)
    with running_registry(engine) as registry, unlocked_keychain(ada):
        image = registry.push("lab/plain", "me/with-gpu:1")
        login = ("image", "login", "lab", registry.name, "--username", USER, "--password-stdin")
        assert ada.jlr(*login, stdin=registry.key).status == 0
        name = container.name()
        asked = ("--image", image, "--name", name, "--gpus", "auto")
        done = ada.jlr("run", "lab", *asked, "--", "echo", "done", timeout=120)
        engine.try_docker("rmi", "--force", image)
    assert (done.status, done.stdout) == (0, "done\n"), done
    steps = [line for line in done.stderr.splitlines() if line.startswith(("Pull", "Run"))]
    assert [line.partition(":")[0] for line in steps] == [
        f"Pull {registry.name.partition(':')[0]}",
        f"Run {name} from {registry.name.partition(':')[0]}",
    ]


def test_a_job_in_a_container_gets_that_ones_own_gpus_alone(
    ada: Laptop, gpu_host: GpuHost, container: ContainerFactory, engine: Engine
) -> None:
    """Though another one is free: it would not be there."""
    own = gpu_host.gpus.uuids[1]
    inside, without = container.name(), container("lab/plain").name
    given = ("--name", inside, "--gpus", f"device={own}")
    engine.docker("run", "--detach", *given, "lab/plain", "sleep", "1d")
    show = ("--", "sh", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"')

    def run(where: str, gpus: str, *words: str) -> Result:
        return ada.jlr("run", "lab", "--in", where, "--gpus", gpus, *(words or ("--rm", *show)))

    for asked, seen in (("device=1", own), ("none", "")):
        done = run(inside, asked)
        assert (done.status, done.stdout) == (0, f"[{seen}]\n"), done
    failed(run(inside, "device=0"), 6, "there is no GPU `", f"on `lab/{inside}`")
    words = (f"the container `{without}` has no GPUs", "`jlr run lab --image IMAGE --gpus auto")
    failed(run(without, "auto"), 2, *words)
    # It reserves its GPU against others, and a job in it against other jobs in it.
    holder = container.name()
    held = run(inside, "auto", "--name", holder, "--detach", "--", "sleep", "600")
    assert held.status == 0, held
    failed(run(inside, "auto"), 7, f"none of 1 on `lab/{inside}` is free", f"`{holder}`")
    assert run(inside, "auto", "--share-gpus", "--rm", *show).stdout == f"[{own}]\n"
    assert ada.jlr("rm", holder, "--force", "--yes").status == 0
