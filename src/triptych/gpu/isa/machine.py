"""The primitives over which every instruction's meaning is written, once. A back end is a class that fulfils them.

A value of type `t` is one number for each of the warp's 32 lanes: an integer of `t.bits` bits for integer, bit and
16-bit floating types (`f16` and `bf16` are held by their bits), an IEEE single or double for `f32` and `f64`, a truth
value for `pred`. Memory and warp primitives act on the lanes that are active at the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.spaces import Space
from triptych.gpu.isa.tensor.fragments import Product
from triptych.gpu.isa.tensor.matrix_descriptors import GroupProduct
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.tensor_map import TensorCopy

V = TypeVar("V")
PAIRED_CAS = "cas2"
"""The atomic operation that compares and swaps two neighbouring elements together."""


class Machine(Protocol[V]):
    """What a meaning may ask for. `t` is always the type of the operands, unless said otherwise."""

    # Integers, all modulo 2^bits
    def constant(self, t: ScalarType, value: int | float) -> V:
        """The same value in every lane; for `f32`/`f64` a number, else the bits."""
        ...

    def add(self, t: ScalarType, a: V, b: V) -> V:
        """a + b."""
        ...

    def sub(self, t: ScalarType, a: V, b: V) -> V:
        """a − b."""
        ...

    def mul(self, t: ScalarType, a: V, b: V) -> V:
        """The low half of a × b."""
        ...

    def divide(self, t: ScalarType, a: V, b: V) -> V:
        """a / b towards zero, signed or not by `t`; all ones where b is 0 (what the hardware gives)."""
        ...

    def remainder(self, t: ScalarType, a: V, b: V) -> V:
        """The remainder of `divide`, with the sign of a; all ones where b is 0 (what the hardware gives)."""
        ...

    def bit_and(self, t: ScalarType, a: V, b: V) -> V:
        """a & b."""
        ...

    def bit_or(self, t: ScalarType, a: V, b: V) -> V:
        """a | b."""
        ...

    def bit_xor(self, t: ScalarType, a: V, b: V) -> V:
        """a ^ b."""
        ...

    def shift_left(self, t: ScalarType, a: V, amount: V) -> V:
        """a << amount for amounts below the width (`amount` has type `t`); undefined from the width on."""
        ...

    def shift_right(self, t: ScalarType, a: V, amount: V) -> V:
        """a >> amount, arithmetic for signed `t`; undefined from the width on."""
        ...

    def count_ones(self, t: ScalarType, a: V) -> V:
        """Set bits."""
        ...

    def count_leading_zeros(self, t: ScalarType, a: V) -> V:
        """Leading zeros; the width for 0."""
        ...

    def reverse_bits(self, t: ScalarType, a: V) -> V:
        """The bits in the opposite order."""
        ...

    def resize(self, source: ScalarType, target: ScalarType, a: V) -> V:
        """An integer of another width: cut, or extended by the sign where `source` is signed."""
        ...

    # Comparison and selection
    def compare(self, t: ScalarType, relation: str, a: V, b: V) -> V:
        """A predicate: `eq ne lt le gt ge`, false for NaN but `ne` true only on ordered operands; `num`, `nan`."""
        ...

    def select(self, t: ScalarType, condition: V, a: V, b: V) -> V:
        """A where the condition holds, else b."""
        ...

    # Floating point: f32 and f64, round to nearest even.
    # Of f32 a result that is no number is the canonical NaN, 0x7fffffff, whatever came in. Of f64 a NaN among the
    # operands is kept, made quiet: b's before a's, of a division a's before b's, of a fused multiply-add b's, c's, a's;
    # where none came in it is 0xfff8000000000000. So an H200 does it (tests/hardware/test_rows.py).
    def float_add(self, t: ScalarType, a: V, b: V) -> V:
        """a + b."""
        ...

    def float_sub(self, t: ScalarType, a: V, b: V) -> V:
        """a − b."""
        ...

    def float_mul(self, t: ScalarType, a: V, b: V) -> V:
        """a × b."""
        ...

    def float_div(self, t: ScalarType, a: V, b: V) -> V:
        """a / b."""
        ...

    def fma(self, t: ScalarType, a: V, b: V, c: V) -> V:
        """a × b + c, rounded once."""
        ...

    def square_root(self, t: ScalarType, a: V) -> V:
        """√a."""
        ...

    def float_negate(self, t: ScalarType, a: V) -> V:
        """-a; of an f64 that is NaN the sign stays."""
        ...

    def float_magnitude(self, t: ScalarType, a: V) -> V:
        """|a|; of an f64 that is NaN the sign stays."""
        ...

    def flush(self, t: ScalarType, a: V) -> V:
        """A subnormal f32 as the zero of its sign; all others, NaN too, by their bits."""
        ...

    def canonical(self, t: ScalarType, a: V) -> V:
        """An f32, NaN as the canonical one; an f64 whose NaN's bits reach no result: they are left to the machine."""
        ...

    def float_directed(self, t: ScalarType, operation: str, mode: str, *operands: V) -> V:
        """`add sub mul div fma sqrt` rounded once, towards zero (`rz`), down (`rm`) or up (`rp`)."""
        ...

    def round_integral(self, t: ScalarType, mode: str, a: V) -> V:
        """To a whole number: `rni` nearest even, `rzi` towards zero, `rmi` down, `rpi` up."""
        ...

    def resize_float(self, source: ScalarType, target: ScalarType, a: V) -> V:
        """Between f16, f32 and f64: widened exactly, or narrowed by one step, to nearest even.

        NaN of f16 becomes the canonical one of f32; between f32 and f64, and from f16 to f64, its upper digits stay.
        """
        ...

    def float_to_integer(self, source: ScalarType, target: ScalarType, a: V) -> V:
        """A whole float to an integer, clamped to the target's range; 0 for NaN (PTX manual, cvt)."""
        ...

    def integer_to_float(self, source: ScalarType, target: ScalarType, a: V) -> V:
        """An integer to f32 or f64, to nearest even."""
        ...

    def bitcast(self, source: ScalarType, target: ScalarType, a: V) -> V:
        """The same bits under another type of the same width."""
        ...

    # Memory; addresses are u64
    def load(self, space: Space, t: ScalarType, address: V, count: int) -> Sequence[V]:
        """`count` neighbouring elements for each active lane."""
        ...

    def store(self, space: Space, t: ScalarType, address: V, values: Sequence[V]) -> None:
        """Neighbouring elements of each active lane, lane by lane in ascending order."""
        ...

    def atomic(self, space: Space, operation: str, t: ScalarType, address: V, operands: Sequence[V]) -> Sequence[V]:
        """Read, change and write elements for each active lane, in ascending order; gives the old values.

        There are as many neighbouring elements as operands, but `cas` changes one: to the second operand where it was
        the first; and `cas2` (`PAIRED_CAS`) two: to the last two operands where they were the first two.
        """
        ...

    def copy_to_shared(self, size: int, target: V, source: V, source_size: V) -> None:
        """`size` bytes for each active lane from global to shared memory; from `source_size` (u32) on, zeros."""
        ...

    def copy_bulk(self, copy: BulkCopy, target: V, source: V, size: V, barrier: V, blocks: V) -> None:
        """`size` (u32) bytes for each active lane, and their completion at an mbarrier, where the copy signals one.

        Addresses are those of the copy's spaces, the mbarrier's and the target's of shared memory may name a block of
        the cluster; of a multicast the places are the same in each block whose rank is a bit of `blocks` (u32).
        """
        ...

    def copy_tensor(
        self,
        copy: TensorCopy,
        tensor_map: V,
        coordinates: Sequence[V],
        shared: V,
        offsets: Sequence[V],
        barrier: V | None,
        blocks: V | None,
    ) -> None:
        """A box of a tensor for each active lane, and the completion of its bytes at an mbarrier, of a load.

        Args:
            copy: what is done.
            tensor_map: generic addresses of tensor maps.
            coordinates: s32, of the innermost axis first.
            shared: the box's place in shared memory; of a load it may name a block of the cluster, as the mbarrier's.
            offsets: u32, of a load of columns.
            barrier: the mbarrier's place, of a load.
            blocks: u32, of a multicast: the places are the same in each block whose rank is a bit of it.
        """
        ...

    def copy_tensor_map(self, target: V, source: V) -> None:
        """The 128 bytes of a tensor map from shared to global memory, by all lanes of the warp."""
        ...

    def move_address(self, address: V, distance: int) -> V:
        """The address so many bytes on."""
        ...

    def complete(self, barrier: V, amount: V) -> None:
        """`amount` (u64) transactions of an mbarrier of the cluster are complete, for each active lane."""
        ...

    def load_matrix(self, address: V, count: int, transposed: bool) -> Sequence[V]:
        """`ldmatrix`: `count` 8×8 matrices of 16-bit elements from shared memory, one b32 each."""
        ...

    def store_matrix(self, address: V, matrices: Sequence[V], transposed: bool) -> None:
        """`stmatrix`: 8×8 matrices of 16-bit elements, one b32 each, to shared memory."""
        ...

    # The warp
    def lane_index(self) -> V:
        """0 … 31, u32."""
        ...

    def block_rank(self) -> V:
        """The block's rank in its cluster, u32, the same in every lane."""
        ...

    def stack_bounds(self) -> tuple[V, V]:
        """Where a thread's stack begins and ends in its local memory, u64, the same in every lane."""
        ...

    def fence(self) -> None:
        """Accesses before it take effect before those behind it, for the threads of other workers too."""
        ...

    def active_mask(self) -> V:
        """The active lanes as bits, u32, the same in every lane."""
        ...

    def shuffle(self, t: ScalarType, a: V, source_lane: V) -> V:
        """The value of a in lane `source_lane` (u32, below 32)."""
        ...

    def exchange(self, t: ScalarType, a: V, source_lane: V, mask: V) -> V:
        """The value of a in lane `source_lane` (u32, below 32); 0 of one that is not active.

        To read a lane that is not active, or not in the lane's own mask (u32), is a misuse that checks may tell.
        """
        ...

    def reduce(self, t: ScalarType, operation: str, a: V, mask: V) -> V:
        """`add min max and or xor` of a over the active lanes in the lane's own mask (u32); masks may differ."""
        ...

    def ballot(self, predicate: V) -> V:
        """The active lanes where the predicate holds, as bits, u32, the same in every lane."""
        ...

    def multiply_matrices(self, product: Product, registers: Sequence[V]) -> Sequence[V]:
        """The registers of D, from those of A, B and C in this order; all lanes of the warp are active, or none."""
        ...

    def multiply_group(self, product: GroupProduct, sums: Sequence[V], a: Sequence[V], b: V, keeps: V) -> Sequence[V]:
        """The warp's registers of D, from those of C, which counts as 0 where `keeps` (a predicate) does not hold.

        `a` are the registers of A, or one descriptor (u64), `b` is B's descriptor; all lanes are active, or none.
        """
        ...
