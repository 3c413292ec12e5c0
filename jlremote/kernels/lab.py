"""`jlr local lab`: the JupyterLab of this laptop, whose kernels are those of a session."""

from __future__ import annotations

import importlib.resources
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from jlremote.errors import JlrError
from jlremote.hosts.context import Context
from jlremote.jupyter.endpoint import url
from jlremote.kernels.remote_kernel import reached
from jlremote.kernels.specs import tell_limits
from jlremote.laptop import paths, sessions
from jlremote.laptop.record_files import file_name
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.addresses import LOCALHOST

_PROGRAM = "import sys; del sys.path[0]; from jupyterlab.labapp import main; sys.exit(main())"
_CONFIG = (importlib.resources.files("jlremote.kernels") / "lab_config.py").read_text("utf-8")
_PIPE = "JLR_LAB_PIPE"  # its name in `lab_config`
# A page's kernels are to come back after any loss, and Jupyter gives up after five tries.
_RECONNECTS = {"JUPYTER_GATEWAY_RETRY_MAX": "100000", "JUPYTER_GATEWAY_RETRY_INTERVAL_MAX": "3"}


def lab(selector: str | None, words: Sequence[str], context: Context) -> int:
    """Run the JupyterLab of this laptop in the place of this process; return its exit code.

    Raise `JlrError` if none is here, or the session's Jupyter wants a password or is away.
    """
    command = (*_jupyterlab(), *words)
    record, api = reached(selector, context)
    server, place = api.server, f"{record.host}/{record.name}"
    if server.password and not server.token:
        why = f"the Jupyter of `{place}` has a password, and `jlr local lab` needs a token"
        hint = f"end it; `jlr start {record.host} {record.name}` launches one with a token"
        raise JlrError(why, hint=hint)
    sessions.save(record.used_now())
    tell_limits(record, server, context)
    context.progress.note(f"files are those of {os.getcwd()}, kernels those of `{place}`")  # noqa: PTH109
    folder = _settings_folder(record, context)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")},
        **_RECONNECTS,
        "JUPYTER_CONFIG_DIR": str(folder),
        "JUPYTER_DATA_DIR": str(folder),
        "JUPYTER_GATEWAY_URL": url(LOCALHOST, api.local_port, quote(server.base_url)),
    }
    pipe, write = os.pipe()  # which other processes cannot read
    with os.fdopen(write, "w") as end:
        end.write(server.token)
    return _run(command, environment, pipe)


def _run(command: tuple[str, ...], environment: dict[str, str], pipe: int) -> int:
    if sys.platform != "win32":
        os.set_inheritable(pipe, True)
        environment[_PIPE] = str(pipe)
        os.execve(command[0], command, environment)  # noqa: S606  # with its terminal and signals
    import msvcrt

    handle = msvcrt.get_osfhandle(pipe)
    os.set_handle_inheritable(handle, True)
    environment[_PIPE] = str(handle)
    # In the place of this process the shell would not wait for it.
    return subprocess.call(command, env=environment, close_fds=False)


def _settings_folder(record: SessionRecord, context: Context) -> Path:
    """Return the folder of the page's settings, trusted notebooks and logins.

    Each image in each session has its own: the page can write there, and what it writes must reach
    no other Jupyter.
    """
    above = paths.private_directory(paths.state_directory() / "lab")
    image = record.image or record.name
    folder = above / file_name(record.host, record.name, image).removesuffix(".json")
    if not folder.exists():
        context.progress.note(
            f"first `jlr local lab` with `{image}`: its kernels can run programs in the page, "
            "which can read, change and delete files of this folder; press Ctrl-C unless you "
            "trust the author of the image"
        )
    paths.write_whole(paths.private_directory(folder) / "jupyter_config.py", _CONFIG)
    return folder


def _jupyterlab() -> tuple[str, ...]:
    if program := shutil.which("jupyter-lab"):
        return (program,)
    if find_spec("jupyterlab") is not None:
        # With `-m` Python would import modules of the folder, where the page can write some.
        return (sys.executable, "-c", _PROGRAM)
    hint = "`pip install jupyterlab` in the environment that you work in"
    raise JlrError("there is no JupyterLab on this machine", hint=hint)
