"""How a value varies over the lanes of a warp: found before code is made, by running the meanings over shapes.

A shape is `UNIFORM` (one value for all lanes), an `Affine` (base + lane · stride, the base being uniform) or `VARYING`.
`ShapeMachine` fulfils `Machine`, so that the shapes of registers follow from the instruction table itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.isa.table import Effect
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.syntax.ast import Address, Integer, Not, Operand, Register, Vector


@dataclass(frozen=True, slots=True)
class Shape:
    """`stride` is None for `VARYING`; `constant` is the value itself where it is known."""

    stride: int | None
    constant: int | None = None


UNIFORM = Shape(0)
VARYING = Shape(None)


class ShapeMachine:
    """Fulfils `Machine` over shapes: only the primitives that keep an affine value affine are written out."""

    def constant(self, t: ScalarType, value: int | float) -> Shape:
        """A constant is uniform."""
        return Shape(0, int(value)) if isinstance(value, int) else UNIFORM

    def add(self, t: ScalarType, a: Shape, b: Shape) -> Shape:
        """Strides add."""
        return VARYING if a.stride is None or b.stride is None else _known(t, a.stride + b.stride)

    def sub(self, t: ScalarType, a: Shape, b: Shape) -> Shape:
        """Strides subtract."""
        return VARYING if a.stride is None or b.stride is None else _known(t, a.stride - b.stride)

    def mul(self, t: ScalarType, a: Shape, b: Shape) -> Shape:
        """A stride times a known factor."""
        if a.stride == 0 and b.stride == 0:
            return UNIFORM
        for value, factor in ((a, b), (b, a)):
            if value.stride is not None and factor.constant is not None:
                return _known(t, value.stride * factor.constant)
        return VARYING

    def shift_left(self, t: ScalarType, a: Shape, amount: Shape) -> Shape:
        """As a multiplication by a power of two."""
        if a.stride and amount.constant is not None:
            return _known(t, a.stride << amount.constant)
        return _mix(a, amount)

    def select(self, t: ScalarType, condition: Shape, a: Shape, b: Shape) -> Shape:
        """Known conditions pick; else all must be uniform."""
        if condition.constant is not None:
            return a if condition.constant else b
        return _mix(condition, a, b)

    def compare(self, t: ScalarType, relation: str, a: Shape, b: Shape) -> Shape:
        """Known operands give a known truth (that is how constant shift amounts stay known)."""
        if relation == "lt" and a.constant is not None and b.constant is not None and a.constant >= 0:
            return Shape(0, int(a.constant < b.constant))
        return _mix(a, b)

    def resize(self, source: ScalarType, target: ScalarType, a: Shape) -> Shape:
        """A narrower or equal width keeps the stride; a wider one only a known constant."""
        if target.bits <= source.bits or a.constant is not None:
            return a
        return _mix(a)

    def bitcast(self, source: ScalarType, target: ScalarType, a: Shape) -> Shape:
        """The same bits; an affine integer is nothing of the kind as a float."""
        return _mix(a) if source.is_float or target.is_float else a

    def load(self, space: str, t: ScalarType, address: Shape, count: int) -> Sequence[Shape]:
        """Parameters are uniform at a uniform address, and so is shared memory; what else is loaded may vary."""
        uniform = space in ("param", "shared") and address.stride == 0
        return [UNIFORM if uniform else VARYING] * count

    def load_matrix(self, address: Shape, count: int, transposed: bool) -> Sequence[Shape]:
        """Anything."""
        return [VARYING] * count

    def atomic(self, space: str, operation: str, t: ScalarType, address: Shape, operands: Sequence[Shape]) -> Shape:
        """Anything."""
        return VARYING

    def shuffle(self, t: ScalarType, a: Shape, source_lane: Shape) -> Shape:
        """Anything, unless all lanes hold the same."""
        return UNIFORM if a.stride == 0 else VARYING

    def lane_index(self) -> Shape:
        """0, 1, 2 …"""
        return Shape(1)

    def active_mask(self) -> Shape:
        """The same in all lanes."""
        return UNIFORM

    def ballot(self, predicate: Shape) -> Shape:
        """The same in all lanes."""
        return UNIFORM

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every other primitive: uniform operands give a uniform result."""
        return _mix_operands


