"""Every kind of tensor instruction that is recorded on a GPU, and the formats of its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

TILES = 6
"""Multiplications of 16 rows and 8 columns of results that are recorded of each kind and style."""


@dataclass(frozen=True, slots=True)
class Float:
    """A format of numbers; `unused` low bits of its register are not part of it, and are filled at random."""

    exponent: int
    mantissa: int
    unused: int = 0
    has_infinity: bool = True

    @property
    def bias(self) -> int:
        """What is added to an exponent."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def bits(self) -> int:
        """The width of an element in memory."""
        return 1 + self.exponent + self.mantissa + self.unused

    @property
    def highest(self) -> int:
        """The largest field of exponent that finite numbers have."""
        return (1 << self.exponent) - (2 if self.has_infinity else 1)


FLOATS: Mapping[str, Float] = {
    "f16": Float(5, 10),
    "bf16": Float(8, 7),
    "tf32": Float(8, 10, unused=13),
    "e4m3": Float(4, 3, has_infinity=False),
    "e5m2": Float(5, 2),
    "f32": Float(8, 23),
    "f64": Float(11, 52),
}
STYLES = (
    "bits", "finite", "narrow", "wide", "powers", "ones", "sparse", "beside", "clusters", "cancel", "tiny",
    "huge", "specials", "zeros",
)  # fmt: skip
"""Of the numbers that floating-point kinds are tried with; `mma_inputs.py` makes them."""
INTEGER_STYLES = ("bits", "ends")
INTEGERS: Mapping[str, int] = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}


def width(name: str) -> int:
    """Bits of an element."""
    return INTEGERS[name] if name in INTEGERS else FLOATS[name].bits


@dataclass(frozen=True, slots=True)
class Kind:
    """One instruction: its opcode, rows, columns and depth, and the types of its matrices."""

    opcode: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    scales: tuple[int, int, int] = (1, 1, 1)
    """Of `wgmma`: 0 where C is left out, -1 where the elements of A or B change their signs."""

    @property
    def name(self) -> str:
        """The opcode, with the scales where they are not all 1."""
        return self.opcode if self.scales == (1, 1, 1) else f"{self.opcode} {self.scales}"

    @property
    def mnemonic(self) -> str:
        """`mma`, `wmma` or `wgmma`."""
        return self.opcode.partition(".")[0]

    @property
    def styles(self) -> Sequence[str]:
        """What it is tried with."""
        return INTEGER_STYLES if self.a in INTEGERS else STYLES

    @property
    def tiles(self) -> int:
        """How many multiplications of each style are recorded."""
        return max(TILES * 128 // (self.m * self.n), 1)


def _warp_kinds() -> list[Kind]:
    kinds: list[Kind] = []

    def add(shape: tuple[int, int, int], d: str, a: str, b: str, end: str = "", before: str = "") -> None:
        m, n, k = shape
        kinds.append(
            Kind(f"mma.sync.aligned.m{m}n{n}k{k}.row.col{before}.{d}.{a}.{b}.{d}{end}", m, n, k, a, b, d, d)
        )  # fmt: skip

    for d in ("f32", "f16"):
        for k in (8, 16):
            add((16, 8, k), d, "f16", "f16")
    for k in (8, 16):
        add((16, 8, k), "f32", "bf16", "bf16")
    for k in (4, 8):
        add((16, 8, k), "f32", "tf32", "tf32")
    for d, k, (a, b) in product(("f32", "f16"), (16, 32), product(("e4m3", "e5m2"), repeat=2)):
        add((16, 8, k), d, a, b)
    for shape in ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)):
        add(shape, "f64", "f64", "f64")
    for rounding, shape in product(("rz", "rm", "rp"), ((8, 8, 4), (16, 8, 16))):
        add(shape, "f64", "f64", "f64", before=f".{rounding}")
    for names, ks in ((("s8", "u8"), (16, 32)), (("s4", "u4"), (32, 64))):
        for end, (a, b) in product(("", ".satfinite"), product(names, repeat=2)):
            for shape in ((8, 8, ks[0]), (16, 8, ks[0]), (16, 8, ks[1])):
                add(shape, "s32", a, b, before=end)
    for operation, shape in product(("xor", "and"), ((8, 8, 128), (16, 8, 128), (16, 8, 256))):
        add(shape, "s32", "b1", "b1", f".{operation}.popc")
    return kinds


def _group_kinds() -> list[Kind]:
    kinds: list[Kind] = []

    def add(d: str, a: str, b: str, n: int = 8, end: str = "", scales: tuple[int, int, int] = (1, 1, 1)) -> None:
        k = 256 // width(a)
        kinds.append(Kind(f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{end}", 64, n, k, a, b, d, d, scales))

    for d, a in (("f32", "f16"), ("f16", "f16"), ("f32", "bf16"), ("f32", "tf32")):
        add(d, a, a)
    for d, (a, b) in product(("f32", "f16"), product(("e4m3", "e5m2"), repeat=2)):
        add(d, a, b)
    for d, a in (("f32", "f16"), ("f16", "f16"), ("f32", "tf32"), ("f32", "e4m3"), ("f16", "e4m3")):
        add(d, a, a, scales=(0, 1, 1))
    for d, a, scales in (("f32", "f16", (1, -1, 1)), ("f32", "bf16", (1, 1, -1)), ("f32", "e5m2", (0, -1, 1))):
        add(d, a, a, scales=scales)
    add("f32", "f16", "f16", 64)
    add("f32", "e4m3", "e4m3", 64)
    for end, (a, b) in product(("", ".satfinite"), product(("s8", "u8"), repeat=2)):
        add("s32", a, b, end=end)
    add("s32", "s8", "s8", scales=(0, 1, 1))
    add("s32", "b1", "b1", end=".and.popc")
    return kinds


def _memory_kinds() -> list[Kind]:
    def kind(m: int, n: int, k: int, a: str, c: str, d: str) -> Kind:
        types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{a}.{c}"
        return Kind(f"wmma.mma.sync.aligned.row.col.m{m}n{n}k{k}.{types}", m, n, k, a, a, c, d)

    halves = [kind(16, 16, 16, "f16", c, d) for c, d in product(("f32", "f16"), repeat=2)]
    others = [kind(32, 8, 16, "f16", "f32", "f32"), kind(8, 32, 16, "f16", "f16", "f16")]
    return [*halves, *others, kind(16, 16, 16, "bf16", "f32", "f32"), kind(16, 16, 8, "tf32", "f32", "f32")]


KINDS: Sequence[Kind] = (*_warp_kinds(), *_group_kinds(), *_memory_kinds())
