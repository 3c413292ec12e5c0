"""Where a job's folder goes, and what is refused before the job begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from jlremote.copies import cp
from jlremote.copies.cp import check_patterns, sent_first
from jlremote.copies.sync import Synced, SyncRequest
from jlremote.errors import JlrError, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.requests import RunRequest, StartRequest

SYNCED = Synced("/home/me/proj", ("a",), 1, (), (), (), (), "")
RUN = RunRequest(StartRequest("dgx", image="torch"), ("python", "a"))
WITH_SETTING = StartRequest("dgx", workspace="~/of-the-settings")
ON_HOST = replace(RUN, wanted=StartRequest("dgx", runtime="none"))


def sent(
    monkeypatch: pytest.MonkeyPatch, request: RunRequest, result: Synced = SYNCED
) -> tuple[SyncRequest, RunRequest]:
    asked: list[SyncRequest] = []

    def sync(order: SyncRequest, _: Context) -> Synced:
        asked.append(order)
        return result

    monkeypatch.setattr("jlremote.copies.sync.sync", sync)
    monkeypatch.setattr(cp, "host_word", str)
    done, folder = sent_first(request, Path("proj"), cast("Context", None))
    assert (folder.where, folder.path) == (asked[0].where, result.into)
    return asked[0], done


@pytest.mark.parametrize(
    ("request_", "where", "workspace", "workdir"),
    [
        (RUN, "dgx", "/home/me/proj", None),
        (ON_HOST, "dgx", None, "/home/me/proj"),
        (replace(ON_HOST, inside="c"), "dgx/c", None, "/home/me/proj"),
        (replace(RUN, wanted=WITH_SETTING, inside="c"), "dgx/c", None, "/home/me/proj"),
    ],
)
def test_a_new_container_gets_it_as_workspace_and_others_begin_in_it(
    monkeypatch: pytest.MonkeyPatch,
    request_: RunRequest,
    where: str,
    workspace: str | None,
    workdir: str | None,
) -> None:
    order, run = sent(monkeypatch, request_)
    assert (order.where, order.into) == (where, None)
    assert (run.wanted.workspace, run.wanted.options.workdir) == (workspace, workdir)


@pytest.mark.parametrize(("typed", "into"), [(".", None), ("~/other", "~/other")])
def test_a_workspace_that_was_named_is_where_it_goes(
    monkeypatch: pytest.MonkeyPatch, typed: str, into: str | None
) -> None:
    request = replace(RUN, wanted=replace(RUN.wanted, workspace=typed))
    order, _ = sent(monkeypatch, request)
    assert order.into == into


def test_no_job_begins_with_other_files_than_those_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JlrError, match="`a`"):
        sent(monkeypatch, RUN, replace(SYNCED, conflicts=("a",)))


@pytest.mark.parametrize("pattern", ["../x", "/etc/passwd", "runs/*/x", "", ".."])
def test_what_is_brought_back_is_in_the_folder(pattern: str) -> None:
    with pytest.raises(Usage):
        check_patterns([pattern])
    check_patterns(["runs", "out/*.png", "a/b/c?.txt"])
