"""asynccheck: shared memory that is used before an asynchronous copy, or an asynchronous reader, is done with it.

Results are those of a device whose copies are done when they are issued; generated code (`lower/watching/`) keeps the
first hazard of each kind between two instructions. Who waited counts, not how others learned of it: that a barrier
lies between a wait and another thread's access is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from triptych.core.checks import ASYNCCHECK
from triptych.core.launches import Finding
from triptych.core.memory_access import Access, MemoryAccess
from triptych.gpu.check.culprit import as_text
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.lower.analysis.memory_sites import MemorySite
from triptych.gpu.lower.records import Site
from triptych.gpu.lower.watching.records import Completion, Hazard, HazardKind
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker
from triptych.gpu.syntax.ast import Instruction

_DID: Mapping[HazardKind, tuple[str, str]] = {
    HazardKind.READ: ("reads", "may not have written yet"),
    HazardKind.WRITE: ("writes to", "may still write"),
    HazardKind.OVERWRITE: ("writes to", "may still read"),
}  # fmt: skip
"""What a thread does, and what the other instruction may do at that time."""
_WAITS: Mapping[Completion, tuple[str, str]] = {
    Completion.GROUP: (
        "no wait of that thread covers it",
        "commit each stage as a group, let cp.async.wait_group permit fewer newer ones, and synchronise behind it",
    ),
    Completion.MBARRIER: (
        "nobody has waited for the end of the phase of its mbarrier",
        "wait for that phase (mbarrier.try_wait), with the parity of the round, before the memory is used",
    ),
    Completion.BULK_GROUP: (
        "no cp.async.bulk.wait_group of that thread covers it",
        "let the thread that copies execute cp.async.bulk.commit_group and cp.async.bulk.wait_group.read, and others"
        " wait for it at a barrier",
    ),
    Completion.PRODUCT_GROUP: (
        "no wgmma.wait_group covers it",
        "execute wgmma.commit_group behind the multiplications, and wgmma.wait_group before their operands are reused",
    ),
}  # fmt: skip
"""What is missing, and what to do."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A hazard, with its instructions by the numbers of their memory sites."""

    block: int
    site: int
    other: int
    kind: HazardKind
    fields: Mapping[str, int]

    @classmethod
    def of(cls, row: Sequence[int], worker: Worker) -> Self:
        """What a worker's code wrote down."""
        fields = {name: int(value) for name, value in zip(Hazard.names(), row, strict=True)}
        first: int = worker.context.sites
        site, other = ((fields[name] - first) // Site.size() for name in ("site", "other"))
        return cls(fields["block"], site, other, HazardKind(fields["kind"]), fields)


def find(kernel: Kernel, state: LaunchState, workers: Sequence[Worker]) -> Iterator[Finding]:
    """A finding for each kind of hazard between two lines: that of the lowest block."""
    if kernel.watched is None:
        return
    seen = [_Seen.of(row, worker) for worker in workers for row in worker.hazards[: worker.context.hazard_count]]
    told: set[object] = set()
    for one in sorted(seen, key=lambda one: (one.block, one.site, one.other, one.kind)):
        here, other = (kernel.analysis.sites[number] for number in (one.site, one.other))
        places = [(site.instruction.instruction.where, site.instruction.instruction.frames) for site in (here, other)]
        key = one.kind, *places
        if key not in told:
            told.add(key)
            yield _finding(one, here, other.instruction.instruction, state)


def _finding(one: _Seen, here: MemorySite, other: Instruction, state: LaunchState) -> Finding:
    instruction, fields = here.instruction.instruction, one.fields
    does, may = _DID[one.kind]
    completion = Completion(fields["completion"])
    missing, hint = _WAITS[completion]
    address = fields["address"]
    message = (
        f"'{instruction.opcode}' (PTX line {instruction.line}) {does} shared memory at address {address:#x}, which"
        f" '{other.opcode}' (PTX line {other.line}{_source_line(other)}) {_issuer(one, completion, state)} {may}:"
        f" {missing}{_detail(fields, completion, state)}"
    )
    thread = fields["warp"] * WARP_SIZE + fields["lane"]
    return Finding(
        ASYNCCHECK.name,
        ASYNCCHECK.severity,
        message,
        instruction.where,
        instruction.frames,
        thread=state.geometry.thread(thread),
        block=state.geometry.block_index(one.block),
        hint=hint,
        memory=MemoryAccess(_access(one, here), SHARED.name, address, here.bytes or None),
    )


def _access(one: _Seen, here: MemorySite) -> Access:
    if one.kind is HazardKind.READ:
        return "load"
    return "atomic" if here.kind == "atomic" else "store"


def _issuer(one: _Seen, completion: Completion, state: LaunchState) -> str:
    """Whose copy, or multiplication, it is."""
    fields = one.fields
    if completion is Completion.PRODUCT_GROUP:
        return f"of warps {fields['other_warp']} … {fields['other_warp'] + 3}"
    thread = as_text(state.geometry.thread(fields["other_warp"] * WARP_SIZE + fields["other_lane"]))
    if fields["other_block"] == one.block:
        return f"of thread {thread}"
    return f"of thread {thread} in block {as_text(state.geometry.block_index(fields['other_block']))}"


def _detail(fields: Mapping[str, int], completion: Completion, state: LaunchState) -> str:
    """More of what is missing."""
    if completion is Completion.MBARRIER and 0 <= fields["place"] < state.geometry.shared_bytes:
        return f", at address {fields['place']:#x}"
    if completion is Completion.GROUP:
        newer = fields["committed"] - fields["amount"] - 1
        return ", and it is in no group" if newer < 0 else f" (groups committed behind it: {newer})"
    return ""


def _source_line(instruction: Instruction) -> str:
    if instruction.origin is None:
        return ""
    called = f", called from {instruction.frames[-1]}" if instruction.frames else ""
    return f", {instruction.where}{called}"
