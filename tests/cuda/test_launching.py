from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

import triptych as tt
from triptych.core.errors import (
    ArgumentError,
    LaunchError,
    MemoryFault,
    TriptychError,
    UnknownName,
    UsageError,
)
from triptych.languages.cuda import CudaModule

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct Pair { int count; float value; };
extern "C" __global__ void vec_add(const float *A, const float *B, float *C, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) C[i] = A[i] + B[i];
}
template <typename T, int N = 1> __global__ void saxpy(int n, T a, const T *x, T *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] * (T)N;
}
namespace ns {
__global__ void coordinates(int *out) {
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = block * 1000 + thread;
}
__global__ void overloaded(int *out) { *out = 1; }
__global__ void overloaded(float *out) { *out = 2; }
}
__global__ void every_kind(double *out, bool b, signed char c, unsigned char uc, short s, unsigned short us, int i,
                           unsigned u, long long l, unsigned long long ul, float f, double d, __half h,
                           __nv_bfloat16 bf, Pair p) {
    double values[] = {(double)b, (double)c, (double)uc, (double)s, (double)us, (double)i, (double)u, (double)l,
                       (double)ul, f, d, __half2float(h), __bfloat162float(bf), (double)p.count, p.value};
    for (int k = 0; k < 15; ++k) out[k] = values[k];
}
extern "C" __global__ void reverse(int *data) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void gather(const float *const *rows, float *out) { out[threadIdx.x] = rows[threadIdx.x][1]; }
extern "C" __global__ void __launch_bounds__(64) bounded(int *p) { p[threadIdx.x] = 1; }
__device__ int counter = 5;
extern "C" __global__ void count(int *out) { *out = ++counter; }
"""


@pytest.fixture(scope="module")
def module() -> CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80", names=["saxpy<float>"])


def inputs(count: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(7)
    return random.random(count, dtype=np.float32), random.random(count, dtype=np.float32)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 255, 256, 257, 3000])
def test_vector_addition(module: CudaModule, count: int) -> None:
    a, b = inputs(count)
    c = np.full(count + 5, -1, np.float32)
    with tt.profile(chip="h100") as profile:
        report = module["vec_add"][(-(-count // 256),), (256,)](a, b, c, count)
    assert np.array_equal(c[:count], a + b)
    assert (c[count:] == -1).all()
    assert profile.launches == [report]
    assert report.kernel == "vec_add"
    assert report.counters.value("flops.f32") == count
    assert report.counters.value("global.load.bytes") == 8 * count
    assert report.lines[0].where.file == str(Path(__file__))
    texts = {line.where.text for line in report.lines}
    assert "if (i < n) C[i] = A[i] + B[i];" in texts


def test_every_way_to_write_a_launch(module: CudaModule) -> None:
    kernel = module["vec_add"]
    a, b = inputs(128)
    ways = [
        kernel[2, 64], kernel[(2,), (64,)], kernel[[2, 1], (64, 1, 1)], kernel[2, 64, 0], kernel[np.int64(2), 64],
        kernel.configure(grid=2, block=64), kernel.configure(grid=(2, 1), block=[64], shared_bytes=0, cooperative=True),
    ]  # fmt: skip
    for way in ways:
        c = np.zeros(128, np.float32)
        report = way(a, b, c, 128)
        assert np.array_equal(c, a + b)
        assert (report.grid, report.block) == ((2, 1, 1), (64, 1, 1))


@pytest.mark.parametrize(
    ("grid", "block"), [((3, 2, 2), (4, 3, 2)), ((5,), (33,)), ((1, 1, 4), (2, 1, 8)), (2, (1, 7))]
)
def test_grids_and_blocks_of_three_axes(
    module: CudaModule, grid: int | tuple[int, ...], block: int | tuple[int, ...]
) -> None:
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    out = np.full((blocks, threads), -1, np.int32)
    module["coordinates"][grid, block](out)
    assert np.array_equal(out, np.arange(blocks)[:, None] * 1000 + np.arange(threads))


def test_arrays_of_every_kind(module: CudaModule) -> None:
    a, b = inputs(64)
    expected = a + b
    torch_out = torch.zeros(64)
    module["vec_add"][1, 64](torch.tensor(a), b, torch_out, 64)
    assert np.array_equal(torch_out.numpy(), expected)
    ours = tt.empty((2, 64))
    module["vec_add"][1, 64](tt.Array(a), b, ours[1], 64)
    assert np.array_equal(ours[1].numpy(), expected)
    assert np.isnan(ours[0].numpy()).all()
    whole = np.zeros(100, np.float32)
    module["vec_add"][1, 64](a, b, whole[20:84], 64)
    assert np.array_equal(whole[20:84], expected)
    assert not whole[:20].any()
    module["vec_add"][1, 64](a, b, tt.data_ptr(whole) + 4, 64)
    assert np.array_equal(whole[1:65], expected)


def test_views_of_one_array_see_each_others_stores(module: CudaModule) -> None:
    data = np.ones(96, np.float32)
    module["vec_add"][1, 32](data[:32], data[:32], data[32:], 32)
    module["vec_add"][1, 32](data[32:], data[:32], data[64:], 32)
    assert data.tolist() == [1.0] * 32 + [2.0] * 32 + [3.0] * 32


def test_templates_and_names(module: CudaModule) -> None:
    x, y = inputs(50)
    for name, factor in (("saxpy<float>", 1), ("saxpy<float, 3>", 3)):
        out = y.copy()
        report = module[name][1, 64](50, 2.0, x, out)
        assert np.allclose(out, 2 * x + y * np.float32(factor), rtol=1e-6)
        assert report.kernel.startswith("saxpy<float")
    wide = y.astype(np.float64)
    module["saxpy<double>"][1, 64](50, 0.1, x.astype(np.float64), wide)
    assert np.allclose(wide, 0.1 * x.astype(np.float64) + y, rtol=1e-15)
    with pytest.raises(ArgumentError, match=r"argument 3 \(y\): expected float64 \(double\*\)"):
        module["saxpy<double>"][1, 64](50, 0.1, x.astype(np.float64), y)
    assert module["coordinates"].name == module["ns::coordinates"].name == "ns::coordinates"
    assert module["saxpy<float>"] is module["saxpy<float>"]
    assert "vec_add" in module.names
    assert repr(module["vec_add"]) == "<cuda kernel vec_add(const float* A, const float* B, float* C, int n)>"


def test_names_that_there_are_not(module: CudaModule) -> None:
    with pytest.raises(UnknownName, match="unknown kernel 'vec_ad'") as caught:
        module["vec_ad"]
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean vec_add")
    assert caught.value.hint.endswith('it does not compile: identifier "vec_ad" is undefined')
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert caught.value.__suppress_context__
    for name in ("saxpy<Nothing>", "ns::nothing", "saxpy"):
        with pytest.raises(UnknownName, match="unknown kernel"):
            module[name]


def test_overloads_are_named_by_their_parameters(module: CudaModule) -> None:
    overloads = "(void(*)(int*))ns::overloaded", "(void(*)(float*))ns::overloaded"
    assert [name for name in module.names if "overloaded" in name] == [*overloads]
    with pytest.raises(UnknownName, match="kernel 'overloaded' is not one but 2") as caught:
        module["overloaded"]
    assert caught.value.hint == f"name one with its parameters: {' or '.join(overloads)}"
    for name, dtype, value in zip(overloads, (np.int32, np.float32), (1, 2), strict=True):
        out = np.zeros(1, dtype)
        module[name][1, 1](out)
        assert out[0] == value
        assert module[name.replace("*))", " *) )")][1, 1] is not None


def test_a_kernel_is_no_attribute(module: CudaModule) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'vec_add': write module\[\"vec_add\"\]$"):
        _ = module.vec_add  # pyright: ignore[reportUnknownVariableType]
    with pytest.raises(AttributeError, match=r"no attribute 'vec_ad'$"):
        _ = module.vec_ad  # pyright: ignore[reportUnknownVariableType]
    assert not hasattr(module, "__nothing__")
    with pytest.raises(AttributeError, match=r"no attribute 'names'$"):
        CudaModule.__new__(CudaModule).names  # noqa: B018


def test_arguments_have_no_names(module: CudaModule) -> None:
    bound = module["vec_add"][1, 32]
    for call in (bound, bound.plan):
        with pytest.raises(ArgumentError, match="arguments are positional, got A=, n=") as caught:
            call(A=3, n=3)
        assert caught.value.hint is not None
        assert caught.value.hint.endswith("vec_add(const float* A, const float* B, float* C, int n)")
        assert caught.value.where is not None
        assert caught.value.where.file == __file__
    with pytest.raises(UsageError, match="without a grid and a block"):
        module["vec_add"](A=3)


def test_every_kind_of_parameter(module: CudaModule) -> None:
    pair = np.array([(-7, 0.5)], np.dtype([("count", "i4"), ("value", "f4")], align=True))[0]
    values = (
        True, -128, 255, -(2**15), 2**16 - 1, -(2**31), 2**32 - 1, -(2**53), 2**53, 1.5, 0.1,
        np.float16(0.25), ml_dtypes.bfloat16(3), pair,
    )  # fmt: skip
    out = np.zeros(15)
    module["every_kind"][1, 1](out, *values)
    assert out.tolist() == [float(value) for value in values[:-1]] + [-7.0, 0.5]


def test_dynamic_shared_memory(module: CudaModule) -> None:
    data = np.arange(100, dtype=np.int32)
    report = module["reverse"][1, 100, 400](data)
    assert data.tolist() == list(range(100))[::-1]
    assert report.record.shared_bytes == 400
    with pytest.raises(TriptychError):
        module["reverse"][1, 100, 396](data)


def test_arrays_of_pointers(module: CudaModule) -> None:
    rows = [np.array([0.0, number], np.float32) for number in range(8)]
    out = np.zeros(8, np.float32)
    module["gather"][1, 8](np.array([tt.data_ptr(row) for row in rows], np.uint64), out)
    assert out.tolist() == list(range(8))


def test_device_variables_live_as_long_as_the_module() -> None:
    out = np.zeros(1, np.int32)
    first = tt.cuda.compile(SOURCE, arch="sm_80")
    before = [int(first["count"][1, 1](out) and out[0]) for _ in range(3)]
    assert before[1:] == [before[0] + 1, before[0] + 2]


def test_faults_are_at_the_line_of_the_source(module: CudaModule) -> None:
    a, b = inputs(64)
    with pytest.raises(MemoryFault) as caught:
        module["vec_add"][1, 64](a, b, None, 64)
    assert caught.value.where is not None
    assert caught.value.where.text == "if (i < n) C[i] = A[i] + B[i];"
    short = np.zeros(63, np.float32)
    with pytest.raises(MemoryFault):
        module["vec_add"][1, 64](a, b, short, 64)


def test_store_to_read_only_memory_is_a_fault_where_the_source_is_not_known(module: CudaModule) -> None:
    data = np.zeros(64, np.int32)
    data.setflags(write=False)
    with pytest.raises(MemoryFault):
        tt.ptx.compile(module.ptx)["bounded"][1, 64](data)
    assert not data.any()


def test_limits_are_those_of_the_chip_in_force(module: CudaModule) -> None:
    data = np.zeros(128, np.int32)
    with tt.profile(chip="h100"):
        with pytest.raises(LaunchError, match="2048 threads; h100 runs at most 1024"):
            module["reverse"][1, 2048](data)
        with pytest.raises(LaunchError, match="300000 bytes of shared memory"):
            module["reverse"][1, 64, 300_000](data)
        with pytest.raises(LaunchError, match="compiled for at most 64"):
            module["bounded"][1, 65](data)
        with pytest.raises(LaunchError, match="y must lie between 1 and 65535") as caught:
            module["bounded"][(1, 65536), 1](data)
        assert caught.value.where is not None
        assert caught.value.where.file == __file__
        module["reverse"][1, 128, 100_000](data)
    with tt.profile(chip="t4"), pytest.raises(LaunchError, match="a block on t4 has at most 65536"):
        module["reverse"][1, 128, 100_000](data)


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 32, "grid 0 has nothing in it"),
        ((1, 0), 32, r"grid \(1, 0\) has nothing in it"),
        (1, -32, "block -32 has nothing in it"),
        ((1, 1, 1, 1), 32, "grid must be one to three whole numbers"),
        (1, (), r"block must be one to three whole numbers, not \(\)"),
        (1.0, 32, "grid must be one to three whole numbers, not 1.0"),
        ("1", 32, "grid must be one to three whole numbers"),
    ],
)
def test_grids_and_blocks_that_are_none(module: CudaModule, grid: object, block: object, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        module["vec_add"][grid, block]


def test_calls_without_a_configuration(module: CudaModule) -> None:
    with pytest.raises(UsageError, match="'vec_add' was called without a grid and a block"):
        module["vec_add"](1)
    with pytest.raises(LaunchError, match="expected a grid and a block in the brackets, got 1"):
        module["vec_add"][4]
    with pytest.raises(LaunchError, match="got 4 values"):
        module["vec_add"][1, 1, 1, 1]
    with pytest.raises(LaunchError, match="shared_bytes must be a whole number of bytes, not -4"):
        module["vec_add"][1, 1, -4]


def test_launches_from_many_threads(module: CudaModule) -> None:
    def work(seed: int) -> bool:
        a, b = inputs(500)
        c = np.zeros(500, np.float32)
        with tt.profile(chip="h100") as profile:
            module["vec_add"][2, 256](a + seed, b, c, 500)
        return np.array_equal(c, a + seed + b) and len(profile.launches) == 1

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


def test_arguments_are_never_copied(module: CudaModule) -> None:
    a, b = inputs(1000)
    c = np.zeros(1000, np.float32)
    counts = [sys.getrefcount(array) for array in (a, b, c)]
    plan = module["vec_add"].configure(grid=4, block=256).plan(a, b, c, 1000)
    assert [handle.storage.name for handle in plan.inputs] == ["A", "B", "C"]
    module["vec_add"][4, 256](a, b, c, 1000)
    assert [sys.getrefcount(array) for array in (a, b, c)] == counts
