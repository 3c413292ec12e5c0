"""The runtimes whose sessions are processes of the host: `none`, and `apptainer` with an image."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jlremote.errors import Usage
from jlremote.place.host.contract import Completed, Steps, understood
from jlremote.place.host.shell_text import IF_MISSING, IN_FOLDER, command_line
from jlremote.place.runtimes.container_options import ContainerOptions
from jlremote.place.runtimes.engine.engine_gpus import shortened
from jlremote.place.runtimes.engine.kinds import Argv
from jlremote.place.runtimes.runtime import (
    SESSION_LABEL,
    Attachment,
    Container,
    ContainerSpec,
    Environment,
    Runtime,
)
from jlremote.place.runtimes.scripts.variables import PATH_KEPT, check_name
from jlremote.untrusted import document

# util-linux has `--fork`, BusyBox has not.
_DETACH = """\
if setsid --help 2>&1 | grep -q -e --fork; then
  exec setsid --fork "$@" </dev/null >/dev/null 2>&1
fi
exec python3 -c 'import os, sys
if os.fork() == 0:
    os.setsid()
    os.execvp(sys.argv[1], sys.argv[1:])' "$@" </dev/null >/dev/null 2>&1
"""
_IN_FOLDER = f"""\
{IN_FOLDER} || exit
shift
{IF_MISSING}exec "$@"
"""
KEEP_PATH = f"{PATH_KEPT}=$PATH; export {PATH_KEPT}; "
# `$1` names a session; runs the other arguments with the PATH of the Python that was named for it.
_WITH_PATH = f"""\
jlr_path="FOLDER"/$1/PATH_FILE; shift
[ ! -e "$jlr_path" ] || {{ . "$jlr_path"; KEEP_PATH}}
{IF_MISSING}exec "$@"
"""
PATH_FILE = "path"


def detached(argv: Argv) -> str:
    """Return the command that runs argv in a process session of its own, so it outlives ours."""
    # The shell's `&` would make it ignore SIGINT for good.
    return command_line(("sh", "-c", _DETACH, "sh", *argv))


def attached(name: str, argv: Argv, how: Attachment, environment: Environment) -> Argv:
    """Return the command that runs argv in a folder (`Usage`: an option is only for containers)."""
    for option, value, instead in (
        ("--user", how.user, "write the user before the host, as in `me@dgx`"),
        ("--detach-keys", how.detach_keys, "`~.` at the beginning of a line ends the shell"),
    ):
        if value is not None:
            why = f"`{option}` is for a container of an engine, and `{name}` runs without one"
            raise Usage(why, hint=instead)
    variables = tuple(f"{variable}={value}" for variable, value in environment.items())
    began = ("env", *variables, *argv) if variables else argv
    if how.workdir is None:
        return began
    return ("sh", "-c", _IN_FOLDER, "sh", how.workdir, *began)


@dataclass(frozen=True)
class Bare(Runtime):
    """The host itself; see `Runtime`."""

    name: str = "none"
    # `/tmp` belongs to all users there, so it is the XDG state folder. Machines may share that one,
    # and a process id of one means nothing on another, so each has a folder of its own in it.
    servers_folder: str = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/servers/$(uname -n)"

    def describe(self, name: str) -> Steps:
        return {"container": "uname -n; cat /proc/sys/kernel/random/boot_id"}

    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the host as a container that runs since the boot."""
        machine, _, boot = results["container"].stdout.strip().partition("\n")
        return Container(
            id=machine, name=name, running=True, started_at=boot, addresses=("127.0.0.1",)
        )

    def detached(self, name: str, script: str) -> str:
        return detached(("sh", "-c", script))

    def attached(self, name: str, argv: Argv, how: Attachment, environment: Environment) -> Argv:
        text = _WITH_PATH.replace("FOLDER", self.servers_folder).replace("PATH_FILE", PATH_FILE)
        text = text.replace("KEEP_PATH", KEEP_PATH if how.terminal else "")
        return ("sh", "-c", text, "sh", name, *attached(name, argv, how, environment))


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
        return self.name

    def describe(self, name: str) -> Steps:
        file = f'"{self.servers_folder}"/{shlex.quote(name)}/container.json'
        about = f"uname -n; cat /proc/sys/kernel/random/boot_id; cat {file} 2>/dev/null || :"
        return {"container": about}

    @understood("the definition of the session")
    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        machine, boot, *told = results["container"].stdout.strip().split("\n", 2)
        if not told:
            return None
        image, gpus, options = read_definition(told[0])
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
        return detached(self._entered(name, ("sh", "-c", script)))

    def attached(self, name: str, argv: Argv, how: Attachment, environment: Environment) -> Argv:
        return self._entered(name, attached(name, argv, how, environment))

    def _entered(self, name: str, argv: Argv) -> Argv:
        return ("sh", "-c", _ENTER.replace("FOLDER", self.servers_folder), "sh", name, *argv)


