"""Kernels ready to run: taken apart where the cache does not know them, compiled when first launched."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from triptych.core.cache import cache, key_of
from triptych.core.collection import uncollected
from triptych.core.errors import UnknownName
from triptych.core.forks import LazyProperty, StateLock
from triptych.core.settings import settings
from triptych.core.undisturbed import undisturbed
from triptych.gpu.flow import UnorderedProduct, find_unordered_products
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.effects import Observation
from triptych.gpu.isa.spaces import Holder
from triptych.gpu.isa.tensor.numerics import FAST
from triptych.gpu.lower.analysis.kernel import KernelAnalysis, analyse
from triptych.gpu.lower.analysis.variable_layout import VariableLayout
from triptych.gpu.lower.compile_kernel import FormSource, KernelCode
from triptych.gpu.lower.linked_units import units_for
from triptych.gpu.lower.records import CountLayout
from triptych.gpu.run.counting_plan import CountingPlan, plan_counting
from triptych.gpu.run.module import GpuModule, load
from triptych.gpu.syntax.ast import Instruction
from triptych.native.cache_digest import cache_digest
from triptych.native.engine import Unit

OPTIMISE_S = 2e-3
"""What optimising a PTX instruction's code takes at most, in seconds (1.2 ms on a 2.45 GHz EPYC, measured)."""


