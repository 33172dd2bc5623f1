"""`wmma`: multiplication of matrices whose fragments a warp loads and stores itself (PTX manual, 9.7.14.4).

Which lane holds what of a fragment the manual leaves open. Here it is as for `mma`, so that one helper serves both;
the fragments of f16, which have more registers than it takes, hold the matrix more than once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.tensor.fragments import SHARERS, Fragment, Product, accumulator, multiplicand, sizes_of
from triptych.gpu.isa.tensor.products import LAYOUTS, ROW_COL, multiply
from triptych.gpu.isa.types import B32, TYPES, U32, U64, ScalarType

_WIDE = "m16n16k16 m32n8k16 m8n32k16"
_F16_REGISTERS = 8
"""Of a multiplicand of f16, whatever its shape."""
_SPACES = "global shared shared::cta"


def _fragment(operand: str, shape: str, element: ScalarType) -> Fragment:
    m, n, k = sizes_of(shape)
    if operand in "cd":
        return accumulator(m, n, element)
    return multiplicand(m if operand == "a" else n, k, element, _F16_REGISTERS if element.name == "f16" else 0)


def _product(f: Form) -> Product:
    types = {"a": f.types.get("atype", TYPES["f16"]), "c": f.types["ctype"], "d": f.types["dtype"]}
    types["b"] = types["a"]
    return Product(
        *(_fragment(operand, f.get("shape"), types[operand]) for operand in "abcd"),
        saturates=f.has("satfinite"), operation=f.get("bits", "mul"), rounding=f.get("rnd", "rn"),
    )  # fmt: skip


def _mma(
    shapes: str, types: Mapping[str, str], opcode: str, needs: str | Mapping[str, str], *,
    groups: Mapping[str, str] | None = None, restrictions: tuple[Restriction, ...] = (),
) -> None:  # fmt: skip
    """A row. The layouts say how the fragments were loaded, and nothing of how they lie in registers."""
    row(
        f"wmma.mma{opcode} d*, a*, b*, c*", types=types,
        groups={"shape": shapes, **LAYOUTS, **(groups or {})}, needs=needs, restrictions=restrictions,
        section="9.7.14.4.5", pipe=Pipe.TENSOR, effect=Effect.MULTIPLY, product=_product,
    )(multiply)  # fmt: skip


_ALIGNED = ".sync.aligned.alayout.blayout.shape"
_FOUR = ".dtype.atype.btype.ctype"


def _types(accumulators: str, multiplicands: str) -> Mapping[str, str]:
    return {"dtype": accumulators, "atype": multiplicands, "btype": multiplicands, "ctype": accumulators}


_mma(_WIDE, {"dtype": "f16 f32", "ctype": "f16 f32"}, f"{_ALIGNED}.dtype.ctype", "sm_70")
_mma(_WIDE, _types("f32", "bf16"), _ALIGNED + _FOUR, "sm_80")
_mma("m16n16k8", _types("f32", "tf32"), _ALIGNED + _FOUR, "sm_80")
_mma("m8n8k4", _types("f64", "f64"), f"{_ALIGNED}{{.rnd}}{_FOUR}", "sm_80", groups={"rnd": "rn rz rm rp"})
for _kind in ("u8", "s8"):
    _mma(_WIDE, _types("s32", _kind), f"{_ALIGNED}{_FOUR}{{.satfinite}}", "sm_72")
for _kind in ("u4", "s4"):
    _mma("m8n8k32", _types("s32", _kind), f"{_ALIGNED}{_FOUR}{{.satfinite}}", "sm_75", restrictions=ROW_COL)
_mma(
    "m8n8k128", _types("s32", "b1"), f".bits.popc{_ALIGNED}{_FOUR}", {"": "sm_75", "and": "sm_80"},
    groups={"bits": "xor and"}, restrictions=ROW_COL,
)  # fmt: skip


# Loads and stores -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Transfer:
    """How a fragment goes between registers and memory: `line_by_line` where the elements of a line are neighbours."""

    fragment: Fragment
    line_by_line: bool

    @property
    def element(self) -> ScalarType:
        """What an access moves as one number."""
        bits = self.fragment.register.bits if self.line_by_line else self.fragment.element.bits
        return TYPES[f"b{bits}"]

    @property
    def count(self) -> int:
        """The numbers of an access: a lane's neighbours in memory."""
        return self.fragment.block_registers if self.line_by_line else 1

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """The first register of each block, and the line and the element where the block begins."""
        fragment = self.fragment
        for block in range(fragment.bands * fragment.along):
            register = block * fragment.block_registers
            yield register, *fragment.place(0, register, 0)

    def bytes_to(self, m: Machine[V], stride: V, line: V, index: V) -> V:
        """From the matrix's first element to another; u64s."""
        far, near = (line, index) if self.line_by_line else (index, line)
        elements = m.add(U64, m.mul(U64, far, stride), near)
        bits = self.fragment.element.bits
        if bits < 8:
            return m.shift_right(U64, elements, m.constant(U64, (8 // bits).bit_length() - 1))
        return m.mul(U64, elements, m.constant(U64, bits // 8))

    def places(self, m: Machine[V], address: V, stride: V) -> Iterator[tuple[int, int, V]]:
        """The accesses: the first register and the position in it, and the addresses."""
        lane, zero = m.resize(U32, U64, m.lane_index()), m.constant(U64, 0)
        line = m.shift_right(U64, lane, m.constant(U64, SHARERS.bit_length() - 1))
        sharer = m.bit_and(U64, lane, m.constant(U64, SHARERS - 1))
        index = m.mul(U64, sharer, m.constant(U64, self.fragment.run))
        own = m.add(U64, address, self.bytes_to(m, stride, line, index))
        for register, first_line, first in self.blocks():
            steps = (0,) if self.line_by_line else range(self.fragment.run)
            for step in steps:
                there = m.constant(U64, first_line), m.constant(U64, first + step)
                moved = zero if not (first_line or first + step) else self.bytes_to(m, stride, *there)
                part, position = divmod(step, self.fragment.packed)
                yield register + part, position, m.add(U64, own, moved)


def _transfer(f: Form) -> _Transfer:
    operand = "a" if f.has("a") else "b" if f.has("b") else "c"
    fragment = _fragment(operand, f.get("shape"), f.type)
    return _Transfer(fragment, f.get("layout") == ("col" if operand == "b" else "row"))


def _moves(f: Form) -> tuple[int, int]:
    """Bytes of an element of an access, and how many of them it moves."""
    transfer = _transfer(f)
    return transfer.element.bytes, transfer.count


def _fragments(f: Form) -> Mapping[str, Fragment]:
    return {"r": _transfer(f).fragment}


def _stride(m: Machine[V], f: Form, given: Sequence[V]) -> V:
    """Elements from one line in memory to the next, u64; those of a line where the text does not say."""
    if given:
        return m.resize(U32, U64, given[0])
    transfer = _transfer(f)
    fragment = transfer.fragment
    return m.constant(U64, fragment.length if transfer.line_by_line else fragment.lines)


def wmma_load(m: Machine[V], f: Form, address: V, *stride: V) -> Sequence[V]:
    """d = a matrix from memory; `stride` elements lie between the beginnings of its rows, or of its columns."""
    transfer = _transfer(f)
    kind, register_kind = transfer.element, transfer.fragment.register
    registers: dict[int, V] = {}
    for register, position, place in transfer.places(m, address, _stride(m, f, stride)):
        for part, value in enumerate(m.load(f.space, kind, place, transfer.count)):
            if kind.bits < register_kind.bits:
                value = m.resize(TYPES[f"u{kind.bits}"], U32, value)
                value = m.shift_left(U32, value, m.constant(U32, position * kind.bits))
            else:
                value = m.bitcast(kind, register_kind, value)
            known = registers.get(register + part)
            registers[register + part] = value if known is None else m.bit_or(B32, known, value)
    return [registers[register] for register in sorted(registers)] * transfer.fragment.copies


def wmma_store(m: Machine[V], f: Form, address: V, *values: V) -> None:
    """The matrix d to memory; `stride` elements lie between the beginnings of its rows, or of its columns."""
    transfer = _transfer(f)
    fragment, kind = transfer.fragment, transfer.element
    registers, stride = values[: fragment.registers], values[fragment.registers :]
    for register, position, place in transfer.places(m, address, _stride(m, f, stride)):
        parts: list[V] = []
        for value in registers[register : register + transfer.count]:
            if kind.bits < fragment.register.bits:
                value = m.shift_right(U32, value, m.constant(U32, position * kind.bits))
                parts.append(m.resize(U32, TYPES[f"u{kind.bits}"], value))
            else:
                parts.append(m.bitcast(fragment.register, kind, value))
        m.store(f.space, kind, place, parts)


_NEEDS = {
    "": "sm_70", "u8": "sm_72", "s8": "sm_72", "s32": "sm_72", "u4": "sm_75", "s4": "sm_75", "b1": "sm_75",
    "bf16": "sm_80", "tf32": "sm_80", "f64": "sm_80", "m16n16k8": "sm_80",
}  # fmt: skip


def _load(operand: str, shapes: str, types: str, layouts: str = "row col") -> None:
    row(
        f"wmma.load.{operand}.sync.aligned.layout.shape{{.space}}.type r*, [p]:u64, stride?:u32", types=types,
        groups={"layout": layouts, "shape": shapes, "space": _SPACES}, needs=_NEEDS, section="9.7.14.4.3",
        pipe=Pipe.LOAD_STORE, effect=Effect.LOAD_FRAGMENT, fragments=_fragments, moves=_moves,
    )(wmma_load)  # fmt: skip


def _store(shapes: str, types: str) -> None:
    row(
        "wmma.store.d.sync.aligned.layout.shape{.space}.type [p]:u64, r*, stride?:u32", types=types,
        groups={"layout": "row col", "shape": shapes, "space": _SPACES}, needs=_NEEDS, section="9.7.14.4.4",
        pipe=Pipe.LOAD_STORE, effect=Effect.STORE_FRAGMENT, fragments=_fragments, moves=_moves,
    )(wmma_store)  # fmt: skip


for _operand, _own in (("a", "row"), ("b", "col")):
    _load(_operand, _WIDE, "f16 bf16 u8 s8")
    _load(_operand, "m16n16k8", "tf32")
    _load(_operand, "m8n8k4", "f64")
    _load(_operand, "m8n8k32", "u4 s4", _own)
    _load(_operand, "m8n8k128", "b1", _own)
for _shapes, _accumulators in (
    (_WIDE, "f16 f32 s32"), ("m16n16k8", "f32"), ("m8n8k4", "f64"), ("m8n8k32 m8n8k128", "s32"),
):  # fmt: skip
    _load("c", _shapes, _accumulators)
    _store(_shapes, _accumulators)
