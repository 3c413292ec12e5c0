"""NVIDIA's tools from before docker had `--gpus`, and the client of docker 18.09, stood in for.

The real ones are no longer to be had, or want the hardware. Behind all of them is the real docker.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.lab.place import LabError
from tests.lab.programs import write_program

# Beside the tool, with a line for each call, and one of all GPUs that are leased then.
LOG = "nvidia-docker.log"

# Version 2, a script: up to `run`, `create` or `version` it strings all words together, and the
# shell takes them apart again at blanks. It relies on a runtime `nvidia` that dockerd knows.
SECOND = """\
#!/bin/bash
echo "NV_GPU=${NV_GPU-} $*" >>"$(dirname "$0")/LOG"
case "$*" in create*) echo kept: $(ls /tmp/jlr-gpus-*) >>"$(dirname "$0")/LOG";; esac
strung= added=
while [ $# -gt 0 ]; do
  strung="$strung $1"
  word=$1; shift
  case $word in
  run|create)
    added=--runtime=nvidia
    [ -z "${NV_GPU-}" ] || added="$added -e NVIDIA_VISIBLE_DEVICES=${NV_GPU// /,}"
    break;;
  version) echo "NVIDIA Docker: 2.0.3"; break;;
  --) break;;
  esac
done
exec docker $strung $added "$@"
"""

# Version 1, a program: it keeps words whole, and finds the image by going over what looks like an
# option, together with the next word unless it has a value or is one of a few. The devices of
# GPUs are stood in for; of an image that is not there it would ask the registry.
FIRST = """\
#!/usr/bin/python3
import glob, os, subprocess, sys
with open(os.path.join(os.path.dirname(__file__), "LOG"), "a") as log:
    print("NV_GPU=" + os.environ.get("NV_GPU", ""), *sys.argv[1:], file=log)
    if sys.argv[1:2] == ["create"]:
        print("kept:", *map(os.path.basename, glob.glob("/tmp/jlr-gpus-*/*")), file=log)
words = sys.argv[1:]
FLAGS = {"disable-content-trust", "help", "interactive", "oom-kill-disable", "privileged",
         "publish-all", "read-only", "tty"}
if words[:1] in (["create"], ["run"]):
    place = 1
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        place += 1 if "=" in word or word[2:] in FLAGS else 2
    image = words[place]
    found = subprocess.run(["docker", "inspect", "--type=image", image], capture_output=True)
    if found.returncode != 0:
        sys.exit("nvidia-docker | 2017/06/01 12:00:00 Error: image " + image + " not found")
    wanted = os.environ.get("NV_GPU", "").replace(",", " ").split() or ["0", "1"]
    # It knows the device of each; these are of no other test.
    words[place:place] = ["--device=/dev/fuse:/dev/nvidia9%d" % at for at in range(len(wanted))]
os.execvp("docker", ["docker", *words])
"""

# What 18.09 says of options that came later. It goes over the words as docker does: up to the
# first that is none, and `--label`s and the like of ours have their values behind `=`.
OLD_CLIENT = """\
#!/bin/bash
if [ "$1" = --version ]; then echo "Docker version 18.09.7, build 2d0083d"; exit; fi
if [ "$1" = create ] || [ "$1" = run ]; then
  for word in "${@:2}"; do
    case $word in
    --gpus*|--pull*)
      printf "unknown flag: %s\\nSee 'docker %s --help'.\\n" "${word%%=*}" "$1" >&2; exit 125;;
    --) break;;
    -*) ;;
    *) break;;
    esac
  done
fi
exec DOCKER "$@"
"""


def install(folder: Path, tool: str) -> None:
    write_program(folder / "nvidia-docker", tool.replace("LOG", LOG))
    (folder / LOG).touch()
    (folder / LOG).chmod(0o666)


def install_old_client(folder: Path, docker: Path) -> None:
    """Put there what docker 18.09's client is as far as its options go, before another one."""
    write_program(folder / "docker", OLD_CLIENT.replace("DOCKER", shlex.quote(str(docker))))


def calls(folder: Path, container: str) -> list[str]:
    """Return how the tool was called to create a container; other calls are mistakes."""
    lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
    made = re.compile(r"NV_GPU=\S* (create |--version$)")
    others = [line for line in lines if line.startswith("NV_GPU=") and not made.match(line)]
    if others:
        raise LabError(f"called for other things than to create: {others}")
    return [line for line in lines if f"--name={container} " in line]
