"""BoundInstructions -> the registers in which all NaN are alike, by running the meanings over what an f32 may be.

The hardware's f32 arithmetic makes one NaN, the canonical one; the processor's keeps what came in. Generated code
leaves such results as they are (*loose*) until their bits matter: a store, an integer operation, a shuffle. A register
may be held so if every definition of it is such a result, or a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.asynchronous.mbarrier_object import elements_of
from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.isa.spaces import Space
from triptych.gpu.isa.tensor.fragments import Product
from triptych.gpu.isa.tensor.matrix_descriptors import GroupProduct
from triptych.gpu.isa.types import F32, F64, TYPES, ScalarType, literal_number
from triptych.gpu.lower.primitives.values import CANONICAL
from triptych.gpu.syntax.ast import FloatBits, Integer, Operand, Register, Vector
from triptych.gpu.tensor_map import TensorCopy

_INFINITY = 0x7F80_0000


class Nan(IntEnum):
    """Which NaN 32 bits may be, read as f32; the greater says less."""

    NONE = 0
    CANONICAL = 1
    """The canonical one."""
    LOOSE = 2
    """Any, each standing for the canonical one."""
    EXACT = 3
    """Any, and its bits are the hardware's."""


class NanMachine:
    """Fulfils `Machine`."""

    def constant(self, t: ScalarType, value: int | float) -> Nan:
        """By its bits, or as a number."""
        if isinstance(value, float):
            return Nan.LOOSE if math.isnan(value) else Nan.NONE
        return _of_bits(value)

    def select(self, t: ScalarType, condition: Nan, a: Nan, b: Nan) -> Nan:
        """Either."""
        return max(a, b)

    def bitcast(self, source: ScalarType, target: ScalarType, a: Nan) -> Nan:
        """The same bits."""
        return a

    def flush(self, t: ScalarType, a: Nan) -> Nan:
        """NaN stays."""
        return a

    def canonical(self, t: ScalarType, a: Nan) -> Nan:
        """The canonical one."""
        return Nan.LOOSE if t is F32 else Nan.EXACT

    def resize_float(self, source: ScalarType, target: ScalarType, a: Nan) -> Nan:
        """From f16 NaN becomes the canonical one."""
        return Nan.LOOSE if source.bits == 16 and target is F32 else Nan.EXACT

    def integer_to_float(self, source: ScalarType, target: ScalarType, a: Nan) -> Nan:
        """A number."""
        return Nan.NONE

    def load(self, space: Space, t: ScalarType, address: Nan, count: int) -> Sequence[Nan]:
        """Anything."""
        return [Nan.EXACT] * count

    def copy_bulk(self, copy: BulkCopy, target: Nan, source: Nan, size: Nan, barrier: Nan, blocks: Nan) -> None:
        """No value."""

    def complete(self, barrier: Nan, amount: Nan) -> None:
        """No value."""

    def load_matrix(self, address: Nan, count: int, transposed: bool) -> Sequence[Nan]:
        """Anything."""
        return [Nan.EXACT] * count

    def store_matrix(self, address: Nan, matrices: Sequence[Nan], transposed: bool) -> None:
        """No value."""

    def multiply_matrices(self, product: Product, registers: Sequence[Nan]) -> Sequence[Nan]:
        """Of f32, the canonical one; of other sums any bits."""
        return [Nan.CANONICAL if product.d.element is F32 else Nan.EXACT] * product.d.registers

    def multiply_group(
        self, product: GroupProduct, sums: Sequence[Nan], a: Sequence[Nan], b: Nan, keeps: Nan
    ) -> Sequence[Nan]:
        """The hardware's."""
        return [Nan.EXACT] * product.warp.d.registers

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Nan, operands: Sequence[Nan]
    ) -> Sequence[Nan]:
        """Anything."""
        return [Nan.EXACT] * elements_of(operation, len(operands))

    def store(self, space: Space, t: ScalarType, address: Nan, values: Sequence[Nan]) -> None:
        """No value."""

    def copy_tensor(
        self,
        copy: TensorCopy,
        tensor_map: Nan,
        coordinates: Sequence[Nan],
        shared: Nan,
        offsets: Sequence[Nan],
        barrier: Nan | None,
        blocks: Nan | None,
    ) -> None:
        """No value."""

    def copy_tensor_map(self, target: Nan, source: Nan) -> None:
        """No value."""

    def move_address(self, address: Nan, distance: int) -> Nan:
        """Any bits."""
        return Nan.EXACT

    def copy_to_shared(self, size: int, target: Nan, source: Nan, source_size: Nan) -> None:
        """No value."""

    def stack_bounds(self) -> tuple[Nan, Nan]:
        """Any bits."""
        return Nan.EXACT, Nan.EXACT

    def fence(self) -> None:
        """No value."""

    def _arithmetic(self, t: ScalarType, *operands: Nan | str) -> Nan:
        """Of f32, the canonical one."""
        return Nan.LOOSE if t is F32 else Nan.EXACT

    def _bits(self, *operands: Nan | ScalarType | str) -> Nan:
        """Any bits."""
        return Nan.EXACT

    float_add = float_sub = float_mul = float_div = fma = square_root = float_directed = _arithmetic
    float_negate = float_magnitude = round_integral = _arithmetic
    add = sub = mul = divide = remainder = bit_and = bit_or = bit_xor = shift_left = shift_right = _bits
    count_ones = count_leading_zeros = reverse_bits = resize = compare = float_to_integer = _bits
    lane_index = block_rank = active_mask = shuffle = exchange = reduce = ballot = _bits


