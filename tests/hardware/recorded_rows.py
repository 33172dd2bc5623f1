"""What a GPU gave for the table's arithmetic rows, and how what generated code gives differs from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from exact import FORMATS, to_float
from expected import Expected, Halves, OneOf, Within, accepts
from numpy.typing import NDArray
from opcodes import read_opcode
from row_kernel import Instance, Lanes, instance_of, kernel_of_instances, run_generated
from witness_approximate import ANYTHING
from witnesses import find_witness

from triptych.gpu.isa import find_form

FOLDER = Path(__file__).parents[1] / "data" / "hardware"
RECORD = FOLDER / "rows-h200.npz"
AGREEMENT = FOLDER / "rows-h200-agreement.json"
"""What `benchmarks/hardware/compare_rows.py` found: for each opcode that all bits are the same, or the difference."""

EXCLUDED: Mapping[str, str] = {
    "cvta": "where the windows of shared, local and parameter memory lie is the implementation's choice",
    "isspacep": "as cvta",
    "mapa": "as cvta, and the record is of a kernel without clusters",
    "getctarank": "as mapa",
    "createpolicy": "a policy's bits are the implementation's own, and caches are not modelled",
}
"""Mnemonics whose results need not be the hardware's, and why."""
LAXER: Mapping[str, str] = {
    r"cvt\.sat\.(\w+)\.\1": "`cvt.sat` from an integer type to itself: there is nothing to clamp",
    r"cvt(\.\w+)+\.[su]8\.bf16": "`cvt` of `bf16` to 8 bits that a wider register holds",
    r"cvt\.(rn|rz)\.satfinite(\.relu)?\.tf32\.f32": "`.satfinite` to `tf32`, from sm_100 on",
}
"""What the table takes and the assembler refuses for the device: patterns of opcodes, and what they are."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One kernel of the record: the opcodes that the device ran, and those that its assembler refused."""

    name: str
    texts: tuple[str, ...]
    """Opcodes, some with an operand that their text holds."""
    refused: Mapping[str, str]
    inputs: str
    """A digest of the operands of all opcodes: it can be looked at while the table has the refused ones."""
    outputs: NDArray[np.uint64]
    """(results, cases): raw bits."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The opcodes that ran."""
        return tuple(text for text in self.texts if _opcode(text) not in self.refused)

    def results(self) -> Mapping[str, Lanes]:
        """By opcode's text, what the device gave: (results of the opcode, cases)."""
        each = len(self.outputs) // len(self.texts)
        return {text: self.outputs[i * each : (i + 1) * each] for i, text in enumerate(self.texts)}


@cache
def record() -> Mapping[str, Any]:
    """Where the record is from, and its rows."""
    return json.loads(str(np.load(RECORD)["record"]))


@cache
def recorded() -> Sequence[Recorded]:
    """The kernels that were recorded, but those of excluded mnemonics."""
    data = np.load(RECORD)
    rows = enumerate(record()["rows"])
    return [
        Recorded(r["row"], tuple(r["opcodes"]), r.get("refused", {}), r["inputs"], data[f"outputs{i}"])
        for i, r in rows
        if r["opcodes"][0].partition(".")[0] not in EXCLUDED
    ]


def _opcode(text: str) -> str:
    return text.partition(" ")[0]


def _instance(text: str) -> Instance:
    opcode, _, immediate = text.partition(" ")
    return instance_of(opcode, int(immediate, 16) if immediate else None)


def is_in_table(opcode: str) -> bool:
    """Whether the table has the opcode."""
    mnemonic, *modifiers = opcode.split(".")
    return find_form(mnemonic, tuple(modifiers)) is not None


@dataclass(frozen=True, slots=True)
class Compared:
    """One opcode: what generated code gave and what the device gave, (results, cases) each."""

    instance: Instance
    ours: Lanes
    theirs: Lanes

    @property
    def is_same(self) -> bool:
        """Whether all bits are the same."""
        return np.array_equal(self.ours, self.theirs)

    def first_difference(self) -> str:
        """The first case with another result, for messages."""
        result, case = (int(x) for x in np.argwhere(self.ours != self.theirs)[0])
        operands = ", ".join(f"{x:#x}" for x in self.instance.operands[case])
        ours, theirs = (int(x[result, case]) for x in (self.ours, self.theirs))
        return f"{self.instance.text} {operands}: {ours:#x}, the device gave {theirs:#x}"


