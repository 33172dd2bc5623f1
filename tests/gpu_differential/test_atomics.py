"""Atomic operations: lanes in ascending order, at one place and at many, in every space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from both import HEADER, run_both

CASES = {
    "u32": "add min max inc dec", "s32": "add min max", "u64": "add min max", "s64": "min max",
    "b32": "and or xor exch", "b64": "and or xor exch", "f32": "add", "f64": "add",
}  # fmt: skip
SPACES = ("global", "shared", "")
PLACES = 7


BLOCK, BLOCKS = 45, 2


def kernel(space: str, instructions: Sequence[str], kind: str) -> str:
    """Thread i changes element i mod 7 of an array by its own value, and keeps what each instruction found there."""
    size = int(kind[1:]) // 8
    register = {"f32": "%f", "f64": "%e"}.get(kind, "%r" if size == 4 else "%d")
    target = "%d5" if space == "shared" else "%d4"
    generic = "" if space else "cvta.shared.u64 %d6, %d5; setp.lt.u32 %p1, %r0, 20; selp.b64 %d4, %d6, %d4, %p1;"
    body = "\n".join(
        f"{text.format(kind=kind, register=register, target=target, label=f'again{i}')}"
        f"st.global.b{8 * size} [%d1+{i * BLOCK * BLOCKS * size}], {register}10;"
        for i, text in enumerate(instructions)
    )
    return f"""{HEADER}.shared .align 8 .b8 own[64];
.entry change(.param .u64 values, .param .u64 target, .param .u64 old)
{{
.reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<16>; .reg .f64 %e<16>;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [values]; ld.param.u64 %d1, [old]; ld.param.u64 %d4, [target];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r2, %r1, %r2, %r0;
mad.wide.u32 %d0, %r2, {size}, %d0; mad.wide.u32 %d1, %r2, {size}, %d1; ld.global.b{8 * size} {register}8, [%d0];
rem.u32 %r3, %r0, {PLACES}; mad.wide.u32 %d4, %r3, {size}, %d4; mov.u64 %d7, %d4;
mov.u64 %d5, own; mad.wide.u32 %d5, %r3, {size}, %d5; ld.global.b{8 * size} {register}9, [%d4];
st.shared.b{8 * size} [%d5], {register}9; bar.sync 0; {generic}
setp.ne.u32 %p2, %r3, 5;
{body}
bar.sync 0;
ld.shared.b{8 * size} {register}11, [%d5]; setp.eq.u32 %p1, %r3, %r0; and.pred %p1, %p1, %p2;
@%p1 atom.global.exch.b{8 * size} {register}12, [%d7+{PLACES * size}], {register}11;
ret;
}}
"""


def run(space: str, instructions: Sequence[str], kind: str) -> None:
    source = np.random.default_rng(len(instructions) + len(kind))
    dtype = np.dtype(f"{'f' if kind[0] == 'f' else 'u'}{int(kind[1:]) // 8}")
    values = source.integers(0, 12, BLOCKS * BLOCK).astype(dtype)
    target = source.integers(0, 9, 2 * PLACES).astype(dtype)
    if kind[0] == "s":
        values, target = (array - dtype.type(5) for array in (values, target))
    if kind[0] == "f":
        values /= dtype.type(3)
    old = np.zeros((len(instructions), BLOCKS * BLOCK), dtype)
    run_both(kernel(space, instructions, kind), "change", BLOCKS, BLOCK, values, target, old)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", CASES)
def test_atomic_operations(space: str, kind: str) -> None:
    dotted = f".{space}" if space else ""
    instructions: list[str] = []
    for operation in CASES[kind].split():
        instructions.append(f"@%p2 atom{dotted}.{operation}.{{kind}} {{register}}10, [{{target}}], {{register}}8;")
        if operation != "exch":
            instructions.append(f"red.relaxed.gpu{dotted}.{operation}.{{kind}} [{{target}}], {{register}}8;")
    if kind[0] == "b":
        compare = f"atom{dotted}.cas.{{kind}} {{register}}10, [{{target}}], {{register}}9, {{register}}8;"
        instructions += [compare, compare]
    run(space, instructions, kind)


@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_loop_of_compare_and_swap(space: str) -> None:
    loop = f"""
        ld.{space}.{{kind}} {{register}}10, [{{target}}];
        {{label}}: mov.{{kind}} {{register}}12, {{register}}10; add.u32 {{register}}11, {{register}}12, {{register}}8;
        atom.{space}.cas.{{kind}} {{register}}10, [{{target}}], {{register}}12, {{register}}11;
        setp.ne.{{kind}} %p1, {{register}}10, {{register}}12; @%p1 bra {{label}};
        """
    run(space, [loop], "b32")
