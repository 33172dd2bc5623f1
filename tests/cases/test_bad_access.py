"""Case: accesses that a device forbids: exact to the byte; the error names thread, block, address and line."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from case_helpers import line_of, refused
from numpy.typing import NDArray

import triptych as tt

SOURCE = """
struct alignas(16) Wide { float x, y, z, w; };
extern "C" __global__ void shifted_read(const float *p, float *out, long long shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = p[i + shift];
}
extern "C" __global__ void shifted_write(const float *p, float *out, long long shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i + shift] = p[i];
}
extern "C" __global__ void guarded(const float *p, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = -1.0f;
    if (i < n) v = p[i];
    out[i] = v;
}
template <typename T> __global__ void read_at(const char *p, long long offset, T *out) {
    *out = *(const T *)(p + offset);
}
template <typename T> __global__ void write_at(char *p, long long offset, T value) {
    *(T *)(p + offset) = value;
}
extern "C" __global__ void shared_read(float *out, int shift) {
    __shared__ float tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x + shift];
}
extern "C" __global__ void shared_write(float *out, int shift) {
    extern __shared__ float tile[];
    tile[threadIdx.x + shift] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void local_array(int *out, int write, int read) {
    int table[16];
    for (int k = 0; k < 16; k++) table[k] = k * out[0];
    table[write] = 7;
    out[0] = table[read];
}
extern "C" __global__ void atomic_at(int *p, int i) { atomicAdd(p + i, 1); }
"""
TYPES = {"char": 1, "short": 2, "int": 4, "double": 8, "Wide": 16}


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    names = [f"{kernel}<{name}>" for kernel in ("read_at", "write_at") for name in TYPES]
    return tt.cuda.compile(SOURCE, arch="sm_90", names=names)


def floats(count: int = 64, start: float = 0.0) -> NDArray[np.float32]:
    return np.arange(count, dtype=np.float32) + np.float32(start)


class Untouched:
    """Arrays that the kernel knows, and others that it does not: all must hold what they held."""

    def __init__(self, *arrays: NDArray[np.float32]) -> None:
        self._arrays = (*arrays, *(np.full(16, number, np.float32) for number in range(4)))
        self._copies = [array.copy() for array in self._arrays]
        for array in self._arrays:
            tt.data_ptr(array)

    def check(self) -> None:
        assert all(np.array_equal(*pair) for pair in zip(self._arrays, self._copies, strict=True))


@pytest.mark.parametrize(
    ("pointer", "parts"),
    [
        (None, ("address 0x0 is out of bounds", "null pointer")),
        (16, ("address 0x10 is out of bounds", "near a null pointer")),
        (0xDEADBEEF000, ("address 0xdeadbeef000 is out of bounds", "after the nearest allocation")),
        (2**64 - 4, ("address 0xfffffffffffffffc is out of bounds",)),
        (0x1000, ("address 0x1000 is out of bounds", "before the nearest allocation")),
    ],
)
def test_null_and_wild_pointers(pointer: int | None, parts: tuple[str, ...], module: tt.cuda.CudaModule) -> None:
    p, out = floats(), floats(start=100)
    kept = Untouched(p, out)
    place = ("by thread (0,0,0)", "in block (0,0,0)")
    with refused(tt.MemoryFault, "Invalid __global__ read of size 4 bytes", "shifted_read", *place, *parts) as caught:
        module["shifted_read"][1, 64](pointer, out, 0)
    assert line_of(caught.value) == "out[i] = p[i + shift];"
    with refused(tt.MemoryFault, "Invalid __global__ write of size 4 bytes", "shifted_write", *place, *parts) as caught:
        module["shifted_write"][1, 64](p, pointer, 0)
    assert line_of(caught.value) == "out[i + shift] = p[i];"
    kept.check()


def test_a_null_argument_is_named(module: tt.cuda.CudaModule) -> None:
    out = floats(start=100)
    with refused(tt.MemoryFault, "(a null pointer: argument 0, p)") as caught:
        module["shifted_read"][1, 64](None, out, 0)
    assert caught.value.hint == "pass an array in the place of None or 0 (argument 0, p), or test the pointer first"
    with refused(tt.MemoryFault, "(near a null pointer: argument 1, out)") as caught:
        module["shifted_write"][1, 64](out, 0, 1)
    pointers = tt.cuda.compile('extern "C" __global__ void follow(float **p) { *p[0] = 1.0f; }\n')["follow"]
    with refused(tt.MemoryFault, "(a null pointer)") as caught:
        pointers[1, 1](np.zeros(1, np.uint64))
    assert caught.value.hint == "the kernel read this pointer from memory or computed it: look where it comes from"


def test_far_below_an_array_is_before_it() -> None:
    far = tt.cuda.compile('extern "C" __global__ void far(float *x, long long i) { x[i] = 1.0f; }\n')["far"]
    x = floats()
    for index, side in ((-(2**60), "before"), (2**59, "after")):
        with refused(tt.MemoryFault, f"bytes {side} the nearest allocation") as caught:
            far[1, 1](x, index)
        told = re.search(rf"is (\d+) bytes {side}", str(caught.value))
        assert told is not None
        assert abs(int(told[1]) - abs(4 * index)) < 2**40, "all arrays lie close together"
        assert isinstance(caught.value, tt.MemoryFault)
        assert caught.value.address == (tt.data_ptr(x) + 4 * index) % 2**64


@pytest.mark.parametrize(("shift", "thread", "block"), [(1, 31, 1), (33, 31, 0), (-1, 0, 0)])
def test_one_element_off_names_thread_block_and_address(
    shift: int, thread: int, block: int, module: tt.cuda.CudaModule
) -> None:
    p, out = floats(), floats(start=100)
    for kernel, verb, target in (("shifted_read", "read", p), ("shifted_write", "write", out)):
        kept = Untouched(p) if target is out else Untouched()
        address = tt.data_ptr(target) + (4 * shift if shift < 0 else target.nbytes)
        side = "4 bytes before" if shift < 0 else "1 byte after"
        parts = (
            f"Invalid __global__ {verb} of size 4 bytes in kernel {kernel}",
            f"by thread ({thread},0,0) in block ({block},0,0)",
            f"address {address:#x} is out of bounds and is {side} the nearest allocation",
            f"at {tt.data_ptr(target):#x} of 256 bytes",
        )
        with refused(tt.MemoryFault, *parts) as caught, tt.scope(workers=1):
            module[kernel][2, 32](p, out, shift)
        assert "p[i" in line_of(caught.value)
        assert caught.value.where is not None
        assert caught.value.where.file == __file__
        kept.check()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("size", [32, 33, 47])
def test_bounds_are_exact_to_the_byte(name: str, size: int, module: tt.cuda.CudaModule) -> None:
    width = TYPES[name]
    data, out = np.arange(size, dtype=np.uint8), np.zeros(width, np.uint8)
    value = np.full(width, 0xEE, np.uint8)
    argument = value.tobytes() if name == "Wide" else value.view({1: "i1", 2: "i2", 4: "i4", 8: "f8"}[width])[0]
    read, write = module[f"read_at<{name}>"][1, 1], module[f"write_at<{name}>"][1, 1]
    pointers = tt.data_ptr(data), tt.data_ptr(out)
    for offset in range(-width, size + width, width):
        before = data.copy()
        if 0 <= offset <= size - width:
            read(pointers[0], offset, pointers[1])
            assert np.array_equal(out, data[offset : offset + width])
            write(pointers[0], offset, argument)
            before[offset : offset + width] = 0xEE
        else:
            address = f"address {pointers[0] + offset:#x} is out of bounds"
            with refused(tt.MemoryFault, f"read of size {width} bytes", address):
                read(pointers[0], offset, pointers[1])
            with refused(tt.MemoryFault, f"write of size {width} bytes", address):
                write(pointers[0], offset, argument)
        assert np.array_equal(data, before)


@pytest.mark.parametrize(("name", "offset"), [("Wide", 4), ("Wide", 8), ("double", 4), ("int", 2), ("short", 1)])
def test_misaligned(name: str, offset: int, module: tt.cuda.CudaModule) -> None:
    width = TYPES[name]
    data, out = np.zeros(64, np.uint8), np.zeros(16, np.uint8)
    address = tt.data_ptr(data) + offset
    expected = f"address {address:#x} is misaligned: a multiple of {width} is needed"
    with refused(tt.MemoryFault, f"read of size {width}", "by thread (0,0,0)", expected) as caught:
        module[f"read_at<{name}>"][1, 1](tt.data_ptr(data), offset, tt.data_ptr(out))
    assert line_of(caught.value) == "*out = *(const T *)(p + offset);"


def test_float4_misaligned_in_one_lane(module: tt.cuda.CudaModule) -> None:
    source = """
extern "C" __global__ void sum(const float *p, float *out) {
    float4 v = *(const float4 *)(p + 4 * threadIdx.x + (threadIdx.x == 5));
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
"""
    p, out = floats(256), floats()
    kept = Untouched(p, out)
    address = tt.data_ptr(p) + 84
    with refused(tt.MemoryFault, "read of size 16", "by thread (5,0,0)", f"{address:#x} is misaligned") as caught:
        tt.cuda.compile(source, arch="sm_90")["sum"][1, 32](p, out)
    assert line_of(caught.value).startswith("float4 v")
    kept.check()


@pytest.mark.parametrize(("shift", "thread"), [(1, 63), (32, 32), (-1, 0), (10_000, 0)])
def test_shared_memory(shift: int, thread: int, module: tt.cuda.CudaModule) -> None:
    out, limit = floats(start=100), "out of bounds: the block has 256 bytes of shared memory"
    kept = Untouched(out)
    with refused(tt.MemoryFault, "Invalid __shared__ write", f"by thread ({thread},0,0)", limit) as caught:
        module["shared_write"][1, 64, 256](out, shift)
    assert line_of(caught.value) == "tile[threadIdx.x + shift] = threadIdx.x;"
    kept.check()
    with refused(tt.MemoryFault, "Invalid __shared__ read", f"by thread ({thread},0,0)", limit) as caught:
        module["shared_read"][1, 64](out, shift)
    assert line_of(caught.value) == "out[threadIdx.x] = tile[threadIdx.x + shift];"
    first = thread // 32 * 32
    assert np.array_equal(out[first : first + 32], floats(start=100)[first : first + 32]), (
        "the warp stores nothing more"
    )


def test_shared_memory_that_was_not_asked_for(module: tt.cuda.CudaModule) -> None:
    with refused(tt.MemoryFault, "__shared__ write", "the block has 0 bytes of shared memory"):
        module["shared_write"][1, 64](floats(), 0)


@pytest.mark.parametrize(
    ("write", "read", "verb"), [(16, 0, "write"), (-1, 0, "write"), (0, 16, "read"), (0, -1, "read")]
)
def test_local_arrays(write: int, read: int, verb: str, module: tt.cuda.CudaModule) -> None:
    out = np.array([3], np.int32)
    limit = "out of bounds: a thread has 64 bytes of local memory"
    with refused(tt.MemoryFault, f"Invalid __local__ {verb} of size 4", "by thread (0,0,0)", limit) as caught:
        module["local_array"][1, 1](out, write, read)
    assert line_of(caught.value) == ("table[write] = 7;" if verb == "write" else "out[0] = table[read];")
    assert out[0] == 3
    module["local_array"][1, 1](out, 0, 15)
    assert out[0] == 45


@pytest.mark.parametrize("i", [64, -1])
def test_atomics(i: int, module: tt.cuda.CudaModule) -> None:
    counters = np.zeros(64, np.int32)
    with refused(tt.MemoryFault, "Invalid __global__ atomic of size 4", "out of bounds") as caught:
        module["atomic_at"][1, 32](counters, i)
    assert "atomicAdd(p + i, 1)" in line_of(caught.value)
    assert not counters.any()


GUARDS: list[tuple[str, Callable[[tt.cuda.CudaModule], object]]] = [
    ("a branch", lambda module: module["guarded"][1, 64](floats(40), floats(), 40)),
    ("a warp of one lane", lambda module: module["guarded"][1, 64](floats(33), floats(), 33)),
    ("no lane at all", lambda module: module["guarded"][1, 64](None, floats(), 0)),
    ("a predicate", lambda module: tt.ptx.compile(PREDICATED)["predicated"][1, 64](floats(40), floats(), 40)),
    ("a predicate, no lane", lambda module: tt.ptx.compile(PREDICATED)["predicated"][1, 64](None, floats(), 0)),
]
PREDICATED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry predicated(.param .u64 source, .param .u64 out, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [source];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x;
    setp.lt.s32 %p1, %r1, %r2;
    mul.wide.s32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    mov.f32 %f1, 0fBF800000;
    @%p1 ld.global.f32 %f1, [%rd4];
    st.global.f32 [%rd5], %f1;
    @!%p1 st.global.f32 [%rd5], 0fBF800000;
    ret;
}
"""


@pytest.mark.parametrize("run", [row[1] for row in GUARDS], ids=[row[0] for row in GUARDS])
def test_guarded_accesses_do_not_fault(run: Callable[[tt.cuda.CudaModule], object], module: tt.cuda.CudaModule) -> None:
    assert isinstance(run(module), tt.LaunchReport)


def test_a_guard_keeps_the_values(module: tt.cuda.CudaModule) -> None:
    for kernel in (module["guarded"], tt.ptx.compile(PREDICATED)["predicated"]):
        p, out = floats(40), floats(start=100)
        kernel[1, 64](p, out, 40)
        assert np.array_equal(out, np.concatenate([p, np.full(24, -1, np.float32)]))
