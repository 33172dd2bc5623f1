"""synccheck, of lanes: an instruction that names lanes of its warp, and one of them that does not keep to it.

PTX leaves such results open. Generated code (`warp_machine.py`) keeps the first misuse of each instruction; what
is wrong at the barriers of a block stops the launch (`faults.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triptych.core.checks import SYNCCHECK, Severity
from triptych.core.launches import Finding
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.lower.records import Misuse, MisuseKind
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker

_HINTS = {
    MisuseKind.OUTSIDE: "let each lane that comes here be in the mask that it gives",
    MisuseKind.SOURCE: "let all lanes that are read take part, and read none beyond them",
}


def find(kernel: Kernel, state: LaunchState, workers: Sequence[Worker]) -> Iterator[Finding]:
    """A finding for each line with an instruction whose lanes did not keep to its mask: the first thread's."""
    layout = kernel.facts.counts
    if not layout.namings:
        return
    places = slice(layout.misuse(0), layout.misuse(layout.namings))
    if not any(worker.counts[places].any() for worker in workers):
        return
    told: set[object] = set()
    naming = [i for block in kernel.analysis.bound for i in block if i.membermask is not None]
    for number, instruction in enumerate(naming):
        kept = [int(worker.counts[layout.misuse(number)]) for worker in workers]
        place = instruction.instruction.where, instruction.instruction.frames
        if any(kept) and place not in told:
            told.add(place)
            yield _finding(instruction, Misuse.of(min(one for one in kept if one)), state)


def _finding(bound: BoundInstruction, misuse: Misuse, state: LaunchState) -> Finding:
    instruction, kind = bound.instruction, MisuseKind(misuse.kind)
    what = f"lane {misuse.lane} of warp {misuse.warp}"
    if kind is MisuseKind.OUTSIDE:
        what += f" executes '{instruction.opcode}' with a membermask that does not name it: the result is undefined"
    else:
        what += f" reads lane {misuse.source}, which does not take part in its '{instruction.opcode}': what it gets is"
        what += " undefined (0 here, if that lane is not active)"
    return Finding(
        SYNCCHECK.name,
        Severity.WARNING,
        what,
        instruction.where,
        instruction.frames,
        thread=state.geometry.thread(misuse.warp * WARP_SIZE + misuse.lane),
        block=state.geometry.block_index(misuse.block),
        hint=_HINTS[kind],
    )
