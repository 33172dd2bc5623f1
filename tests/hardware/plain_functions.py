"""PTX with other functions in place of those that a GPU approximates by tables of its own.

What a device gives for `ex2.approx`, `lg2.approx` and `div.full` is known within bounds alone. A program in which they
are sequences of exactly rounded instructions must have the same bits on all machines, if all else is the same.
"""

from __future__ import annotations

import re

_POWER = """{{
.reg .f32 %plainf<4>; .reg .b32 %plainb<3>; .reg .pred %plainp;
setp.lt.f32 %plainp, {x}, 0fC2FC0000;
max.f32 %plainf0, {x}, 0fC2FC0000;
cvt.rni.f32.f32 %plainf1, %plainf0;
sub.rn.f32 %plainf0, %plainf0, %plainf1;
mov.f32 %plainf2, 0f3C1D955B;
fma.rn.f32 %plainf2, %plainf2, %plainf0, 0f3D635847;
fma.rn.f32 %plainf2, %plainf2, %plainf0, 0f3E75FDF0;
fma.rn.f32 %plainf2, %plainf2, %plainf0, 0f3F317218;
fma.rn.f32 %plainf2, %plainf2, %plainf0, 0f3F800000;
cvt.rni.s32.f32 %plainb0, %plainf1;
shl.b32 %plainb0, %plainb0, 23;
mov.b32 %plainb1, %plainf2;
add.s32 %plainb1, %plainb1, %plainb0;
selp.b32 %plainb1, 0, %plainb1, %plainp;
mov.b32 {y}, %plainb1;
}}"""
"""2^x for x ≤ 0: 2 to the next whole number, times a polynomial of what remains; 0 below 2^-126."""


def with_plain_functions(text: str) -> str:
    """The PTX with 2^x as a polynomial, a / b rounded to nearest, and x in place of log2(x); all else as it was.

    Raises:
        ValueError: where one of these is guarded by a predicate, or some other approximation is left.
    """
    operands = r"\s+(?P<y>[^,\s]+),\s*(?P<x>[^,;]+);"
    text = re.sub(rf"(?<![\w.])ex2\.approx(?:\.ftz)?\.f32{operands}", lambda m: _POWER.format(**m.groupdict()), text)
    text = re.sub(rf"(?<![\w.])lg2\.approx(?:\.ftz)?\.f32{operands}", r"mov.b32 \g<y>, \g<x>;", text)
    text = re.sub(r"(?<![\w.])div\.full(\.ftz)?\.f32", r"div.rn\1.f32", text)
    left = re.search(r"@!?%\w+\s*\{|[^;{}\n]*\.(?:approx|full)\.[^;\n]*", text)
    if left:
        raise ValueError(f"no plain function for: {left.group().strip()}")
    return text
