"""Counting: what each instruction adds to the counters of its launch and of its source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from triptych.core.counter_table import ALWAYS
from triptych.core.counters import Counters, counters_of
from triptych.core.launches import Line
from triptych.core.source import SourceLocation
from triptych.neuron.isa.hardware import Hardware, Space, Work
from triptych.neuron.isa.row import Subject, Surroundings
from triptych.neuron.isa.trace import Instruction, Region, Tensor
from triptych.neuron.isa.verify import find_row

_FLOAT_KINDS: Mapping[str, str] = {
    "f8e4m3": "fp8", "f8e4m3fn": "fp8", "f8e5m2": "fp8",
    "x4f8e5m2": "fp8", "x4f8e4m3fn": "fp8", "x4f4e2m1fn": "fp8",
    "tf32": "bf16",
}  # fmt: skip


Counts = tuple[tuple[str, int], ...]
"""Counters, and what an instruction adds to them."""


def counts(instruction: Instruction, tensors: Sequence[Tensor], hardware: Hardware) -> Iterator[tuple[str, int]]:
    """The counters that one instruction adds to, and by how much; neither depends on where its tiles lie."""
    engine, work = instruction.engine, instruction.engine.facts.counts
    yield f"instructions.{engine.value}", 1
    if work is Work.TRANSFERS:
        yield from _transfer(instruction, tensors)
        return
    if work is Work.ELEMENTS:
        regions = (operand for operand in instruction.operands.values() if isinstance(operand, Region))
        yield f"elements.{engine.value}", max(region.size for region in regions)
    row = find_row(instruction)
    flops = row.flops(Subject(instruction, row, Surroundings(tensors, hardware, "")))
    if flops and work is Work.PRODUCTS:
        kind = tensors[instruction.region("stationary").tensor].dtype.name
        yield f"flops.tensor.{_FLOAT_KINDS.get(kind, kind)}", flops
    elif flops:
        yield f"flops.{engine.value}", flops


def _transfer(instruction: Instruction, tensors: Sequence[Tensor]) -> Iterator[tuple[str, int]]:
    """HBM's side decides: bytes read from it are loads, bytes written to it are stores."""
    yield "dma.transfers", 1
    for rule in find_row(instruction).operands:
        region = instruction.operands.get(rule.name)
        if not isinstance(region, Region) or tensors[region.tensor].space is not Space.HBM:
            continue
        size = region.size * tensors[region.tensor].dtype.bytes
        if rule.read:
            yield "dma.load.bytes", size
        if rule.written:
            yield "dma.store.bytes", size


class Tally:
    """Sums of counters, for the launch and for each source line."""

    __slots__ = ("_by_line", "_lines", "_total")

    def __init__(self, executed: Mapping[tuple[SourceLocation, Counts], int]) -> None:
        """How often each line has executed an instruction that counts so."""
        self._by_line: defaultdict[SourceLocation, dict[Counts, int]] = defaultdict(dict)
        total: defaultdict[Counts, int] = defaultdict(int)
        for (where, counted), times in executed.items():
            self._by_line[where][counted] = times
            total[counted] += times
        self._total = {**dict.fromkeys(ALWAYS["neuron"], 0), **_sums(total)}
        self._lines: tuple[Line, ...] | None = None

    def counters(self, extra: Mapping[str, int]) -> Counters:
        """The launch's counters; `extra` are those that only the launch has."""
        return _counters({**self._total, **extra})

    def lines(self) -> tuple[Line, ...]:
        """The counters of each source line, in the order of the source."""
        if self._lines is None:
            by_line = self._by_line
            self._lines = tuple(Line(where, _counters(_sums(by_line[where]))) for where in sorted(by_line))
        return self._lines


def _sums(executed: Mapping[Counts, int]) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for counted, times in executed.items():
        for name, value in counted:
            found[name] += times * value
    return found


def _counters(values: Mapping[str, int]) -> Counters:
    return counters_of("neuron", dict(sorted(values.items())))