# Given a value, it makes the program say more than its errors, as a first try wants it.
TRIAL = "JLR_TRIAL"

# Variables of the host that lead Python to packages outside the image, or to a folder that is not
# in it. Of two kernels with one name Jupyter takes the image's.
_SURROUNDINGS = """\
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV XDG_RUNTIME_DIR
export PYTHONNOUSERSITE=1 JUPYTER_PREFER_ENV_PATH=1
"""


# The GPUs of the session's server, unless a job has some of its own.
GPUS_FILE = "gpus"
_GPUS = f"""\
[ -n "${{CUDA_VISIBLE_DEVICES+set}}" ] || [ ! -e "$directory/{GPUS_FILE}" ] ||
  . "$directory/{GPUS_FILE}"
"""
# Its own `/tmp` would hide these folders where they are below the host's.
_BELOW_TMP = """\
home=; case $HOME/ in /tmp/*/) home=$HOME;; esac
for folder in "$home" "$directory"; do
  case $folder in /tmp/*) mkdir -p "$directory/tmp/${folder#/tmp/}";; esac
done
"""


def enter(program: str, spec: ContainerSpec, directory: str) -> str:
    """Return the script that runs its arguments in the image, as a process of the host.

    `directory` is shell text: the folder that has the `/tmp` of what runs there. Variables go
    through the environment, as all users of a host can read arguments (`Usage`: a name is invalid).
    """
    options = spec.options
    variables = [item.partition("=") for item in options.environment]
    for name, _, _ in variables:
        check_name(name)
    exports = "".join(
        f"export {program.upper()}ENV_{name}={shlex.quote(value)}\n"
        for name, given, value in variables
        if given
    )
    words = (
        *(("--nv",) if spec.gpus else ()),
        *(f"--bind={volume}" for volume in options.volumes),
        *((f"--pwd={options.workdir}",) if options.workdir else ()),
        *options.engine_arguments,
        spec.image,
    )
    return (
        f"directory={directory}\n{_SURROUNDINGS}{_GPUS}{exports}{_BELOW_TMP}"
        f"exec {program} ${{{TRIAL}:---quiet}} exec "
        '--bind="$directory/tmp:/tmp" ${home:+"--bind=$home"} --bind="$directory" '
        f'{shlex.join(words)} "$@"\n'
    )


def written_definition(spec: ContainerSpec) -> str:
    """Return the text of `container.json`."""
    return json.dumps({"image": spec.image, "gpus": spec.gpus, "options": asdict(spec.options)})


def read_definition(text: str) -> tuple[str, str | None, ContainerOptions]:
    """Return image, GPUs and options from the text of `container.json`."""
    told: dict[str, Any] = document(text)
    options: dict[str, Any] = {
        field: tuple(value) if isinstance(value, list) else value
        for field, value in dict(told["options"]).items()
    }
    gpus = None if told["gpus"] is None else str(told["gpus"])
    return str(told["image"]), gpus, ContainerOptions(**options)
