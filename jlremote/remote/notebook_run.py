"""The program of a job that runs a notebook to its end.

It runs in a Python of the host or container with nbclient, which JupyterLab brings.
Its arguments are NOTEBOOK [--kernel=KIND] [NAME=VALUE ...]. What cells print goes to stdout and
stderr as it comes, a heading before each cell to stderr. The executed copy, `NAME.executed.ipynb`,
is written whole after each cell, and named as a path for `jlr cp` (`PLACE`). The exit code is 1 if
a cell fails, and 2 if the notebook cannot be run.
"""
# ruff: noqa: BLE001, T201 - it is a program; what it prints is the job's output

import ast
import os
import shlex
import sys
import warnings
from typing import Any, Dict, List

COPY = ".executed.ipynb"
KERNEL = "--kernel"
PLACE = "JLR_NOTEBOOK_PLACE"  # the variable with this place as `jlr cp` calls it
# What a kernel says of itself is no output of the notebook.
QUIET = "--IPKernelApp.log_level=ERROR"
FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
LAST_SECONDS = 600  # for what a cell printed before its end; nbclient leaves out what takes 4 s


def tell(text: str) -> None:
    """Print a line on stderr, after what was printed on stdout."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def value_of(text: str) -> Any:
    """Return a parameter's value: a Python literal, or else the text itself, as in papermill."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return text


def add_parameters(notebook: Any, given: Dict[str, Any]) -> None:
    """Set parameters in a new cell, after the one that is tagged `parameters` or before all."""
    from nbformat.v4 import new_code_cell

    lines = [f"{name} = {value!r}" for name, value in given.items()]
    cell: Any = new_code_cell("\n".join(["# Parameters", *lines]))  # type: ignore[no-untyped-call]
    cell.metadata["tags"] = ["injected-parameters"]
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        cell.pop("id", None)
    tags = [own.metadata.get("tags", ()) for own in notebook.cells]
    at = next((number for number, own in enumerate(tags, 1) if "parameters" in own), 0)
    notebook.cells.insert(at, cell)


def show(message: Any) -> None:
    """Print what a kernel's message shows."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        stream = sys.stderr if content["name"] == "stderr" else sys.stdout
        stream.write(content["text"])
        stream.flush()
    elif kind in ("execute_result", "display_data"):
        print(content["data"].get("text/plain", ""), flush=True)
    elif kind == "error":
        tell("\n".join(content["traceback"]))


class NotebookRun:
    """A notebook and the cells that have run."""

    def __init__(self, path: str, kernel: str, given: Dict[str, Any], place: str) -> None:
        import nbformat

        self.format: Any = nbformat
        self.notebook = self.format.read(path, as_version=4)
        self.kernel = kernel or self.notebook.metadata.get("kernelspec", {}).get("name", "python3")
        if given:
            add_parameters(self.notebook, given)
        self.folder = os.path.dirname(os.path.abspath(path))
        self.copy = os.path.splitext(path)[0] + COPY
        whole = f"{place}:{os.path.abspath(self.copy)}"
        self.told_copy = shlex.quote(whole if place else self.copy)
        cells = enumerate(self.notebook.cells)
        self.code = [(at, cell) for at, cell in cells if cell.cell_type == "code"]
        self.where = f"cell 0 of {len(self.code)}"  # which cell runs, in words

    def save(self) -> None:
        part = f"{self.copy}.{os.getpid()}.part"
        self.format.write(self.notebook, part)
        os.replace(part, self.copy)

    def to_its_end(self) -> None:
        from nbclient import NotebookClient

        class Client(NotebookClient):
            """A client that shows each message as it comes, once the copy will have it."""

            def create_kernel_manager(self) -> Any:
                """Let messages wait without limit: beyond it a kernel drops what it prints."""
                manager: Any = super().create_kernel_manager()
                if any("ipykernel" in word for word in manager.kernel_spec.argv):
                    self.extra_arguments = [QUIET]
                make = manager.client

                def client(**settings: Any) -> Any:
                    made = make(**settings)
                    made.context.rcvhwm = 0
                    return made

                manager.client = client
                return manager

            def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
                try:
                    return super().process_message(msg, cell, cell_index)
                finally:
                    show(msg)

        self.save()
        limits: Dict[str, Any] = {"timeout": None, "iopub_timeout": LAST_SECONDS}
        resources = {"metadata": {"path": self.folder}}
        client = Client(self.notebook, resources=resources, kernel_name=self.kernel, **limits)
        with client.setup_kernel():
            for number, (at, cell) in enumerate(self.code, 1):
                self.where = f"cell {number} of {len(self.code)}"
                first = (cell.source.strip().splitlines() or [""])[0]
                tell(f"[{number}/{len(self.code)}] {first[:100]}")
                try:
                    client.execute_cell(cell, at)
                finally:
                    self.save()


def tell_missing(kernel: str) -> bool:
    """Print the kinds of kernels there are, if there is none of that kind."""
    from jupyter_client.kernelspec import KernelSpecManager

    known = sorted(KernelSpecManager().find_kernel_specs())
    if kernel.lower() in known:
        return False
    there = ", ".join(f"`{kind}`" for kind in known) or "none"
    tell(f"there is no kernel `{kernel}` here; there is {there}")
    tell("hint: `--kernel KIND` runs the notebook with another one")
    return True


def run(path: str, kernel: str, given: Dict[str, Any], place: str = "") -> int:
    """Run a notebook and return the exit code."""
    try:
        from nbclient.exceptions import CellExecutionError
    except ImportError:
        tell(f"cannot run `{path}`: {sys.executable} has no nbclient")
        tell("hint: `--install nbclient`, or an image or session with JupyterLab")
        return UNUSABLE
    try:
        running = NotebookRun(path, kernel, given, place)
    except Exception as failure:
        reason = failure.strerror if isinstance(failure, OSError) else failure
        tell(f"cannot read the notebook `{path}`: {reason}")
        return UNUSABLE
    try:
        running.to_its_end()
    except CellExecutionError as failure:
        code, why = FAILED, f"{running.where} failed: {failure.ename}: {failure.evalue}"
    except KeyboardInterrupt:
        code, why = INTERRUPTED, f"interrupted in {running.where}"
    except Exception as failure:
        code, why = UNUSABLE, f"cannot run `{path}`: {type(failure).__name__}: {failure}"
        if tell_missing(running.kernel):
            return code
    else:
        tell(f"the executed copy is `{running.told_copy}`")
        return 0
    tell(f"{why}\nthe outputs so far are in `{running.told_copy}`")
    return code


def main(arguments: List[str]) -> int:
    """Run the notebook that the arguments name."""
    warnings.simplefilter("ignore")
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # of the kernel's debugger, which warns
    given: Dict[str, Any] = dict(text.partition("=")[::2] for text in arguments[1:])
    kernel = given.pop(KERNEL, "")
    values = {name: value_of(text) for name, text in given.items()}
    return run(arguments[0], kernel, values, os.environ.pop(PLACE, ""))
