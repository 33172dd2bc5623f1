"""The instruction table's primitives over arrays of 32 lanes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS, TRANSACT
from triptych.gpu.isa.spaces import GLOBAL, SHARED, Space
from triptych.gpu.isa.tensor.fragments import Product
from triptych.gpu.isa.tensor.matrix_descriptors import GroupProduct
from triptych.gpu.isa.types import F32, F64, PRED, TYPES, U64, ScalarType
from triptych.gpu.oracle.memory import WarpMemory
from triptych.gpu.oracle.nan import hardware_nan
from triptych.gpu.oracle.rounding import directed, fused_multiply_add
from triptych.gpu.oracle.tensor import multiply
from triptych.gpu.oracle.tensor_copy import Request, perform
from triptych.gpu.oracle.values import (
    LANES,
    Lanes,
    Mask,
    filled,
    from_numbers,
    lane_dtype,
    numbers,
    resize,
    signed,
)
from triptych.gpu.oracle.wgmma import multiply_group
from triptych.gpu.tensor_map import TensorCopy

_RELATIONS: Mapping[str, Callable[[Lanes, Lanes], Lanes]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_REDUCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "min": min, "max": max,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
_ROUNDINGS: Mapping[str, Callable[[Lanes], Lanes]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


_SMALLEST_NORMAL = 2.0**-126
"""Of f32."""


class NumpyMachine:
    """Fulfils `Machine`. The interpreter sets, before each instruction, which lanes are active."""

    def __init__(self, memory: WarpMemory, warp: tuple[int, int]) -> None:
        """Loads and stores go to `memory`; `warp` is the warp's number in its block, and how many there are."""
        self.memory = memory
        self.warp = warp
        self.active: Mask = np.ones(LANES, np.bool_)
        self.stack_start = 0

    # Integers ---------------------------------------------------------------------------------------------------

    def constant(self, t: ScalarType, value: int | float) -> Lanes:
        """See `Machine`."""
        if t.name in ("f32", "f64"):
            number = np.full(LANES, value, np.float64).astype(lane_dtype(t))
            return hardware_nan(t, number, number)
        return filled(t, int(value))

    def add(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return a + b

    def sub(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return a - b

    def mul(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return a * b

    def divide(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        pairs = zip(numbers(t, a), numbers(t, b), strict=True)
        return from_numbers(t, [_quotient(x, y) if y else -1 for x, y in pairs])

    def remainder(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        pairs = zip(numbers(t, a), numbers(t, b), strict=True)
        return from_numbers(t, [x - y * _quotient(x, y) if y else -1 for x, y in pairs])

    def bit_and(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return a & b

    def bit_or(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return a | b

    def bit_xor(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return a ^ b

    def shift_left(self, t: ScalarType, a: Lanes, amount: Lanes) -> Lanes:
        """See `Machine`; a meaning that shifts by the width or more is an error of the table."""
        assert bool((amount < t.bits).all()), "a shift by the width or more is undefined"
        return a << amount

    def shift_right(self, t: ScalarType, a: Lanes, amount: Lanes) -> Lanes:
        """See `Machine`; a meaning that shifts by the width or more is an error of the table."""
        assert bool((amount < t.bits).all()), "a shift by the width or more is undefined"
        if not t.is_signed:
            return a >> amount
        return (a.view(signed(t.bits)) >> amount.view(signed(t.bits))).view(a.dtype)

    def count_ones(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return from_numbers(t, [value.bit_count() for value in a.tolist()])

    def count_leading_zeros(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return from_numbers(t, [t.bits - value.bit_length() for value in a.tolist()])

    def reverse_bits(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return from_numbers(t, [int(f"{value:0{t.bits}b}"[::-1], 2) for value in a.tolist()])

    def resize(self, source: ScalarType, target: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return resize(a, source, target.bits)

    # Comparison and selection -----------------------------------------------------------------------------------

    def compare(self, t: ScalarType, relation: str, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        if t.name in ("f32", "f64"):
            ordered = ~(np.isnan(a) | np.isnan(b))
            if relation in ("num", "nan"):
                return ordered if relation == "num" else ~ordered
            return _RELATIONS[relation](a, b) & ordered
        if t.is_signed:
            a, b = a.view(signed(t.bits)), b.view(signed(t.bits))
        return _RELATIONS[relation](a, b)

    def select(self, t: ScalarType, condition: Lanes, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return np.where(condition, a, b)

    # Floating point ---------------------------------------------------------------------------------------------

    def float_add(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, a + b, b, a)

    def float_sub(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, a - b, b, a)

    def float_mul(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, a * b, b, a)

    def float_div(self, t: ScalarType, a: Lanes, b: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, a / b, a, b)

    def fma(self, t: ScalarType, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, fused_multiply_add(t, a, b, c), b, c, a)

    def square_root(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, np.sqrt(a), a)

    def float_negate(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, -a, a)

    def float_magnitude(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, np.abs(a), a)

    def flush(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return np.where(np.abs(a) < _SMALLEST_NORMAL, np.copysign(np.zeros_like(a), a), a)

    def canonical(self, t: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, a) if t is F32 else a

    def float_directed(self, t: ScalarType, operation: str, mode: str, *operands: Lanes) -> Lanes:
        """See `Machine`."""
        order = operands if operation == "div" else (*operands[1:], operands[0])
        return hardware_nan(t, directed(t, operation, mode, operands), *order)

    def round_integral(self, t: ScalarType, mode: str, a: Lanes) -> Lanes:
        """See `Machine`."""
        return hardware_nan(t, _ROUNDINGS[mode](a), a)

    def resize_float(self, source: ScalarType, target: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        number: Lanes = a.view(np.float16) if source.bits == 16 else a
        result = number.astype(np.dtype(f"f{target.bits // 8}"))
        if target is F64:  # numpy keeps a signalling NaN of f16
            return hardware_nan(F64, result, result)
        return hardware_nan(F32, result) if source.bits == 16 else result.view(lane_dtype(target))

    def float_to_integer(self, source: ScalarType, target: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        low = -(1 << (target.bits - 1)) if target.is_signed else 0
        high = low + (1 << target.bits) - 1
        return from_numbers(target, [_clamped(value, low, high) for value in a.tolist()])

    def integer_to_float(self, source: ScalarType, target: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        number = a.view(signed(source.bits)) if source.is_signed else a
        return number.astype(lane_dtype(target))

    def bitcast(self, source: ScalarType, target: ScalarType, a: Lanes) -> Lanes:
        """See `Machine`."""
        return a.view(lane_dtype(target))

    # Memory -----------------------------------------------------------------------------------------------------

    def load(self, space: Space, t: ScalarType, address: Lanes, count: int) -> Sequence[Lanes]:
        """See `Machine`."""
        return self.memory.load(space, t, address, count, self.active)

    def store(self, space: Space, t: ScalarType, address: Lanes, values: Sequence[Lanes]) -> None:
        """See `Machine`."""
        self.memory.store(space, t, address, values, self.active)

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Lanes, operands: Sequence[Lanes]
    ) -> Sequence[Lanes]:
        """See `Machine`."""
        change = self._change(operation) if operation in OPERATIONS else None
        return self.memory.atomic(space, operation, t, address, operands, self.active, change)

    def _change(self, operation: str) -> Callable[..., tuple[int, int]]:
        """An operation on an mbarrier, over one lane's numbers."""

        def change(*bits: int) -> tuple[int, int]:
            new, fault = OPERATIONS[operation].change(self, *(filled(U64, number) for number in bits))
            return int(new[0]), int(fault[0])

        return change

    def copy_to_shared(self, size: int, target: Lanes, source: Lanes, source_size: Lanes) -> None:
        """See `Machine`."""
        self.memory.copy_to_shared(size, target, source, source_size, self.active)

    def copy_bulk(
        self, copy: BulkCopy, target: Lanes, source: Lanes, size: Lanes, barrier: Lanes, blocks: Lanes
    ) -> None:
        """See `Machine`."""
        requests = zip(*(lanes.tolist() for lanes in (target, source, size, barrier, blocks)), strict=True)
        for lane, (to, at, amount, object_, mask) in enumerate(requests):
            if self.active[lane]:
                self._copy_bulk(copy, lane, (to, at, amount), object_, mask)

    def _copy_bulk(self, copy: BulkCopy, lane: int, places: tuple[int, int, int], barrier: int, mask: int) -> None:
        target, source, size = places
        ranks = [rank for rank in range(32) if mask >> rank & 1]
        low = (1 << RANK_SHIFT) - 1

        def mapped(address: int) -> list[int]:
            return [address & low | rank + 1 << RANK_SHIFT for rank in ranks] if copy.multicast else [address]

        self.memory.copy_bulk(copy, lane, mapped(target), source, size)
        for address in mapped(barrier) if copy.signals else ():
            self.memory.complete(lane, address, size, self._change(TRANSACT))

    def copy_tensor(
        self,
        copy: TensorCopy,
        tensor_map: Lanes,
        coordinates: Sequence[Lanes],
        shared: Lanes,
        offsets: Sequence[Lanes],
        barrier: Lanes | None,
        blocks: Lanes | None,
    ) -> None:
        """See `Machine`."""
        for lane in np.flatnonzero(self.active).tolist():
            x = tuple(int(coordinate.view(np.int32)[lane]) for coordinate in coordinates)
            steps = tuple(int(offset[lane]) for offset in offsets)
            mask = 0 if blocks is None else int(blocks[lane])
            request = Request(copy, lane, int(tensor_map[lane]), x, int(shared[lane]), steps, mask)
            perform(self.memory, request, None if barrier is None else int(barrier[lane]), self._complete)

    def _complete(self, lane: int, address: int, amount: int) -> None:
        self.memory.complete(lane, address, amount, self._change(TRANSACT))

    def copy_tensor_map(self, target: Lanes, source: Lanes) -> None:
        """See `Machine`."""
        word, apart = TYPES["u32"], np.arange(LANES, dtype=np.uint64) * np.uint64(4)
        words = self.memory.load(SHARED, word, source + apart, 1, self.active)
        self.memory.store(GLOBAL, word, target + apart, words, self.active)

    def move_address(self, address: Lanes, distance: int) -> Lanes:
        """See `Machine`."""
        return address + np.uint64(distance)

    def complete(self, barrier: Lanes, amount: Lanes) -> None:
        """See `Machine`."""
        for lane in np.flatnonzero(self.active).tolist():
            self.memory.complete(lane, int(barrier[lane]), int(amount[lane]), self._change(TRANSACT))

    def load_matrix(self, address: Lanes, count: int, transposed: bool) -> Sequence[Lanes]:
        """See `Machine`."""
        return self.memory.load_matrix(address, count, transposed, self.active)

    def store_matrix(self, address: Lanes, matrices: Sequence[Lanes], transposed: bool) -> None:
        """See `Machine`."""
        self.memory.store_matrix(address, matrices, transposed, self.active)

    # The warp ---------------------------------------------------------------------------------------------------

    def lane_index(self) -> Lanes:
        """See `Machine`."""
        return np.arange(LANES, dtype=np.uint32)

    def block_rank(self) -> Lanes:
        """See `Machine`."""
        return np.full(LANES, self.memory.cluster.rank, np.uint32)

    def stack_bounds(self) -> tuple[Lanes, Lanes]:
        """See `Machine`."""
        return filled(U64, self.stack_start), filled(U64, self.memory.local.shape[1])

    def fence(self) -> None:
        """See `Machine`; one thread runs all."""

    def active_mask(self) -> Lanes:
        """See `Machine`."""
        return self.ballot(self.constant(PRED, 1))

    def shuffle(self, t: ScalarType, a: Lanes, source_lane: Lanes) -> Lanes:
        """See `Machine`."""
        return a[source_lane]

    def exchange(self, t: ScalarType, a: Lanes, source_lane: Lanes, mask: Lanes) -> Lanes:
        """See `Machine`."""
        return np.where(self.active[source_lane], a[source_lane], np.zeros_like(a))

    def reduce(self, t: ScalarType, operation: str, a: Lanes, mask: Lanes) -> Lanes:
        """See `Machine`."""
        values, combine = numbers(t, a), _REDUCTIONS[operation]
        groups = ([lane for lane in range(LANES) if named >> lane & 1 and self.active[lane]] for named in mask.tolist())
        return from_numbers(t, [reduce(combine, [values[lane] for lane in lanes]) if lanes else 0 for lanes in groups])

    def multiply_matrices(self, product: Product, registers: Sequence[Lanes]) -> Sequence[Lanes]:
        """See `Machine`."""
        return multiply(product, registers)

    def multiply_group(
        self, product: GroupProduct, sums: Sequence[Lanes], a: Sequence[Lanes], b: Lanes, keeps: Lanes
    ) -> Sequence[Lanes]:
        """See `Machine`."""
        return multiply_group(self.memory, product, self.warp, (sums, a, b, keeps)) if self.active.any() else sums

    def ballot(self, predicate: Lanes) -> Lanes:
        """See `Machine`."""
        bits = sum(1 << lane for lane in range(LANES) if predicate[lane] and self.active[lane])
        return np.full(LANES, bits, np.uint32)


def _quotient(a: int, b: int) -> int:
    """a / b towards zero."""
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def _clamped(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)
