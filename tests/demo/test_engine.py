"""Which image the demo takes when nobody names one."""

from __future__ import annotations

import pytest

from jlremote.demo.engine import best


@pytest.mark.parametrize(
    ("images", "chosen"),
    [
        ([], None),
        (["debian:12", "nvcr.io/nvidia/pytorch:25.01-py3"], None),
        (["me/my-jupyter:1", "jupyter/base-notebook:latest"], "jupyter/base-notebook:latest"),
        (["jupyter/scipy-notebook:x", "quay.io/jupyter/minimal-notebook:latest"],
         "quay.io/jupyter/minimal-notebook:latest"),
        (["debian:12", "lab/jupyter:latest"], "lab/jupyter:latest"),
        (["jupyterhub/jupyterhub:5", "quay.io/jupyterhub/k8s-hub:4"], None),
    ],
)  # fmt: skip
def test_the_likeliest_image_is_taken(images: list[str], chosen: str | None) -> None:
    assert best(images) == chosen
