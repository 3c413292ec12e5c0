"""`jlr start`: flags and settings become one request; stdout has only the answer."""

import json
from pathlib import Path

import pytest

from jlremote.errors import Busy
from jlremote.hosts.context import Context
from jlremote.hosts.requests import StartRequest
from jlremote.laptop.settings.options import variable
from jlremote.place.runtimes.container_options import ContainerOptions
from tests.cli.conftest import ADDRESS, REPORT, URL, Jlr, Workflows, remember, settle


@pytest.fixture(autouse=True)
def started(workflows: Workflows) -> None:
    workflows.will("sessions.start.start", REPORT)
    workflows.will("forwards.browser.open_in_browser", None)


def test_a_bare_start_takes_host_and_container_of_the_settings_or_the_latest_session(
    laptop: Path, jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*argv: str) -> StartRequest:
        workflows.calls.clear()
        assert jlr("start", "--no-browser", *argv).code == 0
        return workflows.arguments("sessions.start.start")[0]  # type: ignore[no-any-return]

    remember(("lab", "latest"), ("dgx", "older"))
    request = begun()
    assert (request.host, request.container, request.runtime) == ("lab", "latest", "docker")
    assert begun("--runtime", "podman").runtime == "podman"
    settle(laptop, "[defaults]\nhost = 'dgx'\n[hosts.dgx]\ncontainer = 'mine'\n")
    request = begun("--", "--cap-add", "X")
    assert (request.host, request.container, request.runtime) == ("dgx", "mine", "auto")
    assert request.options.engine_arguments == ("--cap-add", "X")
    assert begun("box").host == "box"
    monkeypatch.setenv("JLR_HOST", "other")
    assert begun().host == "other"


