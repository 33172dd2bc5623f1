"""The work certificate: whose work the results are, and whether it was enough. From counts of what ran, not claims.

Four parts. Every byte of an output was stored by a kernel. Every byte of an input that all solutions need was loaded
by a kernel that contributes. The kernels that contribute carried out the least FLOPs. No library did the work. A launch
contributes where the outputs change when it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType
from triptych.core.handles import Handle, Storage
from triptych.core.launches import LaunchRecord
from triptych.core.plan import Constant, Copy, Fill, Launch, Plan
from triptych.core.touched import Marks
from triptych.judge.verification.steps import Step
from triptych.model.pipes import PREFIX
from triptych.operators.operator import Operator, Parameter, Values

_Kind = TypeVar("_Kind", np.bool_, np.uint8)
_DIGITS: Mapping[str, int] = {
    "f64": 53,
    "f32": 24,
    "tf32": 11,
    "f16": 11,
    "bf16": 8,
    "fp8": 4,
    "s8": 8,
    "s4": 4,
    "b1": 1,
}
"""Binary digits of the types that FLOPs are counted by; of e4m3 for `fp8`."""
_ATOMIC_BYTES = ".atomic.bytes"
"""How counters of what atomic operations access end, one for each space of memory."""
_LEAST_ATOMIC_BYTES = 2
"""Of a number that atomic operations add to: pairs of f16 are the narrowest. So sums are counted generously."""
SPARED = 1 / 16
"""The share of the least FLOPs that may be missing: by convention a sum of k products has 2 k of them, and needs
2 k - 1; factors can be folded into others. Results are verified anyway: this tells of work that was done elsewhere."""
_AS_FOUND, _STORED, _FILLED = range(3)
"""Where a byte of a storage comes from: what was there before, a kernel, or the host, which knows no input's values."""


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of an array that were loaded, or stored, of those that must have been."""

    name: str
    found: int
    least: int
    missing: str
    """The first element that was not, and how many others; empty where all were."""
    found_with_decoys: int
    """What the launches that contribute nothing touched included."""

    @property
    def holds(self) -> bool:
        """Whether there are enough."""
        return self.found >= self.least


@dataclass(frozen=True, slots=True)
class Decoy:
    """A launch without which the outputs are the same."""

    kernel: str
    place: int
    """The place of its node in the plan."""
    flops: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was counted of the work at one size, beside the least."""

    size: Values
    loaded: tuple[Part, ...]
    """Of each input."""
    stored: tuple[Part, ...]
    """Of each output."""
    flops: Mapping[str, int]
    """By counter, of the launches that contribute; `atomics` are sums that memory made, at most."""
    least_flops: int
    may_do_less: str
    """Why fewer FLOPs may do: the mathematics that the operator allows. Empty where none may."""
    narrow: tuple[str, ...]
    """Types of fewer digits than the operator's in which FLOPs were carried out."""
    decoys: tuple[Decoy, ...]
    library: tuple[str, ...]
    """Work of the host: copies that are more than movement. What libraries compute never comes as far as this."""

    @property
    def total_flops(self) -> int:
        """Those of the launches that contribute."""
        return sum(self.flops.values())

    @property
    def failure(self) -> tuple[str, str] | None:
        """The code of the reason for which it does not hold, and a sentence; None where it holds."""
        if self.library:
            return "library_work", f"work outside of kernels: {'; '.join(self.library)}"
        for part in self.stored:
            if not part.holds:
                return "output_not_stored", f"{part.name}: {part.missing} not stored by a kernel"
        for part in self.loaded:
            if not part.holds:
                code = "decoy" if part.found_with_decoys >= part.least else "input_not_loaded"
                return code, f"{part.name}: {part.missing} not loaded by a kernel that contributes{self._told}"
        needed = self.least_flops * (1 - SPARED)
        if self.total_flops < needed and not self.may_do_less:
            enough = self.total_flops + sum(one.flops for one in self.decoys) >= needed
            message = f"{self.total_flops} FLOPs; the operator needs {self.least_flops}{self._told}"
            return "decoy" if enough else "too_little_work", message
        return None

    @property
    def _told(self) -> str:
        names = ", ".join(dict.fromkeys(one.kernel for one in self.decoys))
        return f" (without these, the outputs are the same: {names})" if names else ""


