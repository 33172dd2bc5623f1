"""Accesses of 32 bytes a lane, registers of 128 bits, and their atomic operations, as whole kernels on both executors.

Each kernel takes (in, out); what it must give is worked out here, without the table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from row_kernel import Lanes, frame, run_text

from triptych.core.errors import MemoryFault, PtxSyntaxError

THREADS = 64
WORDS = 4
"""Words of 64 bits that a thread has in the input, and in the output."""
_PLACES = "ld.param.u64 %a0, [in]; ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %t0, 32;"
"""The thread's 32 bytes: at %a0 + %a2 and %a1 + %a2."""


def _kernel(body: str, target: str = "sm_100") -> str:
    return frame(f"{_PLACES} .reg .b128 %q<4>; .reg .b64 %w<8>; .reg .b32 %x<8>;\n{body}", target)


def _inputs() -> Lanes:
    return np.random.default_rng(12).integers(0, 1 << 63, (WORDS, THREADS), np.uint64)


def _run(body: str, target: str = "sm_100") -> tuple[Lanes, Lanes]:
    """The inputs and the outputs by thread; both executors agree."""
    inputs = _inputs()
    fast, slow = run_text(_kernel(body, target), inputs, (WORDS, THREADS))
    np.testing.assert_array_equal(fast, slow)
    return inputs.reshape(THREADS, WORDS), fast.reshape(THREADS, WORDS)


EIGHT = ", ".join(f"%x{i}" for i in range(8))
FOUR = ", ".join(f"%w{i}" for i in range(4))
_NEIGHBOURS = "add.u64 %a3, %a0, %a2; add.u64 %a1, %a1, %a2;"
_TURNED = "xor.b32 %t1, %t0, 21; mul.wide.u32 %a3, %t1, 32; add.u64 %a3, %a3, %a0; add.u64 %a1, %a1, %a2;"


def _same(inputs: Lanes) -> Lanes:
    return inputs


def _turned(inputs: Lanes) -> Lanes:
    return inputs[np.arange(THREADS) ^ 21]


def _by_halves(inputs: Lanes) -> Lanes:
    return np.where(np.arange(THREADS)[:, None] % 2 == 0, inputs, 0).astype(np.uint64)


