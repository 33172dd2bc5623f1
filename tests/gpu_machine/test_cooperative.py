"""Cooperative launches: barriers of the whole grid as cooperative groups make them, and who may use them."""

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void shift(int* y, int* z, int rounds) {
  cg::grid_group grid = cg::this_grid();
  int n = grid.size(), i = grid.thread_rank();
  for (int r = 0; r < rounds; r++) {
    z[(i + 1) % n] = y[i] + 1;
    grid.sync();
    y[i] = z[i];
    grid.sync();
  }
}
extern "C" __global__ void arrive_and_wait(int* y, int* z) {
  cg::grid_group grid = cg::this_grid();
  int n = grid.size(), i = grid.thread_rank();
  z[i] = i;
  auto token = grid.barrier_arrive();
  y[i] = 1;
  grid.barrier_wait(static_cast<decltype(token)&&>(token));
  y[i] += z[n - 1 - i];
}
extern "C" __global__ void is_valid(int* y) { y[blockIdx.x] = cg::this_grid().is_valid(); }
"""


@pytest.fixture(scope="module", params=["sm_80", "sm_90"])
def module(request: pytest.FixtureRequest) -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch=request.param)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("grid", "block", "rounds"), [(1, 32, 3), (29, 96, 4), ((3, 2, 5), (8, 3, 2), 2), (132, 256, 1)]
)
def test_a_barrier_of_the_grid(
    workers: int,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    rounds: int,
    module: tt.cuda.CudaModule,
) -> None:
    threads = int(np.prod(grid) * np.prod(block))
    y = np.random.default_rng(threads).integers(0, 99, threads).astype(np.int32)
    expected = np.roll(y, rounds) + rounds
    with tt.scope(workers=workers):
        module["shift"].configure(grid=grid, block=block, cooperative=True)(y, np.zeros_like(y), rounds)
    assert np.array_equal(y, expected)


def test_arriving_before_waiting(module: tt.cuda.CudaModule) -> None:
    y = np.zeros(20 * 64, np.int32)
    module["arrive_and_wait"].configure(grid=20, block=64, cooperative=True)(y, np.zeros_like(y))
    assert np.array_equal(y, 1 + np.arange(20 * 64)[::-1])


def test_each_launch_counts_anew(module: tt.cuda.CudaModule) -> None:
    launch = module["shift"].configure(grid=4, block=32, cooperative=True)
    for _ in range(3):
        y = np.zeros(128, np.int32)
        launch(y, np.zeros_like(y), 2)
        assert (y == 2).all()


def test_only_cooperative_launches_have_one(module: tt.cuda.CudaModule) -> None:
    y = np.full(3, 7, np.int32)
    module["is_valid"][3, 32](y)
    assert not y.any()
    module["is_valid"].configure(grid=3, block=32, cooperative=True)(y)
    assert y.all()
    with pytest.raises(tt.KernelFault, match="trap executed"):
        module["shift"][4, 32](np.zeros(128, np.int32), np.zeros(128, np.int32), 1)


def test_all_blocks_must_fit_the_chip(module: tt.cuda.CudaModule) -> None:
    y = np.zeros(1, np.int32)
    with tt.profile(chip="h100"), pytest.raises(tt.LaunchError, match="holds at most 264 of them at once"):
        module["shift"].configure(grid=265, block=1024, cooperative=True)(y, y, 1)
