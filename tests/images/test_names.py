"""Names of images, by the rules of the engines (rows E4, E6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import Usage
from jlremote.images.image_names import parse, parse_new, same, surely_differ
from tests.lab.engine import Engine

DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ubuntu", ("docker.io", "library/ubuntu", "latest", None)),
        ("me/torch", ("docker.io", "me/torch", "latest", None)),
        ("me/torch:1.2", ("docker.io", "me/torch", "1.2", None)),
        ("nvcr.io/me/torch:24.05-py3", ("nvcr.io", "me/torch", "24.05-py3", None)),
        ("localhost/x", ("localhost", "x", "latest", None)),
        ("lab:5000/x", ("lab:5000", "x", "latest", None)),
        ("127.0.0.1:5000/a/b/c:d", ("127.0.0.1:5000", "a/b/c", "d", None)),
        ("[::1]:5000/x", ("[::1]:5000", "x", "latest", None)),
        (f"me/x@{DIGEST}", ("docker.io", "me/x", None, DIGEST)),
        (f"me/x:1@{DIGEST}", ("docker.io", "me/x", "1", DIGEST)),
        ("me/a__b--c.d_e", ("docker.io", "me/a__b--c.d_e", "latest", None)),
    ],
)
def test_a_name_has_its_parts(text: str, parts: tuple[str | None, ...]) -> None:
    name = parse(text)
    assert (name.registry, name.repository, name.tag, name.digest) == parts


WRONG = [
    ("", "its name is empty"),
    ("Me/x", "image name `Me/x`"),
    ("me/x:", "its tag is empty"),
    ("me/x:-1", "its tag is `-1`"),
    ("me/x:a/b", "its tag is `a/b`"),
    (f"me/x:{'t' * 129}", "its tag is"),
    ("me//x", "invalid image name"),
    ("-me/x", "invalid image name"),
    ("me/x-", "invalid image name"),
    ("me/_x", "invalid image name"),
    ("me/a___b", "invalid image name"),
    ("nvcr.io/me/x y", "its name is `me/x y`"),
    ("me/x\n", "invalid image name"),
    ("nvcr.io:port/x", "its registry is"),
    ("me/x@sha256:12", "its digest is"),
    (f"me/{'x' * 256}", "it is too long"),
    ("a" * 64, "it is an id"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_an_invalid_name_is_refused_with_the_wrong_part(text: str, why: str) -> None:
    with pytest.raises(Usage, match="invalid image name") as refused:
        parse(text)
    assert why in refused.value.message


@given(st.text(alphabet="abZ01._-/:@ ", max_size=12))
def test_a_full_name_is_parsed_to_itself(text: str) -> None:
    try:
        name = parse(text)
    except Usage:
        return
    assert parse(str(name)) == name
    assert same(text, str(name))


@pytest.mark.parametrize(
    "text", ["me/x", "me/a..b", "a/b_.c", "x:y", "x/y:1.-", "A/b", "a.b/c", "1/2"]
)
def test_docker_accepts_and_refuses_the_same_names(text: str, engine: Engine) -> None:
    """`docker create --pull=never` looks at the name first, and then says that there is none."""
    said = engine.try_docker("create", "--pull=never", "--", f"{text}-x").stderr
    try:
        parse(f"{text}-x")
    except Usage:
        assert "invalid reference format" in said
    else:
        assert "No such image" in said


def test_a_new_name_has_no_digest() -> None:
    assert parse_new("me/x").tag == "latest"
    with pytest.raises(Usage, match="a new name cannot have a digest"):
        parse_new(f"me/x@{DIGEST}")


def test_equal_names_are_recognized_and_ids_are_not_compared() -> None:
    assert same("torch", "docker.io/library/torch:latest")
    assert surely_differ("me/torch", "me/torch:2")
    assert not surely_differ("me/torch", "me/torch:latest")
    assert not surely_differ("8de7a0", "me/torch")
    # Podman's names for what was built there, and for what its settings have it search for.
    assert not surely_differ("me/torch", "localhost/me/torch:latest")
    assert not surely_differ("me/torch", "quay.io/me/torch:latest")
    assert surely_differ("me/torch", "quay.io/other/torch:latest")
    assert surely_differ("docker.io/me/torch", "localhost/me/torch:latest")
