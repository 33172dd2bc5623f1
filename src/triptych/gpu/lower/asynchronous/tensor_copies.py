"""Copies of boxes of tensors as generated code: a thread's request is written down, and performed from what is written.

A kernel calls `(context, site, mask, how, maps, shared, barriers, x0 … x4, offset1 … offset3, blocks)`. For each active
lane that makes a `TensorRequest` and performs it at once: row by row of the box, as the tensor map says when it runs.
There is one function for all loads, one for all stores, one for each reduction.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

from llvmlite import ir

from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.isa.spaces import GLOBAL, SHARED
from triptych.gpu.lower.asynchronous.mbarrier import COMPLETE
from triptych.gpu.lower.asynchronous.tensor_maps import COLUMNS_BIT, MULTICAST_BIT, MapReader, packed
from triptych.gpu.lower.memory.access import PAIR_SHIFT, SECTOR_SHIFT, HelperAccess
from triptych.gpu.lower.memory.atomics import flush_single, replace_element, update_element
from triptych.gpu.lower.memory.counts import mark_pairs
from triptych.gpu.lower.primitives.emitter import (
    FLOAT,
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Emitter,
    constant,
    start_function,
    vector,
)
from triptych.gpu.lower.records import FaultKind, Site, TensorRequest
from triptych.gpu.lower.scheduling.clusters import LOCATE
from triptych.gpu.lower.scheduling.services import RESOLVE
from triptych.gpu.lower.watching.bulk import LAND, TAKE
from triptych.gpu.lower.watching.layout import watched_name
from triptych.gpu.tensor_map import (
    CHUNK_BYTES,
    ELEMENT_TYPES,
    FILLS,
    MOST_AXES,
    SHARED_ALIGNMENT,
    SINGLE_NAN,
    SWIZZLE_SHIFT,
    TF32_NAN,
    TensorCopy,
)

MAP_WORD, STORED_WORD = HelperAccess("load", SHARED, 4), HelperAccess("store", GLOBAL, 4)
"""By which the lanes of a warp copy a tensor map from shared to global memory, a word each."""
_OPERANDS: Mapping[str, ir.IntType] = {
    "tensor_map": I64, "shared": I64, "barrier": I64, **dict.fromkeys((f"x{axis}" for axis in range(MOST_AXES)), I32),
    **dict.fromkeys((f"offset{axis}" for axis in range(1, MOST_AXES - 1)), I32), "blocks": I32,
}  # fmt: skip
_ROW_BYTES = 256 * 8
"""The longest row of a box."""
_OWN = (1 << RANK_SHIFT) - 1


def tensor_copy_name(operation: str) -> str:
    """The symbol that kernels call."""
    return f"triptych.tensor_copy.{operation}"


def tensor_copy_code(copy: TensorCopy) -> int:
    """What a request says of its instruction (`TensorRequest.how`)."""
    return copy.rank | (COLUMNS_BIT if copy.columns else 0) | (MULTICAST_BIT if copy.multicast else 0)


def tensor_copy_type() -> ir.FunctionType:
    """The type of what kernels call."""
    return ir.FunctionType(VOID, [POINTER, POINTER, I32, I64, *(vector(kind) for kind in _OPERANDS.values())])


def build_tensor_copy(operation: str, *, watched: bool = False) -> ir.Module:
    """The module with what kernels call, and what performs one thread's copy."""
    name = watched_name(tensor_copy_name(operation)) if watched else tensor_copy_name(operation)
    module = ir.Module(name=name)
    (_WatchedPerformance if watched else _Performance)(operation, module, f"{name}.perform")
    e = Emitter(ir.Function(module, tensor_copy_type(), name))
    context, site, mask, how, *operands = e.function.args
    places = {name: e.variable(v.type, v) for name, v in zip(_OPERANDS, operands, strict=True)}
    request = e.variable(ir.ArrayType(I64, TensorRequest.size() // 8))
    e.b.store(how, e.field(TensorRequest, request, "how"))
    with e.each_lane(mask) as lane:
        e.b.store(lane, e.field(TensorRequest, request, "lane"))
        for operand, kind in _OPERANDS.items():
            value = e.b.load(e.offset(places[operand], e.b.mul(lane, constant(kind.width // 8))), typ=kind)
            e.b.store(value if kind == I64 else e.b.sext(value, I64), e.field(TensorRequest, request, operand))
        e.intrinsic(f"{name}.perform", VOID, [context, site, request])
    e.b.ret_void()
    return module


class _Performance:
    """Emits perform(context, site, request): carries a `TensorRequest` out, unless that is a fault."""

    complete = COMPLETE

    def __init__(self, operation: str, module: ir.Module, name: str) -> None:
        self.operation = operation
        self.e = e = start_function(module, name, VOID, [POINTER] * 3)
        self.b = e.b
        self.context, site, _ = e.function.args
        ends = ("global", "shared") if operation == "load" else ("shared", "global")
        self.sites = {end: e.offset(site, place * Site.size()) for place, end in enumerate(ends)}
        self.reader = MapReader(e, operation, self.sites)
        self.box = self.reader.read()
        self.line = e.variable(ir.ArrayType(I8, _ROW_BYTES))
        """A row, where it cannot be moved in one piece."""
        self.counts = e.variable(I64, constant(1))
        """Whether what is global is counted: once, where a box goes to several blocks."""
        bytes_ = self.b.mul(self.box.rows, self.box.row_bytes)
        reach = self.b.add(self.b.mul(self.b.sub(self.box.rows, constant(1)), self.box.pitch), self.box.pitch)
        with self._each_block("shared") as place:
            self.watch(place, reach)
            host = self._locate(place, reach)
            e.add_field(Site, self.sites["shared"], "requests", constant(1))
            e.add_field(Site, self.sites["shared"], "bytes", bytes_)
            self._each_row(host, self.b.and_(place, constant(_OWN)))
            self.b.store(constant(0), self.counts)
        if operation == "load":
            with self._each_block("barrier") as place:
                told = [self.context, self.sites["shared"], self.reader.given["lane"], place, bytes_]
                e.intrinsic(self.complete, VOID, told)
        self.b.ret_void()

    def watch(self, place: ir.Value, size: ir.Value) -> None:
        """Called before the box is read or written at a place in shared memory."""

    # Shared memory ----------------------------------------------------------------------------------------------

    @contextmanager
    def _each_block(self, operand: str) -> Generator[ir.Value]:
        """Runs for each block that the copy goes to; gives the place of an operand there."""
        cast, given = self.reader.is_multicast(), self.reader.given
        blocks = self.b.select(cast, given["blocks"], constant(1))
        with self.e.each_lane(self.b.trunc(blocks, I32)) as rank:
            named = self.b.shl(self.b.add(rank, constant(1)), constant(RANK_SHIFT))
            mapped = self.b.or_(self.b.and_(given[operand], constant(_OWN)), named)
            yield self.b.select(cast, mapped, given[operand])

    def _locate(self, place: ir.Value, size: ir.Value) -> ir.Value:
        """The host's place of the box, an i64; of what is read it must be of the block itself."""
        site, refuse = self.sites["shared"], self.reader.refuse
        odd = self.b.icmp_unsigned("!=", self.b.and_(place, constant(SHARED_ALIGNMENT - 1)), constant(0))
        refuse(FaultKind.MISALIGNED, odd, "shared", place, constant(SHARED_ALIGNMENT))
        kind = self.e.intrinsic(LOCATE, I64, [self.context, site, place, size])
        if self.operation != "load":
            named = self.b.icmp_unsigned("!=", self.b.lshr(place, constant(RANK_SHIFT)), constant(0))
            kind = self.b.select(named, constant(FaultKind.SHARED_BOUNDS), kind)
        refuse(kind, self.b.icmp_unsigned("!=", kind, constant(0)), "shared", place, size)
        return self.e.load_field(Site, site, "delta")

    def _swizzled(self, start: ir.Value, offset: ir.Value) -> ir.Value:
        """The offset of a chunk, exchanged with another one by what address it has."""
        bits = self.b.sub(self.b.shl(constant(1), self.box.swizzle), constant(1))
        above = self.b.lshr(self.b.add(start, offset), constant(SWIZZLE_SHIFT))
        return self.b.xor(offset, self.b.mul(self.b.and_(above, bits), constant(CHUNK_BYTES)))

    @contextmanager
    def _each_chunk(self, host: ir.Value, start: ir.Value, row: ir.Value) -> Generator[tuple[ir.Value, ir.Value]]:
        """Runs for each chunk of a swizzled row; gives its offset in the row, and its place in shared memory."""
        with self.e.counted(self.b.udiv(self.box.row_bytes, constant(CHUNK_BYTES))) as i:
            within = self.b.mul(i, constant(CHUNK_BYTES))
            there = self._swizzled(start, self.b.add(row, within))
            yield within, self.b.inttoptr(self.b.add(host, there), POINTER)

    def _copy(self, target: ir.Value, source: ir.Value, size: ir.Value) -> None:
        self.e.intrinsic("llvm.memcpy.p0.p0.i64", VOID, [target, source, size, ir.Constant(I1, 0)])

    def _copy_chunk(self, target: ir.Value, source: ir.Value) -> None:
        kind = vector(I64, 2)
        self.b.store(self.b.load(source, align=1, typ=kind), target, align=1)

    # Rows -------------------------------------------------------------------------------------------------------

    def _each_row(self, host: ir.Value, start: ir.Value) -> None:
        """Moves the rows of the box; `start` is its offset in the block's shared memory, `host` where that lies."""
        box, b = self.box, self.b
        positions = [self.e.variable(I64, value) for value in box.starts]
        last_sector = self.e.variable(I64, constant(-1))
        some = b.icmp_signed("<", box.first, box.end)
        with self.e.counted(box.rows) as i:
            inside, address = some, b.add(box.address, b.mul(self.reader.given["x0"], box.element_bytes))
            for place, offset, extent, stride in zip(positions, box.offsets, box.extents, box.strides, strict=True):
                position = b.add(self.e.get(place, I64), offset)
                inside = b.and_(inside, b.icmp_unsigned("<", position, extent))
                address = b.add(address, b.mul(position, stride))
            row = b.mul(i, box.pitch)
            if self.operation == "load":
                self._load_row(inside, address, last_sector, (host, start, row))
            else:
                with self.e.when(inside):
                    self._store_row(address, last_sector, (host, start, row))
            self._step(positions)

    def _step(self, positions: Sequence[ir.Value]) -> None:
        """The position of the next row: along an axis a step on; beyond its end from its begin on, and so the next."""
        following = self.e.block("next_row")
        for axis, place in enumerate(positions):
            moved = self.b.add(self.e.get(place, I64), self.box.steps[axis])
            beyond = self.b.icmp_signed(">", moved, self.box.lasts[axis])
            self.b.store(self.b.select(beyond, self.box.resets[axis], moved), place)
            carry = self.e.block("carry")
            self.b.cbranch(beyond, carry, following)
            self.b.position_at_end(carry)
        self.b.branch(following)
        self.b.position_at_end(following)

    def _reach(self, address: ir.Value, last_sector: ir.Value) -> ir.Value:
        """The host's place of what lies inside of a row at an address, which is counted; returns for a fault."""
        b, e, site = self.b, self.e, self.sites["global"]
        low, high = (b.add(address, bound) for bound in (self.box.first, self.box.end))
        size = b.sub(high, low)
        above = b.icmp_signed(">=", low, e.load_field(Site, site, "low"))
        known = b.and_(above, b.icmp_unsigned("<=", high, e.load_field(Site, site, "high")))
        with e.when(b.not_(known), likely=False):
            write = constant(0 if self.operation == "load" else 1)
            kind = e.intrinsic(RESOLVE, I64, [self.context, site, low, size, write])
            self.reader.refuse(kind, b.icmp_unsigned("!=", kind, constant(0)), "global", low, size)
        with e.when(b.icmp_unsigned("!=", e.get(self.counts, I64), constant(0)), likely=True):
            self._count(low, high, last_sector)
        return b.inttoptr(b.add(low, e.load_field(Site, site, "delta")), POINTER)

    def _count(self, low: ir.Value, high: ir.Value, last_sector: ir.Value) -> None:
        """A box is one request; a sector in which the row before ended is not counted again."""
        b, e, site = self.b, self.e, self.sites["global"]
        before = e.get(last_sector, I64)
        e.add_field(Site, site, "requests", b.zext(b.icmp_signed("<", before, constant(0)), I64))
        e.add_field(Site, site, "bytes", b.sub(high, low))
        first, last = (b.lshr(at, constant(SECTOR_SHIFT)) for at in (low, b.sub(high, constant(1))))
        again = b.zext(b.icmp_signed("==", first, before), I64)
        e.add_field(Site, site, "sectors", b.sub(b.add(b.sub(last, first), constant(1)), again))
        b.store(last, last_sector)
        first, last = (b.lshr(at, constant(PAIR_SHIFT)) for at in (low, b.sub(high, constant(1))))
        touched = e.load_field(Site, site, "touched")
        with e.counted(b.add(b.sub(last, first), constant(1))) as i:
            mark_pairs(e, b.add(b.add(touched, first), i))

    # Loads ------------------------------------------------------------------------------------------------------

    def _load_row(
        self, inside: ir.Value, address: ir.Value, last_sector: ir.Value, place: tuple[ir.Value, ir.Value, ir.Value]
    ) -> None:
        """A row into shared memory: from where it lies, or from a line in which what lies outside is filled in."""
        b, e, box = self.b, self.e, self.box
        rounds = b.trunc(b.lshr(packed([one.rounds_to_tf32 for one in ELEMENT_TYPES], 1), box.element_type), I1)
        complete = b.icmp_unsigned("==", b.sub(box.end, box.first), box.row_bytes)
        whole = b.and_(b.and_(inside, complete), b.not_(rounds))
        source = e.variable(POINTER, self.line)
        with b.if_else(whole, likely=True) as (direct, other):
            with direct:
                b.store(self._reach(address, last_sector), source)
            with other:
                self._fill()
                with e.when(inside):
                    there = e.offset(self.line, box.first)
                    self._copy(there, self._reach(address, last_sector), b.sub(box.end, box.first))
                    with e.when(rounds, likely=False):
                        self._round(there)
        host, start, row = place
        found = e.get(source, POINTER)
        with b.if_else(b.icmp_unsigned("==", box.swizzle, constant(0))) as (plain, swizzled):
            with plain:
                self._copy(b.inttoptr(b.add(host, row), POINTER), found, box.row_bytes)
            with swizzled, self._each_chunk(host, start, row) as (within, there):
                self._copy_chunk(there, e.offset(found, within))

    def _fill(self) -> None:
        """The line as a row outside of the tensor."""
        zero, nan = (int.from_bytes(fill * 4, "little") for fill in FILLS)
        filled = self.b.icmp_unsigned("!=", self.box.fill, constant(0))
        word = self.b.select(filled, constant(nan), constant(zero))
        with self.e.counted(self.b.udiv(self.box.row_bytes, constant(8))) as i:
            self.b.store(word, self.e.offset(self.line, self.b.mul(i, constant(8))), align=1)

    def _round(self, words: ir.Value) -> None:
        """Singles to tf32: to the nearest number of 10 digits, ties to even."""
        b = self.b

        def number(value: int) -> ir.Constant:
            return ir.Constant(I32, value)

        with self.e.counted(b.udiv(b.sub(self.box.end, self.box.first), constant(4))) as i:
            place = self.e.offset(words, b.mul(i, constant(4)))
            bits = b.load(place, align=1, typ=I32)
            even = b.and_(b.lshr(bits, number(13)), number(1))
            rounded = b.and_(b.add(b.add(bits, number(0xFFF)), even), number(0xFFFF_E000))
            is_nan = b.icmp_unsigned(">", b.and_(bits, number(0x7FFF_FFFF)), number(0x7F80_0000))
            b.store(b.select(is_nan, number(TF32_NAN), rounded), place, align=1)

    # Stores -----------------------------------------------------------------------------------------------------

    def _store_row(self, address: ir.Value, last_sector: ir.Value, place: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        """What lies inside of a row, from shared memory: from where it lies, or from a line where that is swizzled."""
        b, e, box = self.b, self.e, self.box
        target = self._reach(address, last_sector)
        host, start, row = place
        source = e.variable(POINTER, b.inttoptr(b.add(host, row), POINTER))
        with e.when(b.icmp_unsigned("!=", box.swizzle, constant(0))):
            with self._each_chunk(host, start, row) as (within, there):
                self._copy_chunk(e.offset(self.line, within), there)
            b.store(self.line, source)
        found, size = e.offset(e.get(source, POINTER), box.first), b.sub(box.end, box.first)
        if self.operation == "store":
            self._copy(target, found, size)
        else:
            self._reduce(target, found, size)

    def _reduce(self, target: ir.Value, source: ir.Value, size: ir.Value) -> None:
        for number, one in enumerate(ELEMENT_TYPES):
            if self.operation not in one.reductions:
                continue
            access = HelperAccess(self.operation, GLOBAL, one.bytes, 1, one.number)
            is_one = self.b.icmp_unsigned("==", self.box.element_type, constant(number))
            with self.e.when(is_one), self.e.counted(self.b.udiv(size, constant(one.bytes))) as i:
                there, here = (self.e.offset(p, self.b.mul(i, constant(one.bytes))) for p in (target, source))
                element = self.b.load(here, align=1, typ=access.element)
                if one.number == "f32":
                    replace_element(self.e, access, there, partial(self._add_singles, one.flushes, element))
                else:
                    update_element(self.e, access, there, [element], _no_refusal, flushes=GLOBAL.flushes_sums)

    def _add_singles(self, flushes: bool, element: ir.Value, old: ir.Value) -> ir.Value:
        b = self.b
        left, right = (b.bitcast(flush_single(self.e, bits) if flushes else bits, FLOAT) for bits in (old, element))
        total = b.fadd(left, right)
        bits = b.bitcast(total, I32)
        new = flush_single(self.e, bits) if flushes else bits
        return b.select(b.fcmp_unordered("uno", total, total), ir.Constant(I32, SINGLE_NAN), new)


class _WatchedPerformance(_Performance):
    """The same for kernels that asynccheck looks at."""

    complete = watched_name(COMPLETE)

    def watch(self, place: ir.Value, size: ir.Value) -> None:
        """See `_Performance`."""
        given, b = self.reader.given, self.b
        where = [self.context, self.sites["shared"], given["lane"], place, size]
        if self.operation != "load":
            self.e.intrinsic(TAKE, VOID, [*where, constant(0), constant(0)])
            return
        mapped = b.or_(b.and_(given["barrier"], constant(_OWN)), b.and_(place, constant(~_OWN)))
        barrier = b.select(self.reader.is_multicast(), mapped, given["barrier"])
        self.e.intrinsic(LAND, VOID, [*where, barrier, constant(0)])


def _no_refusal(kind: ir.Value, element: ir.Value) -> NoReturn:
    raise AssertionError("a reduction refuses no element")
