"""Bound blocks -> registers of matrices that are touched while a multiplication of a warpgroup may still use them.

`wgmma.mma_async` reads its accumulators and the registers of A, and writes D, some time until a `wgmma.wait_group`
that covers it; what registers held before is there for it behind a `wgmma.fence` (PTX manual, 9.7.15.6 and 9.7.15.7).
Copies by `mov` are no use yet: compilers put them between multiplications, and assemblers take them out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from triptych.gpu.flow.graph import FlowGraph
from triptych.gpu.isa.binding import BoundInstruction, registers_of
from triptych.gpu.isa.effects import Effect

_OLDEST = 64
"""Groups committed since, from which on nobody counts any more."""


class Disorder(Enum):
    """What is wrong."""

    READ = "read"
    """D, before it is there."""
    WRITTEN = "written"
    """D or A, before they are done with."""
    UNFENCED = "unfenced"
    """D or A are written, and multiplied without a fence in between."""


@dataclass(frozen=True, slots=True)
class UnorderedProduct:
    """A register that an instruction touches too early, or too late."""

    disorder: Disorder
    register: str
    block: int
    """The instruction's."""
    place: int
    """`Instruction.place` of the instruction; of what is unfenced, the multiplication's."""
    other: int
    """The multiplication's place; of what is unfenced, that of the instruction that wrote the register."""


@dataclass(slots=True)
class _State:
    """What may be so at a place of the program."""

    pending: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """By register and place of a multiplication: the groups committed since it was issued, 0 before its own is."""
    read_only: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """Those of them that are registers of A."""
    unfenced: dict[str, int] = field(default_factory=dict[str, int])
    """By register: the place of what wrote it since the last fence."""

    def copy(self) -> _State:
        return _State(dict(self.pending), set(self.read_only), dict(self.unfenced))

    def join(self, other: _State) -> bool:
        """Takes in what may be so as well; whether that is news."""
        before = len(self.unfenced), len(self.read_only), dict(self.pending)
        for key, age in other.pending.items():
            self.pending[key] = min(age, self.pending.get(key, age))
        self.read_only |= other.read_only
        self.unfenced = {**other.unfenced, **self.unfenced}
        return before != (len(self.unfenced), len(self.read_only), self.pending)


def find_unordered_products(
    graph: FlowGraph, bound: Sequence[Sequence[BoundInstruction]]
) -> tuple[UnorderedProduct, ...]:
    """What touches registers of multiplications that may not be complete, the first register of each pair of lines."""
    products = [i for block in bound for i in block if i.effect is Effect.MULTIPLY_GROUP]
    if not products:
        return ()
    tracked = {name for product in products for name in (*product.defines, *_registers_of_a(product))}
    states: list[_State | None] = [None] * len(bound)
    states[0] = _State()
    waiting, found = [0], dict[tuple[Disorder, int, int], UnorderedProduct]()
    while waiting:
        block = waiting.pop()
        entry = states[block]
        assert entry is not None
        state = entry.copy()
        for instruction in bound[block]:
            for one in _step(state, instruction, tracked, block):
                found.setdefault((one.disorder, one.place, one.other), one)
        for following in graph.successors[block]:
            if following == graph.exit:
                continue
            known = states[following]
            if known is None:
                states[following] = state.copy()
            if known is None or known.join(state):
                waiting.append(following)
    return tuple(sorted(found.values(), key=lambda one: (one.place, one.other)))


def _registers_of_a(product: BoundInstruction) -> frozenset[str]:
    count = product.form.fragments["a"].registers if "a" in product.form.vectors else 0
    first = len(product.destinations)
    return frozenset(n for source in product.sources[first : first + count] for n in registers_of(source.operand))


def _step(
    state: _State, instruction: BoundInstruction, tracked: set[str], block: int
) -> Iterator[UnorderedProduct]:  # fmt: skip
    """What an instruction makes of a state, and what is wrong with it there."""
    match instruction.effect:
        case Effect.FENCE_PRODUCTS:
            state.unfenced.clear()
        case Effect.COMMIT_PRODUCTS:
            state.pending = {key: min(age + 1, _OLDEST) for key, age in state.pending.items()}
        case Effect.AWAIT_PRODUCTS:
            most = instruction.form.immediates[0]
            state.pending = {key: age for key, age in state.pending.items() if age <= most}
        case Effect.MULTIPLY_GROUP:
            yield from _multiply(state, instruction, block)
        case _:
            yield from _touch(state, instruction, tracked, block)


def _multiply(state: _State, product: BoundInstruction, block: int) -> Iterator[UnorderedProduct]:
    """Accumulators may be those of a multiplication before: such are done one after the other."""
    place, a = product.instruction.place, _registers_of_a(product)
    for name, issued in state.pending:
        if name in a and (name, issued) not in state.read_only:
            yield UnorderedProduct(Disorder.READ, name, block, place, issued)
    for name in sorted(product.defines | a):
        if name in state.unfenced:
            yield UnorderedProduct(Disorder.UNFENCED, name, block, place, state.unfenced.pop(name))
    for name in product.defines | a:
        state.pending[name, place] = 0
    state.read_only |= {(name, place) for name in a - product.defines}


def _touch(
    state: _State, instruction: BoundInstruction, tracked: set[str], block: int
) -> Iterator[UnorderedProduct]:  # fmt: skip
    place, copies = instruction.instruction.place, _copies_of(instruction)
    by_register: Mapping[str, list[tuple[str, int]]] = {
        name: [key for key in state.pending if key[0] == name] for name in instruction.uses | instruction.defines
    }
    for name in instruction.uses - copies.keys():
        for key in by_register[name]:
            if key not in state.read_only:
                yield UnorderedProduct(Disorder.READ, name, block, place, key[1])
    for name in instruction.defines:
        for key in by_register[name]:
            if not copies:
                yield UnorderedProduct(Disorder.WRITTEN, name, block, place, key[1])
            del state.pending[key]
        if name in tracked:
            state.unfenced[name] = place
    for source, targets in copies.items():
        for target in targets:
            for _, issued in by_register[source]:
                state.pending[target, issued] = state.pending.get((source, issued), 0)
            if source in tracked and source not in state.unfenced:
                state.unfenced.pop(target, None)


def _copies_of(instruction: BoundInstruction) -> Mapping[str, frozenset[str]]:
    """The registers that a `mov` copies, puts together or takes apart, and what becomes of each."""
    if instruction.form.row.mnemonic != "mov":
        return {}
    return dict.fromkeys(instruction.uses, instruction.defines)
