"""The runtime `apptainer`: Jupyter as a process of the host, with the files of an image."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from jlremote.host.answers import understood
from jlremote.host.contract import Completed, Steps
from jlremote.host.shell_text import command_line
from jlremote.runtimes import bare
from jlremote.runtimes.apptainer import definition
from jlremote.runtimes.contract import SESSION_LABEL, Attachment, Container, Runtime
from jlremote.runtimes.engine.given_gpus import shortened

# `$1` names a session; runs the other arguments in its image.
_ENTER = 'jlr_enter="FOLDER"/$1/enter; shift; exec sh "$jlr_enter" "$@"'


@dataclass(frozen=True)
class Apptainer(Runtime):
    """Images that one program runs, Apptainer or its older form; see `Runtime`."""

    name: str = "apptainer"  # also the program's
    has_images: bool = True
    # As without containers, in a folder for each machine: homes may be shared.
    servers_folder: str = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/apptainer/$(uname -n)"

    @property
    def program(self) -> str:
        """The program, which names the runtime."""
        return self.name

    def describe(self, name: str) -> Steps:
        """Read the definition."""
        file = f'"{self.servers_folder}"/{shlex.quote(name)}/container.json'
        about = f"uname -n; cat /proc/sys/kernel/random/boot_id; cat {file} 2>/dev/null || :"
        return {"container": about}

    @understood("the definition of the session")
    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the definition as a container that runs since the boot."""
        machine, boot, *told = results["container"].stdout.strip().split("\n", 2)
        if not told:
            return None
        image, gpus, options = definition.read(told[0])
        return Container(
            id=machine,
            name=name,
            running=True,
            started_at=boot,
            image=image,
            addresses=("127.0.0.1",),
            gpus=None if gpus is None else shortened(gpus),
            engine_gpus=gpus,
            labels={SESSION_LABEL: name},
            options=options,
        )

    def in_image(self, name: str, script: str) -> str:
        return command_line(self._entered(name, ("sh", "-c", script)))

    def detached(self, name: str, script: str) -> str:
        """Run `script` in the image, in a process session of its own."""
        return bare.detached(self._entered(name, ("sh", "-c", script)))

    def attached(
        self, name: str, argv: tuple[str, ...], how: Attachment, environment: Mapping[str, str]
    ) -> tuple[str, ...]:
        return self._entered(name, bare.attached(name, argv, how, environment))

    def _entered(self, name: str, argv: tuple[str, ...]) -> tuple[str, ...]:
        return ("sh", "-c", _ENTER.replace("FOLDER", self.servers_folder), "sh", name, *argv)
