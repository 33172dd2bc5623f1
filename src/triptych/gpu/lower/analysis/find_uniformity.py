"""BoundInstructions -> how each register varies over the lanes of a warp, by running the meanings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.lower.analysis.uniformity import (
    UNIFORM,
    VARYING,
    Uniformity,
    UniformityMachine,
    find_special_uniformity,
    join,
    mix,
)
from triptych.gpu.syntax.ast import Address, Integer, Not, Operand, Register, Vector


class _Finder:
    """What registers are, by iteration from the instructions' meanings."""

    def __init__(
        self, declared: Mapping[str, str], warps_in_rows: bool, varying: frozenset[str], single: frozenset[str]
    ) -> None:
        self.declared = declared
        self.specials = find_special_uniformity(warps_in_rows=warps_in_rows)
        self.varying = varying
        self.single = single
        self.found: dict[str, Uniformity] = {}
        self.machine: Any = UniformityMachine()

    def uniformity_of(self, operand: Operand) -> Uniformity:
        match operand:
            case Register(name):
                if name not in self.declared:
                    return self.specials[name]
                if name in self.varying:
                    return VARYING
                # A constant is not followed through a register: generated code does not know it there.
                return Uniformity(self.found.get(name, UNIFORM).stride)
            case Not(inner):
                return mix(self.uniformity_of(inner))
            case Address(base, offset):
                whole = self.uniformity_of(base)
                return Uniformity(whole.stride) if offset else whole
            case Integer(number):
                return Uniformity(0, number)
            case Vector(elements):
                return mix(*(self.uniformity_of(e) for e in elements))
            case _:
                return UNIFORM

    def visit(self, instruction: BoundInstruction) -> list[str]:
        """Joins an instruction's results into its destinations; gives those that changed."""
        if not instruction.destinations:
            return []
        if not instruction.effect.has_meaning:  # of a reduction or a call, lanes that do not take part get nothing
            names = (name for bound in instruction.destinations for name in _targets(bound))
            return [name for name in names if self._join(name, VARYING)]
        sources = [self.uniformity_of(bound.operand) for bound in instruction.sources]
        result = instruction.form.row.meaning(self.machine, instruction.form, *sources)
        results: Sequence[Uniformity] = (result,) if isinstance(result, Uniformity) else tuple(result)
        guard = instruction.instruction.guard
        changed: list[str] = []
        for bound, value in zip(instruction.destinations, results, strict=False):
            for name in _targets(bound):
                kept = value if isinstance(bound.operand, Register) else mix(value)
                if guard is not None:
                    kept = mix(kept, self.found.get(name, UNIFORM), self.found.get(guard.register.name, UNIFORM))
                if self._join(name, kept):
                    changed.append(name)
        return changed

    def _join(self, name: str, value: Uniformity) -> bool:
        new = join(self.found.get(name), value)
        if name in self.varying or (new.stride and name not in self.single):
            new = VARYING
        changed = new != self.found.get(name)
        self.found[name] = new
        return changed


def _targets(bound: Bound) -> Sequence[str]:
    match bound.operand:
        case Register(name):
            return (name,)
        case Vector(elements):
            return tuple(e.name for e in elements if isinstance(e, Register))
        case _:
            return ()


def find_uniformity(
    blocks: Sequence[Sequence[BoundInstruction]],
    declared: Mapping[str, str],
    *,
    warps_in_rows: bool,
    varying: frozenset[str] = frozenset(),
) -> Mapping[str, Uniformity]:
    """What each register is, were the warp never to part.

    Registers with several definitions are never affine; those of `varying` are held as vectors for other reasons.
    """
    definitions = Counter(name for block in blocks for instruction in block for name in instruction.defines)
    single = frozenset(name for name, count in definitions.items() if count == 1)
    finder = _Finder(declared, warps_in_rows, varying, single)
    instructions = [instruction for block in blocks for instruction in block]
    followers: dict[str, list[int]] = {}
    for place, instruction in enumerate(instructions):
        kept = instruction.defines if instruction.instruction.guard is not None else frozenset[str]()
        for name in instruction.uses | kept:
            followers.setdefault(name, []).append(place)
    waiting = [True] * len(instructions)
    while any(waiting):  # in rounds, of those alone for which something has changed since they were visited
        for place, instruction in enumerate(instructions):
            if waiting[place]:
                waiting[place] = False
                for name in finder.visit(instruction):
                    for follower in followers.get(name, ()):
                        waiting[follower] = True
    never_written = {name: UNIFORM for name in declared if name not in finder.found}
    return finder.found | never_written
