"""Code made first and code that LLVM has optimised: the same results and counts, also where one takes over."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.counters import Counter
from triptych.gpu.run import kernel as kernel_module
from triptych.gpu.run.kernel import Kernel, kernel_of

THREADS, BLOCKS, STEPS = 96, 64, 4_000
SOURCE = """
extern "C" __global__ void mix(float* y, const float* x, unsigned long long* total, int steps) {
    __shared__ float row[96];
    int thread = threadIdx.x, i = blockIdx.x * 96 + thread;
    float value = x[i];
    for (int step = 0; step < steps; ++step) {
        row[thread] = value;
        __syncthreads();
        for (int turn = 0; turn < (thread + step) % 3; ++turn)
            value = fmaf(value, 0.25f, 0.1f - 0.5f * row[thread ^ turn]);
        __syncthreads();
    }
    y[i] = value;
    atomicAdd(total, (unsigned long long)(thread % 5));
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return tt.cuda.compile(SOURCE, arch="sm_80")["mix"].program.text


@pytest.fixture
def fresh(tmp_path: Path) -> Generator[None]:
    """No code that an earlier test made, in memory or on disk."""
    kernel_of.cache_clear()
    with tt.scope(cache_folder=tmp_path, optimise="hot"):
        yield


def _run(ptx: str, steps: int, optimise: str) -> tuple[NDArray[np.float32], int, dict[str, Counter]]:
    x = np.random.default_rng(5).standard_normal(BLOCKS * THREADS, np.float32)
    y, total = np.full_like(x, np.nan), np.zeros(1, np.uint64)
    with tt.scope(optimise=optimise):
        launched = tt.ptx.compile(ptx)["mix"][BLOCKS, THREADS](y, x, total, steps)
    return y, int(total[0]), dict(launched.counters)


def _kernel(ptx: str) -> Kernel:
    """The one that launches with the default checks take."""
    return kernel_of(ptx, "mix", warps_in_rows=True, numerics="fast", watches=True)


def _require_same_as_first_code(
    ptx: str, steps: int, found: tuple[NDArray[np.float32], int, dict[str, Counter]]
) -> None:
    kernel_of.cache_clear()
    y, total, counters = _run(ptx, steps, "never")
    assert not _kernel(ptx).code("converged").optimised
    np.testing.assert_array_equal(found[0].view(np.uint32), y.view(np.uint32))
    assert (found[1], found[2]) == (total, counters)
    assert np.isfinite(y).all()
    assert total == BLOCKS * sum(thread % 5 for thread in range(THREADS))


@pytest.mark.usefixtures("fresh")
def test_code_is_optimised_once_it_has_run_for_long(ptx: str) -> None:
    _run(ptx, 3, "hot")
    kernel = _kernel(ptx)
    assert not kernel.code("converged").optimised
    kernel.seconds = 1e9
    found = _run(ptx, 3, "hot")
    assert kernel.code("converged").optimised
    assert kernel.code("masked").optimised
    _require_same_as_first_code(ptx, 3, found)


@pytest.mark.usefixtures("fresh")
def test_optimised_code_takes_over_in_the_middle_of_a_launch(ptx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "OPTIMISE_S", 0.0)
    found = _run(ptx, STEPS, "hot")
    kernel = _kernel(ptx)
    _run(ptx, 3, "hot")  # a form that was needed only at the launch's end
    assert kernel.code("converged").optimised
    assert kernel.code("masked").optimised
    _require_same_as_first_code(ptx, STEPS, found)


@pytest.mark.usefixtures("fresh")
def test_code_is_optimised_at_once_where_the_settings_say_so_or_the_cache_has_it(ptx: str) -> None:
    found = _run(ptx, 3, "always")
    assert _kernel(ptx).code("converged").optimised
    kernel_of.cache_clear()
    _run(ptx, 3, "hot")
    assert _kernel(ptx).code("converged").optimised
    _require_same_as_first_code(ptx, 3, found)
