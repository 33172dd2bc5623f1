"""The part of the page of coverage that is about NKIBench's kernels, from `docs/data/nkibench.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import NotRequired, TypedDict

from generators.markdown import table

DATA = Path(__file__).resolve().parents[1] / "data" / "nkibench.json"

_HEAD = """\
## NKIBench

NKIBench (zhang677/AccelOpt, commit {version}) has {all} kernels in Beta 1's language, references
for them, and times measured on Trainium. `docs/record_nkibench.py` traces them, simulates their
[timelines](timeline.md) and runs them on random inputs, in float32; nothing of theirs is part of this repository.
{total} are recorded. *Error* is the length of the difference from the reference by the reference's: NKIBench accepts
2e-5. {unrun}

Published and modelled times differ by {error:.0%} in the median of these; the ranks correlate to {rank:.2f}. One
constant was fitted, the {cycles} cycles of a float32 product's pass: chosen by all other kernels, out of
{choices}, it is {chosen} for each kernel, and the median error of the left-out ones {left_out:.0%}.

"""


_WHY = """

Why the farthest are so far, by the counters that NKIBench publishes with the times:

"""


@dataclass(frozen=True, slots=True)
class _Remark:
    """Why a kernel's times are far apart, by published counters; what the timeline says of it comes from the record."""

    text: str
    at_work: float = 0.0
    """The part of the published time for which the Vector engine was at work."""

    def line(self, name: str, kernel: _Kernel) -> str:
        """The item of the list."""
        text = self.text.format(
            part=f"{self.at_work:.0%} of the time, {self.at_work * kernel['published_ms']:.2g} ms",
            modelled=f"{kernel['modelled_ms']:.3g} ms",
            busiest=kernel["busiest"].capitalize(),
        )
        item = f"- **{name.replace('_', ' ')}** ({_percent(kernel)}): {text}"
        return fill(item, 116, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


_REMARKS: Mapping[str, _Remark] = {
    "adamw": _Remark(
        "the timeline's busiest engine is the {busiest} engine; on Trainium the Vector engine was at work for {part}. "
        "There the compiler put three results of each round into PSUM (2.1 MB are written to each partition), so that "
        "instructions with two inputs took N cycles, not 2 N. When it does so is not known: silu and rope have none.",
        0.90,
    ),
    "rope_single_freq_apply": _Remark(
        "93 GB/s and a Vector engine at work for {part}; for the rest it stood still. The timeline, of {modelled}, "
        "hides that waiting: transfers of later tiles run ahead.",
        0.72,
    ),
    "silu": _Remark(
        "176 GB/s and a Vector engine at work for {part}; the timeline is {modelled} long: waiting again.", 0.74
    ),
    "matmul": _Remark(
        "9.06 GB are read where the kernel loads 1.26 GB: the left operand 12 times, as it is written, but the right "
        "one 32 times, as if its loads stood in the inner loop. So the DMA engines (263 GB/s) set the time; the "
        "timeline's busiest engine is the {busiest} engine."
    ),
}


class _Kernel(TypedDict):
    values: Mapping[str, int]
    published_ms: float
    modelled_ms: float
    by_pass_cycles: Mapping[str, float]
    instructions: int
    busiest: str
    error: NotRequired[float]


class _Data(TypedDict):
    version: str
    total: int
    kernels: Mapping[str, _Kernel]


def section() -> str:
    """The section's Markdown."""
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    kernels = data["kernels"]
    fits = list(next(iter(kernels.values()))["by_pass_cycles"])
    used = next(
        fit for fit in fits if all(one["by_pass_cycles"][fit] == one["modelled_ms"] for one in kernels.values())
    )
    chosen = {name: _chosen({key: one for key, one in kernels.items() if key != name}, fits) for name in kernels}
    unrun = [name for name, one in kernels.items() if "error" not in one]
    head = _HEAD.format(
        version=data["version"][:7],
        all=data["total"],
        total=len(kernels),
        unrun=f"Of these only the times are: {', '.join(unrun)}." if unrun else "",
        error=median(_off(one, used) for one in kernels.values()),
        rank=rank_correlation(
            [one["published_ms"] for one in kernels.values()], [one["modelled_ms"] for one in kernels.values()]
        ),
        cycles=used,
        choices=", ".join(fits),
        chosen=" or ".join(sorted(set(chosen.values()), key=int)),
        left_out=median(_off(one, chosen[name]) for name, one in kernels.items()),
    )
    rows = [_cells(name, one) for name, one in sorted(kernels.items())]
    columns = ("kernel", "sizes", "instructions", "error", "published", "timeline", "", "busiest engine")
    return head + table(columns, rows).rstrip() + _WHY + "\n".join(_remarks(kernels)) + "\n"


def _remarks(kernels: Mapping[str, _Kernel]) -> Iterator[str]:
    """What is said of the kernels whose times are farthest apart, the farthest first.

    Raises:
        ValueError: where it is said of others.
    """
    farthest = sorted(kernels, key=lambda name: -abs(kernels[name]["modelled_ms"] / kernels[name]["published_ms"] - 1))
    for name in farthest[: len(_REMARKS)]:
        if name not in _REMARKS:
            raise ValueError(f"{name} is among the {len(_REMARKS)} farthest: say in _REMARKS why, instead of another")
        yield _REMARKS[name].line(name, kernels[name])


def _percent(kernel: _Kernel) -> str:
    """By how much the timeline is longer than the published time."""
    return f"{kernel['modelled_ms'] / kernel['published_ms'] - 1:+.0%}".replace("-", "−")


def _off(kernel: _Kernel, fit: str) -> float:
    return abs(kernel["by_pass_cycles"][fit] / kernel["published_ms"] - 1)


def _chosen(kernels: Mapping[str, _Kernel], fits: Sequence[str]) -> str:
    """The fit with which these kernels' median error is least."""
    return min(fits, key=lambda fit: median(_off(one, fit) for one in kernels.values()))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, of values that differ."""
    ranks = [[sorted(values).index(one) for one in values] for values in (first, second)]
    count = len(first)
    apart = sum((one - other) ** 2 for one, other in zip(*ranks, strict=True))
    return 1 - 6 * apart / (count * (count**2 - 1))


def _cells(name: str, kernel: _Kernel) -> tuple[str, ...]:
    return (
        name.replace("_", " "),
        ", ".join(f"{key} {value}" for key, value in kernel["values"].items()),
        f"{kernel['instructions']:,}".replace(",", " "),
        f"{kernel['error']:.0e}" if "error" in kernel else "",
        f"{kernel['published_ms']:.3g} ms",
        f"{kernel['modelled_ms']:.3g} ms",
        _percent(kernel),
        kernel["busiest"],
    )
