"""A kernel taken apart before code is made of it: its blocks and registers, memory sites, and layout of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from triptych.gpu.flow import (
    FlowGraph,
    Liveness,
    extend_liveness,
    find_links,
    find_liveness,
    find_postdominators,
    find_standing_waits,
    find_uniform_registers,
    find_waits,
    join_functions,
    split_at_syncs,
)
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.binding import (
    BoundInstruction,
    bind,
    bind_in_clusters,
    constants_of,
    reaches_other_blocks,
    with_implied_registers,
    with_numerics,
)
from triptych.gpu.isa.types import TYPES
from triptych.gpu.isa.verify import verify
from triptych.gpu.lower.analysis.find_loose_registers import find_loose_registers, find_nan_kinds
from triptych.gpu.lower.analysis.find_tile_homes import TileHome, find_tile_homes
from triptych.gpu.lower.analysis.find_uniformity import find_uniformity
from triptych.gpu.lower.analysis.memory_sites import MemorySite, find_sites
from triptych.gpu.lower.analysis.uniformity import UNIFORM, VARYING, Uniformity, find_special_uniformity
from triptych.gpu.lower.analysis.variable_layout import VariableLayout, lay_out_variables
from triptych.gpu.lower.records import CountLayout
from triptych.gpu.syntax.ast import Function, Instruction, Module


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """Everything that code generation and the counters need to know of one kernel."""

    module: Module
    function: Function
    graph: FlowGraph
    bound: tuple[tuple[BoundInstruction, ...], ...]
    """By block."""
    liveness: Liveness
    uniformity: Mapping[str, Uniformity]
    """Of the registers that are held as a scalar: uniform ones, and affine ones by their base."""
    warps_in_rows: bool
    """Whether the code is for blocks whose warps each lie in one row of threads."""
    slots: Mapping[str, int]
    """The byte offset in a warp's frame of each register that lives across blocks."""
    frame_bytes: int
    tile_homes: tuple[TileHome, ...]
    """Registers that the converged form keeps as tiles, in their slots, which lie first in the frame in this order."""
    loose: frozenset[str]
    """Registers of 32 bits in which, read as f32, each NaN stands for the canonical one."""
    resumable: frozenset[int]
    """Blocks where the converged form can be entered."""
    pieces: tuple[range, ...]
    """Blocks that only parted lanes run one by one, where they may wait in between; the converged form runs each range
    in one go."""
    waits: frozenset[tuple[int, int]]
    """Back edges of loops that may wait for other threads."""
    standing: frozenset[tuple[int, int]]
    """Those of them whose loops only look at mbarriers."""
    sites: tuple[MemorySite, ...]
    site_of: Mapping[int, int]
    """By the identity of a bound instruction: its first site."""
    guarded_flops: Mapping[int, int]
    """By the identity of a bound instruction that is guarded and computes: its place among the lane counters."""
    namings: Mapping[int, int]
    """By the identity of a bound instruction that names lanes of its warp: its place among those."""
    layout: VariableLayout
    links: Mapping[int, tuple[int, ...]]
    """Where calls and returns go, by the block that they end; the graph's own edges pass them over."""
    is_watched: bool = False
    """Whether code is made that asynccheck looks at (`watching/`)."""

    @property
    def counts(self) -> CountLayout:
        """Where counts stand: executions are those of each block, then those of each range of `pieces` in one go."""
        executions = len(self.graph.blocks) + sum(len(piece) > 1 for piece in self.pieces)
        return CountLayout(executions, len(self.guarded_flops), len(self.namings), len(self.sites))

    @property
    def runs(self) -> Mapping[int, int]:
        """By first block of a range of `pieces`: where its executions in one go are counted."""
        several = [piece.start for piece in self.pieces if len(piece) > 1]
        own = {piece.start: piece.start for piece in self.pieces}
        return own | {start: len(self.graph.blocks) + place for place, start in enumerate(several)}

    def targets(self, block: int) -> tuple[int, ...]:
        """The blocks that the last instruction of a block goes to, calls and returns included."""
        return self.links.get(block, self.graph.blocks[block].targets)

    def fall_through(self, block: int) -> int | None:
        """The block that follows where the last instruction of a block does not leave."""
        return None if block in self.links else self.graph.blocks[block].fall_through

    def is_divergent_branch(self, block: int) -> bool:
        """Whether lanes may part at the end of a block."""
        if not self.targets(block):
            return False
        return any(self.uniformity.get(register) != UNIFORM for register in self.bound[block][-1].uses)


class _Binder:
    """Binds and verifies each instruction once."""

    def __init__(self, module: Module, declared: Mapping[str, str], graph: FlowGraph, numerics: str) -> None:
        self.declared = declared
        self.constants = constants_of(module)
        self.target = module.target
        self.numerics = numerics
        instructions = (instruction for block in graph.blocks for instruction in block.instructions)
        self.bind = bind_in_clusters if reaches_other_blocks(instructions) else bind
        self.known: dict[int, BoundInstruction] = {}

    def __call__(self, instruction: Instruction) -> BoundInstruction:
        found = self.known.get(id(instruction))
        if found is None:
            found = self.known[id(instruction)] = with_numerics(
                self.bind(instruction, self.declared, self.constants), self.numerics
            )
            verify(found, self.declared, self.target)
        return found


