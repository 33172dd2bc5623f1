"""What kernels call rather than hold: small functions for what all of them do, at every block or where lanes part.

Code that runs first (`Emitter.is_brief`) is made of calls wherever these are shorter, for LLVM takes longer to select a
vector instruction than most kernels run at first; optimised code has its own copies of what is done often.
"""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.primitives.constants import number, vector
from triptych.gpu.lower.primitives.emitter import (
    AFFINE_TYPES,
    BITS,
    I32,
    I64,
    LANES,
    POINTER,
    VOID,
    Emitter,
    affine_name,
    constant,
    lanes,
    start_function,
)
from triptych.gpu.lower.records import EXITED, Warp

COUNT = "triptych.count"
PART = "triptych.part"
_KEEP = "triptych.keep"


def keep_name(kind: ir.IntType) -> str:
    """The symbol of `keep` of a type."""
    return f"{_KEEP}.{kind.width}"


OUTLINED = (BITS, LANES, COUNT, PART, *map(keep_name, AFFINE_TYPES), *map(affine_name, AFFINE_TYPES))
"""All symbols."""


def build_outlined() -> ir.Module:
    """The module with all of them."""
    module = ir.Module(name="triptych.outlined")
    _build_bits(module)
    _build_lanes(module)
    _build_count(module)
    _build_part(module)
    for kind in AFFINE_TYPES:
        _build_affine(module, kind)
    return module


def _build_bits(module: ir.Module) -> None:
    """bits(truths): the lanes that hold -1, of those that hold 0 or -1."""
    e = start_function(module, BITS, I32, [vector(I32)])
    e.b.ret(e.bits(e.b.icmp_signed("<", e.function.args[0], number(vector(I32), 0))))


def _build_lanes(module: ir.Module) -> None:
    """lanes(bits): -1 in the lanes whose bit is set, 0 in the others."""
    e = start_function(module, LANES, vector(I32), [I32])
    e.b.ret(e.b.sext(e.from_bits(e.function.args[0]), vector(I32)))


def _build_count(module: ir.Module) -> None:
    """count(place, lanes): one more execution by so many lanes, at two counters side by side."""
    e = start_function(module, COUNT, VOID, [POINTER, I32])
    place, mask = e.function.args
    for index, amount in enumerate((constant(1), e.b.zext(e.count_ones(mask), I64))):
        at = e.offset(place, 8 * index)
        e.b.store(e.b.add(e.b.load(at, typ=I64), amount), at)
    e.b.ret_void()


def _build_part(module: ir.Module) -> None:
    """part(warp, live, taken, target, other): live lanes go on parted, at one block or, where not taken, at another."""
    e = start_function(module, PART, VOID, [POINTER, *[I32] * 4])
    warp, live, taken, target, other = e.function.args
    blocks = e.b.select(e.from_bits(taken), e.splat(target), e.splat(other))
    blocks = e.b.select(e.from_bits(live), blocks, number(vector(I32), EXITED))
    e.b.store(blocks, e.field(Warp, warp, "next_blocks_0"), align=8)
    e.b.store(e.b.zext(live, I64), e.field(Warp, warp, "mask"))
    e.b.store(constant(1), e.field(Warp, warp, "mode"))
    e.b.ret_void()


def _build_affine(module: ir.Module, kind: ir.IntType) -> None:
    """affine(base, stride): base + lane · stride in every lane; keep(place, base, stride): the same into memory."""
    e = start_function(module, affine_name(kind), vector(kind), [kind, kind])
    e.b.ret(_affine(e, *e.function.args))
    e = start_function(module, keep_name(kind), VOID, [POINTER, kind, kind])
    place, base, stride = e.function.args
    e.b.store(_affine(e, base, stride), place, align=kind.width // 8)
    e.b.ret_void()


def _affine(e: Emitter, base: ir.Value, stride: ir.Value) -> ir.Value:
    return e.b.add(e.splat(base), e.b.mul(lanes(base.type), e.splat(stride)))
