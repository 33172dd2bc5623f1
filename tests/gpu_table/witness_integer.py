"""Integer arithmetic, logic and movement by Python's integers (PTX manual, 9.7.1, 9.7.8, 9.7.9)."""

from __future__ import annotations

from expected import Expected, Opaque
from opcodes import Opcode

from triptych.gpu.hardware import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE


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
    if op.has("sat"):
        return _bits_result(op, clamp(part + number(op.type, bits[2]), op.type))
    return _bits_result(op, part + (bits[2] if len(bits) > 2 else 0))


def multiply_24(op: Opcode, *bits: int) -> tuple[Expected]:
    a, b = ((x & 0xFFFFFF) - (1 << 24 if op.type == "s32" and x >> 23 & 1 else 0) for x in bits[:2])
    part = a * b >> 16 if op.has("hi") else a * b
    addend = number(op.type, bits[2]) if len(bits) > 2 else 0
    if op.has("sat"):
        return _bits_result(op, clamp(number("s32", part) + addend, "s32"))
    return _bits_result(op, part + addend)


def extended(op: Opcode, *bits: int) -> tuple[Expected, ...]:
    """Carry chains: the sum of unsigned numbers, and what did not fit; a difference is a sum with the complement."""
    size, operands = width(op.type), list(bits)
    flag = operands.pop() if op.mnemonic in ("addc", "subc", "madc") else int(op.mnemonic == "sub")
    if op.mnemonic in ("mad", "madc"):
        a, b = (number(op.type, x) for x in operands[:2])
        operands[:2] = [wrap(a * b >> size if op.has("hi") else a * b, size)]
    a, b = operands
    value = a + (wrap(~b, size) if op.mnemonic in ("sub", "subc") else b) + flag
    return (wrap(value, size), value >> size) if op.has("cc") else (wrap(value, size),)


def divide(op: Opcode, *bits: int) -> tuple[Expected]:
    """What division by zero gives is the hardware's choice: all ones, and for the remainder too."""
    a, b = (number(op.type, x) for x in bits)
    if b == 0:
        return _bits_result(op, -1)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return _bits_result(op, quotient if op.mnemonic == "div" else a - b * quotient)


def sad(op: Opcode, *bits: int) -> tuple[Expected]:
    a, b = (number(op.type, x) for x in bits[:2])
    return _bits_result(op, bits[2] + abs(a - b))


def sign(op: Opcode, a: int) -> tuple[Expected]:
    value = number(op.type, a)
    return _bits_result(op, abs(value) if op.mnemonic == "abs" else -value)


def _extreme(op: Opcode, name: str, *bits: int) -> int:
    values = [number(name, x) for x in bits]
    value = min(values) if op.mnemonic == "min" else max(values)
    return wrap(max(value, 0) if op.has("relu") else value, width(name))


def extreme(op: Opcode, *bits: int) -> tuple[Expected]:
    return (_extreme(op, op.type, *bits),)


def parts(op: Opcode, *bits: int) -> tuple[Expected]:
    """Packed arithmetic: two half words or four bytes, each by itself."""
    name = op.type.partition("x")[0]
    size = width(name)
    word = 0
    for shift in range(0, 32, size):
        word |= _part(op, name, *(number(name, x >> shift) for x in bits)) << shift
    return (word,)


def _part(op: Opcode, name: str, *values: int) -> int:
    match op.mnemonic:
        case "min" | "max":
            return _extreme(op, name, *(wrap(value, width(name)) for value in values))
        case "add":
            total = sum(values)
        case "sub":
            total = values[0] - values[1]
        case _:
            total = -values[0]
    return wrap(clamp(total, name) if op.has("sat") else total, width(name))


def popc(op: Opcode, a: int) -> tuple[Expected]:
    return (f"{a:b}".count("1"),)


def clz(op: Opcode, a: int) -> tuple[Expected]:
    text = f"{a:0{width(op.type)}b}"
    return (len(text) - len(text.lstrip("0")),)


def bfind(op: Opcode, a: int) -> tuple[Expected]:
    value = number(op.type, a)
    place = (value if value >= 0 else ~value).bit_length() - 1
    return (0xFFFFFFFF if place < 0 else width(op.type) - 1 - place if op.has("shiftamt") else place,)


