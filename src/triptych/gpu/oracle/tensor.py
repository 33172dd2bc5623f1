"""Multiplications of matrices, the plain way: element after element, from the table of fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import ml_dtypes
import numpy as np

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.tensor.fragments import Fragment, Product
from triptych.gpu.isa.tensor.numerics import FAST, HARDWARE
from triptych.gpu.isa.tensor.summation import multiply_accumulate
from triptych.gpu.isa.types import F32, F64, ScalarType
from triptych.gpu.oracle.nan import hardware_nan
from triptych.gpu.oracle.rounding import directed, fused_multiply_add
from triptych.gpu.oracle.values import Lanes, lane_dtype, to_bits, unsigned

_FORMATS: Mapping[str, tuple[type, type]] = {
    "f16": (np.uint16, np.float16),
    "bf16": (np.uint16, ml_dtypes.bfloat16),
    "e4m3": (np.uint8, ml_dtypes.float8_e4m3fn),
    "e5m2": (np.uint8, ml_dtypes.float8_e5m2),
    "f32": (np.uint32, np.float32),
    "f64": (np.uint64, np.float64),
}
"""By type: its bits, and numpy's type of the number."""
_TF32 = 0xFFFF_E000
_LEAST, _MOST = -(2**31), 2**31 - 1


def multiply(product: Product, registers: Sequence[Lanes]) -> list[Lanes]:
    """The registers of D from those of A, B and C."""
    a, rest = registers[: product.a.registers], registers[product.a.registers :]
    b, c = rest[: product.b.registers], rest[product.b.registers :]
    left, right, sums = (
        matrix_of(fragment, given) for fragment, given in ((product.a, a), (product.b, b), (product.c, c))
    )
    total = ARITHMETICS[product.numerics](product, left, right, sums)
    return registers_of(product.d, total)


def matrix_of(fragment: Fragment, registers: Sequence[Lanes]) -> Lanes:
    """The bits of a matrix, line by line."""
    bits = [to_bits(fragment.register, register).tolist() for register in registers]
    matrix = np.zeros((fragment.lines, fragment.length), np.uint64)
    size, mask = fragment.element.bits, (1 << fragment.element.bits) - 1
    for place, (lane, register, position) in fragment.places():
        matrix[place] = bits[register][lane] >> position * size & mask
    return matrix


def registers_of(fragment: Fragment, bits: Lanes) -> list[Lanes]:
    """The registers that hold a matrix, from its bits line by line."""
    words = [[0] * WARP_SIZE for _ in range(fragment.registers // fragment.copies)]
    for place, (lane, register, position) in fragment.places():
        words[register][lane] |= int(bits[place]) << position * fragment.element.bits
    kind = fragment.register
    return [np.array(word, unsigned(kind.bits)).view(lane_dtype(kind)) for word in words] * fragment.copies


def _numbers(element: ScalarType, bits: Lanes) -> Lanes:
    """What bits stand for: floats in f32 or f64, integers as Python has them."""
    if element.name == "tf32":
        return (bits & np.uint64(_TF32)).astype(np.uint32).view(np.float32)
    if element.is_float or element.name in _FORMATS:
        raw, kind = _FORMATS[element.name]
        return bits.astype(raw).view(kind).astype(np.float64 if element is F64 else np.float32)
    signed = bits.astype(np.int64)
    if element.is_signed:
        signed = np.where(signed >= 1 << (element.bits - 1), signed - (1 << element.bits), signed)
    return signed


def _bits_of(element: ScalarType, numbers: Lanes) -> Lanes:
    if element.name == "f16":
        halves = numbers.astype(np.float16).view(np.uint16)
        return np.where(np.isnan(numbers), np.uint16(0x7FFF), halves).astype(np.uint64)
    return numbers.view(unsigned(element.bits)).astype(np.uint64)


def _multiply_fast(product: Product, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """See `isa/tensor/numerics.py`; `a` and `b` are bits by lines, which are columns of B."""
    left, right = _numbers(product.a.element, a), _numbers(product.b.element, b)
    if product.d.element.name == "s32":
        return _sum_integers(product, left, right, _numbers(product.c.element, c))
    t = F64 if product.d.element is F64 else F32
    total = _numbers(product.c.element, c).ravel()
    for k in range(product.a.length):
        rows, columns = (x.ravel() for x in np.broadcast_arrays(left[:, k, None], right[None, :, k]))
        if product.rounding == "rn":
            new = fused_multiply_add(t, rows, columns, total)
        else:
            new = directed(t, "fma", product.rounding, (rows, columns, total))
        total = hardware_nan(t, new, columns, total, rows)
    return _bits_of(product.d.element, total.reshape(c.shape))


def _sum_integers(product: Product, left: Lanes, right: Lanes, c: Lanes) -> Lanes:
    """Exactly, then modulo 2^32 or stopped at the ends."""
    if product.operation == "mul":
        exact = left @ right.T + c
    else:
        pairs = left[:, None, :], right[None, :, :]
        exact = c + (pairs[0] ^ pairs[1] if product.operation == "xor" else pairs[0] & pairs[1]).sum(axis=2)
    if product.saturates:
        exact = np.clip(exact, _LEAST, _MOST)
    return exact.astype(np.int64).view(np.uint64) & np.uint64(0xFFFF_FFFF)


def _multiply_as_hardware(product: Product, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """See `isa/tensor/summation.py`; what has no rule of its own there is the same."""
    if product.summation is None:
        return _multiply_fast(product, a, b, c)
    return multiply_accumulate(product.summation, product.types, a[:, None], b[None], c)


ARITHMETICS: Mapping[str, Callable[[Product, Lanes, Lanes, Lanes], Lanes]] = {
    FAST: _multiply_fast,
    HARDWARE: _multiply_as_hardware,
}
"""By name (`isa/tensor/numerics.py`)."""
