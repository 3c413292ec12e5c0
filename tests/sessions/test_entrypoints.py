"""Images with any entrypoint: the container stays, and Jupyter has what the entrypoint sets up."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import Session, failed, start, started

# As NGC's: it says something, sets something up, and goes on with what it was given.
BANNER = r"""#!/bin/bash
echo "== NVIDIA Release =="
export GREETING="it's  two words" TWO_LINES=$'one\ntwo=2' EMPTY=
shout() { echo "$1"; }
export -f shout
sleep 0.5
exec "$@"
"""
# As jupyter/docker-stacks for root: it makes a user of the person's choice, and becomes that one.
OTHER_USER = """#!/bin/sh
id "$NB_USER" >/dev/null 2>&1 ||
  useradd --no-log-init --create-home --uid "$NB_UID" --gid 100 "$NB_USER"
cd "/home/$NB_USER" && export HOME="$PWD" NB_PREPARED=yes
exec setpriv --reuid="$NB_USER" --regid=100 --init-groups "$@"
"""


class ImageFactory(Protocol):
    """Builds images."""

    def __call__(self, *lines: str, entry: str = "") -> str:
        """Return the name of lab/jupyter with further lines, and a program `/entry`."""
        ...


@pytest.fixture(scope="module")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageFactory]:
    """Build images, which are removed when the file ends."""
    prefix, made = f"lab-{secrets.token_hex(4)}", list[str]()

    def build(*lines: str, entry: str = "") -> str:
        made.append(f"{prefix}/{len(made)}")
        folder: Path = tmp_path_factory.mktemp("image")
        (folder / "entry").write_text(entry)
        (folder / "entry").chmod(0o755)
        text = "\n".join(("FROM lab/jupyter", "COPY entry /entry", *lines))
        (folder / "Dockerfile").write_text(text)
        engine.docker("build", "--quiet", "--tag", made[-1], str(folder))
        return made[-1]

    yield build
    if made:
        engine.docker("rmi", "--force", *made)


def variables(session: Session, *names: str) -> list[str | None]:
    """Return what a notebook of the session sees."""
    with session.notebook(f"{secrets.token_hex(4)}.ipynb") as kernel:
        seen = kernel.run(f"import os, json; print(json.dumps([os.getenv(n) for n in {names}]))")
    return list(json.loads(seen))


def test_variables_of_an_entrypoint_reach_notebooks_also_after_a_restart(
    laptop: Laptop, container: ContainerFactory, image: ImageFactory, engine: Engine
) -> None:
    name = container.name()
    made = image('ENTRYPOINT ["/entry"]', 'CMD ["/bin/bash"]', entry=BANNER)
    # Shells take no variables with the names of the last two.
    shout, odd = '() {  echo "$1"\n}', "it's  \\' odd"
    expected = ["it's  two words", "one\ntwo=2", "", shout, odd]
    exported = ("GREETING", "TWO_LINES", "EMPTY", "BASH_FUNC_shout%%", "app.mode")
    first = started(laptop, name, "--image", made, "--env", f"app.mode={odd}")
    assert variables(first, *exported) == expected
    engine.docker("stop", "--time", "1", name)
    assert variables(started(laptop, name), *exported) == expected
    for words in (("shell", name), ("run", "lab", "--in", name)):
        ran = laptop.jlr(*words, "--", "printenv", "app.mode")
        assert (ran.status, ran.stdout) == (0, f"{odd}\n"), ran


def test_an_entrypoint_makes_a_user_and_everything_runs_as_that_one(
    laptop: Laptop, container: ContainerFactory, image: ImageFactory, engine: Engine
) -> None:
    name = container.name()
    made = image('ENTRYPOINT ["/entry"]', entry=OTHER_USER)
    as_documented = ("--user", "root", "-e", "NB_UID=1234", "-e", "NB_USER=ada")
    answer = start(laptop, "lab", name, "--image", made, *as_documented, "--json")
    assert answer.status == 0, answer
    assert "left out" not in answer.stderr
    who = "import getpass, os; print(getpass.getuser(), os.getuid(), os.getgid(), os.getcwd())"
    home = "import os; print(os.environ['HOME'], os.environ['NB_PREPARED'])"
    shell = ("shell", f"lab/{name}", "--", "sh", "-c", "echo $(id -u) $(id -g) $HOME; touch ~/mine")
    for session in (Session(laptop, json.loads(answer.stdout)), None):
        if session is None:
            engine.docker("stop", "--time", "1", name)
            session = started(laptop, name)
        assert session.ask("api/contents/")["writable"]
        with session.notebook("ada.ipynb") as kernel:
            assert kernel.run(who) == "ada 1234 100 /home/ada\n"
            assert kernel.run(home) == "/home/ada yes\n"
        assert laptop.jlr(*shell).stdout == "1234 100 /home/ada\n"
        job = laptop.jlr("run", "lab", "--in", name, "--", "id", "-u")
        assert job.stdout == "1234\n", job
        as_root = laptop.jlr("shell", f"lab/{name}", "--user", "root", "--", "id", "-u")
        assert as_root.stdout == "0\n", "as it was asked for"
        engine.docker("exec", name, "sh", "-c", "rm -f /tmp/.jlr-waits-*")  # as if made by hand
        assert laptop.jlr(*shell).stdout == "1234 100 /home/ada\n"
        assert laptop.jlr("stop", f"lab/{name}", "--force", "--yes").status == 0


def test_root_becomes_no_user_whose_note_names_a_process_of_another_or_leads_out_of_proc(
    laptop: Laptop, container: ContainerFactory, engine: Engine
) -> None:
    """A planted process has files which say that it has the user's id and root's groups."""
    # The image is named by the beginning of its id, and its command, which ends, is not run.
    identity = engine.docker("image", "inspect", "--format", "{{.Id}}", "lab/jupyter")
    image = identity.removeprefix("sha256:")[:12]
    name = started(laptop, container.name(), "--image", image).name
    note = "note=/tmp/.jlr-waits-$(uname -n)"
    main = engine.docker("exec", name, "sh", "-c", f"{note}; cat $note; rm $note")
    plant = (
        f"{note}; echo ../tmp/planted >$note; mkdir /tmp/planted; cd /tmp/planted; "
        "printf 'sleep infinity ' >cmdline; printf 'Uid: 1234\\nGid: 0\\nGroups: 0\\n' >status"
    )
    for planted in (f"{note}; echo {main.strip()} >$note", plant):
        engine.docker("exec", "--user=1234", name, "sh", "-c", planted)
        shell = laptop.jlr("shell", f"lab/{name}", "--", "id", "-u")
        assert shell.stdout == "0\n", shell


def test_root_becomes_no_user_who_acts_as_the_process_that_waits(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    planted = "note=/tmp/.jlr-waits-$(uname -n); sleep infinity & echo $! >$note; wait"
    here.engine.docker("exec", "--user=1234", "--detach", here.name, "sh", "-c", planted)
    noted = ("sh", "-c", "cat /tmp/.jlr-waits-*; :")
    wait_until(lambda: here.execute(*noted).strip() != "", "the note")
    shell = laptop.jlr("shell", f"lab/{here.name}", "--", "id", "-u")
    assert shell.stdout == "0\n", shell


def test_an_entrypoint_that_changes_the_user_is_left_out_where_nothing_follows_it(
    laptop: Laptop, container: ContainerFactory, image: ImageFactory
) -> None:
    """What runs in the container later could not tell that user's server for its own."""
    becomes = "import os, sys; os.setuid(1000); os.execvp(sys.argv[1], sys.argv[1:])"
    entry = f"#!/bin/sh\nexec python3 -c '{becomes}' \"$@\"\n"
    made = image('ENTRYPOINT ["/entry"]', "RUN rm $(command -v setpriv)", entry=entry)
    answer = start(laptop, "lab", container.name(), "--image", made)
    assert answer.status == 0, answer
    assert "no `setpriv` to follow; `--user` sets one" in answer.stderr


