"""What `open`, `url`, `list`, `status`, `logs`, `stop` and `disconnect` pass on and print."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jlremote.errors import Busy
from jlremote.hosts.requests import LogRequest, StopRequest
from jlremote.images.login import LoginReport
from jlremote.sessions.restart import RenewReport
from jlremote.sessions.stop import StopReport
from tests.cli.conftest import ADDRESS, BASE, PAGE, REPORT, TOKEN, URL, Jlr, Workflows, remember

OPENED = (REPORT, ADDRESS)


@pytest.mark.parametrize(
    ("argv", "selector", "path"),
    [
        ((), None, None),
        (("cont1",), "cont1", None),
        (("dgx/cont1",), "dgx/cont1", None),
        (("cont1", "work/train.ipynb"), "cont1", "work/train.ipynb"),
        (("train.ipynb",), None, "train.ipynb"),
        (("work/data",), None, "work/data"),
        (("data.v2",), "data.v2", None),  # a session is called so
        (("torch-2.1",), "torch-2.1", None),  # no file ends like that
        (("dgx/elsewhere",), "dgx/elsewhere", None),  # the host is known, the session is not yet
        (("unknown",), "unknown", None),
    ],
)
def test_open_tells_a_session_from_a_path(
    argv: tuple[str, ...], selector: str | None, path: str | None, jlr: Jlr, workflows: Workflows
) -> None:
    remember(("dgx", "cont1"), ("dgx", "data.v2"))
    workflows.will("sessions.open.address", OPENED)
    workflows.will("forwards.browser.open_in_browser", None)
    outcome = jlr("open", *argv)
    assert (outcome.code, outcome.stdout) == (0, URL + "\n")
    assert workflows.arguments("sessions.open.address")[:2] == (selector, path)
    assert workflows.arguments("forwards.browser.open_in_browser") == (ADDRESS, None)


def test_list_prints_one_session_per_line(jlr: Jlr, workflows: Workflows) -> None:
    gone = replace(REPORT, name="old", state="container-gone", kernels=None, gpus=None)
    workflows.will("listing.listing.reports", [replace(REPORT, is_default=True), gone])
    outcome = jlr("list", "dgx")
    heading, first, second = outcome.stdout.splitlines()
    columns = ["SESSION", "HOST", "STATE", "SINCE", "KERNELS", "PORT", "GPUS", "IMAGE"]
    image = "nvcr.io/nvidia/pytorch:24.05-py3"
    assert heading.split() == columns
    assert first.split() == ["cont1", "*", "dgx", "up", "-", "1", "busy", "8888", "all", image]
    assert second.split() == ["old", "dgx", "container-gone", "-", "-", "8888", "-", image]
    assert TOKEN not in outcome.stdout
    assert heading.index("STATE") == first.index("up") == second.index("container-gone")
    [(_, arguments, options)] = workflows.calls
    assert (arguments[1:], options) == (("dgx",), {})


def test_the_list_has_the_jobs_of_sessions_on_a_cluster(jlr: Jlr, workflows: Workflows) -> None:
    on_node = replace(REPORT, name="work", job="12", node="node1", time_left=5400)
    workflows.will("listing.listing.reports", [REPORT, on_node])
    heading, first, second = jlr("list").stdout.splitlines()
    at = heading.index("JOB")
    assert (first[at:], second[at:]) == ("-", "12, on node1, 1h30m left")
    workflows.will("listing.listing.reports", [])
    empty = jlr("list")
    assert (empty.code, empty.stdout) == (0, "")
    assert "`jlr start --help` says how to start one" in empty.stderr


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ((), LogRequest(tail=100)),
        (("--since", "1h30m"), LogRequest(since=-5400)),
        (("--since", "1970-01-01T00:01Z", "-n", "3"), LogRequest(tail=3, since=60)),
        (("--container",), LogRequest(tail=100, container=True)),
    ],
)
def test_logs_pass_on_where_to_begin(
    flags: tuple[str, ...], wanted: LogRequest, jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("sessions.logs.log", iter(()))
    assert jlr("logs", *flags).code == 0
    assert workflows.arguments("sessions.logs.log")[1] == wanted
    assert jlr("logs", "--since", "yesterday").code == 2


@pytest.mark.parametrize(
    ("verb", "flags", "request_"),
    [
        ("stop", (), StopRequest()),
        ("stop", ("--container",), StopRequest(container=True)),
        ("rm", ("--force",), StopRequest(remove=True, force=True)),
        ("rm", ("-y",), StopRequest(remove=True, yes=True)),
    ],
)
def test_stop_and_rm_print_what_they_did(
    verb: str, flags: tuple[str, ...], request_: StopRequest, jlr: Jlr, workflows: Workflows
) -> None:
    done = StopReport("cont1", "dgx", ("stopped Jupyter", "released 8888"))
    workflows.will("sessions.stop.stop", done)
    outcome = jlr(verb, "cont1", *flags)
    assert outcome.stdout == "dgx/cont1: stopped Jupyter, released 8888\n"
    assert workflows.arguments("sessions.stop.stop")[:2] == ("cont1", request_)


def test_several_sessions_are_stopped_though_one_is_busy(jlr: Jlr, workflows: Workflows) -> None:
    def stop(name: str, *_: Any) -> StopReport:
        if name == "cont1":
            raise Busy("`dgx/cont1` is busy")
        return StopReport(name, "dgx", ("stopped Jupyter",))

    workflows.will("sessions.stop.stop", stop)
    outcome = jlr("stop", "cont1", "cont2", "cont2")
    assert (outcome.code, outcome.stdout) == (7, "dgx/cont2: stopped Jupyter\n")
    assert "`dgx/cont1` is busy" in outcome.stderr


STOPPED = StopReport("cont1", "dgx", ("stopped Jupyter",))
LOGGED_IN = LoginReport("dgx", "nvcr.io", "me", "the keychain")
RENEWED = RenewReport("c", "zih", "8", "7")
ALL_OF_IT = {"url": URL, "page": PAGE, "base": BASE, "token": TOKEN}
FORGOTTEN = {"host": "dgx", "registry": "nvcr.io", "forgotten": ["x"]}


@pytest.mark.parametrize(
    ("argv", "workflow", "answer", "told"),
    [
        (("stop", "cont1"), "sessions.stop.stop", STOPPED, [vars(STOPPED)]),
        (("stop", "--all"), "sessions.stop.stop_all", [STOPPED], [vars(STOPPED)]),
        (("stop", "--all"), "sessions.stop.stop_all", [], []),
        (("open", "--no-browser"), "sessions.open.address", OPENED, {"url": URL, "page": PAGE}),
        (("restart", "c", "--force"), "sessions.restart.restart", REPORT, REPORT.to_json()),
        (("start", "c", "--renew"), "sessions.restart.renew", RENEWED, vars(RENEWED)),
        (("url", "c"), "sessions.open.address", OPENED, ALL_OF_IT),
        (("image", "push", "h", "a/b"), "images.pull.push", None, {"host": "h", "image": "a/b"}),
        (("image", "login", "dgx"), "images.login.log_in", LOGGED_IN, vars(LOGGED_IN)),
        (("image", "login", "dgx", "--forget"), "images.login.log_out", ["x"], FORGOTTEN),
        (("disconnect", "dgx"), "selection.destruction.disconnect", ["dgx"], [{"host": "dgx"}]),
        (
            ("mount", "--unmount", "x"),
            "mounts.known_mounts.unmount",
            "/home/x",
            [{"local": "/home/x"}],
        ),
        (("mount", "--unmount", "--all"), "mounts.known_mounts.unmount_all", [], []),
    ],
)
def test_under_json_stdout_is_one_value_and_stderr_empty(
    argv: tuple[str, ...], workflow: str, answer: Any, told: Any, jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will(workflow, answer)
    outcome = jlr(*argv, "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert json.loads(outcome.stdout) == json.loads(json.dumps(told))


def test_under_json_what_stopped_is_told_beside_the_error(jlr: Jlr, workflows: Workflows) -> None:
    def stop_all(*_: object) -> Iterator[StopReport]:
        yield STOPPED
        raise Busy("`lab/b` is busy", hint="wait")

    workflows.will("sessions.stop.stop_all", stop_all)
    outcome = jlr("stop", "--all", "--json")
    assert [done["name"] for done in json.loads(outcome.stdout)] == ["cont1"]
    error = {"error": "`lab/b` is busy", "hint": "wait", "exit": 7}
    assert (outcome.code, json.loads(outcome.stderr)) == (7, error)


def test_short_words_stand_for_lists(jlr: Jlr, workflows: Workflows) -> None:
    for short, story in (
        ("ls", "listing.listing.reports"),
        ("ps", "listing.listing.reports"),
        ("runs", "jobs.known_jobs.listed"),
        ("images dgx", "images.save.images"),
    ):
        workflows.will(story, [])
        assert jlr(*short.split(), "--json").stdout == "[]\n"


def test_help_of_a_command_is_its_help(jlr: Jlr) -> None:
    assert jlr("help", "stop").stdout == jlr("stop", "--help").stdout
    assert jlr("help", "image", "rm").stdout == jlr("image", "rm", "--help").stdout
    assert jlr("help").stdout == jlr("-h").stdout
    unknown = jlr("help", "xyzzy")
    assert (unknown.code, "no such command `xyzzy`" in unknown.stderr) == (2, True)


def test_stop_refuses_all_together_with_a_session(jlr: Jlr, workflows: Workflows) -> None:
    refused = jlr("rm", "--all", "a b", "cont1", "--force")
    assert refused.code == 2
    assert "`jlr rm 'a b' cont1 --force` takes only what is named" in refused.stderr
    assert not workflows.calls
