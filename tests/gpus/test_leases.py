"""Leases: no GPU is leased twice, and planted links do no harm."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from jlremote.gpus import leases
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import NO_FOLDER, Lease, QueueTicket
from jlremote.gpus.snapshot import read, snapshot_script
from jlremote.place.host.contract import FIELD, RECORD
from tests.gpus.parts import BOOT, NOW, answer, record, row, run, uuid
from tests.lab.programs import start_time, wait_until

UUID = uuid(0)
ADA, BERT = 61_001, 61_002  # users without an account
MINE = Lease("cont1", (UUID, uuid(1)), "a1b2", BOOT)
ROWS = "\n".join((row(0), row(1)))
PRESENT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()  # boot of this machine


def listed(shared: Path) -> list[str]:
    functions = snapshot_script().partition("limit=")[0]
    return run(f"{functions}\n{leases.LIST}\n", shared).stdout.split(RECORD)[:-1]


def found(shared: Path, user: str = "root") -> Inventory:
    head = record("host", int(time.time()), "1 1", PRESENT, user, 100)
    body = answer(ROWS).partition(RECORD)[2]
    return read(head + "".join(f"{one}{RECORD}" for one in listed(shared)) + body, "dgx")


def here(session: str, *uuids: str, word: str = "w") -> Lease:
    return Lease(session, uuids, word, PRESENT)


def test_a_leased_gpu_is_in_use_until_its_release(shared: Path) -> None:
    lease = here("cont1", UUID)
    assert run(leases.make(lease, ()), shared).returncode == 0
    first, second = found(shared).devices
    assert (first.in_use, second.in_use) == (True, False)
    [claim] = first.claims
    assert (claim.kind, claim.name, claim.user) == ("start", "cont1", "root")
    assert not any(device.in_use for device in found(shared).without(lease.names).devices)
    assert run(leases.release(lease), shared).returncode == 0
    assert listed(shared) == []


def test_a_settled_lease_lasts_as_long_as_its_process(shared: Path) -> None:
    lease = here("plain", UUID)
    run(leases.make(lease, ()), shared)
    with psutil.Popen(["sleep", "600"]) as process:
        script = leases.keep(lease, process.pid, start_time(process.pid))
        assert run(script, shared).returncode == 0
        [claim] = found(shared).devices[0].claims
        assert (claim.kind, claim.name) == ("session", "plain")
        process.kill()
    assert not found(shared).devices[0].in_use
    dead = found(shared).dead_leases
    assert dead == lease.names
    assert run(leases.make(here("next", UUID, word="x"), dead), shared).returncode == 0
    assert len(listed(shared)) == 1


@pytest.mark.parametrize(
    ("status", "pid", "claims"),
    [(0, ("false",), []), (0, ("echo", "0"), []), (126, ("echo", "1"), [("start", "cont1")])],
)
def test_a_lease_ends_with_its_container_and_stays_the_starts_where_none_was_started(
    shared: Path, status: int, pid: tuple[str, ...], claims: list[tuple[str, str]]
) -> None:
    lease = here("cont1", UUID)
    run(leases.make(lease, ()), shared)
    run(f"status={status}\n{leases.keep_for(lease, pid)}", shared)
    assert [(claim.kind, claim.name) for claim in found(shared).devices[0].claims] == claims
    assert len(listed(shared)) == len(claims)


def test_a_folder_that_is_called_like_a_lease_is_not_moved_into(shared: Path) -> None:
    lease = here("cont1", UUID)
    run(leases.make(lease, ()), shared)
    trap = shared / "jlr-gpus-0" / lease.target()
    trap.mkdir()
    run(leases.keep(lease, 1, "7"), shared)
    assert list(trap.iterdir()) == []
    assert str((shared / "jlr-gpus-0" / lease.names[0]).readlink()).endswith(":1:7")


def entry(age: float = 0, **changes: str) -> str:
    facts = {
        "name": f"{UUID}+a1b2",
        "owner": "eve",
        "target": f"jlr:cont1:{BOOT}:0:0",
        "process": "",
    } | changes
    owner = f"{facts['owner']} {NOW - int(age)}"
    return record("lease", facts["name"], owner, facts["target"], facts["process"], "root")


STAT = "77 (x) S " + " ".join(str(n) for n in range(1, 40))


@pytest.mark.parametrize(
    ("lease", "holds"),
    [
        (entry(), True),
        (entry(age=299), True),
        (entry(age=301), False),
        (entry(age=-3600), False),  # its owner may set its time to any
        (entry(target="jlr:cont1:another-boot:0:0"), False),
        (entry(target=f"jlr:cont1:{BOOT}:77:19", process=STAT), True),
        (entry(target=f"jlr:cont1:{BOOT}:77:18", process=STAT), False),
        (entry(age=10**6, target=f"jlr:cont1:{BOOT}:77:19", process=STAT), True),
        (entry(target=f"jlr:cont1:{BOOT}:77:19"), False),
        (entry(target="/etc/passwd"), False),
        (entry(target="a:b:c:d:e"), False),
        (entry(name="no-plus"), False),
        (record("lease", "too", "few"), False),
    ],
)
def test_a_lease_counts_while_its_start_or_its_process_lasts(lease: str, holds: bool) -> None:
    assert read(answer(ROWS, lease), "dgx").devices[0].in_use is holds


def test_only_ones_own_dead_leases_are_cleared_away() -> None:
    mine, others = entry(age=999, owner="ada"), entry(age=999, name=f"{UUID}+c3d4")
    assert read(answer(ROWS, mine, others, user="ada"), "dgx").dead_leases == (f"{UUID}+a1b2",)


def test_a_planted_link_in_place_of_the_folder_is_not_followed(shared: Path) -> None:
    victim = shared / "victim"
    victim.mkdir()
    os.chown(victim, ADA, ADA)
    planted = shared / f"jlr-gpus-{ADA}"
    planted.symlink_to(victim)
    for script in (leases.make(MINE, ["x+y"]), leases.keep(MINE, 1, "1"), leases.release(MINE)):
        assert run(script, shared, ADA).returncode == 0
    assert list(victim.iterdir()) == []
    assert planted.is_symlink()


@pytest.mark.parametrize("planted", ["folder", "file", "link"])
def test_who_takes_the_name_of_anothers_folder_is_not_in_the_way(
    shared: Path, planted: str
) -> None:
    """Nor can the owner of a folder that others use delete what is theirs: there is none."""
    name = f"jlr-gpus-{ADA}"
    make = {"folder": f"mkdir -m 777 {name}", "file": f"echo x >{name}", "link": f"ln -s . {name}"}
    assert run(f"cd /tmp && {make[planted]}", shared, BERT).returncode == 0
    assert run(leases.make(here("cont1", UUID), ()), shared, ADA).returncode == 0
    assert found(shared).devices[0].in_use
    run(f"rm -rf /tmp/{name}*; rm -f /tmp/{name}*/*", shared, BERT)
    assert found(shared).devices[0].in_use
    assert run(leases.release(here("cont1", UUID)), shared, ADA).returncode == 0
    assert not found(shared).devices[0].in_use


def test_each_user_has_a_folder_that_only_that_user_can_change(shared: Path) -> None:
    for uid in (ADA, BERT):
        assert run(leases.make(here("a", UUID, word=f"{uid}"), ()), shared, uid).returncode == 0
        made = (shared / f"jlr-gpus-{uid}").stat()
        assert (made.st_uid, made.st_mode & 0o7777) == (uid, 0o755)
    run("rm -rf /tmp/jlr-gpus-*; mv /tmp/jlr-gpus-* /tmp/x", shared, BERT)
    assert len(found(shared).devices[0].claims) == 1
    assert (shared / f"jlr-gpus-{ADA}" / f"{UUID}+{ADA}").is_symlink()


def test_a_link_of_another_user_counts_only_in_that_users_folder(shared: Path) -> None:
    run(leases.make(here("a", UUID), ()), shared, ADA)
    [link] = (shared / f"jlr-gpus-{ADA}").iterdir()
    moved = shared / f"jlr-gpus-{BERT}"
    moved.mkdir()
    os.chown(moved, BERT, BERT)
    link.rename(moved / link.name)
    assert listed(shared) == []


@pytest.mark.lab  # it takes a second
def test_a_time_that_its_owner_has_set_does_not_count(shared: Path) -> None:
    """Of two that wait, the one that came first is first, whatever time the other one gives."""
    with ExitStack() as processes:
        assert run(waits("honest", ADA, processes).stand(), shared, ADA).returncode == 0
        second = int(time.time())
        wait_until(lambda: int(time.time()) > second, "the next second")
        assert run(waits("early", BERT, processes).stand(), shared, BERT).returncode == 0
        run(f"touch -hd 2001-01-01 /tmp/jlr-gpus-{BERT}/*", shared, BERT)
        assert [one.session for one in found(shared).queue] == ["honest", "early"]


def waits(session: str, user: int, processes: ExitStack) -> QueueTicket:
    """Return the ticket of a user's process, which lives until the stack closes."""
    process = processes.enter_context(psutil.Popen(["sleep", "600"], user=user))
    processes.callback(process.kill)
    facts = process.pid, start_time(process.pid)
    return QueueTicket(UUID, session, 1, session, PRESENT, *facts)


