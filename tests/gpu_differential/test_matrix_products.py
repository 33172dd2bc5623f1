"""`mma.sync`: generated code = oracle = products in exact arithmetic, laid out by the manual's closed forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from both import HEADER, run_both
from fragment_places import ELEMENTS, Element, matrix_of, place_a, place_b, place_c, registers_of
from numpy.typing import NDArray

from triptych.core.errors import DivergentWarp, PtxSyntaxError, UnsupportedInstruction
from triptych.gpu.isa.tensor.numerics import NUMERICS
from triptych.gpu.lower.tensor import arithmetic
from triptych.gpu.oracle import tensor as oracle_tensor

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """An opcode, taken apart."""

    opcode: str
    shape: tuple[int, int, int]
    types: tuple[str, str, str, str]
    """Of D, A, B and C."""


def case(opcode: str) -> Case:
    shape = re.search(r"\.m(\d+)n(\d+)k(\d+)\.", opcode)
    assert shape is not None
    types = [name for name in opcode.split(".") if name in ELEMENTS]
    return Case(opcode, (int(shape[1]), int(shape[2]), int(shape[3])), (types[0], types[1], types[2], types[3]))


def opcodes() -> list[str]:
    found = [f"{k}.row.col.{t}.f16.f16.{t}" for k in ("m16n8k8", "m16n8k16") for t in ("f16", "f32")]
    found += [f"{k}.row.col.f32.bf16.bf16.f32" for k in ("m16n8k8", "m16n8k16")]
    found += [f"{k}.row.col.f32.tf32.tf32.f32" for k in ("m16n8k4", "m16n8k8")]
    found += [f"{k}.row.col.f64.f64.f64.f64" for k in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")]
    found += [f"m16n8k4.row.col.{mode}.f64.f64.f64.f64" for mode in ("rn", "rz", "rm", "rp")]
    for k, a, b in (("m16n8k16", "e4m3", "e4m3"), ("m16n8k32", "e4m3", "e5m2"), ("m16n8k32", "e5m2", "e4m3")):
        found += [f"{k}.row.col{kind}.{t}.{a}.{b}.{t}" for kind, t in (("", "f32"), (".kind::f8f6f4", "f16"))]
    for bits, ks in ((8, ("m8n8k16", "m16n8k16", "m16n8k32")), (4, ("m8n8k32", "m16n8k32", "m16n8k64"))):
        pairs = [("s", "s", ""), ("u", "u", ".satfinite"), ("s", "u", ".satfinite"), ("u", "s", "")]
        found += [f"{ks[2]}.row.col{tail}.s32.{a}{bits}.{b}{bits}.s32" for a, b, tail in pairs]
        found += [f"{k}.row.col.satfinite.s32.s{bits}.u{bits}.s32" for k in ks[:2]]
    bits = [("m8n8k128", "xor"), ("m16n8k128", "and"), ("m16n8k256", "xor"), ("m16n8k256", "and")]
    return [f"mma.sync.aligned.{rest}" for rest in found + [f"{k}.row.col.s32.b1.b1.s32.{op}.popc" for k, op in bits]]


def numbers(name: str, seed: int, *shape: int) -> Array:
    """Numbers that the type holds, and whose products' sums f16 holds."""
    generator = np.random.default_rng(seed)
    if name == "s32":
        return generator.integers(-(2**20), 2**20, shape)
    if name == "b1":
        return generator.integers(0, 2, shape)
    if name[0] in "us":
        low, high = (-(1 << (int(name[1:]) - 1)) if name[0] == "s" else 0), 1 << (int(name[1:]) - (name[0] == "s"))
        return generator.integers(low, high, shape)
    return generator.integers(-4, 5, shape) * 0.25


