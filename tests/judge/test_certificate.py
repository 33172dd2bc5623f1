"""Each part of the work certificate: what it refuses, beside the nearest honest program."""

# pyright: basic
# ruff: noqa: ANN401
# Solutions are functions of arrays without values, which have no one type.

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plans import captured, judge, judged_plan

import triptych as tt
from triptych.core.dtypes import DTYPES
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.plan import Choose, Plan
from triptych.judge.candidate import task
from triptych.judge.execution import inside
from triptych.judge.verdict import Cheated
from triptych.judge.verification import trials
from triptych.judge.verification.certificate import certify
from triptych.judge.verification.size_judge import SizeJudged
from triptych.operators import operator
from triptych.operators.formula import Formula

MODULE = tt.cuda.compile(
    r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void copy(const float *a, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i];
}
extern "C" __global__ void copy_loading_both(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + 0.0f * (b[i] != b[i]);
}
extern "C" __global__ void count(const int *x, int *counts, int n, int bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] >= 0 && x[i] < bins) atomicAdd(counts + x[i], 1);
}
""",
    arch="sm_90",
)
VEC_ADD = operator("vec_add")
TWICE = replace(VEC_ADD, flops=Formula("2 * n"))
"""Addition for which twice the FLOPs are asked."""
FIRST = replace(
    VEC_ADD,
    reference=lambda given, size: (given["a"],),
    distributions=tuple(one for one in VEC_ADD.distributions if one.name != "special"),
    flops=Formula("0"),
)
"""The result is `a`; `b` must be loaded nevertheless."""


def run(name: str, *arrays: Any) -> Any:
    """A new array, which a kernel fills from others of the same size."""
    out = tt.empty(arrays[0].shape, "f32")
    MODULE[name][-(-out.size // 256), 256](*arrays, out, out.size)
    return out


def add(a: Any, b: Any) -> Any:
    return run("add", a, b)


def with_decoy(a: Any, b: Any) -> Any:
    run("add", b, a)
    return run("add", a, b)


def in_two_steps(a: Any, b: Any) -> Any:
    """Twice the FLOPs, and both launches are needed: a + b + 0."""
    return run("add", run("add", a, b), tt.zeros(a.shape, "f32"))


def overwritten(a: Any, b: Any) -> Any:
    """A launch whose result another one replaces."""
    out = tt.empty(a.shape, "f32")
    for name, arrays in (("add", (b, a)), ("add", (a, b))):
        MODULE[name][4, 256](*arrays, out, out.size)
    return out


def behind_many(a: Any, b: Any) -> Any:
    """More launches than can be left out one at a time, and the decoy behind them."""
    out = tt.empty(a.shape, "f32")
    for first in range(0, a.size, 200):
        rows = slice(first, first + 200)
        MODULE["add"][1, 256](a[rows], b[rows], out[rows], out[rows].size)
    run("add", b, a)
    return out


def among_many(a: Any, b: Any) -> Any:
    """Launches that contribute nothing, among as many that do."""
    out, scratch = tt.empty(a.shape, "f32"), tt.empty(a.shape, "f32")
    for first in range(0, a.size, 200):
        rows = slice(first, first + 200)
        for into in (out, scratch):
            MODULE["add"][1, 256](a[rows], b[rows], into[rows], out[rows].size)
    return out


def code_of(result: object) -> str:
    assert isinstance(result, Cheated), result
    assert result.certificate is not None
    assert result.certificate.failure == (result.reason.code, result.reason.message)
    return result.reason.code


def test_what_is_counted(cache: Path) -> None:
    result = judge(add, "vec_add", cache)
    assert isinstance(result, SizeJudged)
    one = result.certificate
    assert (one.flops, one.total_flops, one.least_flops) == ({"flops.f32": 1000}, 1000, 1000)
    assert [(part.name, part.found, part.least) for part in (*one.loaded, *one.stored)] == [
        ("a", 4000, 4000), ("b", 4000, 4000), ("c", 4000, 4000),
    ]  # fmt: skip
    assert (one.decoys, one.narrow, one.library, one.failure) == ((), (), (), None)
    assert len(result.cases) == len(VEC_ADD.distributions) + 2


def test_too_few_flops(cache: Path) -> None:
    assert code_of(judge(add, TWICE, cache)) == "too_little_work"
    assert isinstance(judge(in_two_steps, TWICE, cache), SizeJudged)
    may_do_less = replace(TWICE, may_do_less="somebody's transform")
    assert isinstance(judge(add, may_do_less, cache), SizeJudged)


@pytest.mark.parametrize("solution", [with_decoy, overwritten])
def test_launches_that_contribute_nothing(solution: Any, cache: Path) -> None:
    assert code_of(judge(solution, TWICE, cache)) == "decoy"
    told = judge(solution, "vec_add", cache)
    assert isinstance(told, SizeJudged)  # reported, and no harm but to the time
    assert [(one.kernel, one.flops) for one in told.certificate.decoys] == [("add", 1000)]
    assert told.certificate.total_flops == 1000


@pytest.mark.parametrize(("solution", "decoys"), [(behind_many, 1), (among_many, 5)])
def test_more_launches_than_can_be_left_out(
    solution: Any, decoys: int, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (trials, inside):
        monkeypatch.setattr(module, "MOST_LEFT_OUT", 4)
    assert code_of(judge(solution, TWICE, cache)) == "decoy"
    told = judge(solution, "vec_add", cache)
    assert isinstance(told, SizeJudged)
    assert len(told.certificate.decoys) == decoys
    assert told.certificate.total_flops == 1000


def test_inputs_that_nobody_loads(cache: Path) -> None:
    assert code_of(judge(lambda a, b: run("copy", a), FIRST, cache)) == "input_not_loaded"
    assert isinstance(judge(lambda a, b: run("copy_loading_both", a, b), FIRST, cache), SizeJudged)
    half = replace(FIRST, inputs=(VEC_ADD.inputs[0], replace(VEC_ADD.inputs[1], least="n // 2")))
    assert code_of(judge(lambda a, b: run("copy", a), half, cache)) == "input_not_loaded"
    optional = replace(FIRST, inputs=(VEC_ADD.inputs[0], replace(VEC_ADD.inputs[1], least="0 * n")))
    assert isinstance(judge(lambda a, b: run("copy", a), optional, cache), SizeJudged)

    def loaded_by_a_decoy(a: Any, b: Any) -> Any:
        run("copy", b)
        return run("copy", a)

    assert code_of(judge(loaded_by_a_decoy, FIRST, cache)) == "decoy"


def test_copies_count_as_what_they_are_of(cache: Path) -> None:
    assert isinstance(judge(lambda a, b: add(a.clone(), b), "vec_add", cache), SizeJudged)


def test_outputs_that_no_kernel_stores(cache: Path) -> None:
    def copied(a: Any, b: Any) -> Any:
        add(a, b)
        return a.clone()

    assert code_of(judge(copied, FIRST, cache)) == "output_not_stored"

    def copied_by_a_kernel(a: Any, b: Any) -> Any:
        return run("copy_loading_both", a, b).clone()

    assert isinstance(judge(copied_by_a_kernel, FIRST, cache), SizeJudged)

    def filled(a: Any, b: Any) -> Any:
        add(a, b)
        return tt.zeros(a.shape, "f32")

    nothing = replace(FIRST, reference=lambda given, size: (np.zeros_like(given["a"]),))
    assert code_of(judge(filled, nothing, cache)) == "output_not_stored"


def test_axes_are_not_moved_by_the_host(cache: Path) -> None:
    def by_the_host(x: Any) -> Any:
        return run("copy", x.transpose(1, 0).clone())

    assert code_of(judge(by_the_host, "transpose", cache)) == "library_work"


@pytest.mark.parametrize(
    ("shape", "strides", "is_in_order"),
    [
        ((3, 4), (16, 4), True), ((3, 4), (32, 4), True), ((3, 4), (20, 4), True), ((3, 2), (20, 8), True),
        ((3, 1), (4, 400), True), ((), (), True), ((3, 4), (4, 12), False), ((3, 4), (4, 4), False),
        ((3, 4), (12, 4), False), ((3, 4), (0, 4), False), ((3,), (-4,), False), ((3,), (2,), False),
    ],
)  # fmt: skip
def test_order_in_memory(shape: tuple[int, ...], strides: tuple[int, ...], is_in_order: bool) -> None:
    """Windows that overlap are no order: a copy of them would repeat elements."""
    handle = Handle(Storage("x", AddressSpace.FIRST_ADDRESS, 1000), DTYPES["f32"], shape, strides, 100)
    assert handle.in_order is is_in_order


def test_loading_what_was_a_copy_once_is_not_loading_the_input(cache: Path) -> None:
    def overwritten_copy(a: Any, b: Any) -> Any:
        copy = b.clone()
        copy.fill_(0.0)
        return run("add", a, copy)

    assert code_of(judge(overwritten_copy, FIRST, cache)) == "input_not_loaded"


def test_scratch_takes_no_memory_of_the_judge(cache: Path) -> None:
    """A candidate's scratch may be large; it is the executing process that holds it."""
    scratch_bytes = 32 << 20

    def through_scratch(a: Any, b: Any) -> Any:
        scratch = tt.empty(scratch_bytes // 4, "f32")
        MODULE["add"][4, 256](a, b, scratch, a.size)
        return run("copy", scratch[: a.size])

    judged = task(VEC_ADD, seed=7)
    plan = captured(through_scratch, judged)
    result = judged_plan(plan, judged, cache)
    assert isinstance(result, SizeJudged)
    tracemalloc.start()
    again = certify(VEC_ADD, result.size.values, judged.dtype, plan, result.cases)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert again == result.certificate
    assert peak < scratch_bytes // 4


def test_counts_into_zeros_are_stored_by_the_kernel(cache: Path) -> None:
    """Bins that nothing falls into hold what the fill left there."""
    histogram = operator("histogram")
    bins = histogram.outputs[0].shape(histogram.sizes[0].values)[0]

    def solution(x: Any) -> Any:
        counts = tt.zeros((bins,), "s32")
        MODULE["count"][-(-x.size // 256), 256](x, counts, x.size, bins)
        return counts

    assert isinstance(judge(solution, "histogram", cache), SizeJudged)


def test_of_alternatives_the_chosen_one_is_certified(cache: Path) -> None:
    judged = task(VEC_ADD, seed=7)
    slow, quick = (captured(one, judged) for one in (with_decoy, add))
    shared = slow.nodes[0]
    assert shared.makes
    last = Plan(quick.nodes[1:], quick.programs)
    alternatives = Choose(("twice", "once"), (Plan((last.nodes[0], last.nodes[0]), quick.programs), last))
    plan = replace(quick, nodes=(quick.nodes[0], alternatives))
    result = judged_plan(plan, judged, cache)
    assert isinstance(result, SizeJudged)
    assert [step.record is not None for step in result.cases[0]] == [False, True]
