"""What the commands about a host print: its GPUs, its checks, its images and registries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console

from jlremote.cli.commands import inspection
from jlremote.cli.screen import gpu_table
from jlremote.doctor.diagnosis import Finding, Mark, Verdict
from jlremote.doctor.doctor import DoctorRequest
from jlremote.gpus.inventory import Inventory
from jlremote.hosts.links import PoolAnswer
from jlremote.hosts.requests import EngineChoice
from tests.cli.conftest import Jlr, Workflows, settle
from tests.gpus.parts import inventory, process, row

FINDINGS = (
    Finding("name", Mark.OK, "`dgx` is 192.0.2.7", group="dgx"),
    Finding("engine", Mark.FAILED, "docker does not run", ("systemctl start docker",), 1, "dgx"),
    Finding("image", Mark.SKIPPED, "docker does not run", group="dgx"),
    Finding("kernel", Mark.SKIPPED, "docker does not run", group="dgx"),
)
VERDICT = Verdict(Mark.FAILED, "dgx does not work: engine", 1)


def examined(_request: DoctorRequest, _context: object, tell: Callable[[Finding], Any]) -> Verdict:
    for finding in FINDINGS:
        tell(finding)
    return VERDICT


def test_doctor_prints_findings_advice_and_untried_checks(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("doctor.doctor.doctor", examined)
    outcome = jlr("doctor", "dgx", "--image", "torch")
    assert outcome.code == 1
    assert outcome.stdout.splitlines() == [
        "dgx",
        "  ✓ name         `dgx` is 192.0.2.7",
        "  ✗ engine       docker does not run",
        "                 → systemctl start docker",
        "  - not tried    image, kernel: docker does not run",
        "",
        "✗ dgx does not work: engine",
    ]
    assert workflows.arguments("doctor.doctor.doctor")[0] == DoctorRequest("dgx", "torch")
    lines = jlr("-q", "doctor", "dgx").stdout.splitlines()
    assert [line.split()[0] for line in lines if line] == ["dgx", "✗", "→", "✗"]


def test_the_doctor_as_json_has_every_check(jlr: Jlr, workflows: Workflows) -> None:
    workflows.will("doctor.doctor.doctor", examined)
    outcome = jlr("doctor", "dgx", "--json")
    told = json.loads(outcome.stdout)
    assert (outcome.code, outcome.stderr) == (1, "")
    assert (told["host"], told["exit_code"]) == ("dgx", 1)
    assert told["checks"] == json.loads(json.dumps([each.to_json() for each in FINDINGS]))


def test_a_report_is_shown_and_written(jlr: Jlr, workflows: Workflows, tmp_path: Path) -> None:
    workflows.will("doctor.doctor.doctor", examined)
    file = tmp_path / "report.txt"
    outcome = jlr("doctor", "dgx", "--report", str(file))
    assert outcome.code == 1  # the verdict's
    assert "dgx: failed   engine: docker does not run -> systemctl start docker" in outcome.stdout
    assert file.read_text(encoding="utf-8") == outcome.stdout
    assert f"wrote `{file}`" in outcome.stderr


@pytest.mark.parametrize("decision", [True, False])
def test_a_terminal_confirms_that_a_report_is_written(
    decision: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(inspection, "answer", lambda text, **_: shown.append(text))

    def confirm(question: str, **_: object) -> bool:
        assert shown == ["all of it"], "it is shown before it is written"
        assert "report.txt" in question
        return decision

    monkeypatch.setattr(click, "confirm", confirm)
    file = tmp_path / "report.txt"
    inspection._write_report("all of it", file, asks=True)
    assert file.exists() == decision


def gpus() -> Inventory:
    return inventory([row(0, used=5009), row(1)], processes=process(0))


def test_watched_gpus_in_a_pipe_are_tables_one_after_another(
    jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("gpus.host_gpus.watch", [gpus(), gpus()])
    outcome = jlr("gpus", "dgx", "--watch")
    assert outcome.stdout.count("GPU  NAME") == 2
    assert workflows.arguments("gpus.host_gpus.watch")[1] == 0.5


def test_a_watched_pool_tells_a_drivers_complaint_once(jlr: Jlr, workflows: Workflows) -> None:
    silent = PoolAnswer("dgx", gpus().unanswered("`nvidia-smi` on `dgx` did not answer"))
    workflows.will("gpus.host_gpus.watch_pool", [[silent], [silent]])
    outcome = jlr("gpus", "@lab", "--watch")
    assert outcome.stdout.count("HOST  GPU  NAME") == 2
    assert outcome.stderr.count("dgx: nvidia-smi: `nvidia-smi` on `dgx` did not answer") == 1
    console = Console(width=100, force_terminal=False)
    with console.capture() as capture:
        console.print(gpu_table.drawn("@lab", [silent]))
    assert "dgx: nvidia-smi: `nvidia-smi` on `dgx` did not answer" in capture.get()


@pytest.mark.parametrize(
    ("argv", "engine"),
    [
        ((), EngineChoice("podman", sudo=False)),
        (("--runtime", "docker"), EngineChoice("docker", sudo=False)),
        (("--sudo",), EngineChoice("podman", sudo=True)),
    ],
)
def test_the_engine_is_that_of_the_flags_or_of_the_settings(
    argv: tuple[str, ...], engine: EngineChoice, jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    settle(laptop, "[hosts.dgx]\nruntime = 'podman'\n")
    workflows.will("images.pull.push", None)
    assert jlr("image", "push", "dgx", "me/torch", *argv).code == 0
    assert workflows.arguments("images.pull.push")[3] == engine
    workflows.calls.clear()
    assert jlr("image", "pull", "dgx", "me/torch", "--runtime", "none").code == 2
    assert not workflows.calls


def test_a_removal_is_never_guessed_and_images_that_are_files_are_refused(jlr: Jlr) -> None:
    assert "`jlr image rm`" not in jlr("image", "rmm", "dgx", "x").stderr
    assert jlr("image", "rm", "dgx").code == 2
    for argv in (("image", "rm", "dgx", "x.sif"), ("image", "prune", "dgx")):
        refused = jlr(*argv, "--runtime", "apptainer")
        assert refused.code == 2
        assert "images of `apptainer` are files" in refused.stderr
