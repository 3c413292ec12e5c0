"""A second laptop finds the sessions on their host, and both tell the truth about them."""

from __future__ import annotations

import json
import re
from typing import Any

from pexpect import EOF

from jlremote.place.host.contract import USER_LABEL
from jlremote.place.runtimes.runtime import SESSION_LABEL
from tests.lab.accounts import Account, claimed_account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.link.servers import start_inside
from tests.sessions.parts import Session, failed, started


def listed(laptop: Laptop, *words: str) -> dict[str, dict[str, Any]]:
    """Return the objects of `jlr list --json` by name."""
    found = laptop.jlr("list", *words, "--json")
    assert found.status == 0, found
    return {report["name"]: report for report in json.loads(found.stdout)}


def state(laptop: Laptop, name: str) -> str:
    """Return the word of `jlr list`."""
    return str(json.loads(laptop.jlr("list", name, "--json").stdout)["state"])


def test_a_session_is_found_used_and_stopped_from_a_second_laptop(
    laptop: Laptop, other_laptop: Laptop, container: ContainerFactory
) -> None:
    """Neither made by jlr nor known there: what runs in it is all that tells."""
    here = container()
    session = started(laptop, here)
    where = f"lab/{here.name}"

    assert here.name not in listed(other_laptop)
    found = listed(other_laptop, "lab")[here.name]
    assert (found["state"], found["runtime"], found["url"]) == ("running", "docker", None)
    shown = other_laptop.jlr("list", "lab")
    assert re.search(rf"^{here.name} +lab +running ", shown.stdout, re.MULTILINE), shown
    assert "jlr open lab/" in shown.stderr, shown
    here.engine.pause(here.name)
    assert listed(other_laptop, "lab")[here.name]["state"] == "paused"
    here.engine.docker("unpause", here.name)

    opened = other_laptop.jlr("open", where)
    assert opened.status == 0, opened
    report = json.loads(other_laptop.jlr("list", where, "--json").stdout)
    assert report["url"] == opened.stdout.strip()
    other = Session(other_laptop, report)
    assert other.token == session.token
    assert other.born() == session.born()
    assert other.url.partition("/lab")[2] == session.url.partition("/lab")[2]
    assert listed(other_laptop, "lab")[here.name]["state"] == "up"

    with session.notebook("mine.ipynb") as kernel:
        kernel.keep_busy()
        failed(other_laptop.jlr("stop", where), 7, "`mine.ipynb`", "--force")
    assert state(laptop, here.name) == "up"
    assert other_laptop.jlr("stop", where).status == 0
    told = listed(laptop)[here.name]
    assert told["state"] == "stopped", told
    assert "was stopped, from its page or with `jlr stop`" in told["detail"]
    assert listed(other_laptop, "lab")[here.name]["state"] == "stopped"
    failed(other_laptop.jlr("open", where), 6, "does not run", f"jlr start lab {here.name}")

    started(laptop, here)
    again = other_laptop.jlr("url", where)
    assert again.status == 0, again
    assert state(other_laptop, where) == "up"


def settle(laptop: Laptop, rule: str) -> None:
    laptop.settle(f'[defaults]\nname = "{rule}"\n')


def test_list_all_shows_every_container_of_the_host(
    laptop: Laptop, account: Account, container: ContainerFactory
) -> None:
    named = container.name()
    taken = container.name()
    labels = (f"{SESSION_LABEL}={taken}", f"{USER_LABEL}=somebody-else")
    theirs = container(name=taken, options=tuple(f"--label={label}" for label in labels))
    assert theirs.name not in listed(laptop, "lab")
    idle = container("lab/plain", options=("--user", "4242"))
    stopped = container("lab/plain")
    stopped.engine.docker("kill", stopped.name)
    started(laptop, named, "--image", "lab/jupyter")
    every = listed(laptop, "lab", "--all")
    mine = every[named]
    assert mine["owner"] == account.name
    assert (mine["jupyter"], mine["session"], mine["image"]) == (True, True, "lab/jupyter")
    other = every[idle.name]
    facts = ("status", "jupyter", "session", "owner")
    assert [other[fact] for fact in facts] == ["running", False, False, "4242"]
    assert [every[stopped.name][fact] for fact in facts] == ["exited", False, False, None]
    shown = laptop.jlr("list", "lab", "--all").stdout
    assert re.search(rf"^{named} +lab/jupyter +running +yes ", shown, re.MULTILINE), shown
    assert [every[theirs.name][fact] for fact in facts] == ["running", False, True, "somebody-else"]
    failed(laptop.jlr("list", "--all"), 2, "HOST")
    _is_not_joined(laptop, theirs)