@pytest.mark.parametrize(
    ("load", "store"),
    [
        ("ld.global.v8.b32", "st.global.v8.f32"), ("ld.v8.u32", "st.v8.s32"),
        ("ld.global.L1::no_allocate.L2::evict_last.L2::256B.v8.f32", "st.global.L1::evict_last.L2::evict_first.v8.b32"),
        ("ld.relaxed.gpu.global.v8.b32", "st.volatile.global.v8.b32"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("places", "expected"), [(_NEIGHBOURS, _same), (_TURNED, _turned)], ids=["same", "turned"])
def test_eight_words(load: str, store: str, places: str, expected: Callable[[Lanes], Lanes]) -> None:
    inputs, outputs = _run(f"{places} {load} {{{EIGHT}}}, [%a3]; {store} [%a1], {{{EIGHT}}};")
    np.testing.assert_array_equal(outputs, expected(inputs))


@pytest.mark.parametrize(
    ("load", "store"),
    [
        ("ld.global.v4.f64", "st.global.v4.b64"), ("ld.global.nc.L2::evict_first.v4.u64", "st.v4.s64"),
        ("ld.acquire.sys.v4.b64", "st.release.sys.global.v4.f64"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("places", "expected"), [(_NEIGHBOURS, _same), (_TURNED, _turned)], ids=["same", "turned"])
def test_four_double_words(load: str, store: str, places: str, expected: Callable[[Lanes], Lanes]) -> None:
    inputs, outputs = _run(f"{places} {load} {{{FOUR}}}, [%a3]; {store} [%a1], {{{FOUR}}};")
    np.testing.assert_array_equal(outputs, expected(inputs))


def test_some_lanes_alone() -> None:
    body = f"""{_NEIGHBOURS} and.b32 %t1, %t0, 1; setp.eq.u32 %p0, %t1, 0;
    @%p0 ld.global.v8.b32 {{{EIGHT}}}, [%a3]; @%p0 st.global.v8.b32 [%a1], {{{EIGHT}}};"""
    inputs, outputs = _run(body)
    np.testing.assert_array_equal(outputs, _by_halves(inputs))


def test_32_bytes_are_aligned_to_32() -> None:
    with pytest.raises(MemoryFault, match="misaligned"):
        _run(f"add.u64 %a3, %a0, 16; ld.global.v8.b32 {{{EIGHT}}}, [%a3];")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"ld.shared.v8.b32 {{{EIGHT}}}, [%a0];", "vectors of more than 16 bytes are of global memory alone"),
        ("ld.global.L2::evict_last.b32 %x0, [%a0];", ".L2::evict_last is for accesses of 32 bytes alone"),
        ("ld.shared.L1::evict_last.b32 %x0, [%a0];", ".L1::evict_last is for generic addresses and .global alone"),
        ("ld.global.ca.L1::evict_last.b32 %x0, [%a0];", ".L1::evict_last cannot be combined with .ca"),
        ("st.shared.L2::cache_hint.b32 [%a0], %x0, %w0;", ".L2::cache_hint is for generic addresses and .global alone"),
        ("ld.global.b128 %w0, [%a0];", "%w0 is .b64 where .b128 is expected"),
        ("mov.b64 %w0, %q0;", "%q0 is .b128 where .b64 is expected"),
        ("ld.global.v2.b128 {%q0, %q1}, [%a0];", ".b128 cannot be combined with .v2"),
    ],
)
def test_what_does_not_go_together_is_told(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        _run(text)
    assert message in str(caught.value)
    assert "(PTX line " in str(caught.value)


def test_wide_vectors_need_their_target() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        _run(f"{_NEIGHBOURS} ld.global.v8.b32 {{{EIGHT}}}, [%a3];", "sm_90")
    assert "'ld.global.v8.b32': it needs .target sm_100 or higher, and this module's is sm_90" in str(caught.value)


def test_128_bits_through_all_memories() -> None:
    body = f""".shared .align 16 .b8 tile[{32 * THREADS}]; .local .align 16 .b8 own[32];
    {_NEIGHBOURS} mov.u64 %w6, tile; add.u64 %w6, %w6, %a2; mov.u64 %w7, own;
    ld.global.b128 %q0, [%a3]; st.shared.b128 [%w6], %q0; ld.volatile.shared.b128 %q1, [%w6];
    st.local.b128 [%w7], %q1; ld.local.b128 %q2, [%w7]; st.b128 [%a1], %q2;
    ld.global.b128 %q3, [%a3+16]; mov.b128 {{%w0, %w1}}, %q3; mov.b128 %q1, {{%w1, %w0}};
    mov.b128 {{%x0, %x1, %x2, %x3}}, %q1; mov.b128 %q2, {{%x3, %x2, %x1, %x0}}; st.global.b128 [%a1+16], %q2;"""
    inputs, outputs = _run(body)
    swapped = inputs.view(np.uint32).reshape(THREADS, 8).copy()
    swapped[:, 4:] = swapped[:, [5, 4, 7, 6]]
    np.testing.assert_array_equal(outputs, swapped.view(np.uint64).reshape(THREADS, WORDS))


def test_128_bits_live_where_lanes_part() -> None:
    body = f"""{_NEIGHBOURS} ld.global.b128 %q0, [%a3]; ld.global.b128 %q1, [%a3+16];
    and.b32 %t1, %t0, 3; setp.lt.u32 %p0, %t1, 2; @%p0 bra other;
    mov.b128 %q2, %q0; mov.b128 %q0, %q1; mov.b128 %q1, %q2; bra join;
    other: mov.b128 {{_, %w0}}, %q0; mov.b128 %q1, {{%w0, %w0}};
    join: st.global.b128 [%a1], %q0; st.global.b128 [%a1+16], %q1;"""
    inputs, outputs = _run(body)
    stays = (np.arange(THREADS) & 3 < 2)[:, None]
    expected = np.where(stays, inputs[:, [0, 1, 1, 1]], inputs[:, [2, 3, 0, 1]])
    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("space", ["shared", "global"])
def test_128_bits_are_exchanged_one_lane_after_another(space: str) -> None:
    """Each finds what the lane before left: the first of a block of 32 the zeros that it put there itself."""
    cell = "mov.u64 %w6, cell;" if space == "shared" else f"add.u64 %w6, %a1, {32 * THREADS - 16};"
    body = f""".shared .align 16 .b8 cell[16];
    {cell} mov.u64 %w0, 0; mov.b128 %q0, {{%w0, %w0}}; mov.u32 %t1, %tid.x; setp.eq.u32 %p0, %t1, 0;
    @%p0 st.{space}.b128 [%w6], %q0; bar.warp.sync -1; {_NEIGHBOURS} ld.global.b128 %q1, [%a3];
    atom.{space}.exch.b128 %q2, [%w6], %q1; st.global.b128 [%a1], %q2;"""
    inputs, outputs = _run(body, "sm_90")
    before = np.zeros((THREADS, 2), np.uint64)
    before[1:] = inputs[:-1, :2]
    before[::32] = 0
    np.testing.assert_array_equal(outputs[:, :2], before)


def test_128_bits_are_swapped_where_both_halves_agree() -> None:
    body = f"""{_NEIGHBOURS} cvt.u64.u32 %w0, %t0; mov.u64 %w1, 5; mov.u64 %w2, 6;
    mov.b128 %q0, {{%w1, %w2}}; st.global.b128 [%a1], %q0; setp.lt.u32 %p0, %t0, 40; @!%p0 mov.u64 %w2, 7;
    mov.b128 %q1, {{%w1, %w2}}; mov.b128 %q2, {{%w0, %w0}};
    atom.global.cas.b128 %q3, [%a1], %q1, %q2; st.global.b128 [%a1+16], %q3;"""
    _, outputs = _run(body, "sm_90")
    threads = np.arange(THREADS, dtype=np.uint64)
    swapped = threads < 40
    np.testing.assert_array_equal(outputs[:, 0], np.where(swapped, threads, 5))
    np.testing.assert_array_equal(outputs[:, 1], np.where(swapped, threads, 6))
    np.testing.assert_array_equal(outputs[:, 2:], np.tile(np.array([5, 6], np.uint64), (THREADS, 1)))


# --- Singles over a warp ------------------------------------------------------------------------------------------

_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, 2.5)
CANONICAL_NAN = 0x7FFF_FFFF


def _reduced(values: NDArray[np.float32], operation: str, modifiers: str) -> int:
    """The bits of the smallest or largest, -0 before +0; NaN loses to numbers, or wins under `.NaN`."""
    if ".abs" in modifiers:
        values = np.abs(values)
    numbers = [value for value in values if not np.isnan(value)]
    if not numbers or (".NaN" in modifiers and len(numbers) < len(values)):
        return CANONICAL_NAN
    ordered = sorted(numbers, key=lambda value: (float(value), not np.signbit(value)))
    return int(ordered[0 if operation == "min" else -1].view(np.uint32))


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("modifiers", ["", ".abs", ".NaN", ".abs.NaN"])
def test_singles_are_reduced_over_a_warp(operation: str, modifiers: str) -> None:
    source = np.random.default_rng(5)
    inputs = np.zeros((8, 256), np.uint64)
    for row in range(8):  # each warp sees other kinds: numbers alone, zeros alone, what is no number alone …
        kinds = _SPECIAL[: 4 + row] if row < 6 else (np.nan,) if row == 6 else (0.0, -0.0)
        inputs[row] = source.choice(np.array(kinds, np.float32), 256).view(np.uint32)
    inputs[:, :32] = source.standard_normal((8, 32)).astype(np.float32).view(np.uint32)
    lines: list[str] = []
    opcode = f"redux.sync.{operation}{modifiers}.f32"
    for row in range(8):
        lines += [
            f"ld.global.b32 %f0, [%a0+{2048 * row}]; {opcode} %f1, %f0, -1; st.global.b32 [%a1+{4096 * row}], %f1;",
            f"mov.u32 %t1, %tid.x; setp.ge.u32 %p0, %t1, 12; @%p0 {opcode} %f1, %f0, 0xFFFFF000;",
            f"st.global.b32 [%a1+{4096 * row + 2048}], %f1;",
        ]
    fast, slow = run_text(frame("\n".join(lines), "sm_100a"), inputs, (16, 256))
    np.testing.assert_array_equal(fast, slow)
    for row in range(8):
        for warp in range(8):
            lanes = inputs[row, 32 * warp : 32 * (warp + 1)].astype(np.uint32).view(np.float32)
            whole, part = (_reduced(lanes[first:], operation, modifiers) for first in (0, 12))
            assert set(fast[2 * row, 32 * warp : 32 * (warp + 1)].tolist()) == {whole}
            assert set(fast[2 * row + 1, 32 * warp + 12 : 32 * (warp + 1)].tolist()) == {part}