def certify(
    operator: Operator,
    size: Values,
    dtype: DType,
    plan: Plan,
    runs: Sequence[Sequence[Step]],
    dead: frozenset[int] = frozenset(),
) -> Certificate:
    """The certificate of a plan at a size.

    Args:
        operator: what was to be computed.
        size: the size's integers.
        dtype: T.
        plan: whose inputs and outputs are named as the operator's.
        runs: what was executed for each case, that of the ordinary distribution first: FLOPs are the first one's;
            bytes count where they were touched in any of them, since what a kernel must load can depend on values.
        dead: the places of nodes without which the outputs are the same.
    """
    traces = [_Trace.of(plan, run, dead) for run in runs]
    first = [(step.place, step.record) for step in runs[0] if step.record is not None]
    live = [record for place, record in first if place not in dead]
    decoys = [Decoy(one.kernel, place, sum(_flops(one).values())) for place, one in first if place in dead]
    flops: dict[str, int] = {}
    for record in live:
        for name, count in _flops(record).items():
            flops[name] = flops.get(name, 0) + count
    named = {handle.storage.name: handle for handle in plan.inputs}
    loaded = [_loaded(one, named[one.name], size, dtype, traces) for one in operator.inputs if one.name in named]
    pairs = zip(operator.outputs, plan.outputs, strict=True)
    return Certificate(
        size=size,
        loaded=tuple(loaded),
        stored=tuple(_stored(one, handle, traces) for one, handle in pairs),
        flops=flops,
        least_flops=operator.least_flops(size, "neuron" if any(one.machine == "neuron" for one in live) else "gpu"),
        may_do_less=operator.may_do_less,
        narrow=tuple(sorted({kind for name in flops if (kind := _narrow(name, operator, dtype))})),
        decoys=tuple(decoys),
        library=tuple(dict.fromkeys(text for trace in traces for text in trace.rearranged)),
    )