def test_a_place_counts_only_with_a_process_of_its_own_user(shared: Path) -> None:
    """Process 1 lives for ever, and is nobody's who waits."""
    for uid, name in ((ADA, "ada"), (0, "root")):
        ticket = QueueTicket(UUID, name, 1, name, PRESENT, 1, start_time(1))
        assert run(ticket.stand(), shared, uid).returncode == 0
    assert [one.session for one in found(shared).queue] == ["root"]


def test_no_lease_is_made_where_others_can_take_folders_away(shared: Path) -> None:
    for mode, owner in ((0o777, 0), (0o1777, BERT)):
        shared.chmod(mode)
        os.chown(shared, owner, owner)
        assert run(leases.make(MINE, ()), shared, ADA).returncode == NO_FOLDER
    assert list(shared.iterdir()) == []


def test_whatever_else_lies_there_is_passed_over(shared: Path) -> None:
    folder = shared / "jlr-gpus-0"
    folder.mkdir()
    os.mkfifo(folder / f"{UUID}+fifo")
    (folder / f"{UUID}+file").write_text("jlr:x:y:0:0")
    (folder / f"{UUID}+folder").mkdir()
    (folder / f"{UUID}+\x1f\x1e").symlink_to("jlr:x:y:0:0")
    (folder / f"{UUID}+forged").symlink_to("jlr:x:y:0:0\x1f\x1ehost\x1f1\x1f\x1e")
    (folder / f"{UUID}+$(touch pwned)").symlink_to("x")
    assert listed(shared) == []


def test_old_names_of_mig_devices_hold_slashes(shared: Path) -> None:
    old = "MIG-GPU-0a0b/1/0"
    assert run(leases.make(here("a", old), ()), shared).returncode == 0
    [lease] = [leases.read(one.split(FIELD)[1:-1], 0, "") for one in listed(shared)]
    assert lease is not None
    assert lease[0] == old
