// The online softmax of a lane's two rows of scores, which lie in registers as mma and wgmma leave them: tiles of 8
// columns, of which lane l has rows l / 4 (elements 0 and 1) and l / 4 + 8 (2 and 3), columns 2 (l % 4) and the next.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <stdint.h>

__device__ inline float exp2_approximate(float x) {  // one instruction of the special function unit
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Hides keys from n_kv on, and those more than `ahead` behind a row. `row` is the warp's first, `key` the tile's.
template <int TILES>
__device__ inline void mask(float (&scores)[TILES][4], int row, int key, int ahead, int n_kv) {
    const int lane = threadIdx.x % 32;
    for (int t = 0; t < TILES; ++t)
        for (int i = 0; i < 4; ++i) {
            const int column = key + 8 * t + lane % 4 * 2 + i % 2, own = row + lane / 4 + i / 2 * 8;
            if (column >= n_kv || column > own + ahead) scores[t][i] = -CUDART_INF_F;
        }
}

struct OnlineSoftmax {
    float maximum[2] = {-CUDART_INF_F, -CUDART_INF_F};  // of each row, so far; before `scale`
    float sum[2] = {};                                  // of this lane's part of each row, so far
    float scale;                                        // of the scores, with log2(e): exp(x) is exp2(x log2(e))

    __device__ explicit OnlineSoftmax(float scale) : scale(scale) {}

    // Scores to exponentials below the maximum that is known now; what was summed up before shrinks by `correction`.
    template <int TILES> __device__ void take(float (&scores)[TILES][4], float (&correction)[2]) {
        for (int row = 0; row < 2; ++row) {
            float largest = maximum[row];
            for (int t = 0; t < TILES; ++t)
                largest = fmaxf(largest, fmaxf(scores[t][2 * row], scores[t][2 * row + 1]));
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));  // four lanes share a row
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
            correction[row] = exp2_approximate((maximum[row] - largest) * scale);
            maximum[row] = largest;
            sum[row] *= correction[row];
            for (int t = 0; t < TILES; ++t)
                for (int i = 2 * row; i < 2 * row + 2; ++i) {
                    scores[t][i] = exp2_approximate(scores[t][i] * scale - largest * scale);  // one fma
                    sum[row] += scores[t][i];
                }
        }
    }

    // What the products of a row are to be multiplied by at the end.
    __device__ float reciprocal(int row) const {
        float all = sum[row] + __shfl_xor_sync(~0u, sum[row], 1);
        all += __shfl_xor_sync(~0u, all, 2);
        return 1 / all;
    }
};

template <int TILES> __device__ inline void shrink(float (&products)[TILES][4], const float (&by)[2]) {
    for (int t = 0; t < TILES; ++t)
        for (int i = 0; i < 4; ++i) products[t][i] *= by[i / 2];
}

// Two singles, rounded, as a register of tensor cores' operands holds them: `low` has the lower address.
template <typename T> __device__ inline uint32_t pack(float low, float high);
template <> __device__ inline uint32_t pack<half>(float low, float high) {
    half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<uint32_t &>(pair);
}
template <> __device__ inline uint32_t pack<__nv_bfloat16>(float low, float high) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<uint32_t &>(pair);
}

// Scores become the left operand of the next product where they are: no lane needs another's.
template <typename T, int TILES>
__device__ inline void as_operand(uint32_t (&a)[TILES / 2][4], const float (&scores)[TILES][4]) {
    for (int t = 0; t < TILES; ++t)
        for (int row = 0; row < 2; ++row)
            a[t / 2][t % 2 * 2 + row] = pack<T>(scores[t][2 * row], scores[t][2 * row + 1]);
}