def kernel(opcode: str, body_registers: Sequence[tuple[str, int, int]]) -> str:
    """Loads each operand's registers from an array (register, lane), multiplies, and stores those of D."""
    text = [".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) {"]
    text.append(".reg .b32 %t; .reg .b64 %at; mov.u32 %t, %laneid;")
    lists: dict[str, str] = {}
    for name, (kind, count, size) in zip("dabc", body_registers, strict=True):
        text.append(f".reg .{kind} %{name}<{count}>; .reg .b64 %p{name};")
        text.append(f"ld.param.u64 %p{name}, [{name}]; mad.wide.u32 %p{name}, %t, {size}, %p{name};")
        lists[name] = "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"
        if name != "d":
            text += [f"ld.global.{kind} %{name}{i}, [%p{name}+{i * 32 * size}];" for i in range(count)]
    text.append(f"{opcode} {lists['d']}, {lists['a']}, {lists['b']}, {lists['c']};")
    kind, count, size = body_registers[0]
    text += [f"st.global.{kind} [%pd+{i * 32 * size}], %d{i};" for i in range(count)]
    return header(opcode) + "\n".join(text) + "\nret; }\n"


def header(opcode: str) -> str:
    return HEADER.replace("sm_90", "sm_120a" if "kind::" in opcode else "sm_90")


