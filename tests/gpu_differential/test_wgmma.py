"""`wgmma`: generated code = oracle = exact products, of matrices laid out by the manual's closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fragment_places import ELEMENTS, Array
from wgmma_kernels import BY_OPCODE, ROWS, Case, Layout, multiply, multiply_bits, opcode, packed, types_of


def numbers(name: str, generator: np.random.Generator, *shape: int) -> Array:
    """Numbers that the type holds, and whose products' sums f16 holds."""
    if name in ("s32", "f32", "f16"):
        return generator.integers(-4, 5, shape) * (1 if name == "s32" else 0.25)
    if name == "b1":
        return generator.integers(0, 2, shape)
    if name in ("s8", "u8"):
        return generator.integers(-128, 128, shape) + (128 if name == "u8" else 0)
    return generator.integers(-4, 5, shape) * 0.25


def check(case: Case, seed: int = 1) -> dict[str, int]:
    """Compares a multiplication with exact arithmetic; gives the counters."""
    generator = np.random.default_rng(seed)
    d, a_type, b_type = case.types
    a = numbers(a_type, generator, ROWS, case.k)
    b = numbers(b_type, generator, case.k, case.n)
    c = numbers(d, generator, ROWS, case.n)
    exact = a @ b * case.scales[0] * case.scales[1] + (c if case.keeps else 0)
    bits, outcome = multiply(case, a, b, c)
    np.testing.assert_array_equal(bits, ELEMENTS[d].encode(np.asarray(exact)))
    return dict(outcome.counters)


@pytest.mark.parametrize("kind", BY_OPCODE)
def test_products_are_exact_where_their_sums_are(kind: str) -> None:
    """A from registers and from shared memory, by all swizzles by K."""
    first = packed(0, ROWS, by_k=True)
    for swizzles in ((0, 128), (64, 32)):
        a, b = packed(swizzles[0], ROWS, by_k=True), packed(swizzles[1], 16, by_k=True, start=4096)
        check(Case(opcode(kind, 16), a_layout=a, b_layout=b))
    counters = check(Case(opcode(kind, 16), a_in_registers=True, a_layout=first, b_layout=first))
    pipe = {"e4m3": "fp8", "e5m2": "fp8", "u8": "s8"}.get(kind.split(".")[0], kind.split(".")[0])
    k = int(BY_OPCODE[kind].split(".")[0][1:])
    assert counters[f"flops.tensor.{pipe}"] == 2 * 64 * 16 * k
    assert counters["instructions.pipe.tensor"] == 4


@pytest.mark.parametrize("n", [8, 24, 128, 256])
def test_all_columns_are_there(n: int) -> None:
    layout = packed(128, n, by_k=True, start=ROWS * 128)
    check(Case(opcode("f16", n), a_layout=packed(128, ROWS, by_k=True), b_layout=layout))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_matrices_by_lines_of_16_bit_numbers(swizzle: int) -> None:
    """Both matrices by M and N, then one of them, A from registers too; beside matrices of other distances."""
    by_m, by_n = packed(swizzle, ROWS, by_k=False), packed(swizzle, 64, by_k=False, start=8192)
    check(Case(opcode("f16", 64), a_layout=by_m, b_layout=by_n))
    wider = replace(by_n, leading=by_n.leading + 1024, stride=by_n.stride + 2048)
    check(Case(opcode("f16", 64), a_layout=packed(64, ROWS, by_k=True), b_layout=wider), seed=2)
    check(Case(opcode("bf16", 64), a_layout=by_m, b_layout=packed(32, 64, by_k=True, start=8192)), seed=3)
    check(Case(opcode("bf16", 64), a_in_registers=True, b_layout=wider), seed=4)


def test_descriptors_may_begin_inside_of_a_swizzled_row() -> None:
    """As the steps along K of a tile of 128 bytes do."""
    for step in (32, 64, 96):
        a = Layout(128, True, 16, 1024, step)
        check(Case(opcode("f16", 16), a_layout=a, b_layout=replace(a, start=8192 + step)), seed=step)


