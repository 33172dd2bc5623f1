"""Numbers as a person reads them: three significant digits and a unit."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _digits(value: float) -> str:
    """Three significant digits without an exponent, for values from 1 to 1000."""
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text


def _scaled(value: float, steps: Sequence[tuple[float, str]]) -> tuple[float, str] | None:
    for size, unit in steps:
        if value >= size:
            return value / size, unit
    return None


def count(value: float) -> str:
    """A count: exact below 100 000, then `1.05 M`."""
    if value < 100_000:
        return f"{value:.0f}" if float(value).is_integer() else _digits(value)
    scaled = _scaled(value, _DECIMAL)
    return f"{value:.0f}" if scaled is None else f"{_digits(scaled[0])} {scaled[1]}"


def size(value: float) -> str:
    """Bytes: `12 MiB`."""
    scaled = _scaled(value, _BINARY)
    return f"{value:.0f} B" if scaled is None else f"{_digits(scaled[0])} {scaled[1]}"


def rate(value: float, unit: str) -> str:
    """A rate in decimal steps: `3.35 TB/s`."""
    scaled = _scaled(value, _DECIMAL)
    return f"{_digits(value)} {unit}" if scaled is None else f"{_digits(scaled[0])} {scaled[1]}{unit}"


def duration(seconds: float) -> str:
    """A time: `5.76 µs`."""
    if seconds == 0:
        return "0 s"
    scaled = _scaled(seconds, _TIME)
    return f"{seconds * 1e9:.3g} ns" if scaled is None else f"{_digits(scaled[0])} {scaled[1]}"


def ratio(value: float) -> str:
    """A ratio: `0.0833`, `∞`."""
    if value == math.inf:
        return "∞"
    return f"{value:.3g}" if value < 1e5 else count(value)


def percent(fraction: float) -> str:
    """A share: `65.3%`."""
    return f"{_digits(100 * fraction)}%"


def extent(values: Sequence[int]) -> str:
    """A grid or a block without trailing ones: `(4096,)` is `4096`, `(8, 8, 1)` is `8×8`."""
    kept = list(values)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(map(str, kept))
