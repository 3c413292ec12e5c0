"""The definition of a session or job in an image: the script that enters it, and what it says."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from jlremote.runtimes.contract import ContainerSpec
from jlremote.runtimes.options.container_options import ContainerOptions
from jlremote.runtimes.scripts.variables import check_name
from jlremote.untrusted import document

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
    through the environment, as all users of a host can read arguments.

    Raises:
        Usage: invalid name of a variable.
    """
    options = spec.options
    words = (
        *(("--nv",) if spec.gpus else ()),
        *(f"--bind={volume}" for volume in options.volumes),
        *((f"--pwd={options.workdir}",) if options.workdir else ()),
        *options.engine_arguments,
        spec.image,
    )
    return (
        f"directory={directory}\n{_SURROUNDINGS}{_GPUS}{''.join(_variables(program, spec))}"
        f"{_BELOW_TMP}exec {program} ${{{TRIAL}:---quiet}} exec "
        '--bind="$directory/tmp:/tmp" ${home:+"--bind=$home"} --bind="$directory" '
        f'{shlex.join(words)} "$@"\n'
    )


def _variables(program: str, spec: ContainerSpec) -> Iterator[str]:
    """Yield the lines that set variables in the image; one without a value is the host's anyway."""
    for item in spec.options.environment:
        name, given, value = item.partition("=")
        check_name(name)
        if given:
            yield f"export {program.upper()}ENV_{name}={shlex.quote(value)}\n"


def written(spec: ContainerSpec) -> str:
    """Return the text of `container.json`."""
    return json.dumps({"image": spec.image, "gpus": spec.gpus, "options": asdict(spec.options)})


def read(text: str) -> tuple[str, str | None, ContainerOptions]:
    """Return image, GPUs and options from the text of `container.json`.

    Raises:
        ValueError, LookupError, TypeError: it is no such text.
    """
    told: dict[str, Any] = document(text)
    options: dict[str, Any] = {
        field: tuple(value) if isinstance(value, list) else value
        for field, value in dict(told["options"]).items()
    }
    gpus = None if told["gpus"] is None else str(told["gpus"])
    return str(told["image"]), gpus, ContainerOptions(**options)
