"""`printf`'s format: which arguments a text asks for, and the text that they make.

The conversions are C's (ISO C 17, 7.21.6.1), and the C library forms each number: the same library that formats what
a real device's `printf` prints. Arguments lie one behind the other, each at a multiple of its size, as `vprintf` finds
them (CUDA programming guide, formatted output). A device's own `printf` knows neither `hh`, `j`, `z` and `t` nor `.*`,
and prints nonsense where they stand (seen on an H200); here they mean what they mean in C.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

MOST_CHARACTERS = 1 << 16
"""The longest text of one conversion; a wider one is cut."""
_SPECIFICATION = re.compile(
    rb"%(?P<flags>[-+ 0#]*)(?P<width>\*|\d+)?(?:(?P<dot>\.)(?P<precision>\*|-?\d+)?)?(?P<length>hh|h|ll|l|j|z|t|L)?"
    rb"(?P<kind>.)",
    re.DOTALL,
)
_SIGNED, _INTEGERS, _FLOATING = b"di", b"diouxX", b"fFeEgGaA"
_BITS = {b"hh": 8, b"h": 16, **dict.fromkeys((b"l", b"ll", b"j", b"z", b"t"), 64)}
Read = Callable[[int, int], bytes]
"""(address, bytes) -> what lies there."""
Number = ctypes.c_longlong | ctypes.c_ulonglong | ctypes.c_double | ctypes.c_int | ctypes.c_void_p | ctypes.c_char_p
"""A value that C's functions take."""
ReadText = Callable[[int], bytes]
"""address -> the bytes up to a zero."""


@dataclass(frozen=True, slots=True)
class _Conversion:
    """One conversion of a format."""

    flags: bytes
    width: int | None
    """None: an argument of its own; so is the precision's."""
    precision: int | None
    has_precision: bool
    bits: int
    kind: bytes

    @property
    def codes(self) -> str:
        """The arguments that it takes, as `struct` names them."""
        own = "d" if self.kind in _FLOATING else "Q" if self.bits == 64 or self.kind in b"ps" else "I"
        return "i" * ((self.width is None) + (self.has_precision and self.precision is None)) + own

    def convert(self, values: Iterator[int | float], read_text: ReadText) -> bytes:
        """Its text; its arguments are the next of `values`."""
        flags, width, precision = self.flags, self.width, self.precision
        if width is None:
            width = int(next(values))
            flags, width = (flags + b"-", -width) if width < 0 else (flags, width)
        if self.has_precision and precision is None:
            precision = int(next(values))
        value = next(values)
        pattern = b"%" + flags + (b"%d" % min(width, MOST_CHARACTERS) if width else b"")
        if self.has_precision and precision is not None and precision >= 0:
            pattern += b".%d" % min(precision, MOST_CHARACTERS)
        return self._form(pattern, value, width, read_text)

    def _form(self, pattern: bytes, value: int | float, width: int, read_text: ReadText) -> bytes:
        kind = self.kind
        if isinstance(value, float):
            return _print(pattern + kind, ctypes.c_double(value))
        if kind in _INTEGERS:
            value &= (1 << self.bits) - 1
            if kind in _SIGNED:
                value -= value >> (self.bits - 1) << self.bits
            if pattern == b"%":
                return (pattern + kind.replace(b"u", b"d")) % value  # Python's own says the same
            return _print(pattern + b"ll" + kind, (ctypes.c_longlong if kind in _SIGNED else ctypes.c_ulonglong)(value))
        if kind == b"c":
            return _print(pattern + kind, ctypes.c_int(value), most=max(width, 1))
        if kind == b"p":
            return _print(pattern + kind, ctypes.c_void_p(value))
        text = read_text(value) if value else b"(null)"
        return text if pattern == b"%" else _print(pattern + kind, ctypes.c_char_p(text))


@lru_cache(maxsize=256)
def _take_apart(template: bytes) -> tuple[tuple[bytes | _Conversion, ...], struct.Struct]:
    """A format's pieces, and how its arguments lie."""
    pieces: list[bytes | _Conversion] = []
    end, codes = 0, ""
    for match in _SPECIFICATION.finditer(template):
        pieces.append(template[end : match.start()])
        end = match.end()
        kind: bytes = match["kind"]
        if kind == b"%":
            pieces.append(kind)
        elif kind not in _INTEGERS + _FLOATING + b"csp":
            pieces.append(match[0])
        else:
            width, precision = (None if match[k] == b"*" else int(match[k] or 0) for k in ("width", "precision"))
            bits = _BITS.get(match["length"], 32)
            one = _Conversion(match["flags"], width, precision, match["dot"] is not None, bits, kind)
            codes += one.codes
            pieces.append(one)
    return (*pieces, template[end:]), struct.Struct(f"@{codes}")


def format_printf(template: bytes, arguments: int, read: Read, read_text: ReadText) -> tuple[bytes, int]:
    """The text that `printf` makes, and how many arguments it took.

    A conversion that C does not have is printed as it stands and takes no argument.

    Args:
        template: the format.
        arguments: the address of the arguments.
        read: reads memory.
        read_text: reads a string, for `%s`.
    """
    pieces, layout = _take_apart(template)
    given: tuple[int | float, ...] = layout.unpack(read(arguments, layout.size)) if layout.size else ()
    values = iter(given)
    return b"".join(p if isinstance(p, bytes) else p.convert(values, read_text) for p in pieces), len(given)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _print(pattern: bytes, value: Number, most: int | None = None) -> bytes:
    """What C's `snprintf` makes of one value; `most`: the length, where zeros may be among the characters."""
    buffer = ctypes.create_string_buffer(64)
    size = _library().snprintf(buffer, 64, pattern, value)
    if size >= 64:
        size = min(size, MOST_CHARACTERS)
        buffer = ctypes.create_string_buffer(size + 1)
        _library().snprintf(buffer, size + 1, pattern, value)
    return buffer.raw[: size if most is None else min(most, size)]