def analyse(
    module: Module, function: Function, symbols: Mapping[str, int], *, warps_in_rows: bool, numerics: str
) -> KernelAnalysis:  # fmt: skip
    """Takes a kernel apart.

    `warps_in_rows`: for blocks whose warps each lie in one row of threads. `numerics`: the arithmetic of its
    multiplications of matrices.

    Raises:
        UnsupportedInstruction: an instruction without a row in the table.
        PtxSyntaxError: an operand that its instruction does not take.
        UnsupportedFeature: something else that is not supported.
    """
    joined = join_functions(module, function)
    function = with_implied_registers(joined.function)
    binder = _Binder(module, function.registers, joined.ordered.graph, numerics)

    def uses(instruction: Instruction) -> frozenset[str]:
        return binder(instruction).uses

    def defines(instruction: Instruction) -> frozenset[str]:
        return binder(instruction).defines

    split = split_at_syncs(joined.ordered.graph, defines)
    graph = split.graph
    links = find_links(graph)
    bound = tuple(tuple(binder(i) for i in block.instructions) for block in graph.blocks)

    liveness = find_liveness(graph, uses, defines)
    postdominators = find_postdominators(graph)
    uniformity = _find_scalars(
        binder, graph, bound, liveness, warps_in_rows=warps_in_rows, is_reducible=joined.ordered.is_reducible
    )
    liveness = extend_liveness(graph, liveness, links)
    kinds = find_nan_kinds(bound, function.registers)
    entered = {name for pieces in split.pieces for name in liveness.live_in(pieces.start)}
    homes = find_tile_homes(bound, entered - uniformity.keys(), kinds)
    slots, frame_bytes = _place_registers(function, graph, liveness, homes)
    sites, site_of = find_sites(bound)
    guarded: dict[int, int] = {}
    for block in bound:
        for instruction in block:
            if instruction.instruction.guard is not None and instruction.form.flops:
                guarded[id(instruction)] = len(guarded)
    naming = (i for block in bound for i in block if i.membermask is not None)
    waits = find_waits(graph, uses, defines)
    analysis = KernelAnalysis(
        module, function, graph, bound, liveness, uniformity, warps_in_rows, slots, frame_bytes,
        homes, find_loose_registers(kinds), frozenset({0}),
        split.pieces, waits, find_standing_waits(graph, waits, uses, defines), sites, site_of, guarded,
        {id(instruction): place for place, instruction in enumerate(naming)},
        lay_out_variables(
            module, function, symbols, has_stack=joined.has_stack,
            reaches_reserved=any(i.reaches_reserved for block in bound for i in block),
        ), links,
    )  # fmt: skip
    return _with_resumable(analysis, postdominators)


def _find_scalars(
    binder: _Binder, graph: FlowGraph, bound: tuple[tuple[BoundInstruction, ...], ...], liveness: Liveness, *,
    warps_in_rows: bool, is_reducible: bool,
) -> Mapping[str, Uniformity]:  # fmt: skip
    """The registers that are held as scalars: those that no divergent control flow can tear."""

    def uses(instruction: Instruction) -> frozenset[str]:
        return binder(instruction).uses

    def defines(instruction: Instruction) -> frozenset[str]:
        return binder(instruction).defines

    def varies(instruction: Instruction) -> bool:
        return any(found.get(name, VARYING).stride != 0 for name in defines(instruction))

    found = find_uniformity(bound, binder.declared, warps_in_rows=warps_in_rows)
    kinds = {**found, **find_special_uniformity(warps_in_rows=warps_in_rows)}
    divergent = [name for name, kind in kinds.items() if kind.stride != 0]
    uniform = (
        find_uniform_registers(graph, uses, defines, varies, divergent=divergent, liveness=liveness)
        if is_reducible
        else frozenset[str]()
    )
    written = frozenset(name for block in bound for instruction in block for name in instruction.defines)
    parted = frozenset(name for name in written if found[name].stride == 0) - uniform
    found = find_uniformity(bound, binder.declared, warps_in_rows=warps_in_rows, varying=parted)
    return {name: Uniformity(kind.stride) for name, kind in found.items() if kind.stride is not None}


def _with_resumable(analysis: KernelAnalysis, postdominators: tuple[int, ...]) -> KernelAnalysis:
    resumable = {0, *(target for _, target in analysis.waits)}
    resumable.update(target for targets in analysis.links.values() for target in targets)
    for index, block in enumerate(analysis.graph.blocks):
        if block.waits and block.fall_through is not None:
            resumable.add(block.fall_through)
        if analysis.is_divergent_branch(index) and 0 <= postdominators[index] < analysis.graph.exit:
            resumable.add(postdominators[index])
    return replace(analysis, resumable=frozenset(resumable))


def _place_registers(
    function: Function, graph: FlowGraph, liveness: Liveness, homes: tuple[TileHome, ...]
) -> tuple[dict[str, int], int]:
    across: set[str] = set()
    for block in range(len(graph.blocks)):
        across |= liveness.live_in(block)
    first = [name for home in homes for name in home.registers]
    slots: dict[str, int] = {}
    offset = 0
    for name in (*first, *sorted(across & function.registers.keys() - set(first))):
        slots[name] = offset
        bits = TYPES[function.registers[name]].bits if function.registers[name] in TYPES else 64
        offset += WARP_SIZE * max(bits // 8, 4)
    return slots, offset
