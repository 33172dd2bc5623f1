"""Tensor maps and copies of boxes from CUDA C++: tiles by each swizzle, a transpose, patches of a convolution."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
struct alignas(64) TensorMap { unsigned long long opaque[16]; };  // CUtensorMap, without its header
typedef unsigned long long Barrier;

__device__ unsigned in_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void start(Barrier *barrier) {
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(in_shared(barrier)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}
__device__ void expect(Barrier *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(in_shared(barrier)), "r"(bytes));
}
__device__ void wait(Barrier *barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }"
        :: "r"(in_shared(barrier)), "r"(parity) : "memory");
}
__device__ void load(void *tile, const TensorMap &map, int x, int y, Barrier *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        :: "r"(in_shared(tile)), "l"(&map), "r"(x), "r"(y), "r"(in_shared(barrier)) : "memory");
}
__device__ void store(const TensorMap &map, int x, int y, const void *tile) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
        :: "l"(&map), "r"(x), "r"(y), "r"(in_shared(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

// Twice the tensor, tile by tile; threads need not know how a tile is swizzled.
extern "C" __global__ void twice(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out,
                                 int width, int height) {
    extern __shared__ __align__(1024) float tile[];
    __shared__ Barrier barrier;
    int x = blockIdx.x * width, y = blockIdx.y * height;
    start(&barrier);
    if (threadIdx.x == 0) { expect(&barrier, width * height * 4); load(tile, in, x, y, &barrier); }
    wait(&barrier, 0);
    for (int i = threadIdx.x; i < 128 / 4 * height; i += blockDim.x) tile[i] *= 2;  // whole spans
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) store(out, x, y, tile);
}

// 32 × 32 tiles whose columns lie in eight groups of banks, by a swizzle of 128 bytes.
extern "C" __global__ void transpose(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out) {
    __shared__ __align__(1024) float tile[32][32];
    __shared__ __align__(1024) float turned[32][32];
    __shared__ Barrier barrier;
    start(&barrier);
    if (threadIdx.x == 0) {
        expect(&barrier, sizeof tile);
        load(tile, in, blockIdx.x * 32, blockIdx.y * 32, &barrier);
    }
    wait(&barrier, 0);
    int column = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < 32; row += blockDim.x / 32)
        turned[row][column] = tile[column][((row / 4) ^ (column % 8)) * 4 + row % 4];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) store(out, blockIdx.y * 32, blockIdx.x * 32, turned);
}

// A 3 × 3 convolution with padding of images (N, H, W, 8) with filters (3, 3, 8): 32 pixels a block, by columns.
extern "C" __global__ void convolve(const __grid_constant__ TensorMap images, const float *filter, float *out,
                                    int height, int width) {
    __shared__ __align__(1024) float column[32][8];
    __shared__ Barrier barrier;
    int first = blockIdx.x * 32;
    int n = first / (height * width), h = first / width % height, w = first % width;
    float sum = 0;
    start(&barrier);
    for (int tap = 0; tap < 9; ++tap) {
        unsigned short dw = tap % 3, dh = tap / 3;
        if (threadIdx.x == 0) {
            expect(&barrier, sizeof column);
            asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                :: "r"(in_shared(column)), "l"(&images), "r"(0), "r"(w - 1), "r"(h - 1), "r"(n),
                   "r"(in_shared(&barrier)), "h"(dw), "h"(dh) : "memory");
        }
        wait(&barrier, tap & 1);
        for (int c = 0; c < 8; ++c) sum += column[threadIdx.x][c] * filter[tap * 8 + c];
        __syncthreads();
    }
    out[first + threadIdx.x] = sum;
}

// The maps lie in global memory, one after the other.
extern "C" __global__ void from_global(const TensorMap *maps, float *out) {
    __shared__ __align__(128) float tile[4][8];
    __shared__ Barrier barrier;
    start(&barrier);
    for (unsigned i = 0; i < 2; ++i) {
        if (threadIdx.x == 0) { expect(&barrier, sizeof tile); load(tile, maps[i], 0, 0, &barrier); }
        wait(&barrier, i & 1);
        out[i * 32 + threadIdx.x] = tile[threadIdx.x / 8][threadIdx.x % 8];
        __syncthreads();
    }
}
"""