def _flops(record: LaunchRecord) -> dict[str, int]:
    """FLOPs by counter, and what memory may have added up: counters of FLOPs have nothing of atomic operations."""
    counters = record.counters
    atomic = sum(int(one.value) for name, one in counters.items() if name.endswith(_ATOMIC_BYTES))
    found = {name: int(one.value) for name, one in counters.items() if name.startswith(PREFIX) and one.value}
    return {**found, "atomics": atomic // _LEAST_ATOMIC_BYTES} if atomic else found


def _narrow(counter: str, operator: Operator, dtype: DType) -> str:
    """The type of a counter of FLOPs, where it has fewer digits than T and the operator's inputs; else nothing."""
    kind = counter.rpartition(".")[2]
    given = {one.element(dtype).name for one in operator.inputs if one.element(dtype).name in _DIGITS}
    return kind if _DIGITS.get(kind, 99) < min(_DIGITS[name] for name in given or {"f32"}) else ""


@dataclass(frozen=True, slots=True)
class _Trace:
    """Where the bytes of inputs and outputs come from at the end of a run, and which of them were loaded.

    Of a plan's other arrays, which may be large, nothing is noted but of those that the host copies, for a while.
    """

    origin: Mapping[Storage, NDArray[np.uint8]]
    loaded: Mapping[Storage, Marks]
    """By launches that contribute. Whoever loads a copy has loaded what it is of."""
    loaded_by_any: Mapping[Storage, Marks]
    rearranged: tuple[str, ...]
    """Copies that are more than movement: of arrays whose axes lie in another order."""

    @classmethod
    def of(cls, plan: Plan, run: Sequence[Step], dead: frozenset[int]) -> _Trace:
        """What a run did."""
        kept = frozenset(handle.storage for handle in (*plan.inputs, *plan.outputs))
        noted = kept.union(one.storage for step in run if isinstance(step.node, Copy) for one in step.node.handles)
        rearranged: list[str] = []
        origin = _only(kept, _origin(run, noted, rearranged))
        contributing = [step for step in run if step.place not in dead or step.record is None]
        loaded, by_any = (_only(kept, _loads(steps, noted)) for steps in (contributing, run))
        return cls(origin, loaded, by_any, tuple(rearranged))


def _only(kept: frozenset[Storage], found: Mapping[Storage, NDArray[_Kind]]) -> Mapping[Storage, NDArray[_Kind]]:
    return {storage: found[storage] for storage in kept}


def _origin(run: Sequence[Step], noted: frozenset[Storage], rearranged: list[str]) -> dict[Storage, NDArray[np.uint8]]:
    """Where each byte comes from; what the copies are that move axes is added to `rearranged`."""
    origin = {storage: np.zeros(storage.size, np.uint8) for storage in noted}
    for step in run:
        match step.node:
            case Constant(storage) if storage in noted:
                origin[storage][...] = _FILLED
            case Fill(target) if target.storage in noted:
                _view(origin[target.storage], target)[...] = _FILLED
            case Copy(target, source):
                copied = _view(origin[source.storage], source)
                if not (source.in_order and target.in_order) and (copied != _FILLED).any():
                    rearranged.append(f"a copy of {source.storage.name} {list(source.shape)} that moves axes")
                _view(origin[target.storage], target)[...] = copied
            case Launch() if step.record is not None:
                for one in step.record.touched:
                    if one.storage in noted:
                        origin[one.storage][one.stored_bytes] = _STORED
            case _:
                pass
    return origin


def _loads(run: Sequence[Step], noted: frozenset[Storage]) -> dict[Storage, Marks]:
    """Which bytes launches loaded, from the last to the first: what is loaded of a copy is loaded of its source."""
    loads: dict[Storage, Marks] = {storage: np.zeros(storage.size, np.bool_) for storage in noted}
    for step in reversed(run):
        match step.node:
            case Fill(target) if target.storage in noted:
                _view(loads[target.storage], target)[...] = False
            case Copy(target, source):
                of_target = _view(loads[target.storage], target)
                wanted = of_target.copy()
                of_target[...] = False
                view = _view(loads[source.storage], source)
                np.logical_or(view, wanted, out=view)
            case Launch() if step.record is not None:
                for one in step.record.touched:
                    if one.storage in noted:
                        np.logical_or(loads[one.storage], one.loaded_bytes, out=loads[one.storage])
            case _:
                pass
    return loads


def _view(data: NDArray[_Kind], handle: Handle) -> NDArray[_Kind]:
    """The bytes of a handle's elements in what there is for each byte of its storage."""
    shape, strides = (*handle.shape, handle.dtype.bytes), (*handle.strides, 1)
    return np.ndarray(shape, data.dtype, buffer=data, offset=handle.offset, strides=strides)


def _loaded(one: Parameter, handle: Handle, size: Values, dtype: DType, traces: Sequence[_Trace]) -> Part:
    """Elements of which a byte was loaded: of an index in 64 bits half may be all that matters."""
    found, by_any = (
        _view(np.logical_or.reduce([loads[handle.storage] for loads in kind]), handle).any(-1)
        for kind in ([trace.loaded for trace in traces], [trace.loaded_by_any for trace in traces])
    )
    width = one.element(dtype).bytes
    least = min(one.elements(size) * width, handle.nbytes)
    missing = "" if found.sum() * width >= least else _missing(~found)
    return Part(one.name, int(found.sum()) * width, least, missing, int(by_any.sum()) * width)


def _stored(one: Parameter, handle: Handle, traces: Sequence[_Trace]) -> Part:
    """Each byte by a kernel; a fill may be all that a byte got for some values, but not for any."""
    ends = [_view(trace.origin[handle.storage], handle) for trace in traces]
    known = np.logical_and.reduce([end != _AS_FOUND for end in ends])
    good: Marks = known & np.logical_or.reduce([end == _STORED for end in ends])
    missing = "" if good.all() else _missing(np.logical_not(good.all(-1)))
    return Part(one.name, int(good.sum()), handle.nbytes, missing, int(good.sum()))


def _missing(marks: Marks | np.bool_) -> str:
    """The first element of those that are marked, and how many there are."""
    elements = np.asarray(marks)
    count = int(elements.sum())
    first = np.unravel_index(int(elements.argmax()), elements.shape)
    place = f"element [{', '.join(map(str, first))}]"
    return f"{place} was" if count == 1 else f"{place} and {count - 1} others were"
