"""The syntax tree of a PTX module: what the parser makes, the printer prints and every later pass reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter

from triptych.core.source import SourceLocation


@dataclass(frozen=True, slots=True)
class Register:
    """A register, or a special register (`%tid.x`); names are unique in their function (scopes are resolved)."""

    name: str


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer literal, and `WARP_SZ`."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatBits:
    """A floating-point literal by its bits (`0f3F800000` has width 32, `0d…` 64, decimal literals are 64)."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, function, parameter or label used as an operand, with a byte offset (`name+4`)."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`."""

    base: Register | Symbol | Integer
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    """`!%p`."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, …}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: a destination with a predicate beside it."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a destination that is thrown away."""


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b, …)` of a call."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class AddressList:
    """`[map, {x, y}]`: an address with more inside its brackets (tensor maps, textures)."""

    elements: tuple[Operand, ...]


Operand = Register | Integer | FloatBits | Symbol | Address | Not | Vector | Pair | Sink | Group | AddressList


@dataclass(frozen=True, slots=True)
class Guard:
    """`@%p` or `@!%p` before an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instruction comes from: the author's line, and the calls it was inlined through, innermost first."""

    where: SourceLocation
    frames: tuple[SourceLocation, ...] = ()


_ORDINAL_BITS = 16


def line_of(place: int) -> int:
    """The line of the instruction at a place."""
    return place >> _ORDINAL_BITS


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `modifiers` keep the text's order, types included, without dots; `line` is the PTX text's."""

    mnemonic: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    origin: Origin | None = None
    added: bool = False
    """Whether it carries out a part of a call and is no instruction of the text's: nothing counts it."""
    ordinal: int = field(default=0, compare=False)
    """How many instructions stand before it in its line."""

    @property
    def place(self) -> int:
        """Its line and its place there as one number, by which it is found again; ascending as the text does."""
        return self.line << _ORDINAL_BITS | self.ordinal

    @property
    def where(self) -> SourceLocation:
        """The author's line; that of the PTX text where the text does not say."""
        return self.origin.where if self.origin is not None else SourceLocation("<ptx>", self.line)

    @property
    def frames(self) -> tuple[SourceLocation, ...]:
        """The callers that the author's line was inlined into, innermost first."""
        return self.origin.frames if self.origin is not None else ()

    @property
    def opcode(self) -> str:
        """The dotted opcode as written."""
        return ".".join((self.mnemonic, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    """A label; names are unique in their function (scopes are resolved)."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class BranchTargets:
    """`name: .branchtargets a, b, …;` for `brx.idx`."""

    name: str
    labels: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class CallTargets:
    """`name: .calltargets f, g, …;`: the functions that an indirect call may call."""

    name: str
    functions: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a state space. `count` is the elements (None: not an array; 0: `x[]`, sized by the launch)."""

    name: str
    space: str
    """`global`, `const`, `shared`, `local`, `param` or `reg`."""
    type: str
    align: int
    count: int | None
    initial: bytes | None = None
    """The initial bytes, little-endian, padded with zeros to the variable's size."""
    references: tuple[tuple[int, Symbol], ...] = ()
    """Symbols whose address is to be stored at a byte offset of the initial value."""
    linkage: str = ""
    """`visible`, `extern`, `weak`, `common` or empty."""
    is_pointer: bool = False
    """A parameter declared `.ptr`."""
    line: int = 0

    def __reduce__(self) -> tuple[type[Variable], tuple[object, ...]]:
        """For pickle, which takes ten times as long with what dataclasses give it: headers declare hundreds."""
        return Variable, _FIELDS_OF_VARIABLE(self)


_FIELDS_OF_VARIABLE = attrgetter(*(one.name for one in fields(Variable)))


@dataclass(frozen=True, slots=True)
class CallPrototype:
    """`name: .callprototype (results) _ (parameters);`: the type of the functions that an indirect call may call."""

    name: str
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    line: int


Statement = Instruction | Label | BranchTargets | CallTargets | CallPrototype


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or a `.func`."""

    name: str
    is_entry: bool
    linkage: str
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    registers: Mapping[str, str]
    """Every declared register's type (`%r1` -> `b32`), `%r<9>` ranges written out."""
    variables: tuple[Variable, ...]
    """Variables declared in the body (`.local`, `.shared`, `.param`), names unique in the function."""
    body: tuple[Statement, ...] | None
    """None for a declaration without a body."""
    directives: Mapping[str, tuple[int, ...]]
    """`reqntid`, `maxntid`, `minnctapersm`, `maxnreg`, `reqnctapercluster`, `explicitcluster` and their numbers."""
    line: int


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX module."""

    version: tuple[int, int]
    target: str
    """As written (`sm_80`, `sm_90a`), further target options left out."""
    address_size: int
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]
    files: Mapping[int, str]
    """The `.file` directives."""