def fns(op: Opcode, mask: int, base: int, offset: int) -> tuple[Expected]:
    """The manual's own loop over bits; the offset that has no magnitude is the hardware's choice."""
    offset = number("s32", offset)
    if offset == -(1 << 31):
        return (0,)
    if base > 31:  # not defined
        return (0xFFFFFFFF,)
    if offset == 0:
        return (base if mask >> base & 1 else 0xFFFFFFFF,)
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return (found[abs(offset) - 1] if abs(offset) <= len(found) else 0xFFFFFFFF,)


def szext(op: Opcode, a: int, b: int) -> tuple[Expected]:
    """The manual's own formula."""
    length = b & 31
    if op.has("clamp") and b >= 32:
        return (a,)
    low = a & ((1 << length) - 1)
    negative = op.type == "s32" and length > 0 and a >> (length - 1) & 1
    return (wrap(low - (1 << length) if negative else low, 32),)


def bmsk(op: Opcode, a: int, b: int) -> tuple[Expected]:
    start, length = (min(x, 32) if op.has("clamp") else x & 31 for x in (a, b))
    return (sum(1 << i for i in range(start, min(start + length, 32))),)


def _parts(name: str, a: int, bits: int) -> list[int]:
    return [number(f"{name[0]}{bits}", a >> i) for i in range(0, 32, bits)]


