"""A kernel taken apart before code is made of it: its blocks and registers, memory sites, and layout of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from triptych.core.errors import UnsupportedFeature
from triptych.gpu.flow import (
    FlowGraph,
    Liveness,
    build_blocks,
    find_liveness,
    find_postdominators,
    find_uniform_registers,
    order_blocks,
)
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.binding import BoundInstruction, bind, with_implied_registers
from triptych.gpu.isa.table import Effect
from triptych.gpu.isa.types import TYPES
from triptych.gpu.isa.verify import verify
from triptych.gpu.lower.find_uniformity import find_uniformity
from triptych.gpu.lower.memory_sites import MemorySite, find_sites
from triptych.gpu.lower.uniformity import UNIFORM, VARYING, Uniformity, special_uniformity
from triptych.gpu.lower.variable_layout import VariableLayout, lay_out_variables
from triptych.gpu.syntax.ast import Function, Instruction, Integer, Module


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
    resumable: frozenset[int]
    """Blocks where the converged form can be entered."""
    sites: tuple[MemorySite, ...]
    site_of: Mapping[int, int]
    """By the identity of a bound instruction: its first site."""
    guarded_flops: Mapping[int, int]
    """By the identity of a bound instruction that is guarded and computes: its place among the lane counters."""
    layout: VariableLayout

    def is_divergent_branch(self, block: int) -> bool:
        """Whether lanes may part at the end of a block."""
        if not self.graph.blocks[block].targets:
            return False
        return any(self.uniformity.get(register) != UNIFORM for register in self.bound[block][-1].uses)


class _Binder:
    """Binds and verifies each instruction once."""

    def __init__(self, declared: Mapping[str, str]) -> None:
        self.declared = declared
        self.known: dict[int, BoundInstruction] = {}

    def __call__(self, instruction: Instruction) -> BoundInstruction:
        found = self.known.get(id(instruction))
        if found is None:
            found = self.known[id(instruction)] = bind(instruction)
            verify(found, self.declared)
            _check_barrier(found)
        return found


def analyse(module: Module, function: Function, symbols: Mapping[str, int], *, warps_in_rows: bool) -> KernelAnalysis:
    """Takes a kernel apart; `warps_in_rows`: for blocks whose warps each lie in one row of threads.

    Raises:
        UnsupportedInstruction: an instruction without a row in the table.
        PtxSyntaxError: an operand that its instruction does not take.
        UnsupportedFeature: something else that is not supported.
    """
    function = with_implied_registers(function)
    binder = _Binder(function.registers)
    ordered = order_blocks(build_blocks(function))
    graph = ordered.graph
    bound = tuple(tuple(binder(i) for i in block.instructions) for block in graph.blocks)

    def uses(instruction: Instruction) -> frozenset[str]:
        return binder(instruction).uses

    def defines(instruction: Instruction) -> frozenset[str]:
        return binder(instruction).defines

    def varies(instruction: Instruction) -> bool:
        return any(found.get(name, VARYING).stride != 0 for name in defines(instruction))

    liveness = find_liveness(graph, uses, defines)
    postdominators = find_postdominators(graph)
    found = find_uniformity(bound, function.registers, warps_in_rows=warps_in_rows)
    uniform = (
        find_uniform_registers(
            graph, uses, defines, varies,
            divergent=[*(name for name, kind in found.items() if kind.stride != 0), *_varying_specials(warps_in_rows)],
            liveness=liveness,
        )
        if ordered.is_reducible
        else frozenset[str]()
    )  # fmt: skip
    written = frozenset(name for block in bound for instruction in block for name in instruction.defines)
    parted = frozenset(name for name in written if found[name].stride == 0) - uniform
    found = find_uniformity(bound, function.registers, warps_in_rows=warps_in_rows, varying=parted)
    uniformity = {name: Uniformity(kind.stride) for name, kind in found.items() if kind.stride is not None}
    slots, frame_bytes = _place_registers(function, graph, liveness)
    sites, site_of = find_sites(bound)
    guarded: dict[int, int] = {}
    for block in bound:
        for instruction in block:
            if instruction.instruction.guard is not None and instruction.form.row.flops:
                guarded[id(instruction)] = len(guarded)
    analysis = KernelAnalysis(
        module, function, graph, bound, liveness, uniformity, warps_in_rows, slots, frame_bytes, frozenset({0}),
        sites, site_of, guarded, lay_out_variables(module, function, symbols),
    )  # fmt: skip
    return _with_resumable(analysis, postdominators)


def _varying_specials(warps_in_rows: bool) -> list[str]:
    names = ("%laneid", "%tid.x", "%tid.y", "%tid.z", *(f"%lanemask_{k}" for k in ("eq", "lt", "le", "gt", "ge")))
    return [name for name in names if special_uniformity(name, warps_in_rows=warps_in_rows) != UNIFORM]


def _check_barrier(bound: BoundInstruction) -> None:
    """Refuses block barriers that are not plainly for all threads of the block."""
    if bound.effect is not Effect.BLOCK_BARRIER:
        return
    instruction = bound.instruction
    what = None
    if instruction.guard is not None:
        what = "under a guard"
    elif instruction.operands != (Integer(0),):
        what = "with a barrier other than 0, or with a number of threads,"
    if what is not None:
        message = f"'{instruction.opcode}' {what} is not supported (PTX line {instruction.line})"
        raise UnsupportedFeature(message, where=instruction.where, hint="only __syncthreads() waits for threads")


def _with_resumable(analysis: KernelAnalysis, postdominators: tuple[int, ...]) -> KernelAnalysis:
    resumable = {0}
    for index, block in enumerate(analysis.graph.blocks):
        if block.waits and block.fall_through is not None:
            resumable.add(block.fall_through)
        if analysis.is_divergent_branch(index) and 0 <= postdominators[index] < analysis.graph.exit:
            resumable.add(postdominators[index])
    return replace(analysis, resumable=frozenset(resumable))


def _place_registers(function: Function, graph: FlowGraph, liveness: Liveness) -> tuple[dict[str, int], int]:
    across: set[str] = set()
    for block in range(len(graph.blocks)):
        across |= liveness.live_in(block)
    slots: dict[str, int] = {}
    offset = 0
    for name in sorted(across & set(function.registers)):
        slots[name] = offset
        bits = TYPES[function.registers[name]].bits if function.registers[name] in TYPES else 64
        offset += WARP_SIZE * max(bits // 8, 4)
    return slots, offset
