"""Case: launches that do not fit the kernel or the chip, and arguments that do not fit the parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from case_helpers import line_of, refused
from numpy.typing import NDArray

import triptych as tt

SOURCE = """
extern "C" __global__ void scale(const float *p, float *out, float factor, int n) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { tile[threadIdx.x] = p[i]; out[i] = factor * tile[threadIdx.x]; }
}
extern "C" __global__ void __launch_bounds__(128) bounded(float *out) { out[threadIdx.x] = 1; }
"""
P = np.arange(64, dtype=np.float32)
OUT = np.full(64, -1, np.float32)


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


def read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    copy = array.copy()
    copy.setflags(write=False)
    return copy


Launch = Callable[[tt.cuda.CudaModule], object]
# (name, launch, class, what the message must say, in order)
REFUSED: list[tuple[str, Launch, type[tt.TriptychError], tuple[str, ...]]] = [
    ("threads", lambda m: m["scale"][1, (64, 32)](P, OUT, 2.0, 64), tt.LaunchError, ("2048 threads", "h100", "1024")),
    (
        "threads along x",
        lambda m: m["scale"][1, 1025](P, OUT, 2.0, 64),
        tt.LaunchError,
        ("(1025, 1, 1)", "1025 threads", "h100 runs at most 1024", "launch more blocks"),
    ),
    ("threads along z", lambda m: m["scale"][1, (1, 1, 65)](P, OUT, 2.0, 64), tt.LaunchError, ("z must", "1 and 64")),
    ("launch bounds", lambda m: m["bounded"][1, 129](OUT), tt.LaunchError, ("129 threads", "at most 128")),
    ("shared memory", lambda m: m["scale"][1, 64, 232_448](P, OUT, 2.0, 64), tt.LaunchError,
     ("233472 bytes of shared memory", "1024 static, 232448 dynamic", "h100", "232448")),
    ("grid along y", lambda m: m["scale"][(1, 65536), 64](P, OUT, 2.0, 64), tt.LaunchError, ("y must", "65535")),
    ("an empty grid", lambda m: m["scale"][0, 64](P, OUT, 2.0, 64), tt.LaunchError, ("grid 0 has nothing in it",)),
    ("a missing argument", lambda m: m["scale"][1, 64](P, OUT, 2.0), tt.ArgumentError,
     ("takes 4 arguments, got 3", "scale(const float* p, float* out, float factor, int n)")),
    ("an extra argument", lambda m: m["scale"][1, 64](P, OUT, 2.0, 64, 5), tt.ArgumentError,
     ("takes 4 arguments, got 5", "scale(const float* p")),
    ("a dtype", lambda m: m["scale"][1, 64](P.astype(np.float64), OUT, 2.0, 64), tt.ArgumentError,
     ("argument 0 (p)", "expected float32 (const float*)", "float64[64]", ".astype(")),
    ("an integer array", lambda m: m["scale"][1, 64](P, OUT.astype(np.int32), 2.0, 64), tt.ArgumentError,
     ("argument 1 (out)", "expected float32", "int32[64]")),
    ("a float for an integer", lambda m: m["scale"][1, 64](P, OUT, 2.0, 64.5), tt.ArgumentError,
     ("argument 3 (n)", "expected int", "64.5")),
    ("an integer out of range", lambda m: m["scale"][1, 64](P, OUT, 2.0, 2**31), tt.ArgumentError,
     ("argument 3 (n)", "2147483647", "2147483648")),
    ("a float for a pointer", lambda m: m["scale"][1, 64](1.5, OUT, 2.0, 64), tt.ArgumentError,
     ("argument 0 (p)", "const float*", "1.5")),
    ("an array for a number", lambda m: m["scale"][1, 64](P, OUT, P, 64), tt.ArgumentError,
     ("argument 2 (factor)", "expected float", "float32[64] array")),
    ("a list", lambda m: m["scale"][1, 64]([1.0], OUT, 2.0, 64), tt.ArgumentError, ("argument 0 (p)", "list", "numpy")),
    ("a read-only array that is written", lambda m: m["scale"][1, 64](P, read_only(OUT), 2.0, 64), tt.ArgumentError,
     ("argument 1 (out)", "read-only", "copy")),
    ("a strided array", lambda m: m["scale"][1, 32](P[::2], OUT, 2.0, 32), tt.ArgumentError,
     ("argument 0 (p)", "contiguous", "strides (8,)", "np.ascontiguousarray")),
    ("a transposed array", lambda m: m["scale"][1, 64](P.reshape(8, 8).T, OUT, 2.0, 64), tt.ArgumentError,
     ("contiguous", "strides")),
    ("byte order", lambda m: m["scale"][1, 64](P.astype(">f4"), OUT, 2.0, 64), tt.ArgumentError, ("argument 0 (p)",)),
    ("objects", lambda m: m["scale"][1, 64](P.astype(object), OUT, 2.0, 64), tt.ArgumentError, ("argument 0 (p)",)),
]  # fmt: skip


@pytest.mark.parametrize(("launch", "kind", "parts"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(
    launch: Launch,
    kind: type[tt.TriptychError],
    parts: tuple[str, ...],
    module: tt.cuda.CudaModule,
    profile: tt.Profile,
) -> None:
    with refused(kind, "kernel '", *parts) as caught:
        launch(module)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert "m[" in line_of(caught.value) or "launch(module)" in line_of(caught.value)
    assert np.array_equal(P, np.arange(64, dtype=np.float32))
    assert (OUT == -1).all()
    assert profile.launches == []


def test_a_store_through_a_const_pointer_s_cast_is_a_fault() -> None:
    source = 'extern "C" __global__ void sly(const float *p) { ((float *)p)[threadIdx.x] = 1; }\n'
    array = read_only(P)
    with refused(tt.MemoryFault, "__global__ write", "read-only"):
        tt.cuda.compile(source, arch="sm_80")["sly"][1, 32](array)
    assert np.array_equal(array, P)


def test_a_smaller_chip_has_smaller_limits(module: tt.cuda.CudaModule) -> None:
    with tt.profile(chip="t4"), refused(tt.LaunchError, "a block on t4 has at most 65536"):
        module["scale"][1, 64, 100_000](P, OUT.copy(), 2.0, 64)
    with tt.profile(chip="h100"):
        module["scale"][1, 64, 100_000](P, OUT.copy(), 2.0, 64)


def test_a_matrix_is_multiplied_by_whole_warps() -> None:
    source = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void tile(const half *a, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> first;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> second;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(first, a, 16);
    wmma::load_matrix_sync(second, a, 16);
    wmma::mma_sync(sum, first, second, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
"""
    a, c = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float32)
    kernel = tt.cuda.compile(source, arch="sm_80")["tile"]
    with pytest.raises(tt.DivergentWarp) as caught:
        kernel[1, 16](a, c)
    said = str(caught.value)
    assert "'wmma.load.a.sync.aligned" in said
    assert "for all 32 threads of a warp; only lanes 0x0000ffff execute it" in said
    assert "let whole warps come to it together" in said
    assert caught.value.check.name == "synccheck"
