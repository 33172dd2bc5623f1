"""A thin layer over llvmlite's builder: vectors of 32 lanes, named fields, variables, structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.primitives.constants import number, vector
from triptych.gpu.lower.primitives.folding import FoldingBuilder
from triptych.gpu.lower.records import Record, Start

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()
VOID = ir.VoidType()

BITS, LANES = "triptych.bits", "triptych.lanes"
"""Functions between truths in lanes, 0 or -1 as an i32, and in bits (`outlined.py`)."""

AFFINE_TYPES = (I32, I64)
"""The types of which there is an `affine` and a `keep` (`outlined.py`)."""


def affine_name(kind: ir.IntType) -> str:
    """The symbol of `affine` of a type."""
    return f"triptych.affine.{kind.width}"


str(ir.Constant(ir.ArrayType(I8, 1), bytearray(1)))
# With its first text llvmlite fills a table, which modules that are made in several threads would see half filled.


class _Undefined(ir.Constant):
    """A vector that holds nothing yet."""

    def get_reference(self) -> str:
        return "undef"


@cache
def undefined(kind: ir.VectorType) -> ir.Constant:
    """A vector whose lanes are still to be put in."""
    return _Undefined(kind, ir.Undefined)


@lru_cache(maxsize=1 << 14)
def constant(value: int) -> ir.Constant:
    """An i64, which most of what generated code reckons with is: fields, addresses, counts."""
    return ir.Constant(I64, value)


@lru_cache(maxsize=1 << 10)
def lanes(kind: ir.Type, scale: int = 1) -> ir.Constant:
    """0, scale, 2 · scale …"""
    return ir.Constant(vector(kind), [ir.Constant(kind, i * scale) for i in range(WARP_SIZE)])


class Emitter:
    """Emits into one function."""

    def __init__(self, function: ir.Function, *, is_brief: bool = False) -> None:
        """Starts with the function's entry block, which keeps the variables.

        `is_brief`: whether the code is to be made soon rather than to run fast, of calls where these are shorter.
        """
        self.is_brief = is_brief
        self._at_entry: dict[str, ir.Value] = {}
        self._truths: dict[int, ir.Value] = {}
        """What is 0 or -1 in each lane, an i32, by the identity of the <32 x i1> that says the same."""
        self.function = function
        self.module: ir.Module = function.module
        self.entry = function.append_basic_block("entry")
        self.b = FoldingBuilder(self.entry)

    def block(self, name: str) -> ir.Block:
        """A new block."""
        return self.function.append_basic_block(name)

    def variable(self, kind: ir.Type, initial: ir.Value | None = None, name: str = "") -> ir.Value:
        """A mutable variable, set to `initial` here; LLVM makes values of it."""
        with self.b.goto_entry_block():
            place = self.b.alloca(kind, name=name)
            place.type = POINTER
        if initial is not None:
            self.b.store(initial, place)
        return place

    def get(self, place: ir.Value, kind: ir.Type) -> ir.Value:
        """A variable's value."""
        return self.b.load(place, typ=kind)

    def offset(self, pointer: ir.Value, amount: ir.Value | int) -> ir.Value:
        """A pointer moved by bytes."""
        if amount == 0:
            return pointer
        index = constant(amount) if isinstance(amount, int) else amount
        return self.b.gep(pointer, [index], source_etype=I8)

    def field(self, record: type[Record], pointer: ir.Value, name: str) -> ir.Value:
        """The address of a field."""
        return self.offset(pointer, 8 * record.position(name))

    def load_field(self, record: type[Record], pointer: ir.Value, name: str, kind: ir.Type = I64) -> ir.Value:
        """A field's value."""
        return self.b.load(self.field(record, pointer, name), typ=kind)

    def add_field(self, record: type[Record], pointer: ir.Value, name: str, amount: ir.Value) -> None:
        """Adds to a field."""
        place = self.field(record, pointer, name)
        self.b.store(self.b.add(self.b.load(place, typ=I64), amount), place)

    def start_record(self, record: type[Record], pointer: ir.Value, given: Mapping[str, ir.Value]) -> None:
        """Stores what a record begins with; `given` are the fields for which it names no constant."""
        for name, start in record.STARTS.items():
            if start is not Start.KEPT:
                value = given[name] if isinstance(start, Start) else constant(start)
                self.b.store(value, self.field(record, pointer, name))

    def splat(self, value: ir.Value, count: int = WARP_SIZE) -> ir.Value:
        """The same value in every lane."""
        if isinstance(value, ir.Constant) and not isinstance(value.constant, (str, list, tuple)):
            return number(vector(value.type, count), value.constant)
        kind = vector(value.type, count)
        first = self.b.insert_element(undefined(kind), value, number(I32, 0))
        return self.b.shuffle_vector(first, undefined(kind), number(vector(I32, count), 0))

    def affine(self, base: ir.Value, stride: int) -> ir.Value:
        """base + lane · stride in every lane."""
        kind = base.type
        if self.is_brief and kind in AFFINE_TYPES and not isinstance(base, ir.Constant):
            return self.pure(affine_name(kind), vector(kind), [base, number(kind, stride)])
        return self.b.add(self.splat(base), lanes(kind, stride))

    def at_entry(self, key: str, make: Callable[[], ir.Value]) -> ir.Value:
        """A value that stays the same while the function runs, made once, where that begins."""
        if key not in self._at_entry:
            with self.b.goto_entry_block():
                self._at_entry[key] = make()
        return self._at_entry[key]

    def intrinsic(self, name: str, result: ir.Type, arguments: Sequence[ir.Value]) -> ir.Value:
        """A call of an intrinsic or of a function of another module, by its full name."""
        function = self.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(result, [a.type for a in arguments])
            function = ir.Function(self.module, kind, name)
        return self.b.call(function, list(arguments))

    def fill(self, place: ir.Value, byte: int | ir.Value, size: ir.Value) -> None:
        """One byte, a number or an i8, in `size` bytes of memory, an i64."""
        value = ir.Constant(I8, byte) if isinstance(byte, int) else byte
        self.intrinsic("llvm.memset.p0.i64", VOID, [place, value, size, ir.Constant(I1, 0)])

    def clear(self, place: ir.Value, size: int) -> None:
        """Zeros in so many bytes of memory."""
        self.fill(place, 0, constant(size))

    def all_lanes(self, condition: ir.Value) -> ir.Value:
        """Whether a <32 x i1> holds everywhere."""
        return self.b.icmp_unsigned("==", self.b.bitcast(condition, I32), ir.Constant(I32, -1))

    def bits(self, condition: ir.Value) -> ir.Value:
        """A <32 x i1> as an i32."""
        if self.is_brief and not isinstance(condition, ir.Constant):
            return self.pure(BITS, I32, [self.truths(condition)])
        return self.b.bitcast(condition, I32)

    def from_bits(self, mask: ir.Value) -> ir.Value:
        """An i32 as a <32 x i1>."""
        if self.is_brief and not isinstance(mask, ir.Constant):
            return self.from_truths(self.pure(LANES, vector(I32), [mask]))
        return self.b.bitcast(mask, vector(I1))

    def truths(self, condition: ir.Value) -> ir.Value:
        """A <32 x i1> as 0 or -1 in each lane, an i32."""
        known = self._truths.get(id(condition))
        return self.b.sext(condition, vector(I32)) if known is None else known

    def from_truths(self, truths: ir.Value) -> ir.Value:
        """0 or -1 in each lane as a <32 x i1>."""
        condition = self.b.icmp_unsigned("!=", truths, number(vector(I32), 0))
        if not isinstance(condition, ir.Constant):
            self._truths[id(condition)] = truths  # an instruction lives as long as the function
        return condition

    def count_trailing_zeros(self, value: ir.Value) -> ir.Value:
        """Of an i32."""
        return self.intrinsic("llvm.cttz.i32", I32, [value, ir.Constant(I1, 0)])

    def count_ones(self, value: ir.Value) -> ir.Value:
        """Of an i32."""
        return self.intrinsic("llvm.ctpop.i32", I32, [value])

    def pure(self, name: str, result: ir.Type, arguments: Sequence[ir.Value]) -> ir.Value:
        """`intrinsic` of a function that only reads memory: where nothing takes its result, LLVM leaves it out."""
        call = self.intrinsic(name, result, arguments)
        attributes = self.module.globals[name].attributes
        set[str].update(attributes, ("readonly", "nounwind", "willreturn"))  # llvmlite's own list lacks the last one
        return call

    @contextmanager
    def when(self, condition: ir.Value, *, likely: bool | None = None) -> Generator[None]:
        """Code that runs where the condition holds."""
        if isinstance(condition, ir.Constant) and condition.constant:
            yield
            if self.b.block.is_terminated:  # what follows is never reached
                self.b.position_at_end(self.block("unreached"))
            return
        with self.b.if_then(condition, likely=likely):
            yield

    @contextmanager
    def each_lane(self, mask: ir.Value) -> Generator[ir.Value]:
        """Runs for each set bit of an i32, ascending; gives the lane as an i64."""
        left = self.variable(I32, mask)
        head, body, done = self.block("lanes"), self.block("lane"), self.block("lanes_done")
        self.b.branch(head)
        self.b.position_at_end(head)
        rest = self.get(left, I32)
        self.b.cbranch(self.b.icmp_unsigned("!=", rest, ir.Constant(I32, 0)), body, done)
        self.b.position_at_end(body)
        lane = self.b.zext(self.count_trailing_zeros(rest), I64)
        self.b.store(self.b.and_(rest, self.b.sub(rest, ir.Constant(I32, 1))), left)
        yield lane
        self.b.branch(head)
        self.b.position_at_end(done)

    @contextmanager
    def counted(self, count: ir.Value, start: int = 0) -> Generator[ir.Value]:
        """Runs with an i64 from `start` below `count`."""
        index = self.variable(I64, ir.Constant(I64, start))
        head, body, done = self.block("loop"), self.block("body"), self.block("loop_done")
        self.b.branch(head)
        self.b.position_at_end(head)
        i = self.get(index, I64)
        self.b.cbranch(self.b.icmp_signed("<", i, count), body, done)
        self.b.position_at_end(body)
        yield i
        self.b.store(self.b.add(i, ir.Constant(I64, 1)), index)
        self.b.branch(head)
        self.b.position_at_end(done)


def start_function(
    module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type], *, is_brief: bool = False
) -> Emitter:
    """Emits into a new function of a module."""
    return Emitter(ir.Function(module, ir.FunctionType(result, arguments), name), is_brief=is_brief)


class Callee:
    """A pointer that llvmlite takes for a function of a known type."""

    def __init__(self, pointer: ir.Value, kind: ir.FunctionType) -> None:
        """`kind` is the type of what the pointer points to."""
        self.pointer = pointer
        self.function_type = kind

    def get_reference(self) -> str:
        """How the text of a call names it."""
        return self.pointer.get_reference()
