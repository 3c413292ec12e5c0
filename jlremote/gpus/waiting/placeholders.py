"""Words that stand for a waiting job's GPUs in its commands, and what it tells at first."""

from __future__ import annotations

import re

from jlremote.gpus.choice import Chosen

_WORD = re.compile(r"jlr-gpu-(uuid|place)-(\d+)-")


def promised(count: int) -> Chosen:
    """Return a number of GPUs by words that stand for their names."""
    uuid, place = (
        tuple(f"jlr-gpu-{kind}-{number}-" for number in range(count)) for kind in ("uuid", "place")
    )
    return Chosen(uuid, place)


def with_gpus(text: str, chosen: Chosen) -> str:
    """Return a text with the names of the chosen GPUs in place of these words.

    No name has a character that a shell would not take as it is.
    """
    names = {"uuid": chosen.uuids, "place": chosen.places}
    return _WORD.sub(lambda found: names[found[1]][int(found[2])], text)
