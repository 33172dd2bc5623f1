"""Sums of `mma.sync` that live across blocks: over loops and barriers, where lanes part, and beside other writers."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

SUMS = "f32", "s32", "f64"
PRODUCTS = {
    "f32": ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2),
    "s32": ("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", 4, 2, 1),
    "f64": ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1),
}
"""By the type of the sums: the instruction, and how many registers D, A and B have."""
NAN = np.uint32(0x7FC0_1234)
INFINITY = np.uint32(0x7F80_0000)


def group(name: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{name}{first + i}" for i in range(count)) + "}"


def mma(sums: str, d: int, c: int) -> str:
    """D from C, by their first registers."""
    name, count, a, b = PRODUCTS[sums]
    return f"{name} {group('d', d, count)}, {group('a', 0, a)}, {group('b', 0, b)}, {group('d', c, count)};"


def kernel(sums: str, body: str, matrices: int = 2, *, loaded: bool = False) -> str:
    """A warp stores the matrices in `%d0` … behind the body; they begin as zeros, or as what is `loaded`."""
    _, count, a, b = PRODUCTS[sums]
    bits = 64 if sums == "f64" else 32
    size, results = bits // 8, range(count * matrices)
    factors = [f"ld.global.b{bits} %{n}{i}, [%q0+{32 * size * i}];" for n, c in (("a", a), ("b", b)) for i in range(c)]
    starts = [
        f"ld.global.b{bits} %d{i}, [%q0+{32 * size * (4 + i)}];" if loaded else f"mov.b{bits} %d{i}, 0;"
        for i in results
    ]
    stores = [f"st.global.b{bits} [%q1+{32 * size * i}], %d{i};" for i in results]
    return f"""{HEADER}.entry k(.param .u64 in, .param .u64 out, .param .u32 rounds)
{{
.reg .pred %p, %o; .reg .b64 %q<2>; .reg .b32 %t, %i, %n, %e; .reg .b{bits} %a<4>, %b<4>, %d<64>, %x;
mov.u32 %t, %tid.x; mov.u32 %i, 0; ld.param.u32 %n, [rounds]; and.b32 %e, %t, 31;
ld.param.u64 %q0, [in]; mad.wide.u32 %q0, %t, {size}, %q0;
ld.param.u64 %q1, [out]; mad.wide.u32 %q1, %t, {size}, %q1;
{" ".join(factors)} {" ".join(starts)}
LOOP: setp.ge.u32 %p, %i, %n; @%p bra DONE;
{body}
add.u32 %i, %i, 1; bra LOOP;
DONE: {" ".join(stores)}
ret;
}}
"""


def run(
    sums: str, body: str, matrices: int = 2, *, rounds: int = 3, loaded: bool = False, start: np.uint32 | None = None
) -> np.ndarray:
    """The matrices, as bits; `start` is what a loaded sum is made of."""
    _, count, *_ = PRODUCTS[sums]
    generator = np.random.default_rng(7)
    dtype = {"f32": np.float16, "s32": np.int8, "f64": np.float64}[sums]
    numbers = (3 * generator.standard_normal(64 * 32 * 8)).astype(dtype)
    word = np.uint64 if sums == "f64" else np.uint32
    given = numbers.view(word)[: 64 * 32].copy()
    if start is not None:
        given[4 * 32 :] = start
    results = np.zeros(32 * count * matrices, word)
    text = kernel(sums, body, matrices, loaded=loaded)
    return run_both(text, "k", 1, 32, given, results, np.uint32(rounds)).arrays[1].reshape(matrices, -1)


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_over_a_barrier(sums: str, rounds: int) -> None:
    count = PRODUCTS[sums][1]
    body = f"{mma(sums, 0, 0)} bar.sync 0; {mma(sums, 0, 0)} {mma(sums, count, count)} bar.sync 0;"
    first, second = run(sums, body, rounds=rounds)
    assert (first != second).any() == bool(rounds)


@pytest.mark.parametrize("sums", SUMS)
def test_sums_that_change_places(sums: str) -> None:
    _, count, *_ = PRODUCTS[sums]
    bits = 64 if sums == "f64" else 32
    swaps = " ".join(f"mov.b{bits} %x, %d{i}; mov.b{bits} %d{i}, %d{count + i}; mov.b{bits} %d{count + i}, %x;"
                     for i in range(count))  # fmt: skip
    first, second = run(sums, f"{mma(sums, 0, 0)} {swaps}")
    twice, once = run(sums, mma(sums, 0, 0), rounds=2)[0], run(sums, mma(sums, 0, 0), rounds=1)[0]
    np.testing.assert_array_equal(second, twice)
    np.testing.assert_array_equal(first, once)


@pytest.mark.parametrize("sums", SUMS)
def test_results_elsewhere(sums: str) -> None:
    """C stays as it is, and D is wanted behind the loop alone."""
    _, count, *_ = PRODUCTS[sums]
    first, second = run(sums, f"{mma(sums, 0, 0)} {mma(sums, count, 0)}")
    assert (first != second).any()
    np.testing.assert_array_equal(second, run(sums, mma(sums, 0, 0), rounds=4)[0])


PARTED = """setp.gt.u32 %o, %e, 12; @%o bra OTHER;
{low} setp.lt.u32 %o, %e, 5; @%o bra MEET; {lower} bra MEET;
OTHER: {high} setp.lt.u32 %o, %e, 20; @%o bra MEET; {higher}
MEET: bar.warp.sync 0xffffffff;"""


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_where_lanes_part(sums: str, is_changed: bool, barrier: str) -> None:
    _, count, *_ = PRODUCTS[sums]
    double = "0f40400000" if sums == "f32" else "0d4008000000000000"
    change = [
        f"{f'mul.lo.s32 %d{i}, %d{i}, 3' if sums == 's32' else f'mul.{sums} %d{i}, %d{i}, {double}'};"
        for i in (0, 1, count, count + 1)
    ]
    ways = change if is_changed else ["add.u32 %e, %e, 0;"] * 4
    parted = PARTED.format(**dict(zip(("low", "lower", "high", "higher"), ways, strict=True)))
    body = f"{mma(sums, 0, 0)} {mma(sums, count, 0)} {parted} {barrier} {mma(sums, 0, 0)} {mma(sums, count, count)}"
    first, second = run(sums, body)
    assert (first != second).any()


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("start", [NAN, INFINITY, np.uint32(0x8000_0000)])
def test_bits_of_what_is_no_number(rounds: int, start: np.uint32) -> None:
    """A sum that is loaded keeps its bits; one that is multiplied has the canonical NaN."""
    first, second = run("f32", f"{mma('f32', 0, 0)} bar.sync 0;", rounds=rounds, loaded=True, start=start)
    assert (second == start).all()
    if start == NAN:
        assert (first == (np.uint32(0x7FFF_FFFF) if rounds else NAN)).all()


def test_arithmetic_that_makes_no_number() -> None:
    """What a sum of arithmetic's is, is seen behind the loop: the canonical NaN, as of a multiplication."""
    body = f"{mma('f32', 0, 0)} fma.rn.f32 %d1, %d1, 0f7F800000, 0fFF800000; mul.f32 %d4, %d1, %d1; bar.sync 0;"
    first, second = run("f32", body, rounds=1)
    nan = first.reshape(4, 32)[1]
    assert (nan == 0x7FFF_FFFF).any()
    assert (second.reshape(4, 32)[0] == nan).any()


