"""Control flow and barriers (PTX manual, 9.7.12 and 9.7.13). The executors carry these out themselves."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row

_BLOCK, _LANES = "Waits until b threads, or all of the block, arrive.", "Waits until the lanes of the mask arrive."


def _control(
    syntax: str,
    section: str,
    summary: str,
    effect: Effect,
    counts: str | None = None,
    groups: Mapping[str, str] | None = None,
    *,
    aligned: bool = False,
    needs: str = "",
) -> None:
    def carried_out_by_the_executor(m: Machine[V], f: Form) -> None:
        raise AssertionError(f"{syntax} has no meaning over the primitives")

    carried_out_by_the_executor.__doc__ = summary
    add = row(
        syntax, section=section, pipe=Pipe.CONTROL, effect=effect, counts=counts, groups=groups, aligned=aligned,
        needs=needs,
    )  # fmt: skip
    add(carried_out_by_the_executor)


_control("bra{.uni} target", "9.7.12.3", "Goes to a label.", Effect.BRANCH, "branches")
_control(
    "brx.idx{.uni} index:u32, targets", "9.7.12.4", "Goes to the label of a list that an index picks.",
    Effect.SWITCH, "branches",
)  # fmt: skip
_control("call{.uni} target", "9.7.12.5", "Calls a function, by its name or through a pointer.", Effect.CALL)
_control("ret{.uni}", "9.7.12.6", "Returns from a function; ends the thread in a kernel.", Effect.RETURN)
_control("exit", "9.7.12.7", "Ends the thread.", Effect.END)
_control("trap", "9.7.19.4", "Stops the launch with an error.", Effect.TRAP)
for _name, _aligned in (("bar{.cta}", ""), ("barrier{.cta}", "{.aligned}")):
    _control(
        f"{_name}.sync{_aligned} a:u32, b:u32?", "9.7.13.1", _BLOCK, Effect.BLOCK_BARRIER, "barriers",
        aligned=not _aligned,
    )  # fmt: skip
    _control(
        f"{_name}.arrive{_aligned} a:u32, b:u32", "9.7.13.1", "Counts as arrived, without waiting.",
        Effect.BLOCK_ARRIVAL, "barriers", aligned=not _aligned,
    )  # fmt: skip
    _control(
        f"{_name}.red.popc{_aligned}.u32 d, a:u32, b:u32?, c:pred", "9.7.13.1",
        "Waits as `bar.sync`; d = in how many of the threads c holds.", Effect.BLOCK_REDUCTION, "barriers",
        aligned=not _aligned,
    )  # fmt: skip
    _control(
        f"{_name}.red.operation{_aligned}.pred d, a:u32, b:u32?, c:pred", "9.7.13.1",
        "Waits as `bar.sync`; d = whether c holds in all or any of the threads.", Effect.BLOCK_REDUCTION, "barriers",
        {"operation": "and or"}, aligned=not _aligned,
    )  # fmt: skip
_control(
    "barrier.cluster.arrive{.order}{.aligned}", "9.7.13.3", "Counts as arrived at the cluster's barrier.",
    Effect.CLUSTER_ARRIVAL, "barriers", {"order": "release relaxed"},
    needs="sm_90",
)  # fmt: skip
_control(
    "barrier.cluster.wait{.acquire}{.aligned}", "9.7.13.3",
    "Waits until all threads of the cluster have arrived, as this one has.", Effect.CLUSTER_WAIT, "barriers",
    needs="sm_90",
)  # fmt: skip
_control("bar.warp.sync membermask:u32", "9.7.13.2", _LANES, Effect.WARP_BARRIER, "barriers")
