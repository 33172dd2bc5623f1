"""Inputs: the values of each type at which instructions go wrong, and random ones of a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

from exact import FORMATS, Kind, Real, encode

_WINDOWS, _SIZE = (0x7D00_0000_0000, 0x7E00_0000_0000, 0x7F00_0000_0000), 1 << 32
"""Where parameters, local and shared memory lie in the generic address space."""
_AMOUNTS = (0, 1, 2, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x01000001)


def _integers(bits: int) -> list[int]:
    top, whole = 1 << (bits - 1), (1 << bits) - 1
    values = [0, 1, whole, top, top - 1, 31, 32, 8, 16, 33, 63, 64, 15, top + 1, whole - 1, 0x5555555555555555, 2, 255]
    values += [3, 10, 1 << (bits // 2), (1 << (bits // 2)) - 1, 0xAAAAAAAAAAAAAAAA, 0x0123456789ABCDEF, -100, *_AMOUNTS]
    values += [
        place for start in _WINDOWS for place in (start, start - 1, start + _SIZE - 1, start + _SIZE, start + 64)
    ]
    return list(dict.fromkeys(value & whole for value in values))


def _float(name: str, size: int, exponent: int, *, negative: bool = False) -> int:
    bits = encode(FORMATS[name], Real(Kind.NUMBER, negative, size, exponent), "rz")
    assert bits is not None
    return bits


def _floats(name: str) -> list[int]:
    fmt = FORMATS[name]
    last = fmt.digits - 1
    one = _float(name, 1, 0)
    sizes = [
        0, one, fmt.infinity, fmt.infinity | 1 << (last - 1), 1, fmt.smallest_normal, fmt.smallest_normal - 1,
        fmt.infinity - 1, one + 1, one - 1, _float(name, 1, -1), _float(name, 3, -1), _float(name, 5, -1),
        _float(name, 7, -1), _float(name, 3, 0), _float(name, 2, 0), fmt.infinity | 1, fmt.smallest_normal + 1,
        _float(name, 0x1921FB54442D18, -51), _float(name, 0x5DEECE66D, -40), _float(name, 0x3FFFFFFFFFFFFF, -55),
    ]  # fmt: skip
    for bits in (8, 11, 16, 24, 32, 53, 64):  # near the ends of integers and of the narrower formats
        sizes += [_float(name, 1, bits - 1), _float(name, 1, bits), _float(name, (1 << bits) - 1, 0)]
        sizes += [_float(name, (2 << bits) + 1, -bits - 1), _float(name, (2 << bits) + 3, -bits - 1)]
    for bits, exponent in ((24, -24), (24, -25), (8, -133), (8, -134), (3, -25), (3, -134), (3, -150), (1, -126)):
        sizes += [_float(name, (1 << bits) - 1, exponent - bits + 1), _float(name, 1, exponent)]
    sizes += [_float(name, 0xFFE, 4), _float(name, 0xFFF, 4), _float(name, 0xFFEFFFFF, -16), _float(name, 1, 126)]
    sizes += [_float(name, 0x1FFFFFF, 103), _float(name, 0x1FFFFFFFFF, 91), _float(name, 1, 127), _float(name, 3, 125)]
    unique = list(dict.fromkeys(sizes))
    return [bits | sign for bits in unique for sign in (0, fmt.sign)]


def _edges() -> Mapping[str, Sequence[int]]:
    table: dict[str, list[int]] = {"pred": [0, 1]}
    for bits in (8, 16, 32, 64):
        table |= {f"{kind}{bits}": _integers(bits) for kind in "usb"}
    table |= {name: _floats(name) for name in FORMATS}
    for name in ("f16", "bf16", "f32"):
        halves, bits = table[name], FORMATS[name].bits
        count = len(halves)
        table[f"{name}x2"] = [low | halves[(7 * i + 3) % count] << bits for i, low in enumerate(halves)]
    halves = _integers(16)
    pairs = [low | halves[(7 * i + 3) % len(halves)] << 16 for i, low in enumerate(halves)]
    table |= {"u16x2": pairs, "s16x2": pairs, "tf32": table["f32"]}
    every_byte = [low | (37 * low + 11 & 0xFF) << 8 for low in range(256)]
    table |= dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2"), every_byte)
    bytes_ = _integers(8)
    words = [
        sum(bytes_[(index * step + shift) % len(bytes_)] << shift for step, shift in ((1, 0), (7, 8), (3, 16), (5, 24)))
        for index in range(len(bytes_))
    ]
    table |= {"u8x4": words, "s8x4": words, "e2m1x2": list(range(256))}
    return table


EDGES = _edges()
"""Raw bits by type; the more important ones come first."""
_ODD_WIDTHS = {
    "pred": 1, "f32x2": 64, "tf32": 32, "e2m1x2": 8, "u8x4": 32, "s8x4": 32,
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2"), 16),
}  # fmt: skip
WIDTHS: Mapping[str, int] = {
    name: _ODD_WIDTHS.get(name) or (32 if name.endswith("x2") else int(name.lstrip("usbf"))) for name in EDGES
}


_MOST_EDGES = {1: 200, 2: 20, 3: 8, 4: 4}
"""By the number of operands: how many edge values of each are combined with all those of the others."""
_CASES = {1: 192, 2: 512, 3: 640, 4: 640}


@cache
def cases(types: tuple[str, ...], seed: str) -> tuple[tuple[int, ...], ...]:
    """Operands of these types: edges with edges, other edges at random, random bits."""
    source = random.Random(f"{seed} {types}")
    most = _MOST_EDGES[len(types)]
    chosen = list(product(*(EDGES[name][:most] for name in types)))
    least = 256 if types[2:] == ("pred",) else _CASES[len(types)]
    while len(chosen) < least or len(chosen) % 32:  # whole warps
        pick = _random if len(chosen) % 2 else _random_edge
        chosen.append(tuple(pick(source, name) for name in types))
    return tuple(chosen)


def _random_edge(source: random.Random, name: str) -> int:
    return source.choice(EDGES[name])


def _random(source: random.Random, name: str) -> int:
    """Random bits; floats mostly of moderate size, so that sums and products do not all overflow."""
    bits = source.getrandbits(WIDTHS[name])
    if name not in FORMATS or source.random() < 0.3:
        return bits
    fmt = FORMATS[name]
    exponent = (fmt.infinity >> fmt.digits) + source.randint(-6, 6)
    return bits & (fmt.sign | fmt.smallest_normal - 1) | exponent << (fmt.digits - 1)