@dataclass(frozen=True, slots=True)
class WatchedFacts:
    """What a kernel needs whose asynchronous copies and readers of shared memory are looked at."""

    granule: int
    """The bytes of shared memory that one copy of a lane writes at least."""
    linked: tuple[Unit, ...]

    @classmethod
    def of(cls, analysis: KernelAnalysis) -> WatchedFacts | None:
        """From the analysis; None where it has none."""
        instructions = [i for block in analysis.bound for i in block]
        sizes = [i.form.lane_bytes for i in instructions if i.effect.is_asynchronous]
        return cls(min(sizes), units_for(instructions, watched=True)) if sizes else None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a launch needs to know of a kernel besides its code; kept in the cache beside it."""

    layout: VariableLayout
    frame_bytes: int
    counts: CountLayout
    writing_sites: NDArray[np.int64]
    """The memory sites whose requests show that a warp does more than look."""
    counting: CountingPlan
    instructions: int
    """PTX instructions, those of the functions it calls included."""
    linked: tuple[Unit, ...]
    watched: WatchedFacts | None
    """Of the variant that asynccheck looks at, where there is anything to look at."""
    host_calls: frozenset[str]
    """The functions of the host that it calls."""
    uses_heap: bool
    """Whether one of these allocates or frees."""
    order_matters: bool
    """Whether its results or its counts may depend on which of its blocks runs first."""
    is_straight: bool
    """Whether a warp runs each of its instructions once at most, and none of them calls the host."""
    standing: frozenset[int]
    """The blocks of its graph where lanes stand that only other threads of their cluster can let go on."""
    unordered: tuple[UnorderedProduct, ...]
    """Registers that are touched while multiplications of matrices may still use them."""

    @classmethod
    def of(cls, analysis: KernelAnalysis) -> KernelFacts:
        """From the analysis."""
        called = [i.host for block in analysis.bound for i in block if i.host is not None]
        return cls(
            analysis.layout, analysis.frame_bytes, analysis.counts, _writing_sites(analysis), plan_counting(analysis),
            sum(map(len, analysis.bound)),
            units_for(i for block in analysis.bound for i in block), WatchedFacts.of(analysis),
            frozenset(row.name for row in called),
            any(row.uses_heap for row in called),
            _order_matters(analysis), _is_straight(analysis), _standing_blocks(analysis),
            find_unordered_products(analysis.graph, analysis.bound),
        )  # fmt: skip


def _writing_sites(analysis: KernelAnalysis) -> NDArray[np.int64]:
    """What others may see: stores, and atomic operations whose result no loop that waits can look at."""

    def shows(i: BoundInstruction) -> bool:
        return not i.defines or i.form.observes is Observation.NOTHING

    writes = [s.space.others_write and s.kind != "load" and shows(s.instruction) for s in analysis.sites]
    return np.flatnonzero(np.array(writes, np.bool_))


def _standing_blocks(analysis: KernelAnalysis) -> frozenset[int]:
    """Where loops begin that only look at mbarriers, and where lanes wait for others of their warp."""
    if not analysis.standing:
        return frozenset()
    meetings = (index for index, block in enumerate(analysis.bound) if block and block[0].membermask is not None)
    return frozenset((*(header for _, header in analysis.standing), *meetings))


def _order_matters(analysis: KernelAnalysis) -> bool:
    """Whether blocks wait for each other, learn from atomic operations who came first, or sum up rounded numbers."""
    instructions = [i for block in analysis.bound for i in block]
    used = frozenset(name for i in instructions for name in i.uses)
    shared_by_all = [(s.kind, s.instruction) for s in analysis.sites if s.space.holder is Holder.GRID]
    sees = any(i.form.observes is not Observation.NOTHING for _, i in shared_by_all)
    return (bool(analysis.waits) and sees) or any(
        kind == "atomic" and (not i.form.commutes or not used.isdisjoint(i.defines)) for kind, i in shared_by_all
    )


def _is_straight(analysis: KernelAnalysis) -> bool:
    """No edge of the graph leads back, and no function is called, which could come back to itself."""
    edges = ((index, block) for index, following in enumerate(analysis.graph.successors) for block in following)
    calls = any(i.host is not None for block in analysis.bound for i in block)
    return not (analysis.links or calls or any(block <= index for index, block in edges))


class Kernel:
    """One kernel's facts and machine code. Safe to use from several threads."""

    def __init__(
        self, gpu_module: GpuModule, name: str, *, warps_in_rows: bool, numerics: str = FAST, watches: bool = False
    ) -> None:  # fmt: skip
        """Looks the kernel up; it is taken apart only where the cache does not know it.

        `warps_in_rows`: for blocks whose warps each lie in one row of threads, where %tid.x ascends and %tid.y is the
        same. `numerics`: the arithmetic of its multiplications of matrices (`isa/tensor/numerics.py`). `watches`:
        whether asynccheck looks at it, for which code differs where it has anything to look at.

        Raises:
            UnknownName: the module has no such kernel.
            UnsupportedInstruction: an instruction of it has no row in the table.
        """
        if name not in gpu_module.entries:
            raise UnknownName.of("kernel", name, gpu_module.entries)
        self.gpu_module = gpu_module
        self._warps_in_rows = warps_in_rows
        self._numerics = numerics
        self.entry = gpu_module.entries[name]
        self._key = key_of(cache_digest(), gpu_module.key, name, str(warps_in_rows), numerics)
        self._lock = StateLock()
        self._code: dict[str, KernelCode] = {}
        self.seconds = 0.0
        """How long launches of it have run, while no worker waited for code."""
        self.facts: KernelFacts = pickle.loads(cache().fetch("facts", self._key, self._make_facts))
        self.watched = self.facts.watched if watches else None

    def _make_facts(self) -> bytes:
        with uncollected():
            return pickle.dumps(KernelFacts.of(self.analysis))

    @property
    def linked(self) -> tuple[Unit, ...]:
        """What its code is linked with."""
        return self.facts.linked if self.watched is None else self.watched.linked

    @LazyProperty
    def analysis(self) -> KernelAnalysis:
        """The kernel taken apart."""
        symbols = {v.name: index for index, v in enumerate(self.gpu_module.variables)}
        module = self.gpu_module.module
        function = module.functions[self.entry.name]
        return analyse(module, function, symbols, warps_in_rows=self._warps_in_rows, numerics=self._numerics)

    def instruction_at(self, place: int) -> Instruction | None:
        """The instruction of a place (`Instruction.place`), rather than one added for it; None if there is none."""
        bound = (i.instruction for block in self.analysis.bound for i in block)
        return min((i for i in bound if i.place == place), key=lambda i: i.added, default=None)

    def code(self, form: str) -> KernelCode:
        """The kernel's code in a form, made now where it is not there yet, or not as the settings want it."""
        with self._lock:
            known, always = self._code.get(form), settings().optimise == "always"
            if known is None or (always and not known.optimised):
                self._code[form] = self._compile(form, optimise=always)
            return self._code[form]

    def known_code(self, form: str) -> int:
        """The address of the code in a form, 0 where it was not needed yet."""
        return self._code[form].form if form in self._code else 0

    @property
    def is_hot(self) -> bool:
        """Whether its code has run for longer than it takes to optimise it, and can be."""
        optimised = all(code.optimised for code in tuple(self._code.values()))
        enough = self.seconds > OPTIMISE_S * self.facts.instructions
        return enough and not optimised and settings().optimise == "hot"

    def optimise(self) -> None:
        """Makes code anew, with optimisation, in all forms that were needed so far."""
        for form in [form for form, code in tuple(self._code.items()) if not code.optimised]:
            code = self._compile(form, optimise=True)
            with self._lock:
                self._code[form] = code

    def _compile(self, form: str, *, optimise: bool) -> KernelCode:
        watched = self.watched is not None

        def analysis() -> KernelAnalysis:
            return replace(self.analysis, is_watched=watched)

        key = f"{self._key}/watched" if watched else self._key
        source = FormSource(key, form, self.facts.instructions, analysis, self.linked)
        is_kept = settings().optimise == "hot" and source.is_kept_optimised

        def compile() -> KernelCode:
            with uncollected():
                return source.compile(optimise=optimise or is_kept)

        return undisturbed(compile)


@lru_cache(maxsize=256)
def kernel_of(
    text: str, name: str, *, warps_in_rows: bool, numerics: str = FAST, watches: bool = False
) -> Kernel:  # fmt: skip
    """The kernel of that name in PTX text, for blocks whose warps lie in rows of threads or for any.

    `watches`: whether asynccheck looks at it.
    """
    return Kernel(load(text), name, warps_in_rows=warps_in_rows, numerics=numerics, watches=watches)
