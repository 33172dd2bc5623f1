"""A kernel taken apart before code is made of it: blocks, homes of registers, places of variables, memory sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from triptych.core.errors import LaunchError, UnsupportedFeature
from triptych.gpu.flow import (
    FlowGraph,
    Liveness,
    build_blocks,
    find_liveness,
    find_postdominators,
    find_uniform_registers,
    order_blocks,
)
from triptych.gpu.isa.binding import BoundInstruction, bind
from triptych.gpu.isa.table import Effect
from triptych.gpu.isa.types import TYPES
from triptych.gpu.isa.verify import verify
from triptych.gpu.lower.memory import GENERIC_SITES
from triptych.gpu.lower.shapes import UNIFORM, VARYING, Shape, find_shapes, special_shape
from triptych.gpu.syntax.ast import Function, Instruction, Integer, Module, Variable

LOCAL_LIMIT = 512 << 10
"""Bytes of local memory of a thread, in every compute capability (CUDA programming guide, technical specifications)."""


@dataclass(frozen=True, slots=True)
class MemorySite:
    """A memory instruction's counters: what it does and in which space."""

    instruction: BoundInstruction
    block: int
    space: str
    kind: str
    """`load`, `store` or `atomic`."""

    @property
    def bytes(self) -> int:
        """Bytes that one lane moves in a request."""
        form = self.instruction.form
        if form.row.mnemonic == "ldmatrix":
            return 16
        if self.instruction.effect is Effect.COPY:
            return form.immediates[0]
        return form.type.bytes * int(form.get("vec", "v1")[1:])


@dataclass(frozen=True, slots=True)
class Places:
    """Byte offsets of the variables that have a place in a space of their own, and the spaces' sizes."""

    shared: Mapping[str, int]
    shared_bytes: int
    """Static; dynamic shared memory follows."""
    local: Mapping[str, int]
    local_bytes: int
    parameters: Mapping[str, int]
    parameter_bytes: int
    symbols: Mapping[str, int]
    """Module variables in global or constant memory: the index of each one's address in the table of symbols."""


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """Everything that code generation and the counters need to know of one kernel."""

    module: Module
    function: Function
    graph: FlowGraph
    bound: tuple[tuple[BoundInstruction, ...], ...]
    """By block."""
    liveness: Liveness
    shapes: Mapping[str, Shape]
    """Of the registers that are held as a scalar: uniform ones, and affine ones by their base."""
    rows: bool
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
    places: Places

    def is_divergent_branch(self, block: int) -> bool:
        """Whether lanes may part at the end of a block."""
        register = _branch_register(self.graph, block)
        return register is not None and self.shapes.get(register) != UNIFORM


def _branch_register(graph: FlowGraph, block: int) -> str | None:
    last = graph.blocks[block].terminator
    if last is None:
        return None
    if last.mnemonic == "brx":
        return next(iter(bind(last).uses), None)
    return last.guard.register.name if last.guard is not None else None


def is_block_barrier(instruction: Instruction) -> bool:
    """Whether the whole block waits here."""
    return instruction.mnemonic in ("bar", "barrier") and "warp" not in instruction.modifiers


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
            _check_barrier(instruction)
        return found


def analyse(module: Module, function: Function, symbols: Mapping[str, int], *, rows: bool) -> KernelAnalysis:
    """Takes a kernel apart; `rows`: for blocks whose warps each lie in one row of threads.

    Raises:
        UnsupportedInstruction: an instruction without a row in the table.
        PtxSyntaxError: an operand that its instruction does not take.
        UnsupportedFeature: something else that is not supported.
    """
    binder = _Binder(function.registers)
    ordered = order_blocks(build_blocks(function, is_block_barrier))
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
    found = find_shapes(bound, function.registers, rows=rows)
    uniform = (
        find_uniform_registers(
            graph, uses, defines, varies,
            divergent=[name for name, shape in found.items() if shape.stride != 0] + list(_varying_specials(rows)),
            liveness=liveness,
        )
        if ordered.is_reducible
        else frozenset[str]()
    )  # fmt: skip
    written = frozenset(name for block in bound for instruction in block for name in instruction.defines)
    parted = frozenset(name for name in written if found[name].stride == 0) - uniform
    found = find_shapes(bound, function.registers, rows=rows, varying=parted)
    shapes = {name: Shape(shape.stride) for name, shape in found.items() if shape.stride is not None}
    slots, frame_bytes = _place_registers(function, graph, liveness)
    sites, site_of = _find_sites(bound)
    guarded: dict[int, int] = {}
    for block in bound:
        for instruction in block:
            if instruction.instruction.guard is not None and instruction.form.row.flops:
                guarded[id(instruction)] = len(guarded)
    analysis = KernelAnalysis(
        module, function, graph, bound, liveness, shapes, rows, slots, frame_bytes, frozenset({0}),
        sites, site_of, guarded, _place_variables(module, function, symbols),
    )  # fmt: skip
    return _with_resumable(analysis, postdominators)


