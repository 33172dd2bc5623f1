"""Functions that are called: what is passed, recursion, pointers, lanes that call apart and come back together."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from both import HEADER, run_both

import triptych as tt

SOURCE = r"""
__device__ __noinline__ int collatz(int v) {
    int n = 0;
    while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; ++n; }
    return n;
}
__device__ __noinline__ float scale(float x, int times) { for (int k = 0; k < times; ++k) x = x * 1.5f - 1; return x; }
extern "C" __global__ void sites(const int* x, int* y, float* z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int r = collatz(x[i]);
    if (x[i] % 3 == 0) r += collatz(x[i] + 1) * 100;
    else if (x[i] % 3 == 1) r -= collatz(x[i] + 2);
    for (int k = 0; k < x[i] % 5; ++k) { r += collatz(k + 1); z[i] += scale(k, x[i] % 4); }
    y[i] = r;
}
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ int female(int n);
__device__ __noinline__ int male(int n) { return n == 0 ? 0 : n - female(male(n - 1)); }
__device__ __noinline__ int female(int n) { return n == 0 ? 1 : n - male(female(n - 1)); }
extern "C" __global__ void recursion(const int* x, int* y) {
    int i = threadIdx.x, v = x[i];
    if (v % 2) y[i] = fib(v % 9) + 1000 * male(v % 11);
    else y[i] = ackermann(2, v % 3);
    y[i] += female(v % 7) * 100000;
}
__device__ __noinline__ void sort(int* v, int n) {
    if (n < 2) return;
    int left[8], right[8], l = 0, r = 0;
    for (int k = 1; k < n; ++k) if (v[k] < v[0]) left[l++] = v[k]; else right[r++] = v[k];
    int pivot = v[0];
    sort(left, l); sort(right, r);
    for (int k = 0; k < l; ++k) v[k] = left[k];
    v[l] = pivot;
    for (int k = 0; k < r; ++k) v[l + 1 + k] = right[k];
}
extern "C" __global__ void sorted(const int* x, int* y) {
    int own[8];
    for (int k = 0; k < 8; ++k) own[k] = x[threadIdx.x * 8 + k];
    sort(own, 8);
    for (int k = 0; k < 8; ++k) y[threadIdx.x * 8 + k] = own[k];
}
struct Small { char c[3]; };
struct Large { float a; double b; short c[5]; long long d; };
__device__ __noinline__ Small turn(Small s) { Small t; t.c[0] = s.c[2]; t.c[1] = s.c[0]; t.c[2] = s.c[1]; return t; }
__device__ __noinline__ Large change(Large v, Small s, int k, const Large& other) {
    v.a += s.c[0]; v.b *= s.c[1]; v.c[k % 5] += s.c[2]; v.d -= other.d;
    return v;
}
extern "C" __global__ void structs(const int* x, double* y) {
    int i = threadIdx.x;
    Small s; for (int k = 0; k < 3; ++k) s.c[k] = x[i] % (k + 5);
    s = turn(s);
    Large v; v.a = x[i]; v.b = i; v.d = 7LL << (i % 40); for (int k = 0; k < 5; ++k) v.c[k] = k * i;
    Large w = change(v, s, i, v);
    w = change(w, turn(s), i + 1, v);
    double sum = w.a + w.b + w.d + s.c[0];
    for (int k = 0; k < 5; ++k) sum += w.c[k] * (k + 1);
    y[i] = sum;
}
typedef int (*Operation)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int power(int a, int b) { int r = 1; for (int k = 0; k < b % 6; ++k) r *= a; return r; }
__device__ Operation operations[3] = {add, subtract, power};
extern "C" __global__ void pointers(const int* x, int* y, int which) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = operations[x[i] % 3](x[i], i) * 3 + operations[which](i, 2);
}
struct Shape {
    int k;
    __device__ virtual int area() { return k; }
    __device__ virtual int twice() { return 2 * area(); }
};
struct Square : Shape { __device__ int area() override { return k * k; } };
struct Cube : Square { __device__ int area() override { return 6 * Square::area(); } };
extern "C" __global__ void virtuals(const int* x, int* y) {
    Shape a; Square b; Cube c;
    Shape* all[3] = {&a, &b, &c};
    Shape* one = all[x[threadIdx.x] % 3];
    one->k = x[threadIdx.x];
    y[threadIdx.x] = one->twice() + one->area();
}
__device__ __noinline__ int exchange(int v, int offset) {
    __shared__ int values[96];
    values[threadIdx.x] = v;
    __syncthreads();
    int other = values[(threadIdx.x + offset) % blockDim.x];
    __syncthreads();
    return other + __shfl_xor_sync(~0u, v, 1);
}
extern "C" __global__ void barriers(const int* x, int* y, int rounds) {
    int v = x[threadIdx.x];
    for (int k = 0; k < rounds; ++k) v = exchange(v, k + 1) % 1000;
    y[threadIdx.x] = v;
}
__device__ __noinline__ void count_down(int* left, int step) { *left -= step; if (*left < 0) asm volatile("exit;"); }
extern "C" __global__ void leaving(const int* x, int* y) {
    int left = x[threadIdx.x];
    for (int k = 0; k < 10; ++k) { count_down(&left, k); y[threadIdx.x] = left; }
    y[threadIdx.x] += 1000;
}
"""


@pytest.fixture(scope="module", params=["sm_80", "sm_100"])
def ptx(request: pytest.FixtureRequest) -> str:
    """Of both compilers: NVRTC has another one for newer targets."""
    return tt.cuda.compile(SOURCE, arch=request.param).ptx


def numbers(count: int, *, high: int = 1000, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, high, count).astype(np.int32)


def collatz(v: int) -> int:
    n = 0
    while v != 1:
        v = 3 * v + 1 if v & 1 else v // 2
        n += 1
    return n


def scale(x: float, times: int) -> np.float32:
    result = np.float32(x)
    for _ in range(times):
        exact = float(result) * 1.5 - 1  # one rounding: the compiler fuses the two
        result = np.float32(exact)
    return result


def test_one_function_from_several_sites(ptx: str) -> None:
    x = numbers(128)
    arrays = run_both(ptx, "sites", 2, 64, x, np.zeros(128, np.int32), np.zeros(128, np.float32)).arrays
    for i, v in enumerate(x.tolist()):
        r, z = collatz(v), np.float32(0)
        r += collatz(v + 1) * 100 if v % 3 == 0 else -collatz(v + 2) if v % 3 == 1 else 0
        for k in range(v % 5):
            r += collatz(k + 1)
            z = np.float32(z + scale(k, v % 4))
        assert (arrays[1][i], arrays[2][i]) == (r, z)


@cache
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@cache
def male(n: int) -> int:
    return 0 if n == 0 else n - female(male(n - 1))


@cache
def female(n: int) -> int:
    return 1 if n == 0 else n - male(female(n - 1))


def test_recursion_of_several_functions(ptx: str) -> None:
    x = numbers(96)
    (_, y) = run_both(ptx, "recursion", 1, 96, x, np.zeros(96, np.int32)).arrays
    for v, found in zip(x.tolist(), y.tolist(), strict=True):
        own = fib(v % 9) + 1000 * male(v % 11) if v % 2 else 2 * (v % 3) + 3
        assert found == own + female(v % 7) * 100000


def test_recursion_with_local_arrays(ptx: str) -> None:
    x = numbers(40 * 8, seed=9)
    (_, y) = run_both(ptx, "sorted", 1, 40, x, np.zeros(40 * 8, np.int32)).arrays
    np.testing.assert_array_equal(y.reshape(40, 8), np.sort(x.reshape(40, 8), axis=1))


def test_structures_by_value(ptx: str) -> None:
    x = numbers(64)
    (_, y) = run_both(ptx, "structs", 1, 64, x, np.zeros(64, np.float64)).arrays
    for i, v in enumerate(x.tolist()):
        s = [v % 5, v % 6, v % 7]
        turned = [s[2], s[0], s[1]]
        again = [turned[2], turned[0], turned[1]]
        d = 7 << (i % 40)
        a, b, c = np.float32(v), float(i), [k * i for k in range(5)]
        for small, k in ((turned, i), (again, i + 1)):
            a, b = np.float32(a + np.float32(small[0])), b * small[1]
            c[k % 5] += small[2]
        total = float(a) + b + (d - d - d) + turned[0]
        assert y[i] == total + sum(value * (k + 1) for k, value in enumerate(c))


def test_pointers_to_functions(ptx: str) -> None:
    x = numbers(96, high=50)
    (_, y) = run_both(ptx, "pointers", 1, 96, x, np.zeros(96, np.int32), np.int32(1)).arrays
    for i, v in enumerate(x.tolist()):
        own = (v + i, v - i, v ** (i % 6))[v % 3]
        assert y[i] == np.int64(own * 3 + i - 2).astype(np.int32)


def test_virtual_functions(ptx: str) -> None:
    x = numbers(64)
    (_, y) = run_both(ptx, "virtuals", 1, 64, x, np.zeros(64, np.int32)).arrays
    assert y.tolist() == [3 * (v, v * v, 6 * v * v)[v % 3] for v in x.tolist()]


def test_barriers_and_shuffles_in_a_function(ptx: str) -> None:
    x = numbers(96)
    (_, y) = run_both(ptx, "barriers", 1, 96, x, np.zeros(96, np.int32), np.int32(5)).arrays
    v = x.astype(np.int64)
    for k in range(5):
        v = (np.roll(v, -(k + 1)) + v.reshape(-1, 2)[:, ::-1].reshape(-1)) % 1000
    np.testing.assert_array_equal(y, v)


def test_lanes_that_end_in_a_function(ptx: str) -> None:
    x = numbers(64, high=60)
    (_, y) = run_both(ptx, "leaving", 1, 64, x, np.zeros(64, np.int32)).arrays
    for v, found in zip(x.tolist(), y.tolist(), strict=True):
        left = [v - k * (k + 1) // 2 for k in range(10)]
        assert found == (left[-1] + 1000 if left[-1] >= 0 else next(n for n in reversed(left) if n >= 0))


BY_HAND = (
    HEADER
    + """
