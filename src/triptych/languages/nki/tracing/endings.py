"""What is looked at when a trace is complete: that its outputs are written, and the features of other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from triptych.core.checks import GENERATION
from triptych.core.errors import NkiError
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa import ROWS, Instruction, Region, Tensor


def check_outputs(
    kernel: str, tensors: Sequence[Tensor], programs: Sequence[Sequence[Instruction]], outputs: Sequence[NkiTensor]
) -> None:
    """Some instruction writes each output, or a view of it in another dtype.

    Raises:
        NkiError: naming one that none writes.
    """
    wanted = {one.elements.tensor for one in outputs}
    names = {at: one.alias for at, one in enumerate(tensors) if one.alias in wanted}
    names |= {one: one for one in wanted}
    for instruction in chain.from_iterable(programs):
        for name, operand in instruction.operands.items():
            if type(operand) is Region and operand.tensor in names:
                rule = ROWS[instruction.operation].rule(name)
                if rule is not None and rule.written:
                    wanted.discard(names[operand.tensor])
        if not wanted:
            return
    for one in outputs:
        if one.elements.tensor in wanted:
            raise NkiError(
                f"{kernel} returns `{one.name}`, which no instruction writes",
                hint="store the result: nl.store(out, value=…) or nisa.dma_copy(dst=out, src=…)",
            )


def generation_notices(legacy: Mapping[str, SourceLocation]) -> tuple[Finding, ...]:
    """The finding of features that no released `import nki` has, with the first line that uses one."""
    if not legacy:
        return ()
    message = (
        f"{', '.join(legacy)}: not valid in any released `import nki`; accepted in the mixed style of "
        "tutorials. `import neuronxcc.nki` has it, or pass destinations and slice"
    )
    return (Finding.of(GENERATION, message, min(legacy.values())),)
