"""Tensor maps in generated code: their numbers read, and refused where no copy can be made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.lower.primitives.emitter import I64, POINTER, Emitter, constant
from triptych.gpu.lower.records import FaultKind, Site, TensorRequest
from triptych.gpu.lower.scheduling.services import RESOLVE, record_fault
from triptych.gpu.tensor_map import (
    ALIGNMENT,
    BYTES,
    CHUNK_BYTES,
    COLUMNS,
    ELEMENT_TYPES,
    FIELDS,
    LIMITS,
    LOWER,
    MOST_AXES,
    MOST_BOX_BYTES,
    SWIZZLE_SPANS,
    TILES,
    UPPER,
    Field,
    Limit,
    TensorMapFault,
)

COLUMNS_BIT, MULTICAST_BIT, RANK_BITS = 1 << 8, 1 << 9, 0xFF
"""Of `TensorRequest.how`, whose lowest bits are the rank."""
_READS = ("load", "store")
"""The operations that are no reductions."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a tensor as values in the code that copies it, i64 each; axes are counted from the innermost one.

    Its rows lie along the innermost axis. From one row to the next, the position along the axis 1 grows by its step;
    beyond the last one it is reset, and the next axis steps, and so on.
    """

    element_type: ir.Value
    swizzle: ir.Value
    fill: ir.Value
    address: ir.Value
    """Of the tensor's first element."""
    element_bytes: ir.Value
    row_bytes: ir.Value
    pitch: ir.Value
    """Bytes from one row to the next in shared memory."""
    rows: ir.Value
    first: ir.Value
    """Bytes of a row that lie before the tensor's innermost axis begins …"""
    end: ir.Value
    """… and where it ends, of stores the chunk that it ends in; not above `first` where all of a row lies outside."""
    starts: Sequence[ir.Value]
    resets: Sequence[ir.Value]
    lasts: Sequence[ir.Value]
    steps: Sequence[ir.Value]
    offsets: Sequence[ir.Value]
    """What is added to the position along an axis to find the element."""
    extents: Sequence[ir.Value]
    """Of the tensor."""
    strides: Sequence[ir.Value]
    """Bytes; of the axes from the second on, as those before."""


def packed(values: Sequence[int], width: int) -> ir.Constant:
    """Small numbers in one, `width` bits each."""
    return constant(sum(value << width * place for place, value in enumerate(values)))


