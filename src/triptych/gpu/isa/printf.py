"""`printf`'s format: which arguments a text asks for, and the text that they make.

The conversions are C's (ISO C 17, 7.21.6.1), and the C library forms each number: the same library that formats what
a real device's `printf` prints. Arguments lie one behind the other, each at a multiple of its size, as `vprintf` finds
them (CUDA programming guide, formatted output). A device's own `printf` knows neither `hh`, `j`, `z` and `t` nor `.*`,
and prints nonsense where they stand (seen on an H200); here they mean what they mean in C.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

MOST_CHARACTERS = 1 << 16
"""The longest text of one conversion; a wider one is cut."""
_SPECIFICATION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|-?\d+)?)?(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>.)",
    re.DOTALL,
)
_SIGNED, _UNSIGNED, _FLOATING = b"di", b"ouxX", b"fFeEgGaA"
_LONG = frozenset((b"l", b"ll", b"j", b"z", b"t"))
_WIDTHS = {b"hh": 8, b"h": 16, **dict.fromkeys(_LONG, 64)}
Read = Callable[[int, int], bytes]
"""(address, bytes) -> what lies there."""
Number = ctypes.c_longlong | ctypes.c_ulonglong | ctypes.c_double | ctypes.c_int | ctypes.c_void_p | ctypes.c_char_p
"""A value that C's functions take."""
ReadText = Callable[[int], bytes]
"""address -> the bytes up to a zero."""


def format_printf(template: bytes, arguments: int, read: Read, read_text: ReadText) -> tuple[bytes, int]:
    """The text that `printf` makes, and how many arguments it took.

    A conversion that C does not have is printed as it stands and takes no argument.

    Args:
        template: the format.
        arguments: the address of the arguments.
        read: reads memory.
        read_text: reads a string, for `%s`.
    """
    taken = _Arguments(arguments, read)
    parts: list[bytes] = []
    end = 0
    for match in _SPECIFICATION.finditer(template):
        parts.append(template[end : match.start()])
        parts.append(_convert(match, taken, read_text))
        end = match.end()
    return b"".join((*parts, template[end:])), taken.count


class _Arguments:
    """The arguments that are left."""

    def __init__(self, address: int, read: Read) -> None:
        self.address = address
        self.read = read
        self.count = 0

    def take(self, size: int) -> bytes:
        start = -(-self.address // size) * size
        self.address = start + size
        self.count += 1
        return self.read(start, size)

    def integer(self, bits: int, *, signed: bool) -> int:
        """An `int` or a 64-bit integer, cut to `bits`."""
        value = int.from_bytes(self.take(8 if bits == 64 else 4), "little") & ((1 << bits) - 1)
        return value - (1 << bits) if signed and value >> (bits - 1) else value


def _convert(match: re.Match[bytes], arguments: _Arguments, read_text: ReadText) -> bytes:
    kind: bytes = match["kind"]
    if kind == b"%":
        return b"%"
    if kind not in _SIGNED + _UNSIGNED + _FLOATING + b"csp":
        return match[0]
    flags: bytes = match["flags"]
    width = arguments.integer(32, signed=True) if match["width"] == b"*" else int(match["width"] or 0)
    if width < 0:
        flags, width = flags + b"-", -width
    pattern = b"%%%b%d" % (flags, min(width, MOST_CHARACTERS)) if width else b"%" + flags
    if b"." in match[0]:
        precision = arguments.integer(32, signed=True) if match["precision"] == b"*" else int(match["precision"] or 0)
        pattern += b".%d" % min(precision, MOST_CHARACTERS) if precision >= 0 else b""
    bits = _WIDTHS.get(match["length"], 32)
    if kind in _SIGNED:
        return _print(pattern + b"lld", ctypes.c_longlong(arguments.integer(bits, signed=True)))
    if kind in _UNSIGNED:
        return _print(pattern + b"ll" + kind, ctypes.c_ulonglong(arguments.integer(bits, signed=False)))
    if kind in _FLOATING:
        return _print(pattern + kind, ctypes.c_double.from_buffer_copy(arguments.take(8)))
    if kind == b"c":
        return _print(pattern + b"c", ctypes.c_int(arguments.integer(32, signed=True)), most=max(width, 1))
    address = arguments.integer(64, signed=False)
    if kind == b"p":
        return _print(pattern + b"p", ctypes.c_void_p(address))
    return _print(pattern + b"s", ctypes.c_char_p(read_text(address) if address else b"(null)"))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _print(pattern: bytes, value: Number, most: int | None = None) -> bytes:
    """What C's `snprintf` makes of one value; `most`: the length, where zeros may be among the characters."""
    size = _library().snprintf(None, 0, pattern, value)
    buffer = ctypes.create_string_buffer(min(size, MOST_CHARACTERS) + 1)
    _library().snprintf(buffer, len(buffer), pattern, value)
    return buffer.raw[: len(buffer) - 1 if most is None else min(most, len(buffer) - 1)]