.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }
.func (.param .b32 r) more(.param .b32 a)
{ .reg .b32 %x; .reg .pred %p; ld.param.b32 %x, [a]; setp.gt.u32 %p, %x, 40; st.param.b32 [r], 7; @%p ret;
  add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }
.func (.param .align 8 .b8 r[12]) wide(.param .align 8 .b8 a[12], .param .b64 place)
{ .reg .b64 %d, %at; .reg .b32 %x;
  ld.param.b64 %d, [a]; ld.param.b32 %x, [a+8]; ld.param.b64 %at, [place]; st.global.b32 [%at], %x;
  st.param.b64 [r], %d; st.param.b32 [r+8], %x; ret; }
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .b32 %t, %a, %b, %c, %n; .reg .b64 %o, %d, %f; .reg .pred %p, %q;
    .param .b32 kept; .param .b32 given; .param .b32 taken; .param .align 8 .b8 both[12];
    ld.param.u64 %o, [out]; ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %d, %t, 4; add.u64 %o, %o, %d;
    st.param.b32 [kept], %t;               // written before another call, used by two
    call (%a), twice, (%t);                // registers as they are
    call (taken), more, (kept);
    ld.param.b32 %b, [taken];
    call (taken), twice, (kept);
    ld.param.b32 %c, [taken]; add.u32 %b, %b, %c;
    add.u32 %a, %a, %b;
    setp.lt.u32 %p, %t, 9;
    mov.u32 %c, 100;
    @%p call (%c), twice, (21);            // guarded, with a literal
    add.u32 %a, %a, %c;
    setp.lt.u32 %q, %t, %n;
    mov.u64 %f, twice;
    @%q mov.u64 %f, more;
    st.param.b32 [given], %a;
    LIST: .calltargets twice, more;
    call (taken), %f, (given), LIST;
    ld.param.b32 %a, [taken];
    st.param.b64 [both], %o; st.param.b32 [both+8], %a;
    call (both), wide, (both, %o);         // what is given is taken back
    ld.param.b32 %b, [both+8]; ld.param.b64 %f, [both];
    sub.u64 %f, %f, %o; cvt.u32.u64 %c, %f;
    add.u32 %b, %b, %c;
    st.global.b32 [%o+512], %b;
    ret;
}
"""
)


def test_calls_by_hand() -> None:
    (y,) = run_both(BY_HAND, "k", 1, 64, np.zeros(192, np.uint32), np.uint32(30)).arrays

    def more(v: int) -> int:
        return 7 if v > 40 else v + 1

    for t in range(64):
        a = 2 * t + more(t) + 2 * t + (42 if t < 9 else 100)
        a = more(a) if t < 30 else 2 * a
        assert (y[t], y[128 + t]) == (a, a)


@pytest.mark.parametrize("before", ["bra AROUND;", "call (%r1), twice, (%r1); bra AROUND;"])
def test_a_call_that_nothing_reaches(before: str) -> None:
    text = f"""{HEADER}
.func (.param .b32 r) twice(.param .b32 a)
{{ .reg .b32 %x; ld.param.b32 %x, [a]; shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }}
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<2>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %d0, %r0, 4, %d0; add.u32 %r1, %r0, 5;
    {before}
    call (%r1), twice, (%r1);
    AROUND: st.global.u32 [%d0], %r1; ret;
}}
"""
    (y,) = run_both(text, "k", 1, 32, np.zeros(32, np.uint32)).arrays
    np.testing.assert_array_equal(y, (np.arange(32) + 5) * (2 if "call" in before else 1))