def test_one_register_is_written() -> None:
    body = f"{mma('f32', 0, 0)} bar.sync 0; add.f32 %d2, %d2, 0f3F800000; bar.sync 0; {mma('f32', 4, 0)}"
    first, _ = run("f32", body)
    plain, _ = run("f32", f"{mma('f32', 0, 0)} {mma('f32', 4, 0)}")
    same = (first == plain).reshape(4, 32)
    assert same[[0, 1, 3]].all()
    assert not same[2].any()


def test_short_branches_write_registers() -> None:
    """Lanes that meet at once again are run by the converged form."""
    change = "setp.lt.u32 %o, %e, 9; @%o bra MEET; add.f32 %d3, %d3, 0f41200000; MEET:"
    body = f"{mma('f32', 0, 0)} {change} {mma('f32', 4, 4)}"
    first, second = run("f32", body, rounds=2)
    assert (first.reshape(4, 32)[3, 9:] != second.reshape(4, 32)[3, 9:]).all()


def test_what_is_read_before_it_is_written() -> None:
    body = f"{mma('f32', 8, 8)} bar.sync 0; {' '.join(f'mov.b32 %d{i}, %d{8 + i};' for i in range(4))}"
    first, second = run("f32", body, rounds=2)
    np.testing.assert_array_equal(first, run("f32", mma("f32", 0, 0), rounds=2)[0])
    assert not second.any()


ANOTHER = {
    "f32": "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16"
    f" {group('d', 0, 8)}, {{%a0, %a1, %a2, %a3, %a3, %a2, %a1, %a0}}, {{%b0, %b1, %a0, %a1, %b1, %b0, %a3, %a2}},"
    " {%b0, %b1, %a2, %a3};",
    "s32": f"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {group('d', 0, 2)}, {group('a', 0, 4)},"
    " {%b0, %b0}, {%d4, %b0};",
}
"""By the type of the sums: a product whose D is another matrix, the first of whose registers is a sum's."""


@pytest.mark.parametrize("sums", ANOTHER)
@pytest.mark.parametrize("before", [False, True])
def test_another_matrix_in_the_same_registers(sums: str, before: bool) -> None:
    one, other = mma(sums, 0, 0), ANOTHER[sums]
    first, _ = run(sums, f"{other} {one}" if before else f"{one} {other}", rounds=2)
    assert (first != run(sums, one, rounds=2)[0]).any()
