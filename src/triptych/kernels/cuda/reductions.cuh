// What a warp's or a block's threads find out together: a sum, or a maximum, that all of them then have.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr unsigned ALL_LANES = 0xffffffff;
constexpr float LOWEST = -3.4028234e38f;  // a maximum of nothing; no infinity, so that exp(-∞ - LOWEST) is 0

struct Sum {
    static __device__ float of(float a, float b) { return a + b; }
};
struct Maximum {
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

// By shuffles, from register to register: five steps.
template <typename Operation> __device__ float over_warp(float value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value = Operation::of(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

// By shared memory from warp to warp. Blocks have one axis, of whole warps.
template <typename Operation> __device__ float over_block(float value) {
    __shared__ float of_warps[32];
    value = over_warp<Operation>(value);
    __syncthreads();  // all have read what the last call left here
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warps[0];
#pragma unroll 1
    for (int warp = 1; warp < blockDim.x / 32; ++warp) value = Operation::of(value, of_warps[warp]);  // broadcasts
    return value;
}
