"""How operands become values: registers, literals, symbols, addresses, special registers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial

from llvmlite import ir

from triptych.core.errors import UnsupportedFeature, UnsupportedInstruction
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.isa.spaces import PARAM
from triptych.gpu.isa.special_registers import CLOCK_STEP, SPECIALS, Clock, Constant
from triptych.gpu.isa.types import TYPES, U32, U64, ScalarType, literal_number
from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, vector
from triptych.gpu.lower.primitives.machine import LlvmMachine, Value, element_type
from triptych.gpu.lower.records import Context, Warp
from triptych.gpu.syntax.ast import Address, FloatBits, Integer, Not, Operand, Register, Symbol, Vector

ReadRegister = Callable[[str], Value]


class Operands:
    """Reads and converts operands for one function that is being emitted."""

    def __init__(self, analysis: KernelAnalysis, machine: LlvmMachine, read_register: ReadRegister) -> None:
        """`read_register` gives a declared register's present value."""
        self.analysis = analysis
        self.m = machine
        self.e = machine.e
        self.read_register = read_register

    def declared(self, name: str) -> ScalarType:
        """A register's type."""
        kind = self.analysis.function.registers[name]
        if kind not in TYPES:
            raise UnsupportedFeature(f"register {name} has type .{kind}, which is not supported")
        return TYPES[kind]

    def read(self, bound: Bound, instruction: BoundInstruction) -> Value:
        """An operand's value as its type."""
        if bound.is_address:
            return self.address(bound.operand, instruction)
        return self._read(bound.operand, bound.type, instruction)

    def _read(self, operand: Operand, t: ScalarType, instruction: BoundInstruction) -> Value:
        match operand:
            case Register(name) if name in self.analysis.function.registers:
                value = self.convert(self.read_register(name), self.declared(name), t)
                return value if t.is_float or t.kind == "bits" else self.m.settled(value)
            case Register(name):
                return self.convert(self.special(name), SPECIALS[name].type, t)
            case Not(inner):
                value = self._read(inner, t, instruction)
                return self.m.bit_xor(t, value, self.m.constant(t, -1))
            case Integer(value):
                return self.m.constant(t, value)
            case FloatBits():
                return self._float(operand, t)
            case Symbol():
                return self.convert(self._symbol(operand, instruction), U64, t)
            case Vector(elements):
                return self._pack(elements, t, instruction)
            case _:
                raise self._unsupported(instruction, f"operand {operand}")

    def _float(self, literal: FloatBits, t: ScalarType) -> Value:
        bits, width = literal.bits, literal.width
        if width == 64 and t.bits == 32:
            bits = struct.unpack("<I", struct.pack("<f", struct.unpack("<d", struct.pack("<Q", bits))[0]))[0]
        number = literal_number(bits, t)
        if number is not None:
            return self.m.constant(t, number)
        whole = Value(ir.Constant(ir.IntType(t.bits), bits & ((1 << t.bits) - 1)), True)
        return self.m.bitcast(TYPES[f"b{t.bits}"], t, whole)

    def _pack(self, elements: tuple[Operand, ...], t: ScalarType, instruction: BoundInstruction) -> Value:
        part, whole = TYPES[f"u{t.bits // len(elements)}"], TYPES[f"u{t.bits}"]
        total = self.m.constant(whole, 0)
        for position, element in enumerate(elements):
            value = self.m.resize(part, whole, self._read(element, TYPES[f"b{part.bits}"], instruction))
            total = self.m.bit_or(
                whole, total, self.m.shift_left(whole, value, self.m.constant(whole, part.bits * position))
            )
        return self.m.bitcast(whole, t, total)

    def unpack(self, value: Value, t: ScalarType, count: int) -> list[tuple[Value, ScalarType]]:
        """The parts of a packed value, lowest first."""
        whole, part = TYPES[f"u{t.bits}"], TYPES[f"u{t.bits // count}"]
        bits = self.m.bitcast(t, whole, value)
        shifts = [self.m.constant(whole, part.bits * i) for i in range(count)]
        return [(self.m.resize(whole, part, self.m.shift_right(whole, bits, s)), part) for s in shifts]

    def convert(self, value: Value, source: ScalarType, target: ScalarType) -> Value:
        """A value between types by its bits: cut, or extended as `source` says."""
        if element_type(source) == element_type(target):
            return value
        if "predicate" in (source.kind, target.kind):
            raise UnsupportedFeature(f"a .{source} value is used as .{target}")
        from_bits = TYPES[f"{'s' if source.is_signed else 'u'}{source.bits}"]
        to_bits = TYPES[f"u{target.bits}"]
        value = self.m.resize(from_bits, to_bits, self.m.bitcast(source, from_bits, value))
        return self.m.bitcast(to_bits, target, value)

    def address(self, operand: Operand, instruction: BoundInstruction) -> Value:
        """An address operand as u64."""
        if not isinstance(operand, Address):
            raise self._unsupported(instruction, f"address operand {operand}")
        match operand.base:
            case Register(name):
                t = self.declared(name)
                value = self.m.settled(self.read_register(name))
                if operand.offset and t.bits == 32:  # 32-bit addresses wrap as the hardware's do
                    value = self.m.add(U32, value, self.m.constant(U32, operand.offset))
                form = instruction.form
                if t.bits == form.space.address_bits == 32 and form.row.moves is None:  # else it is reckoned with
                    return value
                base = self.convert(value, TYPES[f"u{t.bits}"], U64)
                if t.bits == 32:
                    return base
            case Symbol(name, offset):
                symbol = Symbol(name, offset + operand.offset)
                if any(space is PARAM for space, _ in instruction.form.accesses):
                    self._require_parameter(symbol, instruction)
                return self._symbol(symbol, instruction)
            case Integer(place):
                return self.m.constant(U64, place + operand.offset)
        return self.m.add(U64, base, self.m.constant(U64, operand.offset)) if operand.offset else base

    def _require_parameter(self, symbol: Symbol, instruction: BoundInstruction) -> None:
        kind, count = instruction.form.words
        layout, size = self.analysis.layout, kind.bytes * count
        first = layout.parameters.get(symbol.name, 0) + symbol.offset
        if not 0 <= first <= layout.parameter_bytes - size:
            of = f"bytes {first} … {first + size - 1} of {layout.parameter_bytes} bytes of parameters"
            raise UnsupportedInstruction(f"ld.param reads {of}")

    def _symbol(self, symbol: Symbol, instruction: BoundInstruction) -> Value:
        layout = self.analysis.layout
        tables: tuple[Mapping[str, int], ...] = (layout.shared, layout.local, layout.parameters)
        for table in tables:
            if symbol.name in table:
                return self.m.constant(U64, table[symbol.name] + symbol.offset)
        if symbol.name in layout.symbols:
            table = self.e.b.inttoptr(self.e.load_field(Context, self.m.context, "symbols"), POINTER)
            place = self.e.offset(table, 8 * layout.symbols[symbol.name])
            base = Value(self.e.b.load(place, typ=I64), True)
            return self.m.add(U64, base, self.m.constant(U64, symbol.offset))
        raise self._unsupported(instruction, f"symbol '{symbol.name}'")

    def special(self, name: str) -> Value:
        """A special register, of its type."""
        special = SPECIALS[name]
        match special.source:
            case Constant(value):
                return self.m.constant(special.type, value)
            case Clock(first_bit):
                return self._clock(special.type, first_bit)
            case _ if name in _FIELDS:
                return self._field(_FIELDS[name])
            case _:
                return _COMPUTED[name](self)

    def _clock(self, t: ScalarType, first_bit: int) -> Value:
        """A clock, which moves on: lanes that read it at different times see different values."""
        place = self.e.field(Warp, self.m.warp, "clock")
        now = self.e.b.add(self.e.b.load(place, typ=I64), ir.Constant(I64, CLOCK_STEP))
        self.e.b.store(now, place)
        part = Value(self.e.b.lshr(now, ir.Constant(I64, first_bit)), True)
        return Value(self.m.spread(self.m.resize(U64, t, part)), False)

    def _field(self, name: str) -> Value:
        return Value(self.e.b.trunc(self.e.load_field(Context, self.m.context, name), I32), True)

    def thread_index(self, axis: int) -> Value:
        """%tid along an axis."""
        table = self.e.b.inttoptr(self.e.load_field(Context, self.m.context, "thread_indices"), POINTER)
        stride = self.e.load_field(Context, self.m.context, "index_stride")
        warp = self.e.load_field(Context, self.m.context, "warp_index")
        index = self.e.b.add(
            self.e.b.mul(stride, ir.Constant(I64, axis)), self.e.b.mul(warp, ir.Constant(I64, WARP_SIZE))
        )
        place = self.e.offset(table, self.e.b.shl(index, ir.Constant(I64, 2)))
        if not self.analysis.warps_in_rows:
            return Value(self.e.b.load(place, align=4, typ=vector(I32)), False)
        return Value(self.e.b.load(place, align=4, typ=I32), axis != 0, int(axis == 0))

    def shared_bytes(self) -> Value:
        """The block's shared memory in bytes, without the system's part."""
        return self.m.sub(U32, self._field("shared_size"), self.m.constant(U32, self.analysis.layout.shared_start))

    def is_explicit_cluster(self) -> Value:
        """Whether the launch or the kernel says what its clusters are."""
        said = self.e.load_field(Context, self.m.context, "explicit_cluster")
        return Value(self.e.b.icmp_unsigned("!=", said, ir.Constant(I64, 0)), True)

    def quotient(self, whole: str, part: str) -> Value:
        """A field of the context by another."""
        fields = (self.e.load_field(Context, self.m.context, name) for name in (whole, part))
        return Value(self.e.b.trunc(self.e.b.udiv(*fields), I32), True)

    def remainder(self, whole: str, part: str) -> Value:
        """What is left of a field of the context by another."""
        fields = (self.e.load_field(Context, self.m.context, name) for name in (whole, part))
        return Value(self.e.b.trunc(self.e.b.urem(*fields), I32), True)

    def dynamic_bytes(self) -> Value:
        """The shared memory that the launch added, in bytes."""
        size, start = self._field("shared_size"), self.m.constant(U32, self.analysis.layout.dynamic_start)
        has_some = self.m.compare(U32, "gt", size, start)
        return self.m.select(U32, has_some, self.m.sub(U32, size, start), self.m.constant(U32, 0))

    def _unsupported(self, instruction: BoundInstruction, what: str) -> UnsupportedFeature:
        text = instruction.instruction
        return UnsupportedFeature(
            f"{what} in '{text.opcode}' is not supported (PTX line {text.line})", where=text.where, frames=text.frames
        )