@pytest.mark.parametrize("line", [LONG(""), 'ENTRYPOINT ["python3"]'], ids=["without", "python"])
def test_an_image_without_a_shell_is_told_as_such_and_leaves_nothing(
    laptop: Laptop, container: ContainerFactory, image: ImageFactory, line: str
) -> None:
    answer = start(laptop, "lab", container.name(), "--image", image(line, "RUN rm /bin/sh"))
    failed(answer, 1, "exec sh failed", "an image for jlr needs `sh`")
    assert container.remove_all() == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (('ENTRYPOINT ["/bin/bash"]', 'CMD ["/entry"]'), "cannot execute binary file"),
        LONG(('ENTRYPOINT ["/bin/true"]',), "ends at once"),
        LONG(('ENTRYPOINT ["/nowhere"]',), "/nowhere"),
        LONG(('ENTRYPOINT ["jupyter", "lab", "--allow-root"]',), "No such file"),
    ],
    ids=["shell with a script", "ends at once", "no such program", "server with options"],
)
def test_an_entrypoint_with_which_the_container_ends_is_left_out_and_that_is_said(
    laptop: Laptop,
    container: ContainerFactory,
    image: ImageFactory,
    lines: tuple[str, ...],
    reason: str,
) -> None:
    name = container.name()
    answer = start(laptop, "lab", name, "--image", image(*lines))
    assert answer.status == 0, answer
    assert "left out the entrypoint of" in answer.stderr
    assert reason in answer.stderr
    session = Session(laptop, {"url": answer.stdout.strip()})
    assert session.ask("api/status")["kernels"] == 0
    assert container.remove_all() == [name]
