#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> __device__ float wide(T x) { return (float)x; }

// 128 bits of 2-byte numbers at a time, loaded with a hint and stored with another: output = a + b * scale.
template <typename T> struct alignas(16) Pack { T of[8]; };
template <typename T> __global__ void scaled_sum(const T *a, const T *b, T *output, float scale, int packs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= packs) return;
    Pack<T> x, y, sum;
    *(int4 *)&x = __ldcs((const int4 *)a + i);
    *(int4 *)&y = __ldg((const int4 *)b + i);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum.of[k] = (T)(wide(x.of[k]) + wide(y.of[k]) * scale);
    __stcg((int4 *)output + i, *(int4 *)&sum);
}

// Arithmetic of two halves at once.
extern "C" __global__ void of_pairs(const __half2 *a, const __half2 *b, __half2 *fused, __half2 *largest, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    fused[i] = __hfma2(a[i], b[i], __low2half2(a[i]));
    largest[i] = __hmax2(a[i], __lowhigh2highlow(b[i]));
}

// Adds to single bf16 numbers, wherever they lie, by an atomic on the pair that holds each.
extern "C" __global__ void add_by_pairs(__nv_bfloat16 *sums, const int *places, const __nv_bfloat16 *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    size_t address = (size_t)(sums + places[i]);
    __nv_bfloat16 zero = __float2bfloat16(0.0f);
    __nv_bfloat162 both = address & 2 ? __halves2bfloat162(zero, values[i]) : __halves2bfloat162(values[i], zero);
    atomicAdd((__nv_bfloat162 *)(address & ~(size_t)3), both);
}

// The same on halves, by compare and swap of the word; and one instruction for a single half.
extern "C" __global__ void add_by_swaps(__half *sums, const int *places, const __half *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    size_t address = (size_t)(sums + places[i]);
    unsigned *word = (unsigned *)(address & ~(size_t)3), shift = (address & 2) * 8, old = *word, seen;
    do {
        seen = old;
        __half sum = __ushort_as_half((unsigned short)(seen >> shift)) + values[i];
        unsigned wanted = (seen & ~(0xffffu << shift)) | (unsigned)__half_as_ushort(sum) << shift;
        old = atomicCAS(word, seen, wanted);
    } while (old != seen);
}
extern "C" __global__ void add_alone(__half *sums, const int *places, const __half *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(sums + places[i], values[i]);
}

// A maximum of doubles and a product of floats, which no instruction gives, by compare and swap.
extern "C" __global__ void swaps(double *largest, float *product, unsigned short *shorts, const double *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    auto word = (unsigned long long *)largest;
    unsigned long long old = *word, seen;
    do {
        seen = old;
        if (__longlong_as_double(seen) >= values[i]) break;
        old = atomicCAS(word, seen, (unsigned long long)__double_as_longlong(values[i]));
    } while (old != seen);
    int bits = __float_as_int(*product), before;
    do {
        before = bits;
        bits = atomicCAS((int *)product, before, __float_as_int(__int_as_float(before) * (i % 2 ? 2.0f : 0.5f)));
    } while (bits != before);
    unsigned short now = shorts[i % 3], then;
    do {
        then = now;
        now = atomicCAS(&shorts[i % 3], then, (unsigned short)(then + i));
    } while (now != then);
}
