"""Wrong results are found and named: what they depend on, and the smallest element that shows it."""

# pyright: basic
# ruff: noqa: ANN401
# Solutions are functions of arrays without values, which have no one type.

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from plans import judge

import triptych as tt
from triptych.judge.verdict import Cheated, Crashed, Invalid, TimedOut, Wrong
from triptych.judge.verification.size_judge import SizeJudged

MODULE = tt.cuda.compile(
    r"""
#include <cuda_bf16.h>
#define KERNEL(name) extern "C" __global__ void name(const float *a, const float *b, float *c, int n)
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL(right) { int i = I; if (i < n) c[i] = a[i] + b[i]; }
KERNEL(one_wrong) { int i = I; if (i < n) c[i] = i == 777 ? a[i] : a[i] + b[i]; }
KERNEL(not_a_number) { int i = I; if (i < n) c[i] = i == 5 ? nanf("") : a[i] + b[i]; }
KERNEL(last_missing) { int i = I; if (i < n - 1) c[i] = a[i] + b[i]; }
KERNEL(narrow) {
    int i = I;
    if (i < n) c[i] = __bfloat162float(__float2bfloat16(a[i]) + __float2bfloat16(b[i]));
}
KERNEL(adds_to_undefined) { int i = I; if (i < n) c[i] += a[i] + b[i]; }
KERNEL(shared_undefined) {
    __shared__ float sums[512];
    int i = I;
    if (i < n) c[i] = a[i] + b[i] + (sums[threadIdx.x + 256] == sums[threadIdx.x + 256] ? 0.0f : 1.0f);
}
KERNEL(stores_undefined) { __shared__ float sums[512]; int i = I; if (i < n) c[i] = sums[threadIdx.x + 256]; }
KERNEL(order) {
    int i = I;
    if (i >= n) return;
    if (blockIdx.x > 0) c[i] = a[i] + b[i] + (c[0] == a[0] + b[0] ? 0.0f : 1.0f);
    else c[i] = a[i] + b[i];
}
KERNEL(changes_input) { int i = I; if (i < n) { c[i] = a[i] + b[i]; ((float *)a)[i] = 0; } }
KERNEL(out_of_bounds) { int i = I; c[i + 4096] = a[i] + b[i]; }
KERNEL(hangs) { int i = I; while (((volatile float *)a)[0] < 1e30f) if (i < 0) c[i] = 0; }
""",
    arch="sm_90",
)


def solution(name: str) -> Any:
    def run(a: Any, b: Any) -> Any:
        c = tt.empty(a.shape, a.dtype)
        MODULE[name][4, 256](a, b, c, a.size)
        return c

    return run


CODES = [
    ("one_wrong", "wrong_result", Wrong),
    ("not_a_number", "wrong_result", Wrong),
    ("last_missing", "not_written", Wrong),
    ("narrow", "low_precision", Wrong),
    ("shared_undefined", "undefined_memory", Wrong),
    ("stores_undefined", "undefined_memory", Wrong),
    ("order", "order_dependent", Wrong),
    ("changes_input", "input_changed", Cheated),
    ("out_of_bounds", "kernel_fault", Crashed),
    ("hangs", "kernel_hung", TimedOut),
]


@pytest.mark.parametrize(("name", "code", "kind"), CODES, ids=[name for name, _, _ in CODES])
def test_named(name: str, code: str, kind: type, cache: Path) -> None:
    result = judge(solution(name), "vec_add", cache)
    assert isinstance(result, kind), result
    assert not isinstance(result, SizeJudged)
    assert result.reason.code == code


def test_what_is_added_to_must_be_defined(cache: Path) -> None:
    def honest(a: Any, b: Any) -> Any:
        c = tt.zeros(a.shape, a.dtype)
        MODULE["adds_to_undefined"][4, 256](a, b, c, a.size)
        return c

    assert isinstance(judge(honest, "vec_add", cache), SizeJudged)
    result = judge(solution("adds_to_undefined"), "vec_add", cache)
    assert isinstance(result, Wrong)
    assert result.reason.code == "undefined_memory"


def test_counterexample(cache: Path) -> None:
    result = judge(solution("one_wrong"), "vec_add", cache)
    assert isinstance(result, Wrong)
    found = result.counterexample
    assert found is not None
    assert (found.output, found.index, found.wrong_elements, found.elements) == ("c", (777,), 1, 1000)
    assert found.distribution == "normal"
    a, b = (float(found.around[f"{name}[777]"]) for name in "ab")
    assert math.isclose(a, found.got, rel_tol=1e-6)
    assert math.isclose(a + b, found.expected, rel_tol=1e-6)
    assert 0 < found.allowed < abs(found.got - found.expected)


def test_no_launch_and_other_shapes(cache: Path) -> None:
    for wrong, code, kind in (
        (lambda a, b: tt.empty(a.shape, a.dtype), "no_kernel", Invalid),
        (lambda a, b: solution("right")(a, b)[:10], "shape", Wrong),
        (lambda a, b: (solution("right")(a, b),) * 2, "shape", Wrong),
    ):
        result = judge(wrong, "vec_add", cache)
        assert isinstance(result, kind)
        assert result.reason.code == code


def test_the_same_seed_is_the_same_verdict(cache: Path) -> None:
    first, second = (judge(solution("one_wrong"), "vec_add", cache) for _ in range(2))
    assert first == second
