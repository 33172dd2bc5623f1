"""Matrices in the registers of a warp: which lane and register holds which element, and what a multiplication takes.

All fragments of warp-level multiplications (PTX manual, 9.7.14.4 and 9.7.14.5) are made of *blocks* of eight lines: of
A, C and D a line is a row, of B a column. Four neighbouring lanes hold a line of a block, each as many neighbouring
elements as fill a register of 32 bits (one of f64), or two of an accumulator. The blocks follow each other down the
lines first, then along them. `mma.m8n8k4` of f16, which multiplies four times at once, has a layout of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.tensor.numerics import FAST
from triptych.gpu.isa.tensor.summation import Summation
from triptych.gpu.isa.types import B32, F32, F64, S32, ScalarType

LINES = 8
"""Of a block."""
SHARERS = WARP_SIZE // LINES
"""Lanes that hold a line of a block."""
_WHOLE_REGISTERS: Mapping[str, ScalarType] = {"f32": F32, "s32": S32, "f64": F64}
"""Elements that are alone in their register; of the others a `.b32` holds as many as fit."""

_PIPES: Mapping[str, str] = {"e4m3": "fp8", "e5m2": "fp8", "u8": "s8", "u4": "s4"}
"""Of the types that are not called as their pipe is."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A matrix over the registers of a warp: `lines` lines of `length` elements."""

    lines: int
    length: int
    element: ScalarType
    run: int
    """Neighbouring elements of a line that a lane holds."""
    copies: int = 1
    """How often the registers hold the matrix, one time after the other."""

    @property
    def register(self) -> ScalarType:
        """The type of a register."""
        return _WHOLE_REGISTERS.get(self.element.name, B32)

    @property
    def packed(self) -> int:
        """Elements in a register."""
        return self.register.bits // self.element.bits

    @property
    def block_registers(self) -> int:
        """Registers of a block."""
        return self.run // self.packed

    @property
    def bands(self) -> int:
        """Blocks one below the other."""
        return self.lines // LINES

    @property
    def along(self) -> int:
        """Blocks one behind the other."""
        return self.length // (SHARERS * self.run)

    @property
    def registers(self) -> int:
        """Registers of a lane."""
        return self.bands * self.along * self.block_registers * self.copies

    @property
    def name(self) -> str:
        """Names all that code for it depends on."""
        return f"{self.lines}x{self.length}.{self.element}.{self.run}{f'.{self.copies}' if self.copies > 1 else ''}"

    def place(self, lane: int, register: int, position: int) -> tuple[int, int]:
        """The line, and the element in it, that a lane holds at a position of a register."""
        block, part = divmod(register % (self.registers // self.copies), self.block_registers)
        along, band = divmod(block, self.bands)
        line = LINES * band + lane // SHARERS
        return line, (SHARERS * along + lane % SHARERS) * self.run + part * self.packed + position

    def places(self) -> Iterator[tuple[tuple[int, int], tuple[int, int, int]]]:
        """Each element once: its line and its place there, and the lane, the register and the position that hold it."""
        for register in range(self.registers // self.copies):
            for lane in range(WARP_SIZE):
                for position in range(self.packed):
                    yield self.place(lane, register, position), (lane, register, position)


def multiplicand(lines: int, length: int, element: ScalarType, registers: int = 0) -> Fragment:
    """A, or B by columns; `registers` of a lane where they hold it more than once."""
    one = Fragment(lines, length, element, max(B32.bits // element.bits, 1))
    return Fragment(lines, length, element, one.run, registers // one.registers) if registers else one


def accumulator(rows: int, columns: int, element: ScalarType) -> Fragment:
    """C or D: a lane holds two neighbouring elements of a row."""
    return Fragment(rows, columns, element, 2)


@dataclass(frozen=True, slots=True)
class Product:
    """D = A × B + C as one instruction of a warp does it: all that its code depends on."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    saturates: bool = False
    """Whether sums of integers stop at the ends of their range."""
    operation: str = "mul"
    """What takes the place of products: of single bits `xor` or `and`, whose set bits are added up."""
    rounding: str = "rn"
    """Of f64: to nearest even, or `rz`, `rm`, `rp`."""
    numerics: str = FAST
    """The arithmetic that adds products up: a name of `isa/tensor/numerics.py`."""
    summation: Summation | None = None
    """How the hardware adds up, where that is the arithmetic and it has a rule of its own."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows of D, columns of D, and the elements that each is a sum over."""
        return self.a.lines, self.b.lines, self.a.length

    @property
    def flops(self) -> int:
        """Operations of all lanes together: a multiplication and an addition for each product."""
        m, n, k = self.shape
        return 2 * m * n * k

    @property
    def pipe(self) -> str:
        """The tensor cores' pipe that it runs on, by the type of A."""
        return _PIPES.get(self.a.element.name, self.a.element.name)

    @property
    def name(self) -> str:
        """Names all that its code depends on."""
        m, n, k = self.shape
        registers = f"{self.a.registers}.{self.b.registers}"
        types = ".".join(str(part.element) for part in (self.d, self.a, self.b, self.c))
        rest = f"{self.operation}.{self.rounding}{'.satfinite' if self.saturates else ''}"
        how = self.numerics if self.summation is None else f"{self.numerics}.{self.summation.name}"
        return f"m{m}n{n}k{k}.{types}.{registers}.{rest}.{how}"

    @property
    def types(self) -> tuple[str, str, str, str]:
        """Of the elements of D, A, B and C, by name."""
        return self.d.element.name, self.a.element.name, self.b.element.name, self.c.element.name

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """By the operand's name."""
        return {"a": self.a, "b": self.b, "c": self.c, "d": self.d}


def product_of(
    shape: str, types: Mapping[str, ScalarType], *, saturates: bool = False, operation: str = "mul",
    rounding: str = "rn",
) -> Product:  # fmt: skip
    """The multiplication of a shape (`m16n8k16`) and the types of A, B, C and D, by the names `atype` …."""
    m, n, k = sizes_of(shape)
    return Product(
        multiplicand(m, k, types["atype"]),
        multiplicand(n, k, types["btype"]),
        accumulator(m, n, types["ctype"]),
        accumulator(m, n, types["dtype"]),
        saturates,
        operation,
        rounding,
    )


def sizes_of(shape: str) -> tuple[int, int, int]:
    """The m, n and k of `m16n8k16`."""
    m, _, rest = shape.removeprefix("m").partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)
