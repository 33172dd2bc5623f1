"""synccheck of mbarriers: what an operation met in memory, or would have made of it, that no mbarrier may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triptych.core.errors import BarrierMisuse
from triptych.gpu.check.culprit import Culprit
from triptych.gpu.check.memcheck import site_of
from triptych.gpu.isa.asynchronous.mbarrier_object import MOST_ARRIVALS, MbarrierState
from triptych.gpu.lower.records import FaultKind
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker


def _expects(state: MbarrierState) -> str:
    return f"its phase still expects {state.pending} of {state.expected} arrivals"


WRONG: Mapping[FaultKind, tuple[Callable[[MbarrierState], str], str]] = {
    FaultKind.MBARRIER_NO_OBJECT: (
        lambda _: "was never initialised, or was overwritten since",
        "let one thread execute mbarrier.init, and all others wait for it, before the first use",
    ),
    FaultKind.MBARRIER_INVALIDATED: (
        lambda _: "was invalidated by mbarrier.inval", "use it before that, or initialise it again",
    ),
    FaultKind.MBARRIER_COUNT: (
        lambda _: f"is given a count of arrivals that is not 1 to {MOST_ARRIVALS}", "count the threads that arrive",
    ),
    FaultKind.MBARRIER_ARRIVALS: (
        lambda state: f"gets more arrivals than it waits for: {_expects(state)}",
        "initialise it with the number of arrivals of a phase, and let nobody arrive again before its end",
    ),
    FaultKind.MBARRIER_TRANSACTIONS: (
        lambda state: f"gets a tx-count beyond {MOST_ARRIVALS}; it is {state.transactions}",
        "expect as many bytes in a phase as are copied in it, and fewer of them",
    ),
    FaultKind.MBARRIER_COMPLETES: (
        lambda state: f"would end its phase by an arrival with .noComplete: {_expects(state)}",
        "let the last arrival of a phase be one without .noComplete",
    ),
}  # fmt: skip
"""What is wrong with the mbarrier, and what to do."""


def fault(kernel: Kernel, _: LaunchState, worker: Worker, by: Culprit) -> BarrierMisuse:
    """The error for the operation that a worker recorded."""
    context = worker.context
    site = site_of(kernel, worker)
    wrong, hint = WRONG[FaultKind(context.fault_kind)]
    address = context.fault_address & 0xFFFF_FFFF_FFFF_FFFF
    what = (
        f"kernel {kernel.entry.name}: the mbarrier at address {address:#x} of {site.space} memory"
        f" {wrong(MbarrierState.of(context.fault_detail & 0xFFFF_FFFF_FFFF_FFFF))}"
    )
    return by.fault(BarrierMisuse, what, hint, kernel.entry.name, site.instruction.instruction)
