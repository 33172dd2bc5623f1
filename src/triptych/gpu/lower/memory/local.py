"""Loads and stores of local memory: rows of words where all lanes reach for one offset, else each lane's own words."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import LOCAL_WORD_BYTES, WARP_SIZE
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.admission import admit_name
from triptych.gpu.lower.memory.interleaving import LOCAL_ROW_BYTES, LocalMemory
from triptych.gpu.lower.memory.moves import return_all
from triptych.gpu.lower.memory.words import ROW, Words
from triptych.gpu.lower.primitives.emitter import I1, I8, I32, I64, POINTER, Emitter, constant, number, vector
from triptych.gpu.lower.records import Site


def build_local(access: HelperAccess, function: ir.Function, general: ir.Function) -> None:
    """Emits the helper itself: lanes at one offset; and the function to which it hands anything else."""
    _build_general(access, general)
    e = Emitter(function)
    b = e.b
    context, site, mask, addresses, *values = function.args
    memory = LocalMemory(e, context)
    first = b.extract_element(addresses, ir.Constant(I32, 0))
    same = b.icmp_unsigned("==", addresses, e.splat(first))
    together = e.all_lanes(b.or_(same, b.not_(e.from_bits(mask))))
    some = b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))
    with e.when(b.and_(b.and_(together, some), memory.has(first, access.bytes)), likely=True):
        e.add_field(Site, site, "requests", constant(1))
        e.add_field(Site, site, "bytes", b.mul(b.zext(e.count_ones(mask), I64), constant(access.bytes)))
        words = Words(b, access)
        rows, shift = words.rows(memory.row(first)), e.splat(words.shift(first))
        words.write(rows, words.of(values), shift, e.from_bits(mask))
        return_all(b, access, words.values(words.read(rows), shift) if access.results else [])
        b.position_at_end(e.block("unreached"))
    given = b.call(general, [context, site, mask, addresses, *values])
    if access.results:
        b.ret(given)
    else:
        b.ret_void()


def _build_general(access: HelperAccess, function: ir.Function) -> None:
    """Any lanes at any offsets."""
    e = Emitter(function)
    b = e.b
    context, site, mask, addresses, *values = function.args
    words = Words(b, access)
    rows = [e.variable(ROW, word) for word in words.of(values) or [number(ROW, 0)] * words.count]
    _build_sound(e, access, rows)
    with e.when(b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
        places = e.variable(vector(I64), addresses)
        write = constant(0 if access.kind == "load" else 1)
        arguments = [context, site, mask, places, constant(access.bytes), write]
        admitted = b.trunc(e.intrinsic(admit_name(access.space), I64, arguments), I32)
        with e.each_lane(admitted) as lane:
            _move_lane(e, access, lane, b.load(e.offset(places, b.shl(lane, constant(3))), typ=I64), rows)
    return_all(b, access, words.values([e.get(row, ROW) for row in rows], number(ROW, 0)) if access.results else [])


def _build_sound(e: Emitter, access: HelperAccess, rows: Sequence[ir.Value]) -> None:
    """A full warp, all of whose lanes may have what they reach for, by offsets of 32 bits; returns."""
    b = e.b
    context, site, mask, addresses = e.function.args[:4]
    memory, words = LocalMemory(e, context), Words(b, access)
    short = b.trunc(addresses, ROW)
    any_bits = e.intrinsic(f"llvm.vector.reduce.or.v{WARP_SIZE}i64", I64, [addresses])
    last = b.zext(e.intrinsic(f"llvm.vector.reduce.umax.v{WARP_SIZE}i32", I32, [short]), I64)
    misplaced = b.and_(any_bits, constant(-1 << 32 | access.bytes - 1))
    inside = b.icmp_unsigned("<=", b.add(last, constant(access.bytes)), memory.limit)
    sound = b.and_(inside, b.icmp_unsigned("==", misplaced, constant(0)))
    with e.when(b.and_(sound, b.icmp_unsigned("==", mask, ir.Constant(I32, -1)))):
        e.add_field(Site, site, "broadcast", constant(1))
        first = memory.distances(short)
        if access.kind == "load":
            there = [
                _gather(e, memory.base, b.add(first, number(ROW, i * LOCAL_ROW_BYTES))) for i in range(words.count)
            ]
            return_all(b, access, words.values(there, words.shift(short)))
        else:
            distances = e.variable(ROW, b.or_(first, b.and_(short, number(ROW, LOCAL_WORD_BYTES - 1))))
            with e.counted(constant(WARP_SIZE)) as lane:
                distance = b.load(e.offset(distances, b.shl(lane, constant(2))), typ=I32)
                _move_lane(e, access, lane, b.add(memory.base, b.zext(distance, I64)), rows)
            b.ret_void()
        b.position_at_end(e.block("unreached"))


def _gather(e: Emitter, base: ir.Value, distances: ir.Value) -> ir.Value:
    """Each lane's word at so many bytes from an address of the host."""
    pointers = e.b.gep(e.b.inttoptr(base, POINTER), [distances], source_etype=I8)
    pointers.type = vector(POINTER)
    arguments = [pointers, ir.Constant(I32, LOCAL_WORD_BYTES), number(vector(I1), 1), number(ROW, 0)]
    return e.intrinsic(f"llvm.masked.gather.v{WARP_SIZE}i32.v{WARP_SIZE}p0", ROW, arguments)


def _move_lane(e: Emitter, access: HelperAccess, lane: ir.Value, host: ir.Value, rows: Sequence[ir.Value]) -> None:
    """One lane's words, or a part of its word, between its place of the host and its places in `rows`."""
    b, kind = e.b, ir.IntType(8 * min(access.bytes, LOCAL_WORD_BYTES))
    start = b.shl(lane, constant(2))
    for index, row in enumerate(rows):
        there, here = b.inttoptr(b.add(host, constant(index * LOCAL_ROW_BYTES)), POINTER), e.offset(row, start)
        source, target = (there, here) if access.kind == "load" else (here, there)
        b.store(b.load(source, align=1, typ=kind), target, align=1)
