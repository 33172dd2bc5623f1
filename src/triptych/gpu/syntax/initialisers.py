"""The initial values of variables: numbers and addresses -> bytes and references."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from triptych.gpu.syntax.ast import FloatBits, Integer, Symbol
from triptych.gpu.syntax.literals import parse_constant, parse_integer
from triptych.gpu.syntax.tokens import DEEPEST, Tokens

POINTER_BYTES = 8
FLOAT_CODES = {"f32": "<f", "f64": "<d"}
UNINITIALISED = frozenset(("f16", "bf16", "f16x2", "bf16x2", "pred"))
"""Types for which PTX has no way to write a value."""
Reference = tuple[int, Symbol]
"""A byte offset in a variable, and the symbol whose address is stored there."""


@dataclass(frozen=True, slots=True)
class MaskedByte:
    """`0xFF00(symbol)`: the byte of an address that a mask selects; `shift` is the lowest bit of the mask."""

    shift: int
    symbol: Symbol


Element = Integer | FloatBits | Symbol | MaskedByte


def parse_initial(
    tokens: Tokens, type_name: str, element_bytes: int, dimensions: list[int]
) -> tuple[bytes, tuple[Reference, ...]]:
    """Pass what follows `=` and return the bytes, not padded, and the references.

    `dimensions` is empty for a scalar; a first dimension of 0 takes as many elements as are written.
    """
    start = tokens.at
    if type_name in UNINITIALISED:
        raise tokens.error(f"a .{type_name} variable takes no initial value", hint="declare it as .b16 or .b32")
    if tokens.peek() != "{":
        if dimensions:
            raise tokens.expected("'{' before the initial values of an array")
        return _encode(tokens, start, type_name, element_bytes, {0: _parse_element(tokens)})
    numbers = _read_plain_list(tokens, element_bytes)
    if numbers is not None and len(dimensions) == 1 and type_name not in FLOAT_CODES:
        values, encoded, end = numbers
        _check_count(tokens, values, dimensions[0])
        tokens.at = end
        return encoded, ()
    elements: dict[int, Element] = {}
    _fill(tokens, elements, dimensions or [1], 0, 0)
    return _encode(tokens, start, type_name, element_bytes, elements)


def _read_plain_list(tokens: Tokens, element_bytes: int) -> tuple[int, bytes, int] | None:
    """Read `{1, 2, 3}`, the common case, at once: how many, their bytes and the place behind; None if it is another."""
    texts, first = tokens.texts, tokens.at + 1
    try:
        end = texts.index("}", first)
    except ValueError:
        raise tokens.error("the list of initial values has no '}': the text is cut short") from None
    items = texts[first:end:2]
    if set(texts[first + 1 : end : 2]) - {","} or (end - first) % 2 == 0:
        return None
    if not all(item.isdecimal() and item.isascii() and (item[0] != "0" or item == "0") for item in items):
        return None
    try:
        encoded = b"".join(int(item).to_bytes(element_bytes, "little") for item in items)
    except (OverflowError, ValueError):
        return None
    return len(items), encoded, end + 1


def _check_count(tokens: Tokens, count: int, room: int) -> None:
    if room and count > room:
        raise tokens.error(f"{count} initial values for {room} elements")


def _fill(tokens: Tokens, elements: dict[int, Element], dimensions: list[int], level: int, base: int) -> None:
    """Pass a brace list whose elements start at index `base`; an inner list fills one slice of the outer dimension."""
    tokens.expect("{", "before initial values")
    stride = math.prod(dimensions[level + 1 :])
    room = dimensions[level] * stride
    cursor = base
    while not tokens.accept("}"):
        if tokens.peek() == "{":
            if level + 1 >= len(dimensions) or level > DEEPEST:
                raise tokens.error("the initial values are nested deeper than the array's dimensions")
            _fill(tokens, elements, dimensions, level + 1, cursor)
            cursor += stride
        else:
            elements[cursor] = _parse_element(tokens)
            cursor += 1
        _check_count(tokens, cursor - base, room)
        if not tokens.accept(","):
            tokens.expect("}", "after the initial values")
            break


def _parse_element(tokens: Tokens) -> Element:
    token = tokens.peek()
    if not token or token[0].isdigit() or token in ("-", "+", "~", "(", "WARP_SZ"):
        value = parse_constant(tokens, "an initial value")
        if isinstance(value, Integer) and tokens.peek() == "(":
            return _parse_masked(tokens, value.value)
        return value
    return _parse_symbol(tokens)


def _parse_masked(tokens: Tokens, mask: int) -> MaskedByte:
    shift = (mask & -mask).bit_length() - 1
    if mask <= 0 or shift % 8 or mask >> shift != 0xFF:
        raise tokens.error(f"the mask {mask:#x} of an initial value does not select one byte")
    tokens.expect("(")
    symbol = _parse_symbol(tokens)
    tokens.expect(")", "after a masked address")
    return MaskedByte(shift, symbol)


def _parse_symbol(tokens: Tokens) -> Symbol:
    name = tokens.take_name("an initial value")
    offset = 0
    if name == "generic" and tokens.accept("("):
        name = tokens.take_name("a variable's name")
        offset = _parse_offset(tokens)
        tokens.expect(")", "after 'generic('")
    return Symbol(name, offset + _parse_offset(tokens))


def _parse_offset(tokens: Tokens) -> int:
    return parse_integer(tokens, "an offset") if tokens.peek() in ("+", "-") else 0


def _encode(
    tokens: Tokens, start: int, type_name: str, element_bytes: int, elements: dict[int, Element]
) -> tuple[bytes, tuple[Reference, ...]]:
    data = bytearray((max(elements, default=-1) + 1) * element_bytes)
    references: list[Reference] = []
    for index, element in elements.items():
        offset = index * element_bytes
        if isinstance(element, MaskedByte):
            if element.shift == 0:
                references.append((offset, _join_bytes(tokens, start, elements, index)))
            elif elements.get(index - 1) != MaskedByte(element.shift - 8, element.symbol):
                raise tokens.error(
                    "an initial value holds a part of an address; only whole addresses are supported", start
                )
        elif isinstance(element, Symbol):
            if element_bytes < 4:
                raise tokens.error(f"the address of '{element.name}' does not fit in a .{type_name}", start)
            references.append((offset, element))
        else:
            data[offset : offset + element_bytes] = _encode_number(tokens, start, type_name, element_bytes, element)
    return bytes(data), tuple(sorted(references, key=lambda reference: reference[0]))


def _join_bytes(tokens: Tokens, start: int, elements: dict[int, Element], index: int) -> Symbol:
    first = elements[index]
    assert isinstance(first, MaskedByte)
    if any(elements.get(index + i) != MaskedByte(8 * i, first.symbol) for i in range(POINTER_BYTES)):
        raise tokens.error("an initial value holds a part of an address; only whole addresses are supported", start)
    return first.symbol


def _encode_number(
    tokens: Tokens, start: int, type_name: str, element_bytes: int, number: Integer | FloatBits
) -> bytes:
    code = FLOAT_CODES.get(type_name)
    if isinstance(number, FloatBits) and number.width == 8 * element_bytes:
        return number.bits.to_bytes(element_bytes, "little")
    if code is not None:
        return _encode_float(code, number)
    if isinstance(number, FloatBits) or not -(1 << (8 * element_bytes - 1)) <= number.value < 1 << (8 * element_bytes):
        raise tokens.error(f"an initial value does not fit in a .{type_name}", start)
    return (number.value % (1 << (8 * element_bytes))).to_bytes(element_bytes, "little")


def _encode_float(code: str, number: Integer | FloatBits) -> bytes:
    if isinstance(number, Integer):
        value = float(number.value)
    else:
        value = struct.unpack("<d" if number.width == 64 else "<f", number.bits.to_bytes(number.width // 8, "little"))[
            0
        ]
    try:
        return struct.pack(code, value)
    except OverflowError:  # beyond the largest finite value: rounds to infinity
        return struct.pack(code, math.copysign(math.inf, value))
