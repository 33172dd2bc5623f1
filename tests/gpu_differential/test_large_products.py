"""Products too large for their type, and an infinite summand: the exact product is a number, so the sum is infinite."""

from __future__ import annotations

import numpy as np
import pytest
from both import run_both

LARGE = {"f64": 1e200, "f32": 1e30}


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_an_infinite_summand_wins(kind: str, rounding: str) -> None:
    size, prefix = (8, "%d") if kind == "f64" else (4, "%f")
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 c, .param .u64 out) {{
    .reg .b64 %r<5>; .reg .b32 %t; .reg .{kind} {prefix}<4>;
    mov.u32 %t, %tid.x; mul.wide.u32 %r0, %t, {size};
    ld.param.u64 %r1, [a]; ld.param.u64 %r2, [c]; ld.param.u64 %r3, [out];
    add.s64 %r1, %r1, %r0; add.s64 %r2, %r2, %r0; add.s64 %r3, %r3, %r0;
    ld.global.{kind} {prefix}0, [%r1]; ld.global.{kind} {prefix}1, [%r2];
    fma.{rounding}.{kind} {prefix}2, {prefix}0, {prefix}0, {prefix}1;
    st.global.{kind} [%r3], {prefix}2;
    ret;
}}
"""
    dtype = np.dtype(np.float64 if kind == "f64" else np.float32)
    a = np.array([LARGE[kind], -LARGE[kind], LARGE[kind], np.inf], dtype)
    c = np.array([-np.inf, -np.inf, np.inf, -np.inf], dtype)
    ran = run_both(text, "k", 1, 4, a, c, np.zeros(4, dtype))
    found = ran.arrays[2]
    assert found[:3].tolist() == [-np.inf, -np.inf, np.inf]
    assert np.isnan(found[3])
