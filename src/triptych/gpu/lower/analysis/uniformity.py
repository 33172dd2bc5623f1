"""How a value varies over the lanes of a warp, and what each primitive makes of it.

A value is *uniform* (one for all lanes), *affine* (base + lane · stride, the base being uniform) or *varying*.
`UniformityMachine` fulfils `Machine`, so that what registers are follows from the instruction table itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.asynchronous.mbarrier_object import elements_of, is_one_answer
from triptych.gpu.isa.spaces import Space
from triptych.gpu.isa.special_registers import SPECIALS, Varies
from triptych.gpu.isa.tensor.fragments import Product
from triptych.gpu.isa.tensor.matrix_descriptors import GroupProduct
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.tensor_map import TensorCopy


@dataclass(frozen=True, slots=True)
class Uniformity:
    """`stride` is 0 for a uniform value, None for a varying one; `constant` is the value itself where it is known."""

    stride: int | None
    constant: int | None = None


UNIFORM = Uniformity(0)
VARYING = Uniformity(None)


class UniformityMachine:
    """Fulfils `Machine`: every primitive has its rule; the last ones share theirs."""

    def constant(self, t: ScalarType, value: int | float) -> Uniformity:
        """A constant is uniform."""
        return Uniformity(0, int(value)) if isinstance(value, int) else UNIFORM

    def add(self, t: ScalarType, a: Uniformity, b: Uniformity) -> Uniformity:
        """Strides add."""
        return VARYING if a.stride is None or b.stride is None else _known(t, a.stride + b.stride)

    def sub(self, t: ScalarType, a: Uniformity, b: Uniformity) -> Uniformity:
        """Strides subtract."""
        return VARYING if a.stride is None or b.stride is None else _known(t, a.stride - b.stride)

    def mul(self, t: ScalarType, a: Uniformity, b: Uniformity) -> Uniformity:
        """A stride times a known factor."""
        if a.stride == 0 and b.stride == 0:
            return UNIFORM
        for value, factor in ((a, b), (b, a)):
            if value.stride is not None and factor.constant is not None:
                return _known(t, value.stride * factor.constant)
        return VARYING

    def shift_left(self, t: ScalarType, a: Uniformity, amount: Uniformity) -> Uniformity:
        """As a multiplication by a power of two."""
        if a.stride and amount.constant is not None:
            return _known(t, a.stride << amount.constant)
        return mix(a, amount)

    def select(self, t: ScalarType, condition: Uniformity, a: Uniformity, b: Uniformity) -> Uniformity:
        """Known conditions pick; else all must be uniform."""
        if condition.constant is not None:
            return a if condition.constant else b
        return mix(condition, a, b)

    def compare(self, t: ScalarType, relation: str, a: Uniformity, b: Uniformity) -> Uniformity:
        """Known operands give a known truth (that is how constant shift amounts stay known)."""
        if relation == "lt" and a.constant is not None and b.constant is not None and a.constant >= 0:
            return Uniformity(0, int(a.constant < b.constant))
        return mix(a, b)

    def resize(self, source: ScalarType, target: ScalarType, a: Uniformity) -> Uniformity:
        """A narrower or equal width keeps the stride; a wider one only a known constant."""
        if target.bits <= source.bits or a.constant is not None:
            return a
        return mix(a)

    def bitcast(self, source: ScalarType, target: ScalarType, a: Uniformity) -> Uniformity:
        """The same bits; an affine integer is nothing of the kind as a float."""
        return mix(a) if source.is_float or target.is_float else a

    def load(self, space: Space, t: ScalarType, address: Uniformity, count: int) -> Sequence[Uniformity]:
        """Uniform at a uniform address where the space promises that; what else is loaded may vary."""
        uniform = space.uniform_at_uniform_address and address.stride == 0
        return [UNIFORM if uniform else VARYING] * count

    def load_matrix(self, address: Uniformity, count: int, transposed: bool) -> Sequence[Uniformity]:
        """Anything."""
        return [VARYING] * count

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Uniformity, operands: Sequence[Uniformity]
    ) -> Sequence[Uniformity]:
        """Anything, unless all lanes only look at one place."""
        one = is_one_answer(operation, (a.stride == 0 for a in (address, *operands)))
        return [UNIFORM if one else VARYING] * elements_of(operation, len(operands))

    def shuffle(self, t: ScalarType, a: Uniformity, source_lane: Uniformity) -> Uniformity:
        """Anything, unless all lanes hold the same."""
        return UNIFORM if a.stride == 0 else VARYING

    def exchange(self, t: ScalarType, a: Uniformity, source_lane: Uniformity, mask: Uniformity) -> Uniformity:
        """Anything, unless all lanes read the same lane: which of them take part may differ."""
        return mix(a, source_lane, mask)

    def reduce(self, t: ScalarType, operation: str, a: Uniformity, mask: Uniformity) -> Uniformity:
        """The same in all lanes of one mask."""
        return mix(mask)

    def store_matrix(self, address: Uniformity, matrices: Sequence[Uniformity], transposed: bool) -> None:
        """No value."""

    def multiply_matrices(self, product: Product, registers: Sequence[Uniformity]) -> Sequence[Uniformity]:
        """Anything."""
        return [VARYING] * product.d.registers

    def multiply_group(
        self, product: GroupProduct, sums: Sequence[Uniformity], a: Sequence[Uniformity], b: Uniformity,
        keeps: Uniformity,
    ) -> Sequence[Uniformity]:  # fmt: skip
        """Anything."""
        return [VARYING] * product.warp.d.registers

    def lane_index(self) -> Uniformity:
        """0, 1, 2 …"""
        return Uniformity(1)

    def block_rank(self) -> Uniformity:
        """The same in all lanes."""
        return UNIFORM

    def stack_bounds(self) -> tuple[Uniformity, Uniformity]:
        """The same in all lanes."""
        return UNIFORM, UNIFORM

    def fence(self) -> None:
        """No value."""

    def active_mask(self) -> Uniformity:
        """The same in all lanes."""
        return UNIFORM

    def ballot(self, predicate: Uniformity) -> Uniformity:
        """The same in all lanes."""
        return UNIFORM

    def store(self, space: Space, t: ScalarType, address: Uniformity, values: Sequence[Uniformity]) -> None:
        """No value."""

    def copy_bulk(
        self, copy: BulkCopy, target: Uniformity, source: Uniformity, size: Uniformity, barrier: Uniformity,
        blocks: Uniformity,
    ) -> None:  # fmt: skip
        """No value."""

    def complete(self, barrier: Uniformity, amount: Uniformity) -> None:
        """No value."""

    def copy_tensor(
        self,
        copy: TensorCopy,
        tensor_map: Uniformity,
        coordinates: Sequence[Uniformity],
        shared: Uniformity,
        offsets: Sequence[Uniformity],
        barrier: Uniformity | None,
        blocks: Uniformity | None,
    ) -> None:
        """No value."""

    def copy_tensor_map(self, target: Uniformity, source: Uniformity) -> None:
        """No value."""

    def move_address(self, address: Uniformity, distance: int) -> Uniformity:
        """As it was."""
        return Uniformity(address.stride)

    def copy_to_shared(self, size: int, target: Uniformity, source: Uniformity, source_size: Uniformity) -> None:
        """No value."""

    def _lane_by_lane(self, *operands: Uniformity | ScalarType | str) -> Uniformity:
        """Each lane's result comes from its own operands: uniform ones give a uniform result, others any."""
        return mix(*(a for a in operands if isinstance(a, Uniformity)))

    divide = remainder = bit_and = bit_or = bit_xor = shift_right = _lane_by_lane
    count_ones = count_leading_zeros = reverse_bits = _lane_by_lane
    float_add = float_sub = float_mul = float_div = fma = square_root = round_integral = _lane_by_lane
    float_directed = resize_float = float_to_integer = integer_to_float = _lane_by_lane
    float_negate = float_magnitude = flush = canonical = _lane_by_lane