def _mix_operands(*operands: object) -> Shape:
    return _mix(*(a for a in operands if isinstance(a, Shape)))


def _known(t: ScalarType, stride: int) -> Shape:
    size = 1 << t.bits
    stride %= size
    return Shape(stride - size if stride >= size // 2 else stride)


def _mix(*shapes: Shape) -> Shape:
    return UNIFORM if all(s.stride == 0 for s in shapes) else VARYING


def join(a: Shape | None, b: Shape) -> Shape:
    """What two definitions of a register have in common."""
    if a is None or a == b:
        return b
    return Shape(a.stride) if a.stride == b.stride else VARYING


def special_shape(name: str, *, rows: bool) -> Shape:
    """A special register's shape; `rows`: a warp's threads lie in one row of the block, in order."""
    if name == "%laneid" or (rows and name == "%tid.x"):
        return Shape(1)
    if name.startswith("%lanemask") or (name.startswith("%tid") and not rows):
        return VARYING
    return UNIFORM


class _Finder:
    """Register shapes by iteration from the instructions' meanings."""

    def __init__(
        self, declared: Mapping[str, str], rows: bool, varying: frozenset[str], single: frozenset[str]
    ) -> None:
        self.declared = declared
        self.rows = rows
        self.varying = varying
        self.single = single
        self.shapes: dict[str, Shape] = {}
        self.machine: Any = ShapeMachine()

    def shape_of(self, operand: Operand) -> Shape:
        match operand:
            case Register(name):
                if name not in self.declared:
                    return special_shape(name, rows=self.rows)
                if name in self.varying:
                    return VARYING
                # A constant is not followed through a register: generated code does not know it there.
                return Shape(self.shapes.get(name, UNIFORM).stride)
            case Not(inner):
                return _mix(self.shape_of(inner))
            case Address(base, offset):
                shape = self.shape_of(base)
                return Shape(shape.stride) if offset else shape
            case Integer(value):
                return Shape(0, value)
            case Vector(elements):
                return _mix(*(self.shape_of(e) for e in elements))
            case _:
                return UNIFORM

    def visit(self, instruction: BoundInstruction) -> bool:
        """Joins an instruction's results into its destinations; whether anything changed."""
        if instruction.effect in (Effect.CONTROL, Effect.BARRIER) or not instruction.destinations:
            return False
        sources = [self.shape_of(bound.operand) for bound in instruction.sources]
        result = instruction.form.row.meaning(self.machine, instruction.form, *sources)
        results: Sequence[Shape] = (result,) if isinstance(result, Shape) else tuple(result)
        guard = instruction.instruction.guard
        changed = False
        for bound, shape in zip(instruction.destinations, results, strict=False):
            for name in _targets(bound):
                kept = shape if isinstance(bound.operand, Register) else _mix(shape)
                if guard is not None:
                    kept = _mix(kept, self.shapes.get(name, UNIFORM), self.shapes.get(guard.register.name, UNIFORM))
                changed |= self._join(name, kept)
        return changed

    def _join(self, name: str, shape: Shape) -> bool:
        new = join(self.shapes.get(name), shape)
        if name in self.varying or (new.stride and name not in self.single):
            new = VARYING
        changed = new != self.shapes.get(name)
        self.shapes[name] = new
        return changed


def _targets(bound: Bound) -> Sequence[str]:
    match bound.operand:
        case Register(name):
            return (name,)
        case Vector(elements):
            return tuple(e.name for e in elements if isinstance(e, Register))
        case _:
            return ()


def find_shapes(
    blocks: Sequence[Sequence[BoundInstruction]],
    declared: Mapping[str, str],
    *,
    rows: bool,
    varying: frozenset[str] = frozenset(),
) -> Mapping[str, Shape]:
    """The shape of each register, were the warp never to part.

    Registers with several definitions are never affine; those of `varying` are held as vectors for other reasons.
    """
    definitions = Counter(name for block in blocks for instruction in block for name in instruction.defines)
    single = frozenset(name for name, count in definitions.items() if count == 1)
    finder = _Finder(declared, rows, varying, single)
    changed = True
    while changed:
        changed = sum(finder.visit(instruction) for block in blocks for instruction in block) > 0
    never_written = {name: UNIFORM for name in declared if name not in finder.shapes}
    return finder.shapes | never_written