def compare(row: Recorded) -> Iterator[Compared]:
    """Runs what the device ran."""
    if not row.kept:
        return
    if all(is_in_table(_opcode(text)) for text in row.texts):
        whole = kernel_of_instances([_instance(text) for text in row.texts])
        digest = hashlib.sha256(whole.inputs.tobytes()).hexdigest()[:16]
        assert digest == row.inputs, f"{row.name}: recorded with other operands"
    kernel = kernel_of_instances([_instance(text) for text in row.kept])
    ours, theirs, place = run_generated(kernel), row.results(), 0
    for instance in kernel.instances:
        count = len(instance.targets)
        yield Compared(instance, ours[place : place + count], theirs[instance.text])
        place += count


# --- Approximate results ------------------------------------------------------------------------------------------

APPROXIMATE = frozenset(("approx", "full"))
_ABSOLUTE = frozenset(("sin", "cos", "lg2", "tanh"))
"""Functions of which the manual bounds the absolute error, for some results at least."""


def is_approximate(opcode: str) -> bool:
    """Whether the manual states an error instead of bits."""
    return not APPROXIMATE.isdisjoint(opcode.split("."))


@dataclass(frozen=True, slots=True)
class Pair:
    """One number that both gave, and what the witness says of it."""

    name: str
    expected: Expected
    ours: int
    theirs: int

    @property
    def difference(self) -> float:
        """Between the two, as numbers; 0 where they are the same, infinite where one of them is no finite number."""
        if self.ours == self.theirs:
            return 0.0
        ours, theirs = (to_float(FORMATS[self.name], bits) for bits in (self.ours, self.theirs))
        return abs(ours - theirs) if math.isfinite(ours) and math.isfinite(theirs) else math.inf

    @property
    def relative(self) -> float:
        """The difference by the device's number, which counts as no less than the smallest normal one."""
        if self.difference == 0:
            return 0.0
        fmt = FORMATS[self.name]
        return self.difference / max(abs(to_float(fmt, self.theirs)), to_float(fmt, fmt.smallest_normal))

    @property
    def allowed(self) -> float:
        """The manual's error, 0 where the result has to be exact."""
        match self.expected:
            case Within(_, low, high):
                return (high - low) / 2
            case OneOf():  # of upper halves of doubles
                return abs(to_float(FORMATS[self.name], self.theirs)) * 2.0**-20
            case _:
                return 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether the manual says how far from the truth the number may be."""
        return self.expected is not ANYTHING

    def accepts_both(self) -> bool:
        """Whether both are within the manual's error of the true value."""
        return all(accepts(self.expected, self.name, bits) for bits in (self.ours, self.theirs))


def pairs(compared: Compared) -> Iterator[Pair]:
    """The numbers of an approximate opcode's result, halves one by one."""
    instance = compared.instance
    op = read_opcode(instance.opcode)
    witness = find_witness(op)
    assert witness is not None
    (name,) = instance.targets
    for operands, ours, theirs in zip(
        instance.operands, compared.ours[0].tolist(), compared.theirs[0].tolist(), strict=True
    ):
        (expected,) = witness(op, *instance.with_immediate(operands))
        if not isinstance(expected, Halves):
            yield Pair(name, expected, ours, theirs)
            continue
        for part, shift in ((expected.low, 0), (expected.high, 16)):
            yield Pair(expected.name, part, ours >> shift & 0xFFFF, theirs >> shift & 0xFFFF)


def largest_difference(opcode: str, found: Sequence[Pair]) -> str:
    """The largest difference from the device, as the pages state it: absolute where the manual's error is."""
    absolute = opcode.partition(".")[0] in _ABSOLUTE
    sizes = [min(p.difference, p.relative) if absolute else p.relative for p in found if p.is_bounded]
    return f"{max(sizes):.1e} {'absolute or relative' if absolute else 'relative'}"


def agreement() -> Mapping[str, str]:
    """For each opcode that the device ran: `same`, or the largest difference."""
    found: dict[str, str] = {}
    for row in recorded():
        for compared in compare(row):
            opcode = compared.instance.opcode
            if is_approximate(opcode) and not compared.is_same:
                found[opcode] = largest_difference(opcode, list(pairs(compared)))
            else:
                found[opcode] = "same" if compared.is_same and found.get(opcode, "same") == "same" else "differs"
    return dict(sorted(found.items()))