def _lane_masks(mask: Callable[[int], int]) -> Callable[[Operands], Value]:
    masks = ir.Constant(vector(I32), [ir.Constant(I32, mask(i)) for i in range(WARP_SIZE)])
    return lambda _: Value(masks, False)


_FIELDS: Mapping[str, str] = {
    "%warpid": "warp_index", "%nwarpid": "warp_count", "%envreg1": "envreg_1", "%envreg2": "envreg_2",
    **{f"%{vector}.{axis}": f"{vector}_{axis}" for vector in ("ntid", "ctaid", "nctaid") for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": f"cluster_{axis}" for axis in "xyz"}, "%cluster_nctarank": "cluster_size",
}  # fmt: skip
"""What the context holds of a launch."""
_COMPUTED: Mapping[str, Callable[[Operands], Value]] = {
    "%tid.x": lambda operands: operands.thread_index(0),
    "%tid.y": lambda operands: operands.thread_index(1),
    "%tid.z": lambda operands: operands.thread_index(2),
    "%laneid": lambda operands: operands.m.lane_index(),
    "%lanemask_eq": _lane_masks(lambda i: 1 << i),
    "%lanemask_lt": _lane_masks(lambda i: (1 << i) - 1),
    "%lanemask_le": _lane_masks(lambda i: (2 << i) - 1),
    "%lanemask_gt": _lane_masks(lambda i: 0xFFFF_FFFF & ~((2 << i) - 1)),
    "%lanemask_ge": _lane_masks(lambda i: 0xFFFF_FFFF & ~((1 << i) - 1)),
    "%total_smem_size": Operands.shared_bytes,
    "%dynamic_smem_size": Operands.dynamic_bytes,
    "%is_explicit_cluster": Operands.is_explicit_cluster,
    "%cluster_ctarank": lambda operands: operands.m.block_rank(),
    **{
        f"%{name}.{axis}": partial(compute, whole=f"{whole}_{axis}", part=f"cluster_{axis}")
        for axis in "xyz"
        for name, compute, whole in (
            ("clusterid", Operands.quotient, "ctaid"),
            ("nclusterid", Operands.quotient, "nctaid"),
            ("cluster_ctaid", Operands.remainder, "ctaid"),
        )
    },
}
