"""Integer arithmetic, logic and movement by Python's integers (PTX manual, 9.7.1, 9.7.8, 9.7.9)."""

from __future__ import annotations

from expected import Expected
from opcodes import Opcode

from triptych.gpu.isa.spaces import WINDOWS


def width(name: str) -> int:
    return int(name.lstrip("usbf"))


def number(name: str, bits: int) -> int:
    """The integer that bits of a type stand for."""
    size = width(name)
    bits &= (1 << size) - 1
    return bits - (1 << size) if name[0] == "s" and bits >> (size - 1) else bits


def wrap(value: int, size: int) -> int:
    return value & ((1 << size) - 1)


def clamp(value: int, name: str) -> int:
    low = -(1 << (width(name) - 1)) if name[0] == "s" else 0
    return min(max(value, low), low + (1 << width(name)) - 1)


def _bits_result(op: Opcode, value: int) -> tuple[Expected]:
    return (wrap(value, width(op.type)),)


def add(op: Opcode, *bits: int) -> tuple[Expected]:
    a, b = (number(op.type, x) for x in bits)
    total = a + b if op.mnemonic == "add" else a - b
    return _bits_result(op, clamp(total, op.type) if op.has("sat") else total)


def multiply(op: Opcode, *bits: int) -> tuple[Expected]:
    a, b = (number(op.type, x) for x in bits[:2])
    size = width(op.type)
    product = a * b
    if op.has("wide"):
        return (wrap(product + (bits[2] if len(bits) > 2 else 0), 2 * size),)
    part = product >> size if op.has("hi") else product
    return _bits_result(op, part + (bits[2] if len(bits) > 2 else 0))


def divide(op: Opcode, *bits: int) -> tuple[Expected]:
    """What division by zero gives is the hardware's choice: all ones, and the dividend for the remainder."""
    a, b = (number(op.type, x) for x in bits)
    if b == 0:
        return _bits_result(op, -1 if op.mnemonic == "div" else a)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return _bits_result(op, quotient if op.mnemonic == "div" else a - b * quotient)


def sad(op: Opcode, *bits: int) -> tuple[Expected]:
    a, b = (number(op.type, x) for x in bits[:2])
    return _bits_result(op, bits[2] + abs(a - b))


def sign(op: Opcode, a: int) -> tuple[Expected]:
    value = number(op.type, a)
    return _bits_result(op, abs(value) if op.mnemonic == "abs" else -value)


def extreme(op: Opcode, *bits: int) -> tuple[Expected]:
    values = [number(op.type, x) for x in bits]
    return _bits_result(op, min(values) if op.mnemonic == "min" else max(values))


def popc(op: Opcode, a: int) -> tuple[Expected]:
    return (f"{a:b}".count("1"),)


def clz(op: Opcode, a: int) -> tuple[Expected]:
    text = f"{a:0{width(op.type)}b}"
    return (len(text) - len(text.lstrip("0")),)


def bfind(op: Opcode, a: int) -> tuple[Expected]:
    value = number(op.type, a)
    place = (value if value >= 0 else ~value).bit_length() - 1
    return (0xFFFFFFFF if place < 0 else width(op.type) - 1 - place if op.has("shiftamt") else place,)


def brev(op: Opcode, a: int) -> tuple[Expected]:
    return (int(f"{a:0{width(op.type)}b}"[::-1], 2),)


def bfe(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    """The manual's own loop over bits."""
    top = width(op.type) - 1
    start, length = b & 255, c & 255
    fill = 0 if op.type[0] == "u" or length == 0 else a >> min(start + length - 1, top) & 1
    picked = (a >> (start + i) & 1 if i < length and start + i <= top else fill for i in range(top + 1))
    return (sum(bit << i for i, bit in enumerate(picked)),)


def bfi(op: Opcode, a: int, b: int, c: int, d: int) -> tuple[Expected]:
    """The manual's own loop over bits."""
    top = width(op.type) - 1
    start, length = c & 255, d & 255
    result = b
    for i in range(length):
        if start + i <= top:
            result = result & ~(1 << (start + i)) | (a >> i & 1) << (start + i)
    return (result,)


def logic(op: Opcode, a: int, b: int) -> tuple[Expected]:
    return ({"and": a & b, "or": a | b, "xor": a ^ b}[op.mnemonic],)


def invert(op: Opcode, a: int) -> tuple[Expected]:
    if op.mnemonic == "cnot":
        return (int(a == 0),)
    return (1 - a,) if op.type == "pred" else _bits_result(op, ~a)


def lop3(op: Opcode, a: int, b: int, c: int, table: int) -> tuple[Expected]:
    return (sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32)),)


def shift(op: Opcode, a: int, b: int) -> tuple[Expected]:
    amount = min(b, width(op.type))
    return _bits_result(op, a << amount if op.mnemonic == "shl" else number(op.type, a) >> amount)


def shf(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    amount = c & 31 if op.has("wrap") else min(c, 32)
    whole = b << 32 | a
    return (wrap(whole >> amount, 32) if op.has("r") else wrap(whole << amount >> 32, 32),)


def prmt(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    source = (b << 32 | a).to_bytes(8, "little")
    picked: list[int] = []
    for position in range(4):
        nibble = c >> (4 * position) & 15
        byte = source[nibble & 7]
        picked.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return (int.from_bytes(bytes(picked), "little"),)


def selp(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    return (a if c else b,)


def mov(op: Opcode, a: int) -> tuple[Expected]:
    return (a,)


def cvta(op: Opcode, a: int) -> tuple[Expected]:
    """Where the windows lie is the implementation's choice; global and constant addresses are generic as they are."""
    space = next(name.partition("::")[0] for name in op.modifiers if name != "to")
    window = WINDOWS[space]
    assert space not in ("global", "const") or window == 0
    return (wrap(a - window if op.has("to") else a + window, 64),)
