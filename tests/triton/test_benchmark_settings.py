"""Settings that make benchmarks short: fewer configurations, a sample of blocks, loops that end early."""

# Triton's language and host side have no types.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.settings import scope
from triptych.execution.profile import profile

torch: Any = import_module("torch")
jit: Any = triton.jit
SIZE, BLOCK = 1 << 12, 128


@jit
def add_one(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < n) + 1, mask=offsets < n)


def grid(meta: dict[str, int]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def tuned() -> Any:
    return triton.autotune([triton.Config({"BLOCK": block}) for block in (64, BLOCK, 256)], key=["n"])(add_one)


def test_an_autotuner_tries_some_configurations(active: None) -> None:
    x, kernel = np.zeros(SIZE, np.float32), tuned()
    with (
        scope(benchmark_configurations=2),
        profile(chip="a100", target="sm_80") as seen,
        pytest.warns(RuntimeWarning, match="autotuning of add_one: 2 of 3 configurations are tried"),
    ):
        kernel[grid](x, SIZE)
    assert [label.split()[0] for label in seen.tunings[0].seconds] == ["BLOCK=64", "BLOCK=256"]


def test_trials_run_a_sample_and_the_choice_the_whole_grid(active: None) -> None:
    x, kernel = np.zeros(SIZE, np.float32), tuned()
    with profile(chip="a100", target="sm_80") as whole:
        kernel[grid](x.copy(), SIZE)
    x, kernel = np.zeros(SIZE, np.float32), tuned()
    with scope(benchmark_blocks=3), profile(chip="a100", target="sm_80") as seen:
        kernel[grid](x, SIZE)
    assert (x > 0).all(), "every block of the chosen configuration ran"
    assert [one.record.sample is not None for one in seen.launches] == [True] * 3 + [False]
    assert seen.tunings[0].seconds == whole.tunings[0].seconds


def test_do_bench_runs_a_sample(active: None) -> None:
    x = np.zeros(SIZE, np.float32)
    launch: Any = lambda: add_one[SIZE // BLOCK,](x, SIZE, BLOCK)  # noqa: E731
    exact = triton.testing.do_bench(launch)
    before = x.copy()
    with scope(benchmark_blocks=1):
        assert triton.testing.do_bench(launch) == exact
    assert np.unique(np.flatnonzero(x != before) // BLOCK).tolist() == [SIZE // BLOCK // 2 - 1]


def test_a_loop_is_run_as_often_as_the_setting_says(active: None) -> None:
    x, other = np.zeros(SIZE, np.float32), np.zeros(2 * SIZE, np.float32)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in "12")
    told = "'add_one' has been run 2 times by these lines"
    with scope(benchmark_repeats=2), pytest.warns(RuntimeWarning, match=told):  # noqa: PT031  loops are meant
        start.record()
        for _ in range(5):
            add_one[SIZE // BLOCK,](x, SIZE, BLOCK)
        end.record()
        for array in (x, x, other):
            add_one[SIZE // BLOCK,](array, SIZE, BLOCK)
    once: Any = triton.testing.do_bench(lambda: add_one[SIZE // BLOCK,](x.copy(), SIZE, BLOCK))
    assert start.elapsed_time(end) == pytest.approx(5 * once)
    assert (x == 2 + 2).all(), "two of the first line, two of the second"
    assert (other[:SIZE] == 1).all(), "an array of another shape is something else"


def test_products_of_torch_are_run_no_oftener(active: None) -> None:
    a = torch.ones((8, 8), device="cuda")
    results: list[Any] = []
    with scope(benchmark_repeats=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            results.append(a @ a)
            a.add_(1)
    assert (results[0] == 8).all()
    assert [(one.shape, one.dtype, one.is_cuda) for one in results] == [((8, 8), torch.float32, True)] * 3
    assert (a == 4).all(), "what is no product always runs"


def test_lines_that_differ_are_run_each(active: None) -> None:
    x = np.zeros(SIZE, np.float32)
    with scope(benchmark_repeats=1):
        add_one[SIZE // BLOCK,](x, SIZE, BLOCK)
        add_one[SIZE // BLOCK,](x, SIZE, BLOCK)
        add_one[SIZE // BLOCK,](x, SIZE - 1, BLOCK)
    assert (x[:-1] == 3).all()
    assert x[-1] == 2
