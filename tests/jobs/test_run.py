"""`jlr run`: output and exit code are the job's own, wherever it runs; the job is kept."""

from __future__ import annotations

import json

import pytest

from tests.jobs.conftest import every_place, one_place
from tests.jobs.parts import Jobs, Leavers, whole
from tests.lab.accounts import Account, claimed_account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.long import LONG
from tests.sessions.parts import failed

OUTPUT = b"begin\r\n\xff\xfe caf\xe9\x1b[31mred\x1b[0m no newline at the end"
WORDS = ("-n", "--help", "two  words", 'it\'s "so"', "$(id) `id` $HOME", "one\ntwo", "--", "é")


@every_place
def test_output_and_exit_code_are_the_jobs_own_and_are_kept(jobs: Jobs) -> None:
    name = jobs.name()
    told = "".join(f"\\{byte:03o}" for byte in OUTPUT)
    done = jobs.run(name, "sh", "-c", f"printf '{told}'; echo oops >&2; exit 7")
    assert done.returncode == 7
    assert done.stdout == OUTPUT
    assert done.stderr.endswith(b"oops\n")
    state = jobs.state(name)
    assert (state["state"], state["exit_code"]) == ("ended", 7)
    assert state["ended"] >= state["since"] > "2026-"
    assert state["since"].endswith("Z")
    for again in (("job", "attach", name), ("logs", f"lab/{name}")):
        shown = whole(jobs.laptop, *again)
        assert (shown.stdout, shown.stderr) == (OUTPUT, b"oops\n"), again
    assert whole(jobs.laptop, "job", "attach", name).returncode == 7
    assert whole(jobs.laptop, "job", "rm", name, "--yes").returncode == 0
    assert not jobs.state(name)
    assert whole(jobs.laptop, "job", "attach", f"lab/{name}").returncode == 6


@one_place
def test_with_json_stdout_is_the_ended_job_alone(jobs: Jobs) -> None:
    name = jobs.name()
    script = ("sh", "-c", "echo begun; echo oops >&2; exit 3")
    done = jobs.run(name, *script, options=("--rm", "--json"))
    assert done.returncode == 3
    assert sorted(done.stderr.splitlines()) == [b"begun", b"oops"]
    told = json.loads(done.stdout)
    assert (told["host"], told["name"]) == ("lab", name)
    assert (told["state"], told["exit_code"]) == ("ended", 3)
    assert told["ended"] >= told["since"]
    assert not jobs.state(name), "`--rm` was asked for"
    jobs.begin(name, script[-1])
    again = whole(jobs.laptop, "job", "attach", name, "--json")
    assert (again.returncode, json.loads(again.stdout)["exit_code"]) == (3, 3)
    assert sorted(again.stderr.splitlines()) == [b"begun", b"oops"]
    gone = whole(jobs.laptop, "job", "attach", f"lab/{name}-gone", "--json")
    assert (gone.stdout, json.loads(gone.stderr)["exit"]) == (b"", 6)