@pytest.mark.parametrize("kind", ["f16", "f16.f16", "e4m3.e5m2"])
def test_signs_and_sums_from_nothing(kind: str) -> None:
    for scales, keeps in (((-1, 1), True), ((1, -1), False), ((-1, -1), True)):
        case = Case(opcode(kind, 16), scales, keeps, a_in_registers=keeps)
        check(replace(case, b_layout=replace(case.b_layout, start=2048)))


def test_integers_from_nothing_and_at_their_ends() -> None:
    layout = packed(0, 16, by_k=True, start=2048)
    check(Case(opcode("s8", 16), keeps=False, b_layout=layout))
    case = Case(opcode("u8.s8", 16), b_layout=layout)
    a, b, c = np.full((64, 32), 255), np.full((32, 16), -128), np.full((64, 16), -(2**31) + 5)
    assert set(multiply(case, a, b, c)[0].ravel().tolist()) == {0x80000000}
    wraps = replace(case, opcode=case.opcode.removesuffix(".satfinite"))
    assert set(multiply(wraps, a, b, c)[0].ravel().tolist()) == {(-(2**31) + 5 - 255 * 128 * 32) % 2**32}


@pytest.mark.parametrize("kind", ["f16", "f16.f16", "bf16", "tf32", "e4m3", "e4m3.e5m2", "e5m2.e4m3"])
def test_any_bits_are_taken_alike_by_both_executors(kind: str) -> None:
    """NaN, infinities, subnormals and overflow among them."""
    case = Case(
        opcode(kind, 8), (1, -1), a_layout=packed(0, ROWS, by_k=True), b_layout=packed(0, 8, by_k=True, start=2048)
    )
    generator = np.random.default_rng(5)
    shapes = (ROWS, case.k), (8, case.k), (ROWS, 8)
    a, b, c = (
        generator.integers(0, 1 << ELEMENTS[name].bits, shape, np.uint64)
        for name, shape in zip(types_of(case), shapes, strict=True)
    )
    multiply_bits(case, a, b, c)


def test_what_tensor_cores_read_is_counted_apart() -> None:
    """A warp reads its 16 rows of A, and a quarter of B, which the four share."""
    layout = packed(0, 64, by_k=True, start=2048)
    counters = check(Case(opcode("f16", 64), b_layout=layout))
    assert counters["shared.tensor.load.requests"] == 4 * 2
    assert counters["shared.tensor.load.bytes"] == (64 + 64) * 16 * 2
    counters = check(Case(opcode("f16", 64), a_in_registers=True, b_layout=layout))
    assert counters["shared.tensor.load.requests"] == 4
    assert counters["shared.tensor.load.bytes"] == 64 * 16 * 2


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("by_k", [True, False])
def test_patterns_that_begin_behind_a_multiple_of_theirs(swizzle: int, by_k: bool) -> None:
    layout = packed(swizzle, 64, by_k=by_k, start=4096 + 384)
    for base_offset in (1, 3, 6):
        check(Case(opcode("f16", 64), b_layout=replace(layout, base_offset=base_offset)))


def test_guards_leave_registers_and_memory_alone() -> None:
    """Where it does not hold, a descriptor may be anything."""
    nowhere = Layout(0, True, 0x3FFF0, 0x3FFF0, 0x3FFF0)
    case = Case(opcode("f16", 8), b_layout=nowhere, guard="@!%p1 ", a_in_registers=True)
    c = np.arange(64 * 8).reshape(64, 8) / 4
    a, b = np.ones((64, 16)), np.ones((16, 8))
    bits, outcome = multiply_bits(
        case, *(ELEMENTS[t].encode(x) for t, x in zip(types_of(case), (a, b.T, c), strict=True))
    )
    np.testing.assert_array_equal(bits, ELEMENTS["f32"].encode(c))
    assert "flops.tensor.f16" not in outcome.counters or outcome.counters["flops.tensor.f16"] == 0