def dot_product(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    left, right = _parts(op.types[0], a, 8 if op.mnemonic == "dp4a" else 16), _parts(op.types[1], b, 8)
    right = right[2:] if op.has("hi") else right
    return (wrap(c + sum(x * y for x, y in zip(left, right, strict=False)), 32),)


def video(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    """Parts of a with the same parts of b; their results side by side, or summed upon c."""
    target, left, right = op.types
    bits = 32 // int(op.mnemonic[-1])
    results: list[int] = []
    for x, y in zip(_parts(left, a, bits), _parts(right, b, bits), strict=True):
        average = (x + y + 1) // 2 if x + y >= 0 else (x + y) // 2
        value = {
            "vadd": x + y, "vsub": x - y, "vavrg": average, "vabsdiff": abs(x - y),
            "vmin": min(x, y), "vmax": max(x, y),
        }[op.mnemonic[:-1]]  # fmt: skip
        results.append(clamp(value, f"{target[0]}{bits}") if op.has("sat") else value)
    if op.has("add"):
        return (wrap(c + sum(results), 32),)
    return (sum(wrap(value, bits) << bits * i for i, value in enumerate(results)),)


def video_set(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    """Ones in the parts where a and b compare so; their number is added to c under `.add`."""
    left, right = op.types
    bits = 32 // int(op.mnemonic[-1])
    relations = {
        "eq": int.__eq__,
        "ne": int.__ne__,
        "lt": int.__lt__,
        "le": int.__le__,
        "gt": int.__gt__,
        "ge": int.__ge__,
    }
    holds = relations[next(name for name in relations if op.has(name))]
    truths = [bool(holds(x, y)) for x, y in zip(_parts(left, a, bits), _parts(right, b, bits), strict=True)]
    if op.has("add"):
        return (wrap(c + sum(truths), 32),)
    return (sum(truth << bits * i for i, truth in enumerate(truths)),)


def brev(op: Opcode, a: int) -> tuple[Expected]:
    return (int(f"{a:0{width(op.type)}b}"[::-1], 2),)


def _places(op: Opcode, position: int, length: int) -> tuple[int, int]:
    """The manual takes 8 bits of each; the hardware's 64-bit instructions take all (they are made of several)."""
    return (position, length) if width(op.type) == 64 else (position & 255, length & 255)


def bfe(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    """The manual's own loop over bits."""
    top = width(op.type) - 1
    start, length = _places(op, b, c)
    fill = 0 if op.type[0] == "u" or length == 0 else a >> min(start + length - 1, top) & 1
    picked = (a >> (start + i) & 1 if i < length and start + i <= top else fill for i in range(top + 1))
    return (sum(bit << i for i, bit in enumerate(picked)),)


def bfi(op: Opcode, a: int, b: int, c: int, d: int) -> tuple[Expected]:
    """The manual's own loop over bits."""
    top = width(op.type) - 1
    start, length = _places(op, c, d)
    result = b
    for i in range(min(length, top + 1)):
        if start + i <= top:
            result = result & ~(1 << (start + i)) | (a >> i & 1) << (start + i)
    return (result,)


def pending_count(op: Opcode, state: int) -> tuple[Expected]:
    """The layout is not the manual's: of the fields that `mbarrier_object.py` documents, bits 21 to 40."""
    return (int(f"{state:064b}"[64 - 41 : 64 - 21], 2),)


def logic(op: Opcode, a: int, b: int) -> tuple[Expected]:
    return ({"and": a & b, "or": a | b, "xor": a ^ b}[op.mnemonic],)


def invert(op: Opcode, a: int) -> tuple[Expected]:
    if op.mnemonic == "cnot":
        return (int(a == 0),)
    return (1 - a,) if op.type == "pred" else _bits_result(op, ~a)


def lop3(op: Opcode, a: int, b: int, c: int, table: int, q: int | None = None) -> tuple[Expected, ...]:
    d = sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))
    if q is None:
        return (d,)
    return d, int(d != 0) & q if op.has("and") else int(d != 0) | q


def shift(op: Opcode, a: int, b: int) -> tuple[Expected]:
    amount = min(b, width(op.type))
    return _bits_result(op, a << amount if op.mnemonic == "shl" else number(op.type, a) >> amount)


def shf(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    amount = c & 31 if op.has("wrap") else min(c, 32)
    whole = b << 32 | a
    return (wrap(whole >> amount, 32) if op.has("r") else wrap(whole << amount >> 32, 32),)


def prmt(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    source = (b << 32 | a).to_bytes(8, "little")
    mode = next(iter(op.modifiers), None)
    if mode is not None:
        first = c & 3
        return (int.from_bytes(bytes(source[_byte_of(mode, first, i)] for i in range(4)), "little"),)
    picked: list[int] = []
    for position in range(4):
        nibble = c >> (4 * position) & 15
        byte = source[nibble & 7]
        picked.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return (int.from_bytes(bytes(picked), "little"),)


def _byte_of(mode: str, first: int, place: int) -> int:
    """Which byte of {b, a} a specialised mode brings to a place."""
    return {
        "f4e": first + place,  # four bytes forwards
        "b4e": (first - place) % 8,  # backwards
        "rc8": first,  # one byte in all places
        "ecl": max(first, place),  # its own byte, none below the first
        "ecr": min(first, place),
        "rc16": (first & 1) * 2 + (place & 1),  # a half word in both
    }[mode]


def slct(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    if op.types[1] == "s32":
        return (a if number("s32", c) >= 0 else b,)
    size = c & 0x7FFFFFFF
    negative = c >> 31 and size > (0x7FFFFF if op.has("ftz") else 0)
    return (b if negative or size > 0x7F800000 else a,)


def selp(op: Opcode, a: int, b: int, c: int) -> tuple[Expected]:
    return (a if c else b,)


def mov(op: Opcode, a: int) -> tuple[Expected]:
    return (a,)


_WINDOWS = {"param": PARAM_WINDOW, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def isspacep(op: Opcode, a: int) -> tuple[Expected]:
    """Local, shared and parameter memory lie in windows; all other addresses are global, as there are no constants."""
    inside = [name for name, start in _WINDOWS.items() if start <= a < start + WINDOW_SIZE]
    space = next(iter(op.modifiers)).partition("::")[0]
    return (int(space in inside if space != "global" else not inside),)


def policy(op: Opcode, *operands: int) -> tuple[Expected]:
    return (Opaque(),)


def cvta(op: Opcode, a: int) -> tuple[Expected]:
    """Where the windows lie is the implementation's choice; global and constant addresses are generic as they are."""
    space = next(name.partition("::")[0] for name in op.modifiers if name != "to")
    window = _WINDOWS.get(space, 0)
    return (wrap(a - window if op.has("to") else a + window, 64),)


def mapa(op: Opcode, a: int, rank: int) -> tuple[Expected]:
    """Which bits name a block is the implementation's choice; 254 is a rank that no cluster has.

    The lower half of a generic address of shared memory is the place there.
    """
    start = 0 if op.has("shared::cluster") or op.type == "u32" else SHARED_WINDOW
    named = min(rank, 254) if 0 <= a - start < WINDOW_SIZE else 254
    return (start + (named + 1 << 24) + (a - start) % (1 << 24),)


def getctarank(op: Opcode, a: int) -> tuple[Expected]:
    """The launch has clusters of one block; an address that names none is of the block itself."""
    return (max((a & 0xFFFF_FFFF) // (1 << 24), 1) - 1,)