def _known(t: ScalarType, stride: int) -> Uniformity:
    size = 1 << t.bits
    stride %= size
    return Uniformity(stride - size if stride >= size // 2 else stride)


def mix(*values: Uniformity) -> Uniformity:
    """What an operation lane by lane makes of these."""
    return UNIFORM if all(value.stride == 0 for value in values) else VARYING


def join(a: Uniformity | None, b: Uniformity) -> Uniformity:
    """What two definitions of a register have in common."""
    if a is None or a == b:
        return b
    return Uniformity(a.stride) if a.stride == b.stride else VARYING


_VARIATIONS: Mapping[Varies, tuple[Uniformity, Uniformity]] = {
    Varies.UNIFORM: (UNIFORM, UNIFORM),
    Varies.ROW: (UNIFORM, VARYING),
    Varies.ALONG_ROW: (Uniformity(1), VARYING),
    Varies.BY_LANE: (Uniformity(1), Uniformity(1)),
    Varies.LANE: (VARYING, VARYING),
    Varies.CLOCK: (VARYING, VARYING),
}
"""Where a warp's threads lie in one row of the block, in order, and where they need not."""


def find_special_uniformity(*, warps_in_rows: bool) -> Mapping[str, Uniformity]:
    """What each special register is; `warps_in_rows`: a warp's threads lie in one row of the block, in order."""
    return {name: _VARIATIONS[special.varies][0 if warps_in_rows else 1] for name, special in SPECIALS.items()}
