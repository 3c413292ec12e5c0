"""Flags win over the environment, that over the host, the profile and the defaults."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jlremote.errors import NotFound, Usage
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import Value

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def write_config(text: str) -> Path:
        path = tmp_path / "jlr" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_config


LADDER = """
[defaults]
image = "from-defaults"
workdir = "/defaults"
[profiles.torch]
image = "from-profile"
user = "profile"
[hosts.dgx]
image = "from-host"
profile = "torch"
[hosts."gpu.lab.org"]
gpus = 2
"""


@pytest.mark.parametrize(
    ("flags", "environment", "host", "image"),
    [
        ({"image": "from-flag"}, {"JLR_IMAGE": "from-variable"}, "dgx", "from-flag"),
        ({"image": None}, {"JLR_IMAGE": "from-variable"}, "dgx", "from-variable"),
        ({}, {"JLR_IMAGE": ""}, "dgx", "from-host"),
        ({"profile": "torch"}, {}, "other", "from-profile"),
        ({}, {"JLR_PROFILE": "torch"}, "other", "from-profile"),
        ({}, {}, "other", "from-defaults"),
        ({}, {}, None, "from-defaults"),
        ({}, {}, "me@dgx", "from-host"),
    ],
)
def test_a_nearer_source_wins(
    write: Write,
    flags: dict[str, Value | None],
    environment: dict[str, str],
    host: str | None,
    image: str,
) -> None:
    write(LADDER)
    assert settings.load(environment).chosen(host, flags)["image"] == image


def test_lists_are_merged_and_the_nearer_source_wins_for_the_same_item(write: Write) -> None:
    write(
        """
        [defaults]
        volume = ["/raid/me:/data", "/home/me:/workspace"]
        env = ["A=far", "B=far"]
        [hosts.dgx]
        env = "B=near"
        """
    )
    flags: dict[str, Value | None] = {"volume": ("/scratch:/data:ro",), "env": ("C",)}
    chosen = settings.load({}).chosen("dgx", flags)
    assert set(chosen["volume"]) == {"/scratch:/data:ro", "/home/me:/workspace"}  # type: ignore[arg-type]
    assert chosen["env"] == ("A=far", "B=near", "C")


def test_list_variables_are_split_as_a_shell_does() -> None:
    environment = {"JLR_VOLUME": "/a:/b '/with space:/c'", "JLR_PORT": "8899", "JLR_SHM_SIZE": "1g"}
    chosen = settings.load(environment).chosen(None, {})
    assert chosen == {"volume": ("/a:/b", "/with space:/c"), "port": 8899, "shm-size": "1g"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[profiles.a]\nprofile = 'b'", "unknown key `profile` in `.profiles.a.`"),
        ("image = 'x'", "unknown key `image`"),
        ("[hosts.dgx]\nhost = 'x'", "unknown key `host` in `.hosts.dgx.`"),
        ("[defaults]\nport = '8888'", "`port` of `.defaults.` must be a number from 1 to 65535"),
        ("[defaults]\nport = 0", "`port` of `.defaults.` must be a number"),
        ("[pools.lab]\nhosts = 'dgx'", "`.pools.lab.` must have `hosts`"),
        ("[pools.lab]\nhosts = ['@other']", "`.pools.lab.` must have `hosts`"),
        ("[pools.lab]\nhosts = ['a']\ngpus = 'all'", "`.pools.lab.` must have `hosts`"),
        ("[defaults]\nport = true", "`port` of `.defaults.` must be a number"),
        ("[defaults]\nvolume = [1]", "`volume` of `.defaults.` must be a list of strings"),
        ("[hosts.x]\nimage = ''", "`image` of `.hosts.x.` must be a string"),
        ("[hosts.x]\nruntime = 'podmna'", "`runtime` of `.hosts.x.` must be `auto`"),
        ("[hosts.x]\ninit = 'no'", "`init` of `.hosts.x.` must be true or false"),
        ("[hosts.x]\nname = '{user}'", "`name` of `.hosts.x.` must contain `{name}` once"),
        ("[hosts.x]\nname = '{nmae}-{name}'", "`name` of `.hosts.x.` must make names that eng"),
        ("[defaults]\nname = '-{name}'", "`name` of `.defaults.` must make names that engines"),
        ("hosts = 3", "`hosts` .* must be a table"),
        ("[hosts]\ndgx = 3", "`hosts.dgx` .* must be a table"),
        ("[defaults\n", "not valid TOML: .*line 1"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(write: Write, text: str, complaint: str) -> None:
    path = write(text)
    with pytest.raises(Usage, match=complaint) as refusal:
        settings.load({})
    assert str(path) in refusal.value.message


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("[defaults]\nimgae", "did you mean `image`?"),
        ("[defaults]\nshare_gpus", "did you mean `share-gpus`?"),
        ("[defaults]\nxyzzy", "the keys are the names of long options: `jlr config` lists them"),
        ("[hosts.gpu.lab.org]\ngpus", 'quote a name with dots: `[hosts."host.example.org"]`'),
    ],
)
def test_a_misspelt_key_is_told_with_what_was_meant(write: Write, key: str, hint: str) -> None:
    write(f"{key} = 'x'")
    unknown = "unknown key `(imgae|share_gpus|xyzzy)` in `.defaults.`|`lab` in `.hosts.gpu.`"
    with pytest.raises(Usage, match=unknown) as refusal:
        settings.load({})
    assert refusal.value.hint == hint


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("JLR_PORT", "many"),
        ("JLR_RUNTIME", "vm"),
        ("JLR_VOLUME", "'open"),
        ("JLR_PORT", "99999"),
        ("JLR_RM", "x"),
    ],
)
def test_a_mistake_in_a_variable_names_the_variable(write: Write, variable: str, text: str) -> None:
    with pytest.raises(Usage, match=f"`{variable}`"):
        settings.load({variable: text})


def test_nvidias_advice_is_a_profile_that_a_flag_or_a_file_may_replace(write: Write) -> None:
    advice = {"shm-size": "1g", "ulimit": ("memlock=-1", "stack=67108864"), "profile": "nvidia"}
    assert settings.load({}).chosen("dgx", {"profile": "nvidia"}) == advice
    flags: dict[str, Value | None] = {"profile": "nvidia", "ulimit": ("memlock=",)}
    assert settings.load({}).chosen("dgx", flags)["ulimit"] == ("memlock=", "stack=67108864")
    write("[profiles.nvidia]\nshm-size = '8g'")
    chosen = settings.load({}).chosen("dgx", {"profile": "nvidia"})
    assert chosen == {"shm-size": "8g", "profile": "nvidia"}


def test_arguments_for_the_engine_keep_their_order_and_repetitions(write: Write) -> None:
    write("[defaults]\nengine-arguments = ['--cap-add', 'A', '--cap-add', 'B']")
    flags: dict[str, Value | None] = {"engine-arguments": ("--cap-add", "A")}
    words = ("--cap-add", "A", "--cap-add", "B", "--cap-add", "A")
    assert settings.load({}).chosen("dgx", flags)["engine-arguments"] == words


def test_every_value_knows_its_source(write: Write) -> None:
    write(LADDER + "env = ['A=file', 'B=file']\n")
    environment = {"JLR_ENV": "B=variable", "JLR_RM": "yes", "JLR_INIT": "0"}
    found = settings.load(environment).origins("gpu.lab.org", {"profile": "torch"})
    assert {(origin.option, origin.value): origin.place for origin in found} == {
        ("profile", "torch"): "flag",
        ("image", "from-profile"): "[profiles.torch]",
        ("user", "profile"): "[profiles.torch]",
        ("gpus", "2"): "[hosts.gpu.lab.org]",
        ("workdir", "/defaults"): "[defaults]",
        ("env", "A=file"): "[hosts.gpu.lab.org]",
        ("env", "B=variable"): "JLR_ENV",
        ("init", False): "JLR_INIT",
        ("rm", True): "JLR_RM",
        ("log-opt", "max-size=50m"): "built in",
        ("name", "{name}"): "built in",
        ("runtime", "auto"): "built in",
    }


def test_a_pool_has_hosts_and_an_unknown_one_is_answered_with_the_nearest(write: Write) -> None:
    write("[pools.lab]\nhosts = ['dgx', 'me@box', 'dgx']")
    found = settings.load({})
    assert found.pool("@lab") == ("dgx", "me@box")
    with pytest.raises(NotFound, match="no pool `@lba`") as missing:
        found.pool("@lba")
    assert missing.value.hint == "did you mean `@lab`?"


def test_an_unknown_profile_is_answered_with_the_known_ones(write: Write) -> None:
    write(LADDER)
    with pytest.raises(Usage, match="no profile `jax`") as refusal:
        settings.load({}).chosen("dgx", {"profile": "jax"})
    assert "`torch`" in (refusal.value.hint or "")


def test_a_file_that_cannot_be_read_is_one_clear_error(write: Write) -> None:
    path = write("")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Usage, match="toml`: it is not UTF-8 text"):
        settings.load({})
    path.unlink()
    path.mkdir()
    with pytest.raises(Usage, match="toml`: is a directory"):
        settings.load({})
