"""Every age of Jupyter, and what the probe prints of a server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

DIRECTORY = "/tmp/jlr-0/cont1"
STAT = "7 (jupyter-lab) S " + " ".join(str(number) for number in range(4, 53))
FACTS = {"port": 8888, "base_url": "/cont1/", "token": "5ec2e7", "pid": 7, "root_dir": "/work"}


def listening(address: str = "00000000", port: int = 8888, inode: int = 99) -> str:
    return f"   0: {address}:{port:04X} 00000000:0000 0A 0:0 0:0 0 0 0 {inode} 1 0"


def server(
    facts: Any = FACTS,
    *,
    path: str = f"{DIRECTORY}/runtime/jpserver-7.json",
    pid: str = "7",
    stat: str = STAT,
    descriptors: str = "lr-x 3 -> socket:[99]",
    words: str = "python\0/opt/bin/jupyter-lab\0--no-browser\0",
) -> str:
    text = facts if isinstance(facts, str) else json.dumps(facts)
    executable = "lrwxrwxrwx 1 root root 0 Jan 1 /proc/7/exe -> /usr/bin/python3.11\n"
    return "\037".join(("server", path, pid, text, stat, descriptors, executable, words))


def probed(*servers: str, table: str | None = None, status: str = "") -> str:
    single = (f"directory\037{DIRECTORY}", "jupyter\037/opt/bin/jupyter-lab", f"exit\037{status}")
    records = (*single, *servers, f"listening\037{listening() if table is None else table}")
    return "\036".join(records) + "\036"


DEBIAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Age:
    """Jupyter as it was at some time.

    Attributes:
        folder: below `/opt` in the image, where its programs are.
        program: what a person runs there.
        family: the class that its options are of.
        launched: the page that it has when jlr launches what is there.
        found: the page that it has when a person has run the program.
    """

    folder: str
    program: str
    family: str
    launched: str
    found: str

    @property
    def options(self) -> tuple[str, ...]:
        """Options of `docker run` for a container that has this one alone."""
        return ("--env", f"PATH=/opt/{self.folder}/bin:{DEBIAN_PATH}")

    def command(self, *words: str) -> tuple[str, ...]:
        """Return what a person runs by hand in a container."""
        begin = (self.program, "--allow-root", "--no-browser", "--ip=0.0.0.0")
        return (*begin, f"--{self.family}.base_url=/theirs/", *words)


AGES = {
    "Notebook 6": Age("notebook6", "jupyter-notebook", "NotebookApp", "tree", "tree"),
    "JupyterLab 2": Age("lab2", "jupyter-lab", "NotebookApp", "lab", "lab"),
    "JupyterLab 3": Age("lab3", "jupyter-lab", "ServerApp", "lab", "lab"),
    "JupyterLab 4": Age("jupyter", "jupyter-lab", "ServerApp", "lab", "lab"),
    "Notebook 7": Age("jupyter", "jupyter-notebook", "ServerApp", "lab", "tree"),
}
