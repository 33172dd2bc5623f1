"""Numbers as a person reads them."""

from __future__ import annotations

import math

import pytest

from triptych.report.quantities import count, duration, extent, percent, rate, ratio, size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(0), "0"),
        (count(99_999), "99999"),
        (count(1_048_576), "1.05 M"),
        (count(2.5e12), "2.5 T"),
        (count(0.5), "0.5"),
        (size(1023), "1023 B"),
        (size(12 * 2**20), "12 MiB"),
        (size(1000 * 1024), "1000 KiB"),
        (rate(3.35e12, "B/s"), "3.35 TB/s"),
        (rate(989e12, "FLOP/s"), "989 TFLOP/s"),
        (rate(3, "B/s"), "3 B/s"),
        (duration(0), "0 s"),
        (duration(5.756e-6), "5.76 µs"),
        (duration(1.5), "1.5 s"),
        (duration(1e-10), "0.1 ns"),
        (ratio(1 / 12), "0.0833"),
        (ratio(123456789), "123 M"),
        (ratio(math.inf), "∞"),
        (percent(1), "100%"),
        (percent(0.6532), "65.3%"),
        (percent(0.00012), "0.012%"),
        (extent((4096, 1, 1)), "4096"),
        (extent((8, 1, 2)), "8×1×2"),
        (extent((1, 1, 1)), "1"),
    ],
)
def test_quantity(text: str, expected: str) -> None:
    assert text == expected
