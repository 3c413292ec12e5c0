"""The commands of README.md and docs/guides.md run on real parts, in the order of the pages.

Names, images and folders are replaced by those of the lab; only the GPUs are stand-ins.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.gpus.conftest import GpuHost
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys
from tests.rows import REPOSITORY, shown_commands
from tests.sessions.parts import START_SECONDS

GUIDES = (REPOSITORY / "docs/guides.md").read_text("utf-8")
HOSTS = ("dgx", "ec2", "gpu")
FIRST = "jlr image build ec2 . -t me/proj -t me/proj:1.2"  # other pages have that image already
LAST = ("jlr stop", "jlr rm torch")

# By pattern: what does not run here, and the test that runs it or its like on real parts.
ELSEWHERE = {
    "uv tool install .*": "test_package::test_jlr_runs_from_the_installed_wheel",
    "jlr demo": "demo/test_demo::"
    "test_other_commands_reach_its_host_by_name_alone_and_jlr_stop_ends_it",
    # a registry of the Internet
    "jlr image (login|pull) .*": "engines/test_nvcr::"
    "test_an_image_of_nvidias_registry_is_pulled_and_runs_with_its_entrypoint",
    "jlr image push .*": "images/test_save::"
    "test_a_saved_image_is_pushed_to_a_private_registry_with_the_key",
    # an engine, packages and an image that this host does not have
    "jlr start .* --sudo": "engines/test_sudo_password::"
    "test_a_session_is_started_and_its_page_is_reached",
    "jlr start .* --runtime nvidia-docker": "engines/test_nvidia_docker::"
    "test_every_command_reaches_the_session",
    "jlr start .* --install .*": "sessions/test_packages::"
    "test_jupyterlab_is_installed_where_the_image_has_none",
    "jlr doctor .*": "gpus/test_doctor::test_gpus_are_proved_in_a_container_that_is_removed_again",
    "jlr run .* --workspace .*": "sessions/test_new_container::"
    "test_a_container_follows_the_settings_and_its_files_belong_to_the_user",
    # what costs seconds more
    "jlr start ec2 proj .*": "gpus/test_start::test_all_takes_all_and_names_their_users",
    "jlr start gpu jax .*": "sessions/test_ports::"
    "test_sessions_on_one_host_and_on_two_live_side_by_side",
    "jlr run .* train.ipynb": "jobs/test_notebook::"
    "test_a_notebook_runs_to_its_end_with_its_parameters",
    "jlr mount .*": "mounts/test_project_folder::"
    "test_the_folder_behind_the_working_folder_is_mounted",
    "jlr (sync|exec train.py .*|wait RUN|forward --auto)": "gpus/test_pictures::"
    "test_code_of_this_laptop_runs_in_a_kernel_there",
    "jlr shell": "shell/test_terminal::"
    "test_size_colours_ctrl_c_and_the_exit_code_are_those_of_a_terminal",
    "(scp|git|ssh) .*": "editors/test_forwards::test_one_connection_is_shared_and_vs_code_begins",
    # a cluster
    "jlr start hpc .* --image .*": "cluster/test_sessions::"
    "test_a_kernel_answers_in_an_image_and_its_definition_is_used_again",
    "jlr start hpc .*|jlr (list|stop) work": "cluster/test_sessions::"
    "test_a_kernel_answers_on_a_node_and_a_second_start_joins_until_stop",
    "jlr run hpc .* torchrun .*": "cluster/test_ranks::test_two_nodes_add_up_their_numbers",
    "jlr (gpus|job list|run) hpc.*|jlr job attach": "cluster/test_run::"
    "test_the_commands_of_the_guide_run",
}
# What a person types in a terminal, and what is shown then.
ANSWERS = {
    "jlr config ssh install": ("yes\r", "Include"),
    "jlr gpus lab --watch": ("\x03", "reserved"),
    "jlr rm torch": ("yes\r", "torch"),
    "bash": ("exit\r", "$"),
}
OUTPUT = {
    "jlr list dgx": "me-tf",
    "jlr list proj": "proj",
    "jlr image list ec2 --all": "proj",
    "jlr job attach sweep": "trained",
    "jlr start lab next --dry-run": "docker",
    "jlr url": "http://127.0.0.1:",
}


def elsewhere(command: str) -> str | None:
    found = (test for pattern, test in ELSEWHERE.items() if re.fullmatch(pattern, command))
    return next(found, None)


def test_what_does_not_run_here_has_a_test_that_exists() -> None:
    used = {elsewhere(command) for command in shown_commands()}
    assert used - {None} == set(ELSEWHERE.values())
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (REPOSITORY / f"tests/{file}.py").read_text("utf-8")


class Reader:
    """Types commands with the lab's names in place of those of the pages."""

    def __init__(self, laptop: Laptop, account: Account, prefix: str) -> None:
        self.laptop = laptop
        self.here = {
            r"nvcr\.io/nvidia/[a-z]+:[\w.-]+": "lab/jupyter",
            r"\bme/(?=proj|tf)": f"{prefix}me/",
            r"/(raid|work)/me\b": f"{account.home}/data",
            r'"(?=\{user\}_)': f'"{prefix}',
            r"packages = .*": "ulimit = ['memlock=']",  # the lab's engine may not raise that limit
        }
        self.home = laptop.folder / "home"
        self.prefix = prefix

    def replaced(self, text: str) -> str:
        for pattern, ours in self.here.items():
            text = re.sub(pattern, ours, text)
        return text

    def prepare(self) -> None:
        """Write the settings of the page, and make the files that its commands name."""
        blocks = re.findall(r"^    \[hosts\.(?:dgx|lab)\]\n(?:    .*\n)*", GUIDES, re.MULTILINE)
        text = f'[defaults]\nname = "{self.prefix}{{name}}"\n' + "".join(blocks)
        self.laptop.settle(self.replaced(text).replace("    ", ""))
        self.laptop.ssh("lab", "mkdir -p data home")
        (self.home / "pkg").mkdir()
        for name in ("train", "prepare"):
            (self.home / f"pkg/{name}.py").write_text("print('trained')")
        build = "FROM lab/jupyter\nCOPY pkg /srv/pkg\nENV PYTHONPATH=/srv\n"
        (self.home / "Dockerfile").write_text(build)
        (self.home / "a.csv").write_text("1,2")
        for program in ("firefox", "code"):
            self.program(program)
        path = self.laptop.environment["PATH"]
        self.laptop.environment |= {"PATH": f"{self.laptop.folder}/bin:{path}", "EDITOR": "true"}

    def program(self, name: str) -> None:
        """Make a program that does nothing."""
        file = Path(self.laptop.folder, "bin", name)
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)

    def type(self, command: str) -> None:
        """Run a command to its end, in a terminal where it asks."""
        words = shlex.split(self.replaced(command))
        answer = next((ANSWERS[end] for end in ANSWERS if command.endswith(end)), None)
        if answer is None:
            done = self.laptop.jlr(*words[1:], timeout=START_SECONDS)
            assert done.status == 0, (command, done)
            assert OUTPUT.get(command, "") in done.stdout, (command, done)
            return
        with self.laptop.terminal(*words, timeout=START_SECONDS) as terminal:
            terminal.expect_exact(answer[1])
            terminal.send(answer[0])
            terminal.expect(pexpect.EOF)
            terminal.close()
            assert terminal.exitstatus in (0, 130), (command, terminal.before)


@pytest.fixture
def reader(
    ada: Laptop,
    gpu_host: GpuHost,
    account: Account,
    keys: Keys,
    container: ContainerFactory,
    engine: Engine,
) -> Iterator[Reader]:
    """A person who types what the pages show, and has what they take for granted."""
    gpu_host.gpus.install(8)
    gpu_host.gpus.change(0, memory_total=1000)  # so `auto` leaves it to `device=0`
    container("lab/jupyter", name=f"{container.prefix}torch")
    for host in HOSTS:
        ada.add_host(host, gpu_host.server, account, key=keys.private)
    reader = Reader(ada, account, container.prefix)
    reader.prepare()
    yield reader
    listed = engine.docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    made = [name for name in listed if name.startswith(f"{container.prefix}me/")]
    engine.try_docker("rmi", "--force", *made)


@pytest.mark.timeout(600)  # thirty commands beside other tests
def test_the_commands_of_the_pages_run(reader: Reader) -> None:
    commands = [one for one in shown_commands() if elsewhere(one) is None]
    for command in (FIRST, *(one for one in commands if one not in (FIRST, *LAST)), *LAST):
        reader.type(command)