@cache
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_90a")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(np.float32)


@pytest.mark.parametrize(("swizzle", "width"), [("none", 32), ("32B", 8), ("64B", 16), ("64B", 8), ("128B", 32)])
def test_tiles_by_each_swizzle(swizzle: str, width: int) -> None:
    x = numbers(40, 72)
    out = np.zeros_like(x)
    maps = (tt.tensor_map(array, (16, width), swizzle=swizzle) for array in (x, out))
    grid = (-(-72 // width), 3)
    with tt.profile(chip="h100", target="sm_90") as profile:
        module()["twice"][grid, 64, 16 * 128](*maps, width, 16)
    np.testing.assert_array_equal(out, 2 * x)
    counters = profile.launches[0].counters
    boxes = grid[0] * grid[1]
    assert counters.value("tma.load.boxes") == counters.value("tma.store.boxes") == boxes
    assert counters.value("global.load.bytes") == counters.value("global.store.bytes") == x.nbytes
    assert counters.value("tma.load.bytes") == boxes * 16 * width * 4
    assert counters.value("global.load.compulsory_bytes") == x.nbytes


def test_a_transpose_with_fewer_bank_conflicts() -> None:
    x = numbers(100, 68)
    out = np.zeros((68, 100), np.float32)
    maps = (tt.tensor_map(x, (32, 32), swizzle="128B"), tt.tensor_map(out, (32, 32)))
    with tt.profile(chip="h100", target="sm_90") as profile:
        module()["transpose"][(3, 4), 128](*maps)
    np.testing.assert_array_equal(out, x.T)
    counters = profile.launches[0].counters
    assert counters.value("shared.load.requests") == 12 * 32
    assert counters.value("shared.load.wavefronts") == 12 * 32 * 4  # without the swizzle 32


def test_patches_of_a_convolution() -> None:
    images, filters = numbers(3, 8, 12, 8), numbers(3, 3, 8, seed=1)
    out = np.zeros((3, 8, 12), np.float32)
    columns = tt.im2col_map(images, 32, 8, (-1, -1), (-1, -1))
    module()["convolve"][out.size // 32, 32](columns, filters, out, 8, 12)
    padded = np.zeros((3, 10, 14, 8), np.float32)
    padded[:, 1:-1, 1:-1] = images
    expected = sum(padded[:, dh : dh + 8, dw : dw + 12] @ filters[dh, dw] for dh in range(3) for dw in range(3))
    np.testing.assert_array_equal(out, expected)


def test_maps_in_global_memory() -> None:
    parts = [numbers(4, 8, seed=seed) for seed in (1, 2)]
    maps = np.frombuffer(b"".join(bytes(tt.tensor_map(part, (4, 8))) for part in parts), np.uint8)
    out = np.zeros(64, np.float32)
    module()["from_global"][1, 32](maps, out)
    np.testing.assert_array_equal(out.reshape(2, 4, 8), np.stack(parts))


def test_a_kernel_that_takes_a_map_says_so() -> None:
    x = numbers(4, 8)
    with pytest.raises(tt.ArgumentError, match=r"0 \(in\): expected TensorMap by value, 128 bytes, got nd"):
        module()["transpose"][1, 128](x, x)


def test_a_tensor_beyond_its_array_is_a_fault_of_the_line() -> None:
    one = tt.tensor_map(numbers(32, 32), (32, 32))
    longer = replace(one, descriptor=replace(one.descriptor, shape=(32, 48)))
    with pytest.raises(tt.MemoryFault, match="out of bounds") as caught:
        module()["transpose"][(1, 2), 128](longer, one)
    assert caught.value.where is not None
    assert "cp.async.bulk.tensor" in str(caught.value)
