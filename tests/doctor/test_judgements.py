"""What is said of a host, out of what hosts have really printed, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote import errors
from jlremote.doctor import host_checks, trial
from jlremote.doctor.diagnosis import (
    Check,
    Diagnosis,
    Finding,
    fail,
    fine,
    from_error,
    skip,
    verdict,
    warn,
)
from jlremote.doctor.host_checks import ConnectionFacts
from jlremote.doctor.host_facts import HostFacts, read_facts, steps
from jlremote.gpus.inventory import Device, Gpu, Inventory
from jlremote.gpus.snapshot import CannotAsk, NvidiaSmiSilent
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.engine_errors import EngineMissing, EngineNotRunning
from jlremote.place.runtimes.engine.kinds import DOCKER, PODMAN

UBUNTU = """\
Linux
x86_64
PRETTY_NAME="Ubuntu 22.04.4 LTS"
NAME="Ubuntu"
ID=ubuntu
ID_LIKE=debian
"""
DF = """\
/home/ada
/dev/nvme0n1p2      1888364544 1500000000 292368560      84% /
"""
NVRM = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
OPEN_NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\n"
SEEN = Inventory((Gpu(0, "NVIDIA H200", Device("0", "GPU-1")),), now=0.0, user="ada")


def said(stdout: str = "", status: int = 0, stderr: str = "") -> Completed:
    return Completed(status, stdout, stderr)


TOLD = {name: said() for name in steps(DOCKER, "me/torch")} | {
    "user": said("ada\n"),
    "system": said(UBUNTU),
    "home": said(DF),
    "temporary": said(DF.replace("/home/ada", "/tmp")),
    "driver": said(NVRM),
    "hardware": said("/sys/bus/pci/devices/0000:65:00.0\n"),
    "engine": said("Docker version 24.0.7, build afdd53b\n"),
    "daemon": said("3f9c\n"),
    "storage": said(DF.replace("/home/ada", "/var/lib/docker")),
    "image": said('[{"Architecture": "amd64", "Os": "linux"}]'),
}


def facts(**other: Completed) -> HostFacts:
    return replace(read_facts("dgx", DOCKER, "me/torch", TOLD | other), gpus=SEEN)


def finding(check: str, checks: tuple[Check[HostFacts], ...], of: HostFacts) -> Finding:
    found = {finding.check: finding for finding in Diagnosis().judged("dgx", checks, of)}
    return found[check]


def of(check: str, **other: Completed) -> Finding:
    return finding(check, host_checks.CHECKS, facts(**other))


def test_a_host_that_is_well() -> None:
    found = [*Diagnosis().judged("dgx", host_checks.CHECKS, facts())]
    assert {finding.mark for finding in found} == {"ok"}
    texts = {finding.check: finding.text for finding in found}
    assert texts["system"] == "Ubuntu 22.04.4 LTS, x86_64"
    disk = "299 GB free in /home/ada; 299 GB free in /tmp; 299 GB free in /var/lib/docker"
    assert texts["disk"] == disk
    assert texts["driver"] == "550.54.15, 1x NVIDIA H200"
    assert facts(driver=said(OPEN_NVRM)).driver == "570.86.10"


def test_an_engine_that_is_missing_comes_with_the_distributions_commands() -> None:
    missing = said(status=127, stderr="sh: 1: docker: not found")
    release = 'Linux\nx86_64\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
    found = of("engine", system=said(release), engine=missing)
    assert found.exit_code == 1
    assert any("dnf install docker-ce" in mend for mend in found.mend)


DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at "
    "unix:///var/run/docker.sock: Get ...: dial unix /var/run/docker.sock: connect: "
    "permission denied"
)


def test_words_of_the_host_in_a_command_are_quoted() -> None:
    hostile = replace(facts(daemon=said(status=1, stderr=DENIED)), user="$(evil)")
    found = finding("permission", host_checks.CHECKS, hostile)
    assert found.mend[0] == "sudo usermod -aG docker '$(evil)'"


def test_disks_that_are_full_scarce_or_out_of_files() -> None:
    full = said("/home/ada\n", 1, "cat: write error: No space left on device\n")
    told = "nothing can be written to /home/ada: No space left on device"
    assert of("disk", home=full).text == told
    scarce = said(DF.replace("292368560", "292368").replace("/home/ada", "/var/lib/docker"))
    found = of("disk", storage=scarce)
    told = "little space is left: 299 MB free in /var/lib/docker"
    assert (found.mark, found.text) == ("warning", told)
    assert found.mend == ("df -h", "docker system df")


def test_a_host_without_gpus_is_no_fault_and_one_without_a_driver_is() -> None:
    none = replace(facts(hardware=said(), driver=said()), gpus=CannotAsk("no `nvidia-smi`"))
    assert finding("driver", host_checks.CHECKS, none).mark == "warning"
    bare = replace(facts(driver=said()), gpus=CannotAsk("no `nvidia-smi`"))
    found = finding("driver", host_checks.CHECKS, bare)
    assert found.mark == "failed"
    assert "sudo ubuntu-drivers install" in found.mend[0]


def test_whether_there_are_gpus_is_not_known_where_nvidia_smi_does_not_answer() -> None:
    silent = NvidiaSmiSilent("`nvidia-smi` on `dgx` did not answer within 20 s", hint="`x`")
    hidden = replace(facts(hardware=said(), driver=said()), gpus=silent)
    found = finding("driver", host_checks.CHECKS, hidden)
    assert (found.mark, found.exit_code, found.mend) == ("failed", 1, ("`x`",))
    assert found.text == f"cannot tell whether this host has NVIDIA GPUs: {silent.message}"
    loaded = finding("driver", host_checks.CHECKS, replace(facts(), gpus=silent))
    assert loaded.text == f"the driver 550.54.15 is loaded, but {silent.message}"
    assert "not known" in trial.unproved(hidden).text


def test_a_driver_updated_since_boot_is_reported_in_its_own_words() -> None:
    why = CannotAsk("`nvidia-smi` on `dgx` lists no GPUs: Driver/library version mismatch")
    found = finding("driver", host_checks.CHECKS, replace(facts(), gpus=why))
    assert "version mismatch" in found.text
    assert "reboot" in found.mend[0]


def test_an_image_that_is_missing_or_made_for_another_machine() -> None:
    missing = said("[]\n", 1, "Error: No such image: me/torch\n")
    found = of("image", image=missing)
    assert (found.exit_code, found.mend) == (6, ("`jlr image pull dgx me/torch`",))
    unneeded = replace(facts(image=missing), image_needed=False)
    assert finding("image", host_checks.CHECKS, unneeded).mark == "skipped"


def test_ending_processes_at_logout_matters_only_without_containers() -> None:
    ends = replace(read_facts("dgx", None, None, TOLD | {"logout": said("b true\n")}), gpus=SEEN)
    found = finding("logout", host_checks.CHECKS, ends)
    assert found.mend == ("sudo loginctl enable-linger ada",)
    lingers = read_facts("dgx", None, None, TOLD | {"logout": said("b true\nlingers\n")})
    marks = [finding("logout", host_checks.CHECKS, each).mark for each in (lingers, facts())]
    assert marks == ["ok", "ok"]


def test_the_toolkit_is_proved_by_a_container_and_else_only_seen() -> None:
    assert trial.unproved(facts()).mark == "failed"
    seen = trial.unproved(facts(toolkit=said("/usr/bin/nvidia-ctk\n")))
    assert (seen.mark, seen.text) == ("warning", "installed (/usr/bin/nvidia-ctk), but not tried")
    gpus = "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n"
    proved = trial.proved(facts(), "`cont1`", said(gpus))
    assert (proved.mark, proved.text) == ("ok", "`nvidia-smi` in `cont1`: 2 GPUs")
    missing = said(status=127, stderr="sh: 1: nvidia-smi: not found\n")
    # What describes GPUs for podman is no toolkit of docker.
    for here in (facts(), facts(toolkit=said("/var/run/cdi/nvidia.yaml\n"))):
        found = trial.proved(here, "`cont1`", missing)
        assert found.mark == "failed"
        assert "sudo nvidia-ctk runtime configure --runtime=docker" in found.mend
    none = replace(facts(), gpus=CannotAsk("none"))
    assert trial.unproved(none).mark == "skipped"


def test_a_toolkit_that_is_there_is_not_to_be_installed() -> None:
    there = facts(toolkit=said("/usr/bin/nvidia-ctk\n"))
    refused = trial.refused(there, "no GPUs: could not select device driver")
    assert refused.mend[0] == "sudo nvidia-ctk runtime configure --runtime=docker"
    missing = said(status=127, stderr="sh: 1: nvidia-smi: not found\n")
    assert "DRIVER_CAPABILITIES" in trial.proved(there, "`cont1`", missing).mend[0]
    for words, mend in (
        ("nvidia-container-cli: requirement error: x, please update your driver", "`nvidia-smi` "),
        ("initialization error: nvml error: driver/library version mismatch", "`sudo reboot` "),
        ("device error: 7: unknown device", "`nvidia-smi -L` "),
        ("mount error: failed to add device rules: bpf_prog_query", "no-cgroups"),
    ):
        for seen in (there, facts()):
            told = trial.refused(seen, f"the host gives no GPUs: {words}").mend
            assert len(told) == 1
            assert mend in told[0]


def test_podman_gets_gpus_by_a_description_and_docker_by_a_program() -> None:
    program, description = "/usr/bin/nvidia-ctk\n", "/etc/cdi/nvidia.yaml\n"
    for engine, there, mark in (
        (DOCKER, program, "warning"),
        (DOCKER, description, "failed"),
        (PODMAN, program, "failed"),
        (PODMAN, description, "warning"),
        (PODMAN, program + description, "warning"),
    ):
        seen = replace(facts(toolkit=said(there)), engine=engine)
        assert trial.unproved(seen).mark == mark, (engine.name, there)
    only_program = replace(facts(toolkit=said(program)), engine=PODMAN)
    found = trial.unproved(only_program)
    assert found.mend == ("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",)


def test_earlier_engines_that_cannot_be_used_are_reported() -> None:
    stopped = EngineNotRunning("the `docker` daemon does not run", hint="start it")
    missing = EngineMissing("`docker` was not found on the host")
    version = facts(engine=said("podman version 4.3.1\n"))
    for other, mark, mend in ((stopped, "warning", ("start it",)), (missing, "ok", ())):
        here = replace(version, engine=PODMAN, others=(other,))
        found = finding("engine", host_checks.CHECKS, here)
        assert (found.mark, found.mend) == (mark, mend)
        assert found.text == f"podman version 4.3.1; {other.message}"


@pytest.mark.parametrize(
    ("error", "check"),
    [
        (errors.Usage("the ssh config cannot be read"), "ssh config"),
        (errors.NameNotResolved("no address"), "name"),
        (errors.ConnectionRefused("refused"), "port"),
        (errors.NotSSH("a mail server"), "ssh server"),
        (errors.LinkLost("it broke"), "ssh server"),
        (errors.NoShell("it runs no scripts"), "shell"),
        (errors.HostKeyChanged("another key"), "host key"),
        (errors.Authentication("not let in"), "login"),
    ],
)
def test_an_error_of_the_connection_belongs_to_the_check_where_it_happened(
    error: errors.JlrError, check: str
) -> None:
    found = [*Diagnosis().judged("dgx", host_checks.CONNECTION, ConnectionFacts(error))]
    at = [finding.check for finding in found].index(check)
    assert {finding.mark for finding in found[:at]} <= {"ok"}
    assert (found[at].mark, found[at].exit_code) == ("failed", error.exit_code)
    assert {finding.mark for finding in found[at + 1 :]} <= {"skipped"}
    unasked = ConnectionFacts(errors.NeedsAuthentication("nobody is there"), asked_for_key=True)
    assert host_checks.failed_at(unasked) == "host key"


SLURM_SAID = "slurm-wlm 22.05.8\n\x1dJOBID PARTITION\n\x1dgpu (up to 2:00:00)\n\x1dprojA\n"


def test_a_scheduler_is_named_with_the_partitions_and_accounts() -> None:
    found = finding("scheduler", host_checks.CLUSTER, facts(scheduler=said(SLURM_SAID)))
    told = "slurm-wlm 22.05.8; partitions: gpu (up to 2:00:00); your accounts: projA"
    assert (found.mark, found.text) == ("ok", told)
    down = SLURM_SAID.replace("JOBID PARTITION", "slurm_load_jobs error: Unable to contact")
    found = finding("scheduler", host_checks.CLUSTER, facts(scheduler=said(down)))
    assert found.mark == "warning"
    assert "does not answer: slurm_load_jobs error: Unable to contact" in found.text
    assert facts().scheduler is None


def test_a_login_node_needs_no_engine() -> None:
    missing = said(status=127, stderr="sh: 1: docker: not found")
    told = {"engine": missing, "daemon": missing}
    assert of("engine", **told).mark == "failed"
    assert of("engine", **told, scheduler=said(SLURM_SAID)).mark == "skipped"
    has = said("apptainer version 1.4.5\n")
    assert any("--runtime apptainer" in line for line in of("engine", **told, apptainer=has).mend)
    cluster = said(SLURM_SAID)
    found = finding("apptainer", host_checks.CLUSTER, facts(scheduler=cluster, apptainer=has))
    assert (found.mark, found.text) == ("ok", "apptainer version 1.4.5")
    without = finding("apptainer", host_checks.CLUSTER, facts(scheduler=cluster))
    assert "--pull-on job" in without.text


CHAIN: tuple[Check[dict[str, Finding]], ...] = (
    Check("name", lambda facts: facts["name"]),
    Check("port", lambda facts: facts["port"], needs=("name",)),
    Check("disk", lambda facts: facts["disk"]),
    Check("kernel", lambda facts: facts["kernel"], needs=("port", "disk")),
)
WELL = {check.name: fine("well") for check in CHAIN}


def judged(**other: Finding) -> list[Finding]:
    return list(Diagnosis().judged("lab", CHAIN, WELL | other))


def marks(findings: list[Finding]) -> list[str]:
    return [str(finding.mark) for finding in findings]


def test_what_needs_a_broken_link_is_skipped_but_nothing_that_needs_an_odd_one() -> None:
    findings = judged(name=fail("gone", exit_code=5))
    assert marks(findings) == ["failed", "skipped", "ok", "skipped"]
    assert findings[3].text == findings[1].text == "needs `name`"
    assert marks(judged(name=warn("odd"))) == ["warning", "ok", "ok", "ok"]


def test_the_first_fault_is_the_verdict_and_its_cause_the_exit_code() -> None:
    found = verdict(judged(port=fail("shut", exit_code=5), disk=fail("full")), "`lab`", "kernel")
    assert (found.mark, found.exit_code) == ("failed", 5)
    assert found.text == "port: shut (and 1 more)"


def test_warnings_and_what_was_not_tried_end_well_and_are_named() -> None:
    assert verdict(judged(), "`lab`", "kernel").text == "`lab` works"
    warned = verdict(judged(disk=warn("little")), "`lab`", "kernel")
    assert (warned.mark, warned.exit_code) == ("warning", 0)
    assert warned.text == "`lab` works; see disk"
    untried = verdict(judged(kernel=skip("no image")), "`lab`", "kernel")
    assert untried.exit_code == 0
    assert untried.text == "`lab`: no problem found; no kernel was tried"


def test_an_error_brings_its_exit_code_and_its_hint() -> None:
    refused = from_error(errors.Authentication("no", hint="another key"))
    assert (refused.exit_code, refused.mend) == (4, ("another key",))
    assert from_error(errors.NotFound("none", hint="x"), "a command").mend == ("a command",)
