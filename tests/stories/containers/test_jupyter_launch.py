"""The launch of JupyterLab, and what is told where it does not come up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from jlremote.containers import jupyter_launch
from jlremote.errors import JlrError
from jlremote.hosts.requests import StartRequest
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.recorder import Recording
from jlremote.jupyter.survey import Survey
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.processes import Apptainer, Bare
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.place.runtimes.scripts import variables
from tests.stories.containers.parts import CONTAINERS, Answer, Start, inspected, refused, start
from tests.stories.parts import SERVER

HERE = Container("c0ffee", "cont1", running=True, started_at="")
OLD = Survey(HERE, Findings("/tmp/jlr-0/cont1", "/usr/bin/jupyter-lab", None, ()))
NEW = Survey(None, None)


def launching(
    *answers: Answer, runtime: Runtime = CONTAINERS, request: StartRequest | None = None
) -> Start:
    return start({"script": list(answers), "container": [inspected()]}, request, runtime)


def exited(status: int | str) -> str:
    """Return what the probe prints of a server that has ended."""
    begin = "directory\037/tmp/jlr-0/cont1\036jupyter\037/usr/bin/jupyter-lab\036"
    return f"{begin}exit\037{status}\036"


RECORDED = Recording("on")


def test_an_option_for_new_servers_is_noted_where_one_runs() -> None:
    server = replace(SERVER, called="/home/ada/venv/bin/python", python="/usr/bin/python3.11")
    findings = Findings("/d", "/j", None, (server,), recording=RECORDED)
    found = replace(OLD, findings=findings)
    request = StartRequest("dgx", "cont1", idle_stop=3600)
    both = replace(request, python="python3.9")
    for asked, told in (
        (request, ["`--idle-stop` will apply to its next start"]),
        (both, ["`--idle-stop` and `--python` will apply to its next"]),
        (StartRequest("dgx", "cont1", conda_env="torch"), ["`--conda-env` will apply to its next"]),
        (StartRequest("dgx", "cont1", python="~/venv"), []),
        (StartRequest("dgx", "cont1", python="python3.11"), []),
        (StartRequest("dgx", "cont1", conda_env="base"), []),
        (StartRequest("dgx", "cont1", record=False), ["`--no-record` will apply to its next"]),
    ):
        begun = launching(request=asked)
        jupyter_launch.ensure(begun.context, found)
        assert len(begun.notes.notes) == len(told), asked
        assert all(map(str.__contains__, begun.notes.notes, told)), asked


def test_a_next_try_knows_nothing_of_the_server_that_the_last_one_waited_for() -> None:
    """Else its wait, which may begin before its launch, ends at once with that server."""
    joined = f"{exited('')}joined\037yes\036"  # by a server that no browser reaches
    begun = launching(joined, "", joined, "", exited(1), "no module\n")
    with pytest.raises(JlrError, match="exit status 1"):
        jupyter_launch.ensure(begun.context, OLD)
    mark = f"/joined-{begun.context.mark}\n"
    takes_back = [mark in text for _, text in begun.host.scripts]
    assert takes_back == [False, True, False, True, False, False]


@pytest.mark.parametrize(
    ("complaint", "hint"),
    [
        ("mkdir: Read-only file system", "`-- --tmpfs /tmp` gives a new container"),
        ("cat: No space left on device", "`docker system df` on the host"),
        ("mkdir: Permission denied", "`df` there shows"),
        (f"/tmp/jlr-0 {variables.NOT_PRIVATE}", "`docker exec cont1 ls -l /tmp` shows its owner"),
    ],
)
def test_a_folder_that_cannot_be_written_has_its_own_remedy(complaint: str, hint: str) -> None:
    begun = launching(refused(complaint, scripts.NO_FOLDER))
    with pytest.raises(JlrError) as failure:
        jupyter_launch.ensure(begun.context, OLD)
    assert (failure.value.hint or "").startswith(hint)


def test_a_container_that_ended_meanwhile_is_told_with_its_last_words() -> None:
    gone = refused("Error response from daemon: container c0 is not running", 1)
    with pytest.raises(JlrError, match="`cont1` ended at once: bad image"):
        jupyter_launch.ensure(launching(gone, Completed(0, "", "bad image\n")).context, NEW)


@pytest.mark.parametrize(
    ("words", "now", "told"),
    [
        ("is not running", inspected(Running=False), "`cont1` does not start: it ends at once"),
        (
            "is restarting, wait",
            inspected(Restarting=True, Status="restarting"),
            "its engine is restarting it",
        ),
        ("is paused, unpause", inspected(Paused=True, Status="paused"), "`cont1` is paused"),
        (
            "is restarting, wait",
            inspected().replace('"Id"', '"RestartCount": 7, "Id"'),
            "does not start: its engine has restarted it 7 times",
        ),
    ],
)
def test_a_container_that_does_not_run_any_more_is_told_as_it_is_now(
    words: str, now: str, told: str
) -> None:
    gone = refused(f"Error response from daemon: container c0 {words}", 1)
    answers: dict[str, list[Answer]] = {"script": [gone], "container": [now]}
    with pytest.raises(JlrError, match=told):
        jupyter_launch.ensure(start(answers).context, OLD)


SOCKET = "/tmp/jlr-0/cont1/runtime/sock-l1"


def on_socket() -> str:
    """Return what the probe prints of a server on its session's socket."""
    facts = {"port": 0, "base_url": "/cont1-5ec2e7/", "token": "t", "sock": SOCKET}
    stat = "7 (jupyter-lab) S " + " ".join(str(number) for number in range(4, 53))
    path, held = "/tmp/jlr-0/cont1/runtime/jpserver-7.json", "3 -> socket:[99]"
    server = "\037".join(("server", path, "7", json.dumps(facts), stat, held, "", ""))
    row = f"0: 00000002 00000000 00010000 0001 01 99 {SOCKET}"
    return f"directory\037/tmp/jlr-0/cont1\036{server}\036sockets\037{row}\036"


def test_without_a_container_a_server_listens_on_a_socket() -> None:
    begun = launching(on_socket(), runtime=Bare())
    begun.host.sockets.add(SOCKET)
    server, launched = jupyter_launch.ensure(begun.context, OLD)
    assert (server.sock, launched) == (SOCKET, True)
    [script] = begun.host.texts("script")
    assert "application.sock = path" in script


def test_a_server_whose_socket_ssh_refuses_is_launched_again_on_a_port() -> None:
    begun = launching(on_socket(), exited(""), runtime=Bare())
    begun.host.answers |= {"end": [""], "done": [""]}
    with pytest.raises(JlrError, match="did not start"):  # the second one is not awaited here
        jupyter_launch.ensure(begun.context, OLD)
    first, second = (text for text in begun.host.texts("script") if "jupyter-lab" in text)
    assert "kill 7;" in begun.host.texts("end")[0]
    assert [step for step, _ in begun.host.scripts][:4] == ["script", "end", "done", "script"]
    for words in ("application.sock = path", "launch=l1"):
        assert (words in first, words in second) == (True, False)
    assert "--port=8988" in second


def test_a_session_in_an_image_notes_its_gpus_for_shells_and_jobs() -> None:
    begun = start({}, runtime=Apptainer("apptainer")).context
    with_gpus = replace(begun, environment="export CUDA_VISIBLE_DEVICES=GPU-1\n")
    text = jupyter_launch.later_script(with_gpus)
    assert "printf %s 'export CUDA_VISIBLE_DEVICES=GPU-1\n' >\"$directory/gpus\"" in text
    assert '"$directory/gpus"' not in jupyter_launch.later_script(start({}).context)
