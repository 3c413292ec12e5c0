"""Kernel specs are written for every Jupyter of this user, and only those of jlr are removed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from jlremote.cli import kernel_program
from jlremote.errors import JlrError, Usage
from jlremote.kernels import bridge, specs


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    return tmp_path


THERE = {"display_name": "Python 3\x1b[31m (ipykernel)", "language": "python"}


def test_jupyter_finds_a_spec_under_its_name() -> None:
    spec = specs.write("me@dgx", "cont1", "Python3 (GPU)", THERE, "program")
    found = KernelSpecManager().get_kernel_spec(spec.name)
    assert found.argv[-3:] == ["me@dgx/cont1", "Python3 (GPU)", "{connection_file}"]
    assert (found.language, found.interrupt_mode) == ("python", "message")
    assert found.display_name.isprintable()
    assert found.display_name.endswith("(cont1 on me@dgx)")
    assert specs.listed(None) == [spec]


@pytest.mark.parametrize(
    "kind", ["../../../evil", ".hidden", "/etc", "a\\b", "x" * 5000, "é", "$(x)"]
)
def test_a_container_names_no_folder_outside_and_no_long_one(data: Path, kind: str) -> None:
    told = {"display_name": "x\n" * 5000, "language": {"a": "\ud800"}}
    spec = specs.write("dgx", "cont1", kind, told, "program")
    assert [path.name for path in data.iterdir()] == ["kernels"]
    [folder] = (data / "kernels").iterdir()
    assert folder.name == spec.name
    assert KernelSpecManager().get_kernel_spec(spec.name).argv[-2] == kind
    assert len(KernelSpecManager().get_kernel_spec(spec.name).display_name) < 200


def test_a_spec_of_another_program_is_neither_replaced_nor_removed(data: Path) -> None:
    spec = specs.write("dgx", "cont1", "python3", THERE, "program")
    specs.delete(spec)
    assert specs.listed(None) == []
    theirs = data / "kernels" / spec.name / "kernel.json"
    theirs.parent.mkdir()
    theirs.write_text(json.dumps({"argv": [], "metadata": {}}), "utf-8")
    with pytest.raises(JlrError, match="jlr did not make"):
        specs.write("dgx", "cont1", "python3", THERE, "program")
    assert specs.listed(None) == []


@pytest.mark.parametrize("typed", [None, "cont1"])
def test_kernels_of_several_sessions_are_removed_only_by_a_full_name(typed: str | None) -> None:
    here, there = (specs.write(host, "cont1", "python3", THERE, "x") for host in ("dgx", "lab"))
    with pytest.raises(Usage, match="needs the name of a session: there are 2") as refused:
        specs.remove(typed)
    for host in ("dgx", "lab"):
        assert f"`jlr local kernels remove {host}/cont1`" in (refused.value.hint or "")
    assert len(specs.listed(None)) == 2
    assert specs.remove("dgx/cont1") == [here]
    assert specs.remove(typed) == [there]


@pytest.mark.parametrize("ours", [True, False])
def test_the_limits_of_a_jupyter_are_said_where_jlr_could_not_lift_them(ours: bool) -> None:
    said: list[str] = []
    context: Any = SimpleNamespace(progress=SimpleNamespace(note=said.append))
    record: Any = SimpleNamespace(host="dgx", name="cont1")
    server: Any = SimpleNamespace(ours=ours)
    specs.tell_limits(record, server, context)
    assert ["`jlr output dgx/cont1` has" in text for text in said] == ([] if ours else [True])


def test_no_name_of_a_kind_makes_it_end_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server there chooses the names of kinds."""
    called: list[tuple[object, ...]] = []
    monkeypatch.setattr(bridge, "run", lambda *words: called.append(words[:3]))
    monkeypatch.setattr(bridge, "end", lambda *words: called.append(("end", *words[:2])))
    assert kernel_program.main("dgx/cont1", "--end", "connection.json") == 0
    assert kernel_program.main("--end", "dgx/cont1", "42") == 0
    assert called == [("dgx/cont1", "--end", Path("connection.json")), ("end", "dgx/cont1", "42")]