def test_arguments_variables_and_the_folder_arrive_as_they_are(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'printf "[%s]" "$PWD" "$ONE" "$TWO" "$THREE" "$FOUR" "$@"'
    file = jobs.laptop.folder / "job.env"
    file.write_text("# of a project\nTWO='a b' \n\nTHREE\nONE=file\n", encoding="utf-8")
    monkeypatch.setitem(jobs.laptop.environment, "THREE", "this machine's")
    monkeypatch.setitem(jobs.laptop.environment, "FOUR", "4=4")
    given = ("-e", "ONE=it's $HOME", "-e", "FOUR", f"--env-file={file}")
    options = (*given, "-w", "/var/tmp", "--rm")
    name = jobs.name()
    done = jobs.run(name, "sh", "-c", script, "sh", *WORDS, options=options)
    words = ("/var/tmp", "it's $HOME", "'a b' ", "this machine's", "4=4", *WORDS)
    assert done.stdout.decode() == "".join(f"[{word}]" for word in words)
    assert not jobs.state(name), "`--rm` was asked for"
    refused = jobs.run(name, "true", options=("-e", "NOT_HERE"))
    assert (refused.returncode, b"`--env`: `NOT_HERE` has no value" in refused.stderr) == (2, True)
    detached = ("sh", "-c", "sleep 1; echo kept; exit 4")
    assert jobs.run(name, *detached, options=("--rm", "--detach")).returncode == 0
    for state in ("running", "ended"):
        waited = whole(jobs.laptop, "wait", f"lab/{name}", name)
        assert (waited.returncode, waited.stdout) == (4, b""), (state, waited)
    shown = whole(jobs.laptop, "job", "attach", name)
    assert (shown.returncode, shown.stdout) == (4, b"kept\n")
    assert not jobs.state(name), "it was read once"


@one_place
def test_a_detached_job_outlasts_the_link_and_another_laptop_finds_it(
    jobs: Jobs, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    name = jobs.name()
    jobs.begin(name, "echo begun; sleep 0.5; echo over; exit 3")
    assert jobs.laptop.jlr("disconnect", "lab").status == 0
    with new_laptop(sshd, account, keys) as other:
        shown = whole(other, "job", "attach", f"lab/{name}")
        assert (shown.returncode, shown.stdout) == (3, b"begun\nover\n")
        assert name in other.jlr("job", "list", "lab").stdout
        cleaned = other.jlr("job", "list", "lab", "--clean", "--yes", "--json")
        assert f"deleted lab/{name}" in cleaned.stderr or not jobs.state(name)
    assert not jobs.state(name)


def test_clean_deletes_ones_own_jobs_and_not_those_of_another_user(
    owner: Laptop, containers: ContainerFactory, sshd: SSHServer, keys: Keys
) -> None:
    """Both use one engine. The other user's jobs have no record on the laptop that cleans."""

    def ended_job(laptop: Laptop, *where: str) -> str:
        name = containers.name()
        done = laptop.jlr("run", "lab", *where, "--name", name, "--", "true")
        assert done.status == 0, done
        return name

    def names(laptop: Laptop) -> set[str]:
        listed = laptop.jlr("job", "list", "lab", "--json").stdout
        return {job["name"] for job in json.loads(listed)}

    in_container, on_host = ("--image", "lab/plain"), ("--runtime", "none")
    with claimed_account() as other, new_laptop(sshd, other, keys) as their_laptop:
        theirs = {ended_job(their_laptop, *where) for where in (in_container, on_host)}
        mine = {ended_job(owner, *where) for where in (in_container, on_host)}
        cleaned = owner.jlr("job", "list", "lab", "--clean", "--yes")
        assert cleaned.status == 0, cleaned
        assert not names(owner) & (mine | theirs)
        assert theirs <= names(their_laptop)
        for name in theirs:
            assert owner.jlr("rm", f"lab/{name}", "--yes").status == 6
        assert theirs <= names(their_laptop)


def test_a_name_that_is_taken_is_refused_wherever_the_first_job_runs(
    jobs: Jobs, inside: Container
) -> None:
    name = jobs.name()
    jobs.begin(name, "echo first; sleep 600")
    for where in (("--image", "lab/plain"), ("--in", inside.name), ("--runtime", "none")):
        second = jobs.laptop.jlr("run", "lab", *where, "--name", name, "--", "echo", "second")
        failed(second, 7, "choose another name")
    assert jobs.state(name)["state"] == "running"
    assert jobs.laptop.jlr("rm", name, "--force", "--yes").status == 0


def test_what_cannot_begin_leaves_nothing_behind(
    owner: Laptop, containers: ContainerFactory
) -> None:
    name = containers.name()
    run = ("run", "lab", "--name", name)
    for where, status in (
        (("--image", "lab/plain", "--network", "lab-no-such", "--", "true"), 6),
        (("--image", "lab/plain", "--network", "container:lab-no-such", "--", "true"), 6),
        (("--image", "lab/no-such-image", "--", "true"), 6),
        (("--in", "lab-no-such-container", "--", "true"), 6),
        (("--", "true"), 2),
    ):
        result = owner.jlr(*run, *where)
        assert result.status == status, result
        assert "error: " in result.stderr
    assert name not in owner.jlr("job", "list", "lab").stdout
    assert name not in containers.engine.docker("ps", "--all", "--format", "{{.Names}}")
    assert owner.jlr("job", "attach", name).status == 6


def test_a_deleted_job_is_not_reported_as_a_missing_session(
    owner: Laptop, containers: ContainerFactory
) -> None:
    name = containers.name()
    begun = owner.jlr("run", "lab", "--runtime", "none", "--name", name, "--", "true")
    assert begun.status == 0, begun
    assert owner.jlr("rm", name, "--yes").status == 0
    for command, selector, host in (
        (("rm", "--yes"), name, ""),
        (("logs",), f"lab/{name}", " lab"),
    ):
        again = owner.jlr(*command, selector)
        told = f"there is neither a session nor a job `{selector}`"
        failed(again, 6, told, f"`jlr list{host}` and `jlr job list{host}` show all")


@every_place
@pytest.mark.parametrize(
    ("how", "ignore"), [((), False), LONG((), True), LONG(("--force", "--yes"), False)]
)
def test_stop_ends_a_job_and_what_it_began(jobs: Jobs, how: tuple[str, ...], ignore: bool) -> None:
    name, leavers = jobs.name(), Leavers(ignore=ignore)
    jobs.begin(name, leavers.script)
    begun = "begun\n" * leavers.count
    wait_until(lambda: jobs.laptop.jlr("logs", name).stdout == begun, "all that it begins")
    stopped = jobs.laptop.jlr("stop", name, *how)
    assert stopped.status == 0, stopped
    assert leavers.left() == []
    assert jobs.wait_over(name) == 128 + (9 if how or ignore else 15)
    assert jobs.laptop.jlr("rm", name, "--yes").status == 0