def _of_bits(bits: int) -> Nan:
    bits &= 0xFFFF_FFFF
    if bits & 0x7FFF_FFFF <= _INFINITY:
        return Nan.NONE
    return Nan.LOOSE if bits == CANONICAL else Nan.EXACT


def _of_operand(operand: Operand, declared: Mapping[str, str], found: Mapping[str, Nan]) -> Nan:
    match operand:
        case Register(name) if name in declared:
            return found.get(name, Nan.NONE) if _is_word(declared[name]) else Nan.EXACT
        case Integer(number):
            return _of_bits(number)
        case FloatBits(bits, width):
            return _of_bits(bits) if width == 32 else Nan.EXACT if literal_number(bits, F64) is None else Nan.NONE
        case _:
            return Nan.EXACT


def _is_word(name: str) -> bool:
    return name in TYPES and TYPES[name].bits == 32


def _results(instruction: BoundInstruction, declared: Mapping[str, str], found: Mapping[str, Nan]) -> Sequence[Nan]:
    """What an instruction's destinations become; integers are not looked into."""
    targets = instruction.destinations
    if not instruction.effect.has_meaning or not any(_may_be_single(bound) for bound in targets):
        return [Nan.EXACT] * len(targets)
    machine: Any = NanMachine()
    sources = [_of_operand(bound.operand, declared, found) for bound in instruction.sources]
    result = instruction.form.row.meaning(machine, instruction.form, *sources)
    results: Sequence[Nan] = (result,) if isinstance(result, Nan) else tuple(result)
    return [kind if _may_be_single(b) else Nan.EXACT for b, kind in zip(targets, results, strict=False)]


def _may_be_single(bound: Bound) -> bool:
    return bound.type.bits == 32 and (bound.type is F32 or bound.type.kind == "bits")


def _names(operand: Operand) -> Sequence[str]:
    match operand:
        case Register(name):
            return (name,)
        case Vector(elements):
            return tuple(e.name for e in elements if isinstance(e, Register))
        case _:
            return ()


def find_nan_kinds(blocks: Sequence[Sequence[BoundInstruction]], declared: Mapping[str, str]) -> Mapping[str, Nan]:
    """Which NaN each register that is written may hold."""
    found: dict[str, Nan] = {}
    instructions = [i for block in blocks for i in block if i.destinations]
    changed = True
    while changed:
        changed = False
        for instruction in instructions:
            kinds = _results(instruction, declared, found)
            for bound, kind in zip(instruction.destinations, kinds, strict=False):
                for name in _names(bound.operand):
                    whole = kind if isinstance(bound.operand, Register) and _is_word(declared[name]) else Nan.EXACT
                    if whole > found.get(name, Nan.NONE):
                        found[name] = whole
                        changed = True
    return found


def find_loose_registers(kinds: Mapping[str, Nan]) -> frozenset[str]:
    """The registers that may hold results of f32 arithmetic as the processor gives them."""
    return frozenset(name for name, kind in kinds.items() if kind is Nan.LOOSE)
