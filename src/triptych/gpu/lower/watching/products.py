"""Matrices in shared memory that warpgroups multiply: a warp looks at the tags of its part, and its group reads all."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.tensor.matrix_descriptors import GROUP_WARPS, ROWS, read_descriptor
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, VOID, constant, start_function
from triptych.gpu.lower.tensor.descriptors import Word
from triptych.gpu.lower.watching.accesses import ANY, RANGE
from triptych.gpu.lower.watching.layout import WatchedMemory, watch
from triptych.gpu.lower.watching.reads import DROP, add_reader, each_row
from triptych.gpu.lower.watching.records import Completion, HazardKind, WatchedWarp
from triptych.gpu.tensor_map import CHUNK_BYTES

MATRIX, COMMIT_PRODUCTS, AWAIT_PRODUCTS = (watch(n) for n in ("matrix", "commit_products", "await_products"))
_SWIZZLED_BYTES = 128
"""Swizzling exchanges chunks within these."""


def build_products(module: ir.Module) -> None:
    """Emits `MATRIX`, `COMMIT_PRODUCTS` and `AWAIT_PRODUCTS`."""
    _build_matrix(module)
    _build_commit(module)
    _build_await(module)


def _build_matrix(module: ir.Module) -> None:
    """matrix(context, site, descriptor, first, count, lines, by_k): a multiplication reads a matrix.

    The warp reads `count` lines of pieces from the `first` one on, its warpgroup all `lines` of them.
    """
    e = start_function(module, MATRIX, VOID, [POINTER, POINTER, *[I64] * 5])
    context, site, descriptor, first, count, lines, by_k = e.function.args
    memory, b = WatchedMemory(e, context), e.b
    low, high = _reach(memory, descriptor, first, count, by_k)
    some = e.intrinsic(ANY, I32, [context, memory.shared, low, high])
    with e.when(b.icmp_unsigned("!=", some, ir.Constant(I32, 0)), likely=False):
        matrix, limit = read_descriptor(Word(e, descriptor)), memory.field("shared_size")
        with each_row(e, matrix, count, first, b.trunc(by_k, I1)) as address:
            end = b.add(address, constant(CHUNK_BYTES))
            with e.when(b.icmp_unsigned("<=", end, limit)):
                read = [context, memory.shared, constant(HazardKind.READ), site, constant(0), address, end]
                e.intrinsic(RANGE, VOID, read)
    rank = b.and_(memory.field("warp_index"), constant(GROUP_WARPS - 1))
    with e.when(b.icmp_unsigned("==", rank, constant(0))):
        low, high = _reach(memory, descriptor, constant(0), lines, by_k)
        products = e.load_field(WatchedWarp, memory.own_warp(), "products")
        given = {
            "site": b.ptrtoint(site, I64), "amount": products, "low": low, "high": high, "descriptor": descriptor,
            "lines": lines, "by_k": by_k,
        }  # fmt: skip
        add_reader(memory, constant(Completion.PRODUCT_GROUP), given)
    b.ret_void()


def _reach(
    memory: WatchedMemory, descriptor: ir.Value, first: ir.Value, count: ir.Value, by_k: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Offsets in shared memory between which the rows of some pieces lie."""
    e, b = memory.e, memory.b
    matrix = read_descriptor(Word(e, descriptor))
    begin, last = Word(e, first), Word(e, b.sub(b.add(first, count), constant(1)))
    kinds = (True, False)
    is_by_k = b.trunc(by_k, I1)
    starts, ends = (
        [matrix.piece(line, Word(e, constant(along)), by_k=kind).value for kind in kinds]
        for line, along in ((begin, 0), (last, 1))
    )
    # Of lines that are not by K those before the last may lie a few chunks behind it.
    ends = [ends[0], b.add(ends[1], constant((ROWS - 1) * CHUNK_BYTES))]
    start = b.select(is_by_k, starts[0], constant(0))
    rows = (Word(e, constant(ROWS * CHUNK_BYTES)) << matrix.bits).value
    low = b.and_(b.add(matrix.start.value, start), constant(-_SWIZZLED_BYTES))
    high = b.add(b.add(matrix.start.value, b.select(is_by_k, *ends)), rows)
    high = b.or_(high, constant(_SWIZZLED_BYTES - 1))
    limit = memory.field("shared_size")
    high = e.intrinsic("llvm.umin.i64", I64, [b.add(high, constant(1)), limit])
    return e.intrinsic("llvm.umin.i64", I64, [low, b.sub(high, constant(1))]), high


def _build_commit(module: ir.Module) -> None:
    """commit_products(context): the warp's multiplications so far that are in no group yet are one."""
    e = start_function(module, COMMIT_PRODUCTS, VOID, [POINTER])
    (context,) = e.function.args
    e.add_field(WatchedWarp, WatchedMemory(e, context).own_warp(), "products", constant(1))
    e.b.ret_void()


def _build_await(module: ir.Module) -> None:
    """await_products(context, newest): the warp waits for all of its groups but the newest ones, an i64."""
    e = start_function(module, AWAIT_PRODUCTS, VOID, [POINTER, I64])
    context, newest = e.function.args
    memory, b = WatchedMemory(e, context), e.b
    done = b.sub(e.load_field(WatchedWarp, memory.own_warp(), "products"), newest)
    first = memory.warp(b.and_(memory.field("warp_index"), constant(-GROUP_WARPS)))
    place = e.field(WatchedWarp, first, "products_done")
    with e.when(b.icmp_signed(">", done, b.load(place, typ=I64))):
        b.store(done, place)
        e.intrinsic(DROP, VOID, [context])
    b.ret_void()
