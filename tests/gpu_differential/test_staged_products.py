"""`mma.sync` one behind the other: registers that several of them take, that change between them, that are guarded."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

from triptych.gpu.lower.tensor.staging import MOST_TILES

WORDS = 32 * 8
PRODUCTS = {
    "f32": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "f16": "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
}


def kernel(body: str, results: int, kind: str = "f32", registers: int = 16) -> str:
    """A warp loads A (`%a0` …), B (`%b0`, `%b1`) and C (`%c0` …), and stores the first `results` of `%d0` …"""
    count = 4 if kind == "f32" else 2
    loads = [(f"%a{i}", i) for i in range(4)] + [(f"%b{i}", 4 + i) for i in range(2)]
    loads += [(f"%c{i}", 6 + i % 2) for i in range(count)]
    given = " ".join(f"ld.global.b32 {name}, [%q0+{128 * place}];" for name, place in loads)
    stores = " ".join(f"st.global.b32 [%q1+{128 * i}], %d{i};" for i in range(results))
    return f"""{HEADER}.entry k(.param .u64 in, .param .u64 out, .param .u32 flag)
{{
.reg .pred %p; .reg .b64 %q<2>; .reg .b32 %t, %f, %a<8>, %b<8>, %c<8>, %d<{registers}>;
mov.u32 %t, %tid.x; ld.param.u32 %f, [flag]; setp.ne.u32 %p, %f, 0;
ld.param.u64 %q0, [in]; mad.wide.u32 %q0, %t, 4, %q0;
ld.param.u64 %q1, [out]; mad.wide.u32 %q1, %t, 4, %q1;
{given}
{body}
{stores}
ret;
}}
"""


def mma(d: str, c: str, *, kind: str = "f32", a: str = "a", guard: str = "", at: int = 0, of: int = 0) -> str:
    """`d`, `a` and `c` are register names; those of D and C begin at a number."""
    count = 4 if kind == "f32" else 2
    names = [f"{{{', '.join(f'%{name}{first + i}' for i in range(length))}}}" for name, first, length in (
        (d, at, count), (a, 0, 4), ("b", 0, 2), (c, of, count))]  # fmt: skip
    return f"{guard}{PRODUCTS[kind]} {', '.join(names)};"


def given() -> np.ndarray:
    return np.random.default_rng(5).standard_normal(2 * WORDS).astype(np.float16).view(np.uint32)


def run(text: str, results: int, flag: int = 1) -> np.ndarray:
    return run_both(text, "k", 1, 32, given(), np.zeros(32 * results, np.uint32), np.uint32(flag)).arrays[1]


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_sums_that_are_taken_twice(kind: str) -> None:
    count = 4 if kind == "f32" else 2
    body = "\n".join([
        mma("d", "c", kind=kind), mma("d", "c", kind=kind, at=count),
        mma("d", "d", kind=kind, at=2 * count), mma("d", "d", kind=kind, at=3 * count, of=2 * count),
    ])  # fmt: skip
    found = run(kernel(body, 4 * count, kind), 4 * count).reshape(4, -1)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[2] != found[3]).any()


def test_a_factor_that_changes_in_between() -> None:
    body = "\n".join([mma("d", "c"), "xor.b32 %a1, %a1, 0x80008000;", mma("d", "c", at=4), mma("d", "d", at=8, of=4)])
    found = run(kernel(body, 12), 12).reshape(3, -1)
    assert (found[0] != found[1]).any()


@pytest.mark.parametrize("flag", [0, 1])
def test_a_guarded_product(flag: int) -> None:
    body = "\n".join([mma("d", "c"), mma("d", "d", guard="@%p "), mma("d", "d", at=4)])
    found = run(kernel(body, 8), 8, flag).reshape(2, -1)
    assert (found[0] != found[1]).any()


def test_more_sums_than_are_kept() -> None:
    count = MOST_TILES + 10
    rounds = [mma("d", "c", at=4 * index) for index in range(count)]
    rounds += [mma("d", "d", at=4 * index, of=4 * index) for index in range(count)]
    found = run(kernel("\n".join(rounds), 4 * count, registers=4 * count), 4 * count).reshape(count, -1)
    assert (found == found[0]).all()


def test_a_loop_over_sums() -> None:
    moves = " ".join(f"mov.b32 %d{i}, %c{i};" for i in range(4))
    ends = "add.u32 %t, %t, 1; setp.lt.u32 %p, %t, %f; @%p bra AGAIN;"
    body = f"{moves} mov.u32 %t, 0;\nAGAIN: {mma('d', 'd')} {mma('d', 'd')} {ends}"
    once, twice = (run(kernel(body, 4), 4, flag) for flag in (1, 2))
    assert (once != twice).any()