class MapReader:
    """Emits what reads and checks the tensor map of a `TensorRequest`; where it will not do, the function returns."""

    def __init__(self, e: Emitter, operation: str, sites: Mapping[str, ir.Value]) -> None:
        """In a function `(context, site, request)`; `sites` are those of the ends `global` and `shared`."""
        self.e, self.b, self.operation, self.sites = e, e.b, operation, sites
        self.context, _, request = e.function.args
        self.given = {name: e.load_field(TensorRequest, request, name) for name in TensorRequest.names()}
        self.rank = e.b.and_(self.given["how"], constant(RANK_BITS))
        self.columns = self._has(COLUMNS_BIT)
        self.place: ir.Value | None = None

    def _has(self, bit: int) -> ir.Value:
        return self.b.icmp_unsigned("!=", self.b.and_(self.given["how"], constant(bit)), constant(0))

    def is_multicast(self) -> ir.Value:
        """Whether the copy goes to several blocks, an i1."""
        return self._has(MULTICAST_BIT)

    # Faults -----------------------------------------------------------------------------------------------------

    def refuse(self, kind: FaultKind | ir.Value, wrong: ir.Value, end: str, address: ir.Value, size: ir.Value) -> None:
        """Returns where something is wrong with an access at an end of the copy, which is recorded."""
        with self.e.when(wrong, likely=False):
            where = {"lane": self.given["lane"], "site": self.sites[end], "address": address, "size": size}
            record_fault(self.e, self.context, kind, **where)
            self.b.ret_void()

    def _misfit(self, code: int, wrong: ir.Value, value: ir.Value | None = None) -> None:
        """Returns where the map will not do, which is recorded; `value` is the number that is wrong."""
        with self.e.when(wrong, likely=False):
            record_fault(
                self.e, self.context, FaultKind.TENSOR_MAP, lane=self.given["lane"], site=self.sites["global"],
                address=self.given["tensor_map"], size=constant(0) if value is None else value, detail=constant(code),
            )  # fmt: skip
            self.b.ret_void()

    # Numbers ----------------------------------------------------------------------------------------------------

    def _number(self, field: Field, index: int = 0, *, signed: bool = False) -> ir.Value:
        assert self.place is not None, "the map is found before its numbers are read"
        kind = ir.IntType(8 * field.bytes)
        there = self.e.offset(self.place, field.offset + field.bytes * index)
        value = self.b.load(there, align=1, typ=kind)
        return value if kind == I64 else self.b.sext(value, I64) if signed else self.b.zext(value, I64)

    def _has_axis(self, axis: int) -> ir.Value:
        return self.b.icmp_unsigned(">", self.rank, constant(axis))

    def _of_axis(self, axis: int, value: ir.Value, other: int) -> ir.Value:
        """A number of an axis, `other` where the tensor has fewer axes."""
        return self.b.select(self._has_axis(axis), value, constant(other))

    # The map ----------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        """The host's place of the map, which any memory but shared and local may hold."""
        address, whole = self.given["tensor_map"], constant(BYTES)
        odd = self.b.icmp_unsigned("!=", self.b.and_(address, constant(ALIGNMENT - 1)), constant(0))
        self.refuse(FaultKind.MISALIGNED, odd, "global", address, constant(ALIGNMENT))
        site = self.sites["shared"]  # whose last storage nothing else asks for
        kind = self.e.intrinsic(RESOLVE, I64, [self.context, site, address, whole, constant(0)])
        self.refuse(kind, self.b.icmp_unsigned("!=", kind, constant(0)), "global", address, whole)
        host = self.b.add(address, self.e.load_field(Site, site, "delta"))
        self.place = self.b.inttoptr(host, POINTER)

    def _check_mark(self) -> None:
        mark, b = self._number(FIELDS["mark"]), self.b
        some = b.icmp_unsigned("!=", self._number(FIELDS["global_address"]), constant(0))
        none = b.and_(b.icmp_unsigned("==", mark, constant(0)), some)
        tiles = b.or_(none, b.icmp_unsigned("==", mark, constant(TILES)))
        is_columns = b.icmp_unsigned("==", mark, constant(COLUMNS))
        self._misfit(TensorMapFault.NO_MAP, b.not_(b.or_(tiles, is_columns)), mark)
        self._misfit(TensorMapFault.MODE, b.xor(is_columns, self.columns))
        rank = b.add(self._number(FIELDS["rank"]), constant(1))
        self._misfit(TensorMapFault.RANK, b.icmp_unsigned("!=", rank, self.rank), rank)

    def _check_limit(self, place: int, limit: Limit) -> None:
        value, b = self._number(FIELDS[limit.field], limit.index), self.b
        wrong = b.icmp_unsigned(">", b.sub(value, constant(limit.least)), constant(limit.most - limit.least))
        if limit.multiple > 1:
            odd = b.icmp_unsigned("!=", b.and_(value, constant(limit.multiple - 1)), constant(0))
            wrong = b.or_(wrong, odd)
        if limit.axes > 1:
            wrong = b.and_(wrong, self._has_axis(limit.axes - 1))
        if limit.columns is not None:
            wrong = b.and_(wrong, self.columns if limit.columns else b.not_(self.columns))
        self._misfit(TensorMapFault.FIRST_LIMIT + place, wrong, value)

    def _check_type(self, kind: ir.Value, fill: ir.Value) -> None:
        def is_one(numbers: Sequence[bool]) -> ir.Value:
            bit = self.b.and_(self.b.lshr(packed([int(one) for one in numbers], 1), kind), constant(1))
            return self.b.icmp_unsigned("!=", bit, constant(0))

        has_nan = is_one([one.is_float for one in ELEMENT_TYPES])
        filled = self.b.icmp_unsigned("!=", fill, constant(0))
        self._misfit(TensorMapFault.FILL, self.b.and_(filled, self.b.not_(has_nan)), kind)
        if self.operation not in _READS:
            known = is_one([self.operation in one.reductions for one in ELEMENT_TYPES])
            self._misfit(TensorMapFault.OPERATION, self.b.not_(known), kind)

    def _check_coordinates(self, element_bytes: ir.Value, ends: Sequence[tuple[ir.Value, ir.Value]]) -> None:
        """`ends` are the first and the last position of the bounding box along each axis from the second on."""
        b = self.b
        odd = b.and_(b.mul(self.given["x0"], element_bytes), constant(CHUNK_BYTES - 1))
        self._misfit(TensorMapFault.PLACE, b.icmp_unsigned("!=", odd, constant(0)), self.given["x0"])
        for axis in range(1, MOST_AXES - 1):
            (low, high), x = ends[axis - 1], self.given[f"x{axis}"]
            outside = b.or_(b.icmp_signed("<", x, low), b.icmp_signed(">", x, high))
            inner = b.and_(self.columns, self._has_axis(axis + 1))
            self._misfit(TensorMapFault.OUTSIDE, b.and_(inner, outside), x)
        if self.operation != "load":
            corners = [b.select(self.columns, low, constant(0)) for low, _ in ends]
            inner = [self._of_axis(axis + 2, corner, 0) for axis, corner in enumerate(corners)]
            for x in (*(self.given[f"x{axis}"] for axis in range(MOST_AXES)), *inner):
                self._misfit(TensorMapFault.NEGATIVE, b.icmp_signed("<", x, constant(0)), x)

    def read(self) -> Box:
        """The box that the request is for."""
        self._find()
        self._check_mark()
        for place, limit in enumerate(LIMITS):
            self._check_limit(place, limit)
        kind, fill, swizzle = (self._number(FIELDS[name]) for name in ("elemtype", "fill_mode", "swizzle_mode"))
        self._check_type(kind, fill)
        b, size = self.b, self._look_up(kind, [one.bytes for one in ELEMENT_TYPES])
        width = self._number(FIELDS["box_dim"])
        row_bytes = b.mul(width, size)
        span = b.mul(self._look_up(swizzle, [span // CHUNK_BYTES for span in SWIZZLE_SPANS]), constant(CHUNK_BYTES))
        self._check_rows(row_bytes, span)
        extents = [self._of_axis(axis, self._number(FIELDS["global_dim"], axis), 1) for axis in range(MOST_AXES)]
        bounds = self._bounds(extents)
        self._check_coordinates(size, bounds)
        first, end = self._inside(extents[0], width, size)
        rows, walk = self._walk(extents, bounds)
        self._misfit(
            TensorMapFault.BOX_BYTES, b.icmp_unsigned(">", b.mul(rows, row_bytes), constant(MOST_BOX_BYTES)),
            b.mul(rows, row_bytes),
        )  # fmt: skip
        strides = [
            self._of_axis(axis + 1, self._number(FIELDS["global_stride"], axis), 0) for axis in range(MOST_AXES - 1)
        ]
        pitch = b.select(b.icmp_unsigned("!=", span, constant(0)), span, row_bytes)
        return Box(
            element_type=kind, swizzle=swizzle, fill=fill, address=self._number(FIELDS["global_address"]),
            element_bytes=size, row_bytes=row_bytes, pitch=pitch, rows=rows, first=first,
            end=end, extents=extents[1:], strides=strides, **walk,
        )  # fmt: skip

    def _inside(self, extent: ir.Value, width: ir.Value, size: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The bytes of a row between which it lies inside of the innermost axis; stores end at a whole chunk."""
        b, x = self.b, self.given["x0"]
        bounds = (b.sub(constant(0), x), b.sub(extent, x))
        first, end = (b.mul(self._at_most(self._at_least(at, constant(0)), width), size) for at in bounds)
        if self.operation != "load":
            end = b.and_(b.add(end, constant(CHUNK_BYTES - 1)), constant(-CHUNK_BYTES))
        return first, end

    def _look_up(self, index: ir.Value, values: Sequence[int]) -> ir.Value:
        """One of small numbers, below 16."""
        return self.b.and_(self.b.lshr(packed(values, 4), self.b.shl(index, constant(2))), constant(15))

    def _check_rows(self, row_bytes: ir.Value, span: ir.Value) -> None:
        b = self.b
        odd = b.icmp_unsigned("!=", b.and_(row_bytes, constant(CHUNK_BYTES - 1)), constant(0))
        self._misfit(TensorMapFault.ROW_BYTES, odd, row_bytes)
        swizzled = b.icmp_unsigned("!=", span, constant(0))
        longer = b.icmp_unsigned(">", row_bytes, span)
        self._misfit(TensorMapFault.SPAN, b.and_(swizzled, longer), row_bytes)

    def _bounds(self, extents: Sequence[ir.Value]) -> list[tuple[ir.Value, ir.Value]]:
        """The first and the last position of the bounding box of columns along the axes that it can have."""
        found: list[tuple[ir.Value, ir.Value]] = []
        for index in range(MOST_AXES - 2):
            low, high = (self._number(corner, index, signed=True) for corner in (LOWER, UPPER))
            found.append((low, self.b.add(self.b.sub(extents[index + 1], constant(1)), high)))
        return found

    def _walk(
        self, extents: Sequence[ir.Value], bounds: Sequence[tuple[ir.Value, ir.Value]]
    ) -> tuple[ir.Value, dict[str, list[ir.Value]]]:
        """How many rows there are, and how the positions along the axes from the second on change between them."""
        b, rows = self.b, constant(1)
        walk: dict[str, list[ir.Value]] = {name: [] for name in ("starts", "resets", "lasts", "steps", "offsets")}
        for axis in range(1, MOST_AXES):
            step = self._of_axis(axis, self._number(FIELDS["element_stride"], axis), 1)
            box = self._of_axis(axis, self._number(FIELDS["box_dim"], axis), 1)
            count = b.udiv(b.add(box, b.sub(step, constant(1))), step)
            x = self.given[f"x{axis}"]
            last = b.add(x, b.mul(b.sub(count, constant(1)), step))
            reset, offset = x, constant(0)
            if axis < MOST_AXES - 1:  # the last axis of columns, the images', has no bounds
                (low, high), bounded = bounds[axis - 1], b.and_(self.columns, self._has_axis(axis + 1))
                last, reset = b.select(bounded, high, last), b.select(bounded, low, reset)
                offset = b.select(bounded, self.given[f"offset{axis}"], offset)
            endless = b.and_(self.columns, b.not_(self._has_axis(axis + 1)))
            last = b.select(endless, constant((1 << 63) - 1), last)
            rows = b.mul(rows, count)
            for name, value in zip(walk, (x, reset, last, step, offset), strict=True):
                walk[name].append(value)
        pixels = self._number(FIELDS["box_dim"], 1)
        return b.select(self.columns, pixels, rows), walk

    def _at_least(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.select(self.b.icmp_signed(">", a, b), a, b)

    def _at_most(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.select(self.b.icmp_signed("<", a, b), a, b)
