"""`--idle-stop` ends idle kernels and servers of every version, and never a busy one."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import Session, started

DEBIAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOTEBOOK_6 = ("--env", f"PATH=/opt/notebook6/bin:{DEBIAN_PATH}")
# Jupyter looks once a minute whether it may end, and has no setting for that: here it looks each
# 3 s, once there is a file `/look`.
OFTEN = """\
mkdir -p /etc/jupyter
cd /etc/jupyter; tee jupyter_server_config.py >jupyter_notebook_config.py <<'END'
import os
from tornado.ioloop import PeriodicCallback
begin = PeriodicCallback.__init__
def often(self, act, milliseconds, *more, **named):
    if milliseconds == 60000:
        milliseconds, look = 3000, act
        act = lambda: look() if os.path.exists("/look") else None
    begin(self, act, milliseconds, *more, **named)
if not hasattr(PeriodicCallback, "often"):
    PeriodicCallback.__init__, PeriodicCallback.often = often, True
END
"""


def notebooks(session: Session) -> list[str]:
    """Return what has a kernel, asked as jlr asks: a look is no work."""
    kernels = session.ask("api/sessions?no_track_activity=1")
    return sorted(kernel["path"] for kernel in kernels)


def told(session: Session) -> dict[str, Any]:
    """Return what `jlr list` tells of a session."""
    return dict(json.loads(session.laptop.jlr("list", session.name, "--json").stdout))


def test_idle_kernels_end_and_then_jupyter_but_never_a_busy_one(
    laptop: Laptop, container: ContainerFactory
) -> None:
    places = [container("lab/ages"), container("lab/ages", options=NOTEBOOK_6)]
    for here in places:
        here.execute("sh", "-c", OFTEN)
    new, old = (started(laptop, here, "--idle-stop", "4s") for here in places)
    assert (new.report["idle_stop"], old.report["idle_stop"]) == (4, 4)
    said = laptop.jlr("list", new.name).stdout
    assert "after 4s without work idle kernels end" in said
    again = laptop.jlr("start", "lab", new.name, "--idle-stop", "2h", "--no-browser")
    assert "`--idle-stop` will apply to its next start" in again.stderr, again
    job = f"{new.name}-job"
    begun = laptop.jlr("run", "lab", "--in", new.name, "-d", "--name", job, "--", "sleep", "600")
    assert begun.status == 0, begun
    wait_until(lambda: told(new)["awake"] == ["ssh, a shell or a job"], "the job's being noted")
    with new.notebook("kept.ipynb") as kept:
        assert kept.run("6 * 7") == "42"
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 12, "three times the idle time")
        assert notebooks(new) == ["kept.ipynb"]
        listed = laptop.jlr("list").stdout
        assert "kept from its idle stop by ssh, a shell or a job" in " ".join(listed.split())
        laptop.jlr("rm", f"lab/{job}", "--force", "--yes")
        wait_until(lambda: notebooks(new) == [], "the end of the kernel", timeout=60)
    for session in (new, old):
        with session.notebook("busy.ipynb") as busy, session.notebook("idle.ipynb") as idle:
            busy.keep_busy()
            assert idle.run("6 * 7") == "42"
            wait_until(
                lambda here=session: notebooks(here) == ["busy.ipynb"],  # type: ignore[misc]
                "the end of the idle kernel, though somebody is connected to it",
                timeout=60,
            )
            assert busy.state() == "busy"
            assert "the kernel of busy.ipynb" in told(session)["awake"]
    for here in places:
        here.execute("touch", "/look")
    for session in (new, old):

        def is_over(here: Session = session) -> bool:
            return bool(told(here)["state"] != "up")

        wait_until(is_over, "the end of Jupyter", timeout=150)
        over = told(session)
        assert over["state"] == "idle-stopped", over
        assert "has ended after its idle time" in over["detail"]
    assert started(laptop, new.name).report["idle_stop"] is None
    assert told(new)["state"] == "up"