def multiply(this: Case, a: Array, b: Array, c: Array) -> tuple[Array, Any]:
    """The bits of D by the machine, and what was counted."""
    m, n, _ = this.shape
    d_type, a_type, b_type, c_type = (ELEMENTS[name] for name in this.types)
    words = [
        registers_of(a, a_type, place_a(m, a_type)),
        registers_of(b, b_type, place_b(b_type)),
        registers_of(c, c_type, place_c),
    ]
    out = np.zeros((m * n // 32 // d_type.packed, 32), words[2].dtype)
    elements = (d_type, a_type, b_type, c_type)
    shapes = [_registers(element, array) for element, array in zip(elements, (out, *words), strict=True)]
    outcome = run_both(kernel(this.opcode, shapes), "k", 1, 32, out, *words)
    return matrix_of(outcome.arrays[0], d_type, place_c, (m, n)), outcome.counters


def _registers(element: Element, words: Array) -> tuple[str, int, int]:
    return element.register, len(words), words.dtype.itemsize


@pytest.mark.parametrize("opcode", opcodes(), ids=lambda opcode: opcode.removeprefix("mma.sync.aligned."))
def test_products_are_exact_where_their_sums_are(opcode: str) -> None:
    this = case(opcode)
    m, n, k = this.shape
    a, b, c = numbers(this.types[1], 1, m, k), numbers(this.types[2], 2, k, n), numbers(this.types[3], 3, m, n)
    bits, counters = multiply(this, a, b, c)
    if ".popc" in opcode:
        pairs = a[:, :, None].astype(bool), b[None].astype(bool)
        exact = c + (pairs[0] ^ pairs[1] if ".xor." in opcode else pairs[0] & pairs[1]).sum(axis=1)
    else:
        exact = a @ b + c
    wanted = ELEMENTS[this.types[0]].encode(np.asarray(exact))
    if ".rm." in opcode:  # towards -∞, a sum that vanishes is -0
        bits, wanted = (np.where(array == 1 << 63, 0, array) for array in (bits, wanted))
    np.testing.assert_array_equal(bits, wanted)
    pipe = {"e4m3": "fp8", "e5m2": "fp8", "u8": "s8", "u4": "s4"}.get(this.types[1], this.types[1])
    assert counters[f"flops.tensor.{pipe}"] == 2 * m * n * k
    assert counters["instructions.pipe.tensor"] == 1


FLOATING = {
    "m16n8k16.row.col.f32.f16.f16.f32": 2e-6,
    "m16n8k16.row.col.f16.f16.f16.f16": 2e-3,
    "m16n8k16.row.col.f32.bf16.bf16.f32": 2e-6,
    "m16n8k8.row.col.f32.tf32.tf32.f32": 3e-3,
    "m16n8k32.row.col.f32.e4m3.e5m2.f32": 4e-6,
    "m16n8k16.row.col.f64.f64.f64.f64": 1e-14,
    "m16n8k16.row.col.rz.f64.f64.f64.f64": 1e-14,
}
"""Errors, of sums whose terms are below 1 for the most part. tf32 drops digits of the singles that it is given."""


@pytest.mark.parametrize(("opcode", "error"), FLOATING.items())
def test_sums_are_rounded_as_the_type_is(opcode: str, error: float) -> None:
    this = case(f"mma.sync.aligned.{opcode}")
    m, n, k = this.shape
    generator = np.random.default_rng(11)
    a, b, c = (generator.standard_normal(shape) for shape in ((m, k), (k, n), (m, n)))
    if this.types[1] != "tf32":
        a, b, c = (
            as_numbers(name, ELEMENTS[name].encode(x)) for name, x in zip(this.types[1:], (a, b, c), strict=True)
        )
    bits, _ = multiply(this, a, b, c)
    np.testing.assert_allclose(as_numbers(this.types[0], bits), a @ b + c, rtol=error, atol=8 * error)


def as_numbers(name: str, bits: Array) -> Array:
    """The numbers that bits stand for."""
    kind, raw = {
        "f16": (np.float16, np.uint16), "bf16": (ml_dtypes.bfloat16, np.uint16), "f32": (np.float32, np.uint32),
        "e4m3": (ml_dtypes.float8_e4m3fn, np.uint8), "e5m2": (ml_dtypes.float8_e5m2, np.uint8),
        "f64": (np.float64, np.uint64),
    }[name]  # fmt: skip
    return bits.astype(raw).view(kind).astype(np.float64)


@pytest.mark.parametrize("opcode", FLOATING)
def test_any_bits_are_taken_alike_by_both_executors(opcode: str) -> None:
    """NaN, infinities, subnormals and overflow among them; what is no number is the canonical NaN."""
    this = case(f"mma.sync.aligned.{opcode}")
    generator = np.random.default_rng(13)
    m, n, k = this.shape
    words: list[Array] = []
    for name, size in zip(this.types[1:], (m * k, k * n, m * n), strict=True):
        element = ELEMENTS[name]
        width = 8 if element.register == "f64" else 4
        given = generator.integers(0, 256, size // element.packed * width, np.uint8).view(f"u{width}")
        words.append(given.reshape(-1, 32))
    d = ELEMENTS[this.types[0]]
    out = np.zeros_like(words[2])
    elements = (d, *(ELEMENTS[name] for name in this.types[1:]))
    shapes = [_registers(element, array) for element, array in zip(elements, (out, *words), strict=True)]
    outcome = run_both(kernel(this.opcode, shapes), "k", 1, 32, out, *words)
    bits = matrix_of(outcome.arrays[0], d, place_c, (m, n))
    nan = np.isnan(as_numbers(this.types[0], bits))
    assert set(bits[nan].tolist()) <= {0x7FFF, 0x7FFFFFFF, 0xFFF8000000000000}


def test_saturating_sums_stop_at_the_ends_and_others_go_round() -> None:
    a, b = np.full((16, 32), -128), np.full((32, 8), 127)
    c = np.full((16, 8), -(2**31) + 5)
    stopped, _ = multiply(case("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"), a, b, c)
    assert set(stopped.ravel().tolist()) == {0x80000000}
    wrapped, _ = multiply(case("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"), a, b, c)
    assert set(wrapped.ravel().tolist()) == {(-(2**31) + 5 - 128 * 127 * 32) % 2**32}


def test_tf32_drops_the_last_digits_of_a_single() -> None:
    a, b, c = np.full((16, 8), 1 + 2.0**-11), np.eye(8), np.zeros((16, 8))
    bits, _ = multiply(case("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), a, b, c)
    assert set(bits.ravel().tolist()) == {0x3F800000}


# Who executes it, and what is refused ---------------------------------------------------------------------------

_BODY = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r4, %r5}, {%r1}, {%r1}, {%r2, %r3};"


def small(body: str) -> str:
    body = body.replace("; ", ";\n")
    return f"""{HEADER}
.visible .entry k(.param .u64 out) {{
.reg .b32 %r<8>; .reg .f32 %f<8>; .reg .pred %p<4>; .reg .b64 %d<4>;
mov.u32 %r0, %tid.x; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r0, 4, %d1;
mov.u32 %r1, 0x01010101; mov.u32 %r2, %r0; mov.u32 %r3, 7;
{body}
add.u32 %r4, %r4, %r5; st.global.u32 [%d1], %r4; ret; }}
"""


def run_small(body: str, threads: int = 32, only: str = "") -> list[int]:
    out = np.zeros(threads, np.uint32)
    return run_both(small(body), "k", 1, threads, out, only=only).arrays[0].tolist()


def test_parted_lanes_meet_before_they_multiply() -> None:
    apart = "@%p1 bra here; add.u32 %r2, %r2, 100; bra there; here: mov.u32 %r3, 1; there:"
    body = f"setp.lt.u32 %p1, %r0, 9; {apart} {_BODY}"
    wanted = [32 + lane + (100 + 7 if lane >= 9 else 1) for lane in range(32)]
    assert run_small(body) == wanted


def test_a_guard_that_holds_nowhere_leaves_the_registers() -> None:
    body = f"mov.u32 %r4, 5; mov.u32 %r5, 6; setp.gt.u32 %p1, %r0, 99; @%p1 {_BODY}"
    assert run_small(body) == [11] * 32


PARTED = {
    "a guard": f"setp.lt.u32 %p1, %r0, 9; @%p1 {_BODY}",
    "lanes that have ended": f"setp.gt.u32 %p1, %r0, 20; @%p1 ret; {_BODY}",
    "two places": f"setp.lt.u32 %p1, %r0, 16; @%p1 bra one; exit; one: {_BODY}",
}


@pytest.mark.parametrize("only", ["generated", "oracle"])
@pytest.mark.parametrize("body", PARTED.values(), ids=PARTED)
def test_a_part_of_a_warp_may_not_multiply(body: str, only: str) -> None:
    with pytest.raises(DivergentWarp, match=r"mma\.sync\.aligned"):
        run_small(body, only=only)


def test_the_fault_names_the_lanes_and_the_line() -> None:
    with pytest.raises(DivergentWarp, match="only lanes 0x000fffff execute it") as caught:
        run_small(_BODY, threads=52, only="generated")
    assert caught.value.thread == (32, 0, 0)


_INTEGERS = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
_HALVES = "{%f0,%f1,%f2,%f3}, {%r1,%r2,%r1,%r2}, {%r1,%r2}, {%f0,%f1,%f2,%f3};"
REFUSED = {
    "too few registers": (f"{_INTEGERS} {{%r4}}, {{%r1}}, {{%r1}}, {{%r2, %r3}};", "d has 2 registers"),
    "a wider register": (f"{_INTEGERS} {{%r4, %r5}}, {{%d1}}, {{%r1}}, {{%r2, %r3}};", "%d1 is .b64"),
    "another target's": (
        f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {_HALVES}",
        r"needs \.target .*sm_120f",
    ),
    "another layout": (f"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {_HALVES}", "is for .row.col alone"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_multiplication_is_refused(body: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message):
        run_small(body)


@pytest.mark.parametrize("opcode", ["m16n8k16.row.col.f32.tf32.tf32.f32", "m16n8k32.row.col.f32.f16.f16.f32"])
def test_what_there_is_not_is_told_by_name(opcode: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=opcode):
        run_small(f"mma.sync.aligned.{opcode} {_HALVES}")


def test_both_executors_know_every_arithmetic() -> None:
    assert arithmetic.ARITHMETICS.keys() == oracle_tensor.ARITHMETICS.keys() == NUMERICS.keys()
