"""C++ parameter types: what an array must hold to be passed for `const float*`, what a number must be for `int`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.core.dtypes import DTYPES, DType


@dataclass(frozen=True, slots=True)
class CType:
    """A parameter's type as far as it is understood."""

    text: str
    """As messages show it: `const float*`."""
    pointer: bool = False
    constant: bool = False
    """Whether what the pointer points to is const."""
    elements: frozenset[str] | None = None
    """The dtypes that an array may have, by name; None: not known, any will do."""
    scalar: DType | None = None
    """The type of a parameter passed by value; None: a struct, or not known."""

    @property
    def expected(self) -> str:
        """The dtypes that an array may have, as numpy calls them."""
        return " or ".join(str(DTYPES[name].numpy) for name in sorted(self.elements or ()))


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is known of a parameter beyond its PTX type; both are None where the source does not say."""

    name: str | None = None
    ctype: CType | None = None

    @property
    def text(self) -> str | None:
        """`const float* A`, or what there is of it."""
        parts = [part for part in (self.ctype.text if self.ctype else None, self.name) if part]
        return " ".join(parts) or None


@dataclass(frozen=True, slots=True)
class Declared:
    """A variable's type as far as it is understood."""

    element: DType | None
    """Of an array, and of types of several elements (`float4`), that of one; None: a struct, or not known."""
    pointer: bool = False


# Each row: a type's spellings, the dtype of one element, how many elements it has. An array of the other signedness
# is accepted too: C++ programs use int* for unsigned data and the other way round.
_ROWS: tuple[tuple[str, str, int], ...] = (
    ("float", "f32", 1),
    ("double", "f64", 1),
    ("half|__half", "f16", 1),
    ("__nv_bfloat16|nv_bfloat16", "bf16", 1),
    ("__nv_fp8_e4m3", "f8e4m3fn", 1),
    ("__nv_fp8_e5m2", "f8e5m2", 1),
    ("bool", "b1", 1),
    ("char|signed char|int8_t", "s8", 1),
    ("unsigned char|uint8_t|uchar", "u8", 1),
    ("short|short int|signed short|signed short int|int16_t", "s16", 1),
    ("unsigned short|unsigned short int|uint16_t|ushort", "u16", 1),
    ("int|signed|signed int|int32_t", "s32", 1),
    ("unsigned|unsigned int|uint32_t|uint", "u32", 1),
    ("long|long int|signed long|long long|long long int|signed long long|int64_t|ptrdiff_t|intptr_t", "s64", 1),
    ("unsigned long|unsigned long int|unsigned long long|unsigned long long int|uint64_t|size_t|uintptr_t|ulong",
     "u64", 1),
    ("half2|__half2", "f16", 2),
    ("__nv_bfloat162|nv_bfloat162", "bf16", 2),
    *((f"{name}{count}", dtype, count) for name, dtype in (
        ("float", "f32"), ("double", "f64"), ("char", "s8"), ("uchar", "u8"), ("short", "s16"), ("ushort", "u16"),
        ("int", "s32"), ("uint", "u32"), ("long", "s64"), ("ulong", "u64"), ("longlong", "s64"), ("ulonglong", "u64"),
    ) for count in (1, 2, 3, 4)),
)  # fmt: skip

_OTHER_SIGN: Mapping[str, frozenset[str]] = {
    "b1": frozenset({"b1", "u8", "s8"}),
    **{f"{sign}{bits}": frozenset({f"s{bits}", f"u{bits}"}) for sign in "su" for bits in (16, 32, 64)},
    **{f"{sign}8": frozenset({"s8", "u8", "b1"}) for sign in "su"},
}

_BY_SPELLING: Mapping[tuple[str, ...], tuple[str, int]] = {
    tuple(sorted(spelling.split())): (dtype, count)
    for spellings, dtype, count in _ROWS
    for spelling in spellings.split("|")
}

_ADDRESSES = frozenset({"u64", "s64"})
"""What an array of pointers holds."""

_IGNORED = frozenset({"__restrict__", "__restrict", "restrict", "volatile", "struct", "class", "__grid_constant__"})
_STANDARD = re.compile(r"\bstd\s*::\s*")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\S")


def same_size(dtype: DType) -> frozenset[str]:
    """The dtypes, by name, that are taken for `dtype`: itself, and that of the other signedness."""
    return _OTHER_SIGN.get(dtype.name, frozenset({dtype.name}))


def declared_type(tokens: Sequence[str]) -> Declared:
    """The type of a variable, by the tokens before its name, those that say where it lives left out."""
    if "*" in tokens:
        return Declared(DTYPES["u64"], pointer=True)
    words = _TOKEN.findall(_STANDARD.sub("", " ".join(tokens)))
    row = _BY_SPELLING.get(tuple(sorted(word for word in words if word not in _IGNORED and word != "const")))
    return Declared(None if row is None else DTYPES[row[0]])


def parse_type(text: str) -> CType:
    """A type as a compiler or an author writes it: `float const*`, `const float *__restrict__`, `unsigned long`."""
    tokens = _TOKEN.findall(_STANDARD.sub("", text))
    stars = [position for position, token in enumerate(tokens) if token == "*"]
    pointee = tokens[stars[-2] + 1 if len(stars) > 1 else 0 : stars[-1]] if stars else []
    words = [token for token in tokens if token not in _IGNORED and token not in ("const", "*")]
    row = _BY_SPELLING.get(tuple(sorted(words)))
    if not stars:
        return CType(_joined(words), scalar=DTYPES[row[0]] if row is not None and row[1] == 1 else None)
    constant = "const" in pointee
    if len(stars) > 1:
        middle = "* const*" if constant else "**"
        return CType(_joined(words) + "*" * (len(stars) - 2) + middle, True, constant, _ADDRESSES)
    elements = None if row is None else same_size(DTYPES[row[0]])
    return CType(("const " if constant else "") + _joined(words) + "*", True, constant, elements)


def _joined(tokens: list[str]) -> str:
    """Tokens with a space between words alone."""
    text = ""
    for token in tokens:
        text += " " + token if text and text[-1].isalnum() and token[0].isalnum() else token
    return text
