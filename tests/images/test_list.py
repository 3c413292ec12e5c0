"""`jlr image list`: what a host has (rows A2, B8, D5, E4, E5)."""

from __future__ import annotations

import json

from tests.images.parts import Registry
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop


def test_images_are_a_line_each_with_tag_id_age_and_size(laptop: Laptop, engine: Engine) -> None:
    shown = laptop.jlr("image", "list", "lab")
    assert shown.status == 0, shown
    heading, *rows = shown.stdout.splitlines()
    assert heading.split() == ["REPOSITORY", "TAG", "ID", "AGE", "SIZE"]
    (row,) = [row.split() for row in rows if row.startswith("lab/jupyter ")]
    told = engine.docker("images", "--format", "{{.ID}} {{.Size}}", "lab/jupyter").split()
    assert row[1:3] == ["latest", told[0]]
    assert row[3][-1] in "smhd"
    assert "".join(row[4:]) == told[1]


def test_completion_lists_the_images_of_a_host_that_is_connected(laptop: Laptop) -> None:
    line = "jlr start lab cont1 --image lab/j"
    laptop.jlr("disconnect", "lab")
    assert [laptop.completions(line) for _ in range(2)] == [[], []], "it has connected"
    assert laptop.jlr("images", "lab").status == 0
    assert "lab/jupyter:latest" in laptop.completions(line)
    assert "--image=lab/jupyter:latest" in laptop.completions("jlr run lab --image=lab/j")


def test_json_has_whole_ids_bytes_and_moments_and_each_name(
    laptop: Laptop, engine: Engine, name: str, registry: Registry
) -> None:
    for whole in (f"{name}:one", f"{registry.name}/{name}:two"):  # whose port is no tag
        engine.docker("tag", "lab/plain", whole)
    shown = laptop.jlr("image", "list", "lab", "--json")
    found = {image["repository"]: image for image in json.loads(shown.stdout)}
    mine = {(place, image["tag"]) for place, image in found.items() if name in (place or "")}
    assert mine == {(name, "one"), (f"{registry.name}/{name}", "two")}
    template = '{"id":{{json .Id}},"size":{{.Size}},"created":{{json .Created}}}'
    told = json.loads(engine.docker("image", "inspect", "--format", template, "lab/plain"))
    told["created"] = f"{told['created'].partition('.')[0].removesuffix('Z')}Z"
    assert found["lab/plain"] == {"repository": "lab/plain", "tag": "latest"} | told
    assert shown.stderr == ""


def test_images_without_a_name_are_shown_when_all_are_wanted(
    laptop: Laptop, engine: Engine, name: str
) -> None:
    built = engine.docker("build", "--quiet", "-", stdin=f"FROM lab/plain\nLABEL x={name}\n")
    some = json.loads(laptop.jlr("image", "list", "lab", "--json").stdout)
    every = json.loads(laptop.jlr("image", "list", "lab", "--all", "--json").stdout)
    engine.docker("rmi", built)
    assert built not in [image["id"] for image in some]
    (nameless,) = [image for image in every if image["id"] == built]
    assert (nameless["repository"], nameless["tag"]) == (None, None)