def _varying_specials(rows: bool) -> list[str]:
    names = ("%laneid", "%tid.x", "%tid.y", "%tid.z", *(f"%lanemask_{k}" for k in ("eq", "lt", "le", "gt", "ge")))
    return [name for name in names if special_shape(name, rows=rows) != UNIFORM]


def _check_barrier(instruction: Instruction) -> None:
    """Refuses block barriers that are not plainly for all threads of the block."""
    if not is_block_barrier(instruction):
        return
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
        if block.instructions and is_block_barrier(block.instructions[-1]) and block.fall_through is not None:
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
        offset += 32 * max(bits // 8, 4)
    return slots, offset


_KINDS = {Effect.LOAD: "load", Effect.STORE: "store", Effect.ATOMIC: "atomic"}


def _space_of(instruction: BoundInstruction) -> str:
    space = instruction.form.get("space").partition("::")[0]
    if instruction.form.row.mnemonic == "ldmatrix":
        return "shared"
    return "global" if space == "const" else space or "generic"


def _find_sites(
    bound: tuple[tuple[BoundInstruction, ...], ...],
) -> tuple[tuple[MemorySite, ...], dict[int, int]]:
    sites: list[MemorySite] = []
    site_of: dict[int, int] = {}
    for index, block in enumerate(bound):
        for instruction in block:
            first = len(sites)
            if instruction.effect in _KINDS:
                kind = _KINDS[instruction.effect]
                space = _space_of(instruction)
                spaces = GENERIC_SITES if space == "generic" else (space,)
                sites += [MemorySite(instruction, index, one, kind) for one in spaces]
            elif instruction.effect is Effect.COPY and instruction.sources and instruction.sources[0].is_address:
                sites.append(MemorySite(instruction, index, "global", "load"))
                sites.append(MemorySite(instruction, index, "shared", "store"))
            if len(sites) > first:
                site_of[id(instruction)] = first
    return tuple(sites), site_of


def _size(variable: Variable) -> int:
    count = 1 if variable.count is None else variable.count
    return count * (TYPES[variable.type].bytes if variable.type in TYPES else 16)


def _lay_out(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    offset = start
    for variable in variables:
        align = max(variable.align, 1)
        offset = -(-offset // align) * align
        offsets[variable.name] = offset
        offset += _size(variable)
    return offsets, offset


def lay_out_shared(module: Module, function: Function) -> tuple[dict[str, int], int]:
    """The byte offsets of a kernel's shared variables, and the bytes before its dynamic shared memory."""
    shared = [v for v in (*module.variables.values(), *function.variables) if v.space == "shared"]
    dynamic = [v for v in shared if v.count == 0]
    offsets, size = _lay_out([v for v in shared if v.count != 0])
    if dynamic:
        align = max(16, *(v.align for v in dynamic))
        size = -(-size // align) * align
        offsets |= {v.name: size for v in dynamic}
    return offsets, size


def _place_variables(module: Module, function: Function, symbols: Mapping[str, int]) -> Places:
    own = list(function.variables)
    shared_offsets, shared_bytes = lay_out_shared(module, function)
    local_offsets, local_bytes = _lay_out([v for v in own if v.space == "local"])
    if local_bytes > LOCAL_LIMIT:
        message = (
            f"kernel {function.name} needs {local_bytes} bytes of local memory a thread; the limit is {LOCAL_LIMIT}"
        )
        raise LaunchError(message, hint="use a smaller local array")
    parameters, parameter_bytes = _lay_out(list(function.parameters))
    if any(v.space == "param" for v in own):
        name = next(v.name for v in own if v.space == "param")
        raise UnsupportedFeature(
            f"kernel {function.name} calls a function (parameter '{name}'): calls are not supported"
        )
    return Places(
        shared_offsets, shared_bytes, local_offsets, -(-local_bytes // 16) * 16,
        parameters, parameter_bytes, symbols,
    )  # fmt: skip
