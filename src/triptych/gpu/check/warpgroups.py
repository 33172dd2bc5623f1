"""synccheck of warpgroups: what four warps gave that multiply matrices together, and cannot be carried out.

Beside these faults, registers that are touched too early, or multiplied without a fence: a kernel's text tells which
(`flow/find_unordered_products.py`), a launch whether they were reached. Results are those of a device that waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triptych.core.checks import SYNCCHECK, Severity
from triptych.core.errors import WarpgroupMisuse
from triptych.core.launches import Finding
from triptych.gpu.check.culprit import Culprit
from triptych.gpu.check.memcheck import site_of
from triptych.gpu.flow import Disorder, UnorderedProduct
from triptych.gpu.isa.tensor.matrix_descriptors import DescriptorFault
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker
from triptych.gpu.syntax.ast import Instruction

_WRONG: Mapping[DescriptorFault, tuple[str, str]] = {
    DescriptorFault.LANES: (
        "lanes of a warp give different descriptors, or predicates",
        "compute them from values that are the same in all threads",
    ),
    DescriptorFault.GROUP: (
        "the block has no four warps for the warpgroup",
        "launch a multiple of 128 threads; a warpgroup's first warp has a number that is a multiple of 4",
    ),
}  # fmt: skip


def fault(kernel: Kernel, _: LaunchState, worker: Worker, by: Culprit) -> WarpgroupMisuse:
    """The error for the multiplication that a worker recorded."""
    context = worker.context
    instruction = site_of(kernel, worker).instruction.instruction
    wrong, hint = _WRONG[DescriptorFault(context.fault_detail)]
    return by.fault(WarpgroupMisuse, f"kernel {kernel.entry.name}: {wrong}", hint, kernel.entry.name, instruction)


def find(kernel: Kernel, _: LaunchState, workers: Sequence[Worker]) -> Iterator[Finding]:
    """A finding for each source line that touches such registers, of those that the launch reached."""
    told: set[object] = set()
    for one in kernel.facts.unordered:
        if not _was_reached(kernel, one.block, workers):
            continue
        here, other = kernel.instruction_at(one.place), kernel.instruction_at(one.other)
        assert here is not None
        assert other is not None
        place = one.disorder, here.where, here.frames
        if place not in told:
            told.add(place)
            message, hint = _describe(one, here, other)
            yield Finding(SYNCCHECK.name, Severity.WARNING, message, here.where, here.frames, hint=hint)


def _was_reached(kernel: Kernel, block: int, workers: Sequence[Worker]) -> bool:
    """Whether a block ran, by itself or in one go with those that it was cut from."""
    analysis = kernel.analysis
    whole = next(pieces.start for pieces in analysis.pieces if block in pieces)
    columns = {analysis.counts.warps(number) for number in (block, analysis.runs[whole])}
    return any(worker.counts[column] for worker in workers for column in columns)


def _describe(one: UnorderedProduct, here: Instruction, other: Instruction) -> tuple[str, str]:
    """What is wrong, and what to do."""
    texts = [f"'{text.opcode}' (PTX line {text.line}{_source_line(text)})" for text in (here, other)]
    if one.disorder is Disorder.UNFENCED:
        message = f"{texts[0]} multiplies {one.register}, which {texts[1]} writes without a wgmma.fence in between"
        return message, "execute wgmma.fence behind what writes registers of matrices, before they are multiplied"
    verb, still = ("reads", "write") if one.disorder is Disorder.READ else ("writes", "use")
    message = f"{texts[0]} {verb} {one.register}, which {texts[1]} may still {still}: no wgmma.wait_group covers it"
    return message, "execute wgmma.commit_group behind the multiplications, and wgmma.wait_group before that"


def _source_line(instruction: Instruction) -> str:
    return "" if instruction.origin is None else f", {instruction.where}"
