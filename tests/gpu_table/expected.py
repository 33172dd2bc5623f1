"""What a witness says of one result: the bits, NaN, one of several, or a range of values."""

from __future__ import annotations

from dataclasses import dataclass

from exact import FORMATS, Format, to_float


@dataclass(frozen=True, slots=True)
class Within:
    """A float between two bounds; with a zero in it, zeros of either sign will do."""

    fmt: Format
    low: float
    high: float

    def accepts(self, bits: int) -> bool:
        return self.low <= to_float(self.fmt, bits) <= self.high


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of these bits."""

    choices: tuple[int, ...]

    def accepts(self, bits: int) -> bool:
        return bits in self.choices


@dataclass(frozen=True, slots=True)
class Halves:
    """The low and the high half of a packed result."""

    low: Expected
    high: Expected
    name: str

    def accepts(self, bits: int) -> bool:
        size = FORMATS[self.name].bits
        low, high = bits & ((1 << size) - 1), bits >> size
        return accepts(self.low, self.name, low) and accepts(self.high, self.name, high)


@dataclass(frozen=True, slots=True)
class Opaque:
    """The manual does not say which bits."""

    def accepts(self, bits: int) -> bool:
        return True


Expected = int | None | Within | OneOf | Halves | Opaque
"""None: NaN, whatever its payload."""


def accepts(expected: Expected, name: str, bits: int) -> bool:
    """Whether a result of the named type is what was expected."""
    if expected is None:
        fmt = FORMATS[name]
        return bits & (fmt.sign - 1) > fmt.infinity
    return bits == expected if isinstance(expected, int) else expected.accepts(bits)