def test_a_setting_that_fails_is_named_as_a_setting(
    laptop: Path, jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(laptop, "[hosts.dgx]\nport = 8901\n[defaults]\nvolume = ['x:/x']\n")

    def refuse(*_: object) -> None:
        raise Busy("`--volume x:/x` is odd", hint="leave out `--port`; `--image IMAGE` is another")

    workflows.will("sessions.start.start", refuse)
    told = jlr("start", "dgx", "cont1").stderr
    assert "`--volume x:/x` ([defaults]) is odd" in told
    assert "leave out `port` of `[hosts.dgx]`; `--image IMAGE` is another" in told
    assert "leave out `--port`" in jlr("start", "dgx", "cont1", "--port", "8901").stderr
    monkeypatch.setenv("JLR_PORT", "8902")
    assert "leave out `JLR_PORT`" in jlr("start", "dgx", "cont1").stderr


def environment(workflows: Workflows) -> tuple[str, ...]:
    """Return the variables in the request of the only start."""
    return tuple(workflows.arguments("sessions.start.start")[0].options.environment)


def test_a_variable_without_a_value_gets_this_machines(
    jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "s3cret=x")
    assert jlr("start", "dgx", "-e", "HF_TOKEN", "-e", "EMPTY=").code == 0
    assert environment(workflows) == ("HF_TOKEN=s3cret=x", "EMPTY=")
    missing = jlr("start", "dgx", "-e", "NOT_SET_HERE")
    assert missing.code == 2
    assert "`--env`: `NOT_SET_HERE` has no value" in missing.stderr


def test_a_file_of_variables_is_read_as_docker_reads_it(
    laptop: Path, jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HERE", "yes")
    file = laptop / "job.env"
    file.write_text("# a comment\n\nA=1\n  B=two words # kept\nFROM_HERE\nA_QUOTE='x'\n")
    assert jlr("start", "dgx", "--env-file", str(file), "-e", "A=flag").code == 0
    found = environment(workflows)
    assert {"B=two words # kept", "FROM_HERE=yes", "A_QUOTE='x'"} < set(found)
    assert [item for item in found if item.startswith("A=")][-1] == "A=flag"
    assert jlr("start", "dgx", "--env-file", str(laptop / "none")).code == 2
    for line, why in (("NOT_SET", "`NOT_SET` has"), ("A B=1", "`A B` is"), ("=1", "`=` is")):
        file.write_text(f"\ufeffA=1\n{line}\n", encoding="utf-8")
        refused = jlr("start", "dgx", "--env-file", str(file))
        assert (refused.code, f"`--env-file {file}`: {why}" in refused.stderr) == (2, True), refused
    assert jlr("start", "dgx", "-e", "A B=1").code == 2
    settle(laptop, '[hosts.dgx]\nenv = ["NOT_SET"]\n')
    assert "`env` of `[hosts.dgx]`: `NOT_SET` has no value" in jlr("start", "dgx").stderr


def test_every_option_is_in_the_request(
    jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("B", "2")
    argv = "start me@dgx cont1 --image torch -v /a:/b --volume /c:/d:ro -e A=1 --env B -w /work"
    rest = "-u 1000:1000 --shm-size 1g --gpus all --port 9999 --runtime docker --no-browser"
    more = "--ulimit memlock=-1 --workspace=~/proj --ipc host --network bridge --no-init --rm"
    assert jlr(*argv.split(), *rest.split(), *more.split()).code == 0
    assert workflows.arguments("sessions.start.start")[0] == StartRequest(
        host="me@dgx",
        container="cont1",
        runtime="docker",
        image="torch",
        options=ContainerOptions(
            volumes=("/a:/b", "/c:/d:ro"),
            environment=("A=1", "B=2"),
            workdir="/work",
            user="1000:1000",
            shm_size="1g",
            ulimits=("memlock=-1",),
            ipc="host",
            network="bridge",
            init=False,
            remove=True,
        ),
        workspace="~/proj",
        gpus="all",
        local_port=9999,
    )


def test_a_python_or_a_conda_environment_is_in_the_request(jlr: Jlr, workflows: Workflows) -> None:
    jlr("start", "dgx", "--runtime", "none", "--conda-env", "lab")
    expected = StartRequest(host="dgx", runtime="none", conda_env="lab")
    assert workflows.arguments("sessions.start.start")[0] == expected
    both = jlr("start", "dgx", "--python", "p", "--conda-env", "c")
    assert (both.code, "cannot be combined" in both.stderr) == (2, True)


def test_an_option_without_a_flag_comes_from_the_settings(
    jlr: Jlr, workflows: Workflows, laptop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(
        laptop,
        """
        [profiles.torch]
        image = "from-profile"
        shm-size = "8g"
        [hosts.dgx]
        container = "mine"
        profile = "torch"
        env = ["A=host"]
        browser = "firefox"
        """,
    )
    monkeypatch.setenv("JLR_GPUS", "2")
    assert jlr("start", "dgx", "--image", "from-flag", "-e", "B=flag").code == 0
    assert workflows.arguments("sessions.start.start")[0] == StartRequest(
        host="dgx",
        container="mine",
        image="from-flag",
        gpus="2",
        options=ContainerOptions(shm_size="8g", environment=("A=host", "B=flag")),
    )
    assert workflows.arguments("forwards.browser.open_in_browser") == (ADDRESS, "firefox")


def test_json_is_one_object_with_the_promised_fields(jlr: Jlr, workflows: Workflows) -> None:
    def start(request: object, context: object) -> object:
        with context.progress.step("Connect"):  # type: ignore[attr-defined]
            context.progress.note("noise")  # type: ignore[attr-defined]
        return REPORT

    workflows.will("sessions.start.start", start)
    outcome = jlr("start", "dgx", "cont1", "--json", "--no-browser")
    session = json.loads(outcome.stdout)
    promised = {"name", "host", "container", "runtime", "state", "url", "local_port", "image"}
    assert promised | {"gpus"} <= session.keys()
    assert (session["url"], session["local_port"]) == (URL, 8888)
    assert outcome.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [("--no-browser",), ("--browser", "none"), ("--no-browser", "--browser", "firefox")],
)
def test_no_browser_opens_with_no_browser_or_none(
    arguments: tuple[str, ...], jlr: Jlr, workflows: Workflows
) -> None:
    outcome = jlr("start", "dgx", "cont1", *arguments)
    assert (outcome.code, outcome.stdout) == (0, URL + "\n")
    assert not [name for name, *_ in workflows.calls if "open_in_browser" in name]


def test_a_browser_that_does_not_open_is_a_note_or_with_a_flag_an_error(
    jlr: Jlr, workflows: Workflows
) -> None:
    workflows.will("forwards.browser.open_in_browser", "there is no display here")
    outcome = jlr("start", "dgx", "cont1")
    assert (outcome.code, outcome.stdout) == (0, URL + "\n")
    assert "there is no display here; open the URL yourself" in outcome.stderr
    workflows.will("forwards.browser.trouble", None)
    outcome = jlr("start", "dgx", "cont1", "--browser", "opera")
    assert (outcome.code, outcome.stdout) == (1, URL + "\n")
    assert "error: there is no display here" in outcome.stderr


def test_an_empty_value_drops_the_setting_and_is_an_error_of_a_repeatable_option(
    jlr: Jlr, workflows: Workflows, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = ("image", "workspace", "user", "shm-size")
    for name in dropped:
        monkeypatch.setenv(variable(name), "1")
    argv = [word for name in dropped for word in (f"--{name}", "")]
    assert jlr("start", "dgx", "cont1", *argv, "--no-browser").code == 0
    request = StartRequest(host="dgx", container="cont1")
    assert workflows.arguments("sessions.start.start")[0] == request
    for option in ("--volume", "--env", "--install"):
        outcome = jlr("start", "dgx", "cont1", option, "")
        assert (outcome.code, f"`{option}` has no value" in outcome.stderr) == (2, True)


@pytest.mark.parametrize(
    ("argv", "volumes", "verbose"),
    [
        (("--verbose", "start", "dgx", "cont1"), (), True),
        (("start", "dgx", "cont1", "--verbose"), (), True),
        (("start", "-v", "/a:/b", "dgx", "cont1"), ("/a:/b",), False),
        (("start", "dgx", "cont1", "-v", "~/a:/b", "-v", "n:/c"), ("~/a:/b", "n:/c"), False),
        (("start", "dgx", "cont1", "--verbose", "-v", "a:/b"), ("a:/b",), True),
        (("start", "dgx", "cont1", "--", "-v", "x"), (), False),
    ],
)
def test_v_is_a_volume_and_verbose_has_no_letter(
    argv: tuple[str, ...], volumes: tuple[str, ...], verbose: bool, jlr: Jlr, workflows: Workflows
) -> None:
    def plan(request: StartRequest, context: Context) -> tuple[str, ...]:
        context.progress.command("on the host")
        return (" ".join(request.options.volumes),)

    workflows.will("sessions.start.plan", plan)
    outcome = jlr(*argv[: 1 + argv.index("start")], "--dry-run", *argv[1 + argv.index("start") :])
    assert (outcome.code, outcome.stdout.split()) == (0, list(volumes))
    assert ("on the host" in outcome.stderr) == verbose
    unknown = jlr("-v", *argv)
    assert (unknown.code, "did you mean `--verbose`?" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("volume", ["data", "/raid/me/"])
def test_a_volume_without_a_target_is_refused_with_its_spelling(
    volume: str, jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    refused = jlr("start", "dgx", "cont1", "-v", volume)
    assert (refused.code, "write it like `~/data:/data:ro`" in refused.stderr) == (2, True)
    assert jlr("run", "dgx", "--image", "x", "-v", volume, "--", "ls").code == 2
    settle(laptop, f'[defaults]\nvolume = ["{volume}"]\n')
    assert f"`volume` of `[defaults]` cannot be `{volume}`" in jlr("start", "dgx", "cont1").stderr
    assert not workflows.calls


@pytest.mark.parametrize("container", [None, "cont1"])
def test_words_after_two_dashes_are_arguments_of_the_engine(
    container: str | None, jlr: Jlr, workflows: Workflows
) -> None:
    words = ("--cap-add", "SYS_PTRACE", "--help")
    where = ("dgx", container) if container else ("dgx",)
    assert jlr("start", *where, "--no-browser", "--", *words).code == 0
    options = ContainerOptions(engine_arguments=words)
    request = StartRequest(host="dgx", container=container, options=options)
    assert workflows.arguments("sessions.start.start")[0] == request


def test_container_options_are_refused_without_a_container(
    jlr: Jlr, workflows: Workflows, laptop: Path
) -> None:
    settle(laptop, "[defaults]\nimage = 'torch'\n")
    assert jlr("start", "dgx", "--runtime", "none").code == 0, "settings are for other hosts"
    for words in ("--image torch", "-v /a:/b", "--install a", "-- --privileged"):
        outcome = jlr("start", "dgx", "--runtime", "none", *words.split())
        assert outcome.code == 2
        assert "`--runtime none` creates none" in outcome.stderr
    for where in (("--runtime", "none"), ("--in", "cont1")):
        outcome = jlr("run", "dgx", *where, "--workspace", "--ipc", "host", "--", "train")
        assert outcome.code == 2
        assert f"is for a new container, and `{where[0]}" in outcome.stderr


def test_global_options_may_stand_before_or_after_the_command_or_in_the_environment(
    jlr: Jlr, workflows: Workflows, laptop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = laptop / "ssh_config"
    config.touch()
    options = ("--ssh-config", str(config), "--no-input", "--quiet")
    for argv in ((*options, "start", "dgx"), ("start", "dgx", *options)):
        workflows.calls.clear()
        assert jlr(*argv).code == 0
        context = workflows.arguments("sessions.start.start")[1]
        assert context.ssh_config == config
        assert type(context.asker).__name__ == "NeverAsks"
    workflows.calls.clear()
    monkeypatch.setenv("JLR_SSH_CONFIG", str(config))
    jlr("start", "dgx")
    assert workflows.arguments("sessions.start.start")[1].ssh_config == config
    missing = jlr("--ssh-config", "/no/such/file", "start", "dgx")
    assert (missing.code, "/no/such/file" in missing.stderr) == (2, True)
