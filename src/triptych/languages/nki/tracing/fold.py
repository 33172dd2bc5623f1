"""`t[…] = f(x)` as one instruction: f writes to t itself, and the copy goes, where nothing else sees the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from triptych.core.errors import NkiError
from triptych.neuron.isa import ROWS, Instruction, Region, Tensor, Verifier
from triptych.neuron.isa.alu import gives_bits
from triptych.neuron.isa.row import Flow, Surroundings
from triptych.neuron.isa.trace import BETA1


def fold_copies(
    instructions: Sequence[Instruction],
    copies: Set[int],
    surroundings: Surroundings,
) -> tuple[Instruction, ...]:
    """The instructions of a program without those `copies` (indices) that the instruction before can do itself."""
    if not copies:
        return tuple(instructions)
    sources = {instructions[index].region("src").tensor for index in copies}
    uses = Counter(
        [
            operand.tensor
            for instruction in instructions
            for operand in instruction.operands.values()
            if type(operand) is Region and operand.tensor in sources
        ]
    )
    folded: list[Instruction] = []
    verifier = Verifier(surroundings, splits=surroundings.generation == BETA1)
    for index, instruction in enumerate(instructions):
        joined = None
        if folded and index in copies and uses[instruction.region("src").tensor] == 2:
            joined = _join(folded[-1], instruction, surroundings.tensors)
        if joined is not None and _allowed(joined, verifier):
            folded[-1] = joined
        else:
            folded.append(instruction)
    return tuple(folded)


def _join(made: Instruction, copy: Instruction, tensors: Sequence[Tensor]) -> Instruction | None:
    """The instruction with the copy's destination: where it made exactly what is copied, and its rounding is the same.

    The value passes through the copy's source: nothing is lost if that has the destination's dtype, or is float32 and
    the instruction computes in it. An instruction that reads the destination elsewhere than it would write it must not
    run in place, and one that updates its own has its old value there.
    """
    source, target = copy.region("src"), copy.region("dst")
    if made.operands.get("dst") != source:
        return None
    dtype = tensors[source.tensor].dtype
    exact = dtype == tensors[target.tensor].dtype or (dtype.name == "f32" and _computes_in_float32(made, tensors))
    if not exact:
        return None
    for name, one in made.operands.items():
        if name != "dst" and isinstance(one, Region) and one.tensor == target.tensor and one != target:
            return None
    row = ROWS[made.operation]
    for rule in row.operands:
        if rule.name == "dst" and rule.read:
            return None
    attributes = made.attributes
    if row.accumulates:  # an assignment replaces: it adds to nothing that is there
        attributes = {**attributes, "accumulate": False}
    return Instruction(made.operation, made.engine, {**made.operands, "dst": target}, attributes, copy.where)


def _computes_in_float32(made: Instruction, tensors: Sequence[Tensor]) -> bool:
    """Whether float32 holds each result: not of constants and indices, bits, nor of 32-bit integers that are moved."""
    if gives_bits(made.attributes):
        return False
    read = [tensors[one.tensor].dtype.name for one in made.operands.values() if isinstance(one, Region)]
    return ROWS[made.operation].flow is not Flow.CONSTANT and not {"s32", "u32"} & set(read)


def _allowed(instruction: Instruction, verifier: Verifier) -> bool:
    try:
        verifier.verify(instruction)
    except NkiError:
        return False
    return True