def _is_not_joined(laptop: Laptop, theirs: Container) -> None:
    """Check that another user's session is neither joined nor stopped, unless that is asked for."""
    where = f"lab/{theirs.name}"
    whose = f"`{where}` belongs to `somebody-else`"
    for words in (
        ("start", "lab", theirs.name, "--no-browser"),
        ("open", where, "--no-browser"),
        ("shell", where, "--", "true"),
        ("rm", where, "--yes"),
        ("run", "lab", "--in", theirs.name, "--", "true"),
    ):
        refused = laptop.jlr(*words)
        failed(refused, 1, whose)
        hint = refused.stderr.partition("hint: ")[2]
        assert hint, refused
        assert not any(word in hint for word in ("stop ", "jlr rm", "docker rm")), refused
    assert theirs.running


def test_jupyter_of_another_user_in_a_container_of_no_user_is_theirs(
    laptop: Laptop, sshd: SSHServer, keys: Keys, account: Account, container: ContainerFactory
) -> None:
    """Both can use a container that was there before; who launched Jupyter in it is noted."""
    here, mine = container(), container("lab/plain")
    start_inside(mine, 8888)
    where = f"lab/{here.name}"
    started(laptop, here)
    assert laptop.jlr("stop", here.name).status == 0
    with claimed_account() as other, new_laptop(sshd, other, keys) as their_laptop:
        theirs = started(their_laptop, here)
        whose = f"`{where}` belongs to `{other.name}`"
        for words in (
            ("start", "lab", here.name, "--no-browser"),
            ("open", where, "--no-browser"),
            ("restart", where),
            ("stop", where),
            ("rm", where, "--yes"),
        ):
            failed(laptop.jlr(*words), 1, whose)
        assert listed(laptop, "lab", "--all")[here.name]["owner"] == other.name
        assert laptop.jlr("run", "lab", "--in", here.name, "--rm", "--", "true").status == 0
        joined = started(laptop, here, "--as-shared")
        joined_born = joined.born()
        assert joined_born == theirs.born()

        started(laptop, mine)
        with laptop.terminal("jlr", "stop", "--all", "--force") as screen:
            screen.expect(f"the forward of {where}, which belongs to `{other.name}`")
            screen.expect("Stop all the sessions\\? \\(y/N\\) ")
            screen.send("n\r")
            screen.expect(EOF)
        hint = failed(laptop.jlr("rm"), 2, f"`jlr rm lab/{mine.name}`")
        assert here.name not in hint
        kept = laptop.jlr("rm", "--all", "--force", "--yes")
        assert (kept.status, whose in kept.stderr) == (1, True), kept
        assert f"lab/{mine.name}: stopped JupyterLab" in kept.stdout
        left = laptop.jlr("stop", "--all", "--force", "--yes")
        assert f"left Jupyter running: it belongs to `{other.name}`" in left.stdout, left
        assert theirs.born() == joined_born

        assert their_laptop.jlr("stop", here.name).status == 0
        started(laptop, here)
        failed(their_laptop.jlr("open", where, "--no-browser"), 1, f"belongs to `{account.name}`")


def test_another_users_session_is_joined_on_request_and_left_running(
    laptop: Laptop, account: Account, container: ContainerFactory
) -> None:
    """It has the default name, too, so that the person's own default is another one."""
    name = f"{container.prefix}jupyter"
    labels = (f"--label={SESSION_LABEL}={name}", f"--label={USER_LABEL}=somebody-else")
    theirs = container("lab/plain", name=name, options=labels)
    where = f"lab/{name}"
    settle(laptop, f"{container.prefix}{{name}}")
    planned = laptop.jlr("start", "lab", "--image", "lab/plain", "--dry-run")
    assert planned.stdout.splitlines()[-1] == f"docker start {account.name}_{name}", planned
    other = ("--image", "lab/jupyter", "--shm-size", "8m", "--as-shared", "--no-browser")
    kept = laptop.jlr("start", "lab", name, *other)
    assert "keeps its settings: shm-size" in kept.stderr, kept
    assert "jlr rm" not in kept.stderr, "it is not ours to delete"
    assert laptop.jlr("shell", where, "--as-shared", "--", "true").status == 0
    assert laptop.jlr("shell", where, "--", "true").status == 0, "it was joined"
    left = laptop.jlr("stop", where)
    assert left.status == 0, left
    assert "belongs to `somebody-else`" in left.stdout
    failed(laptop.jlr("stop", where, "--container", "--yes"), 1, "belongs to `somebody-else`")
    assert theirs.running
    assert laptop.jlr("rm", where, "--force", "--yes").status == 0
    assert container.remove_all() == []
