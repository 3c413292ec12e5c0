"""What the tunnel's benchmark measured, as the tables of docs/bench-tunnel.md."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# By way (`ssh`, `jlr`) and measure; one number a round.
Samples = Mapping[tuple[str, str], Sequence[float]]


@dataclass(frozen=True)
class Wanted:
    """The ratio to `ssh -L` that is wanted, and whether more is better."""

    ratio: float
    more: bool


# What is measured twice: a rate and a cost, with all programs on the same cores, and with one core
# for the laptop's programs and another for the host's.
KEPT = (
    "requests on 100 kept connections, a second",
    "CPU time of a request on kept connections, µs",
)
KEPT_APART = ("… with a core for each machine", "… with a core for each machine, µs")
TARGETS = {
    "down, MB/s": Wanted(1.0, more=True),
    "up, MB/s": Wanted(0.9, more=True),
    "trip p50, ms": Wanted(1.15, more=False),
    "trip p99, ms": Wanted(1.5, more=False),
    "new connections, a second": Wanted(0.6, more=True),
    KEPT[0]: Wanted(1.0, more=True),
    KEPT_APART[0]: Wanted(1.0, more=True),
    "50 ms down, MB/s": Wanted(2.5, more=True),
    "50 ms up, MB/s": Wanted(1.0, more=True),
    "50 ms trip p50, ms": Wanted(1.15, more=False),
}
COSTS = ("CPU time, µs", "sleeps", KEPT[1], KEPT_APART[1])
CROWDED = {"p50, ms": 3.0, "p99, ms": None}
CROWDED_DOWN = "download beside, MB/s"


def machine() -> str:
    """Return a line about where this runs."""
    client = subprocess.run(("ssh", "-V"), capture_output=True, text=True, check=True).stderr
    return (
        f"{os.cpu_count()} cores, {client.split(',')[0]}, Python {platform.python_version()},"
        f" Linux {platform.release().split('-')[0]}"
    )


def _ratios(samples: Samples, name: str) -> list[float]:
    pairs = zip(samples["jlr", name], samples["ssh", name], strict=True)
    return sorted(ours / theirs for ours, theirs in pairs)


def _verdict(ratio: float, wanted: Wanted) -> str:
    shown = round(ratio, 2)
    met = shown >= wanted.ratio if wanted.more else shown <= wanted.ratio
    return f"{'≥' if wanted.more else '≤'} {wanted.ratio}{'' if met else ' (missed)'}"


def against_ssh(samples: Samples) -> str:
    """Return the table of all measures that have a target."""
    lines = [
        "| | `ssh -L` | `jlr` | ratio | range | wanted |",
        "|---|---|---|---|---|---|",
    ]
    for name, wanted in TARGETS.items():
        ssh = statistics.median(samples["ssh", name])
        jlr = statistics.median(samples["jlr", name])
        ratios = _ratios(samples, name)
        ratio = statistics.median(ratios)
        lines.append(
            f"| {name} | {ssh:.4g} | {jlr:.4g} | {ratio:.2f}"
            f" | {ratios[0]:.2f} to {ratios[-1]:.2f} | {_verdict(ratio, wanted)} |"
        )
    return "\n".join(lines)


def costs(samples: Samples) -> str:
    """Return the table of what a trip costs the process that forwards it."""
    lines = ["| a trip costs the forward | `ssh -L` | `jlr` | ratio |", "|---|---|---|---|"]
    for name in COSTS:
        ssh = statistics.median(samples["ssh", name])
        jlr = statistics.median(samples["jlr", name])
        ratio = statistics.median(_ratios(samples, name))
        lines.append(f"| {name} | {ssh:.3g} | {jlr:.3g} | {ratio:.2f} |")
    return "\n".join(lines)


def crowded(samples: Samples) -> str:
    """Return the table of trips beside another session's download."""
    lines = [
        "| beside another session's download | alone | beside | ratio | range | wanted |",
        "|---|---|---|---|---|---|",
    ]
    for way in ("ssh", "jlr"):
        for name, most in CROWDED.items():
            alone, beside = samples[way, f"alone {name}"], samples[way, f"beside {name}"]
            ratios = sorted(b / a for a, b in zip(alone, beside, strict=True))
            ratio = statistics.median(ratios)
            verdict = _verdict(ratio, Wanted(most, more=False)) if most and way == "jlr" else ""
            lines.append(
                f"| {way}: trip {name} | {statistics.median(alone):.3g}"
                f" | {statistics.median(beside):.3g} | {ratio:.1f}"
                f" | {ratios[0]:.1f} to {ratios[-1]:.1f} | {verdict} |"
            )
    for way in ("ssh", "jlr"):
        speed = statistics.median(samples[way, CROWDED_DOWN])
        lines.append(f"| {way}: {CROWDED_DOWN} | | {speed:.4g} | | | |")
    return "\n".join(lines)
